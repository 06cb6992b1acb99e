"""How objects of one version of a custom resource are written: pruned, defaulted and validated by its schema.

The schema is compiled once (`prepare`), so a write only walks the object. x-kubernetes-validations are not evaluated; the
definition's author gets a warning.
"""

import hashlib
import threading
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import msgspec
import orjson

from argosy.kube import names, schema, typecheck
from argosy.server.crd.columns import columns_printer
from argosy.server.crd.defaulting import apply_defaults
from argosy.server.crd.embedded import mistyped_resource, validate_embedded
from argosy.server.crd.jsonpath import parse
from argosy.server.crd.listtypes import validate_lists
from argosy.server.crd.problems import fields
from argosy.server.crd.pruning import prune, prune_nulls
from argosy.server.crd.ratcheting import introduced
from argosy.server.crd.structure import Structure
from argosy.server.crd.validation import compile_schema
from argosy.server.crd.weight import weigh
from argosy.server.fielderrors import FieldError, invalid
from argosy.server.registry import Decoded, Object, Strategy

__all__ = ["CustomResourceStrategy", "Version"]

_ANY_SCHEMA: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_MAX_INT32 = 2**31 - 1
_STANDARD_FINALIZERS = ("orphan", "foregroundDeletion", "kubernetes")
_GO_TYPES: dict[type, str] = {
    str: "string", bool: "bool", int: "int64", float: "float64", dict: "map[string]interface {}", list: "[]interface {}",
}  # fmt: skip


class _Schema(msgspec.Struct):
    #: As stored: most schemas are never read while the process runs.
    schema: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"null"), name="openAPIV3Schema")


class Version(msgspec.Struct, rename="camel"):
    """One entry of a definition's spec.versions."""

    name: str = ""
    served: bool = False
    storage: bool = False
    deprecated: bool = False
    deprecation_warning: str = ""
    schema: _Schema | None = None
    subresources: Object | None = None
    additional_printer_columns: list[Object] = []
    selectable_fields: list[Object] = []


class _Rules:
    """A schema, compiled."""

    def __init__(self, schema: Object):
        self.structure = Structure(schema, root=True)
        self.check = compile_schema(schema)
        self.status_structure = self.structure.properties.get("status")
        self.check_status = compile_schema((schema.get("properties") or {}).get("status") or {})
        self.weight = weigh(schema)


class CustomResourceStrategy(Strategy):
    """`prepare` compiles the schema, which takes up to a second for a large one; otherwise the first use compiles it."""

    unconditional_update = False
    untyped = True

    def __init__(self, version: Version):
        self._schema = version.schema.schema if version.schema is not None else msgspec.Raw(b"null")
        subresources = version.subresources or {}
        self._has_status = subresources.get("status") is not None
        self._scale: dict[str, str] | None = subresources.get("scale")
        self._metadata = _object_meta()
        self._made: _Rules | None = None
        self._making = threading.Lock()
        self.selectable = _selectable(version)
        #: The columns of `kubectl get`.
        self.printer = columns_printer(version.additional_printer_columns)

    @property
    def schema(self) -> Object:
        """A fresh tree of the schema, the caller's own."""
        return orjson.loads(memoryview(self._schema)) or dict(_ANY_SCHEMA)

    @cached_property
    def schema_digest(self) -> str:
        """Differs if the schema differs."""
        return hashlib.sha256(self._schema).hexdigest()

    @property
    def ready(self) -> bool:
        return self._made is not None

    def prepare(self) -> None:
        with self._making:
            if self._made is None:
                self._made = _Rules(self.schema)

    @property
    def _rules(self) -> _Rules:
        if self._made is None:
            self.prepare()
        assert self._made is not None
        return self._made

    def effort(self, size: int) -> int:
        return size if self._made is None else self._made.weight.effort(size)

    def from_stored(self, obj: Object) -> None:
        """An object stored in another version, or by an older schema, shows only the fields of this one."""
        prune(obj, self._rules.structure)

    def decode(self, obj: Object) -> Decoded:
        unknown = tuple(prune(obj, self._rules.structure))
        mistyped = typecheck.check(self._metadata, obj["metadata"]).mistyped
        wrong = mistyped_resource(obj, self._rules.structure)
        return Decoded(unknown, mistyped if wrong is None else (*mistyped, str(wrong)))

    def unreadable(self, obj: Object) -> str | None:
        if type(obj["metadata"]) is not dict:
            return None
        return next(iter(typecheck.check(self._metadata, obj["metadata"]).mistyped), None)

    def default(self, obj: Object) -> None:
        prune_nulls(obj, self._rules.structure)
        apply_defaults(obj, self._rules.structure)

    def prepare_create(self, obj: Object) -> None:
        if self._has_status:
            obj.pop("status", None)

    def prepare_update(self, new: Object, old: Object) -> None:
        if self._has_status:
            super().prepare_update(new, old)

    def prepare_status(self, new: Object, old: Object) -> None:
        """Only status is taken; the writer's resourceVersion stays, for the conflict check."""
        written = new["metadata"].get("resourceVersion")
        super().prepare_status(new, old)
        new["metadata"] = dict(old["metadata"])
        if written:
            new["metadata"]["resourceVersion"] = written

    def generation_grows(self, new: Object, old: Object) -> bool:
        """Without a status subresource, status is content like any other."""
        if not self._has_status and not self.same(new.get("status"), old.get("status")):
            return True
        return super().generation_grows(new, old)

    def validate(self, obj: Object) -> list[FieldError]:
        problems = self._rules.check(obj)
        errors = fields(problems) if problems else []
        errors += self._validate_scale(obj, "specReplicasPath") + self._validate_scale_status(obj)
        return errors + self.validate_parts(obj)

    def validate_parts(self, obj: Object) -> list[FieldError]:
        return validate_embedded(obj, self._rules.structure) + validate_lists(obj, self._rules.structure)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        problems = self._rules.check(new)
        errors = fields(introduced(problems, new, old, self._rules.structure)) if problems else []
        errors += self._validate_scale(new, "specReplicasPath") + self._validate_scale_status(new)
        errors += validate_embedded(new, self._rules.structure)
        duplicates = validate_lists(new, self._rules.structure)
        if duplicates and not validate_lists(old, self._rules.structure):
            errors += duplicates
        return errors

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        errors: list[FieldError] = []
        if "status" in new:
            problems = self._rules.check_status(new["status"])
            if problems and self._rules.status_structure is not None:
                problems = introduced(problems, new["status"], old.get("status"), self._rules.status_structure)
            errors += fields(problems or (), "status")
        errors += self._validate_scale_status(new)
        duplicates = validate_lists(new, self._rules.structure)
        if duplicates and not validate_lists(old, self._rules.structure):
            errors += duplicates
        return errors

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        finalizers = sorted(set(obj["metadata"].get("finalizers") or ()))
        return [text for finalizer in finalizers for text in _finalizer_warnings(finalizer)]

    def _validate_scale(self, obj: Object, which: str) -> list[FieldError]:
        path = (self._scale or {}).get(which)
        if not path:
            return []
        value, problem = _nested(obj, path, int)
        if problem:
            return [invalid(path, 0, problem)]
        if value is None or 0 <= value <= _MAX_INT32:
            return []
        if value < 0:
            return [invalid(path, value, "should be a non-negative integer")]
        return [invalid(path, value, f"should be less than or equal to {_MAX_INT32}")]

    def _validate_scale_status(self, obj: Object) -> list[FieldError]:
        errors = self._validate_scale(obj, "statusReplicasPath")
        path = (self._scale or {}).get("labelSelectorPath")
        if path:
            _, problem = _nested(obj, path, str)
            if problem:
                errors.append(invalid(path, "", problem))
        return errors


def _object_meta() -> schema.Type:
    """The type of metadata, which is the same in all kinds."""
    config_map = schema.load().kind("", "v1", "ConfigMap")
    assert config_map is not None
    return config_map.fields["metadata"]


def _nested(obj: Object, path: str, wanted: type) -> tuple[Any, str]:
    """The value at a dotted path and, if its type or one on the way is wrong, the error of Go's accessor."""
    value: Any = obj
    steps = path.removeprefix(".").split(".")
    walked = ""
    for step in steps:
        if type(value) is not dict:
            return None, _accessor_error(walked, value, "map[string]interface{}", path)
        if step not in value:
            return None, ""
        value = value[step]
        walked += f".{step}"
    if type(value) is not wanted:
        return None, _accessor_error(walked, value, _GO_TYPES[wanted], path)
    return value, ""


def _accessor_error(walked: str, value: Any, wanted: str, path: str) -> str:
    shown = str(int(value)) if type(value) is float and value.is_integer() else str(value)
    return f"{path} accessor error: {shown} is of the type {_GO_TYPES.get(type(value), '<nil>')}, expected {wanted}"


def _selectable(version: Version) -> Mapping[str, Callable[[Object], str]]:
    result: dict[str, Callable[[Object], str]] = {}
    for field in version.selectable_fields:
        path: str = field["jsonPath"]
        result[path.removeprefix(".")] = _value_at(path)
    return result


def _value_at(path: str) -> Callable[[Object], str]:
    parsed = parse(path)

    def value(obj: Object) -> str:
        found = parsed.find(obj)
        if not found or found[0] is None:
            return ""
        return str(found[0]).lower() if type(found[0]) is bool else str(found[0])

    return value


def _finalizer_warnings(name: str) -> list[str]:
    prefix = f'metadata.finalizers: "{name}": '
    found = [prefix + text for text in names.qualified_name_errors(name)]
    if "/" not in name and name not in _STANDARD_FINALIZERS:
        path = " including a path (/)" if "." in name else ""
        found.append(
            f"{prefix}prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers"
        )
    return found
