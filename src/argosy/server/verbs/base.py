"""What the verbs share: the things they work on, and reading an object out of a request."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import orjson
from msgspec import structs

from argosy.kube import schema
from argosy.kube.errors import ApiError
from argosy.kube.transport import Response
from argosy.server import metadata, status
from argosy.server.admission import Admission
from argosy.server.encoding import decode_body
from argosy.server.entry import Entry, object_key, served
from argosy.server.fielderrors import FieldError, invalid
from argosy.server.registry import Decoded, Kind, Object, Registry
from argosy.server.request import Call
from argosy.server.store import Store

__all__ = [
    "JSON",
    "Api",
    "answer",
    "check_object",
    "current",
    "decode_served",
    "misnamed",
    "read_object",
    "refused",
    "to_stored",
    "warned",
]

JSON = {"content-type": "application/json"}
_OWN_SCHEMES = ("apiextensions.k8s.io", "apiregistration.k8s.io")


class Api:
    """The parts a verb needs."""

    def __init__(self, registry: Registry, store: Store, admission: Admission):
        self.registry = registry
        self.store = store
        self.admission = admission


def answer(call: Call, body: bytes, code: int = 200) -> Response:
    return warned(call, Response(code, JSON, body))


def warned(call: Call, response: Response) -> Response:
    """The answer, with what the call's warnings say in its headers."""
    if not call.warnings:
        return response
    headers = {**response.headers, "warning": _warning_header(call.warnings)}
    return structs.replace(response, headers=headers)


def _warning_header(warnings: Sequence[str]) -> str:
    texts = (" ".join(text.split()).replace("\\", "\\\\").replace('"', '\\"') for text in dict.fromkeys(warnings))
    return ", ".join(f'299 - "{text[:2048]}"' for text in texts)


def current(api: Api, call: Call) -> Entry:
    """The object the call names. Raises 404."""
    entry = api.store.get(object_key(call.kind, call.namespace, call.name))
    if entry is None:
        raise status.not_found(call.kind, call.name)
    return entry


def decode_served(kind: Kind, entry: Entry) -> Object:
    """A fresh tree of the object in the served version."""
    return cast(Object, orjson.loads(served(kind, entry)))


def to_stored(kind: Kind, obj: Object) -> Object:
    """The object in the version it is stored in; changes `obj`."""
    group = kind.group if kind.storage_group is None else kind.storage_group
    version = kind.storage_version or kind.version
    if version == kind.version and group == kind.group:
        return obj
    if kind.to_storage is not None:
        kind.to_storage(obj)
    obj["apiVersion"] = f"{group}/{version}" if group else version
    return obj


def read_object(call: Call, validation: str) -> Object:
    """The object in the body, of the call's kind, its types checked. Raises 400 and 415."""
    kind = call.kind
    obj, duplicates = decode_body(call.body, call.headers.get("content-type", ""), kind.kind)
    if not isinstance(obj, dict):
        what = {list: "array", str: "string", bool: "bool", type(None): "null"}.get(type(obj), "number")
        text = f"json: cannot unmarshal {what} into an object with apiVersion and kind"
        raise status.bad_request(f"the object provided is unrecognized (must be of type {kind.kind}): {text}")

    def refuse(text: str) -> ApiError:
        name, api_version = str(obj.get("kind") or kind.kind), str(obj.get("apiVersion") or kind.api_version)
        version = api_version.rpartition("/")[2]
        return status.bad_request(f'{name} in version "{version}" cannot be handled as a {kind.kind}: {text}')

    for field in ("apiVersion", "kind"):
        if not isinstance(obj.get(field) or "", str):
            raise _unnamed(kind, call.body, field, obj[field])
    if not kind.builtin:
        _check_custom(kind, obj, call.body)
    return check_object(call, kind, obj, validation, refuse, duplicates)


def _unnamed(kind: Kind, body: bytes, field: str, value: Any) -> ApiError:
    shown = body.decode(errors="replace")
    shown = f"{shown[:30]} ..." if len(shown) > 30 else shown
    why = f"json: cannot unmarshal {metadata.json_type(value)} into Go struct field .{field} of type string ({shown})"
    return status.bad_request(
        f"the object provided is unrecognized (must be of type {kind.kind}): couldn't get version/kind; json parse error: {why}"
    )


def _check_custom(kind: Kind, obj: Object, body: bytes) -> None:
    """Bodies of custom resources say their kind and version, unlike those of built-in ones."""
    if not obj.get("kind"):
        text = body.decode(errors="replace")
        why = f"Object 'Kind' is missing in '{text}' ({text[:30]} ...)"
        raise status.bad_request(f"the object provided is unrecognized (must be of type {kind.kind}): {why}")
    if obj.get("apiVersion") != kind.api_version:
        expected = f"the expected API version ({kind.api_version})"
        raise status.bad_request(
            f"the API version in the data ({obj.get('apiVersion') or ''}) does not match {expected}"
        )


def check_object(
    call: Call,
    kind: Kind,
    obj: Object,
    validation: str,
    refuse: Callable[[str], ApiError],
    duplicates: Sequence[str] = (),
) -> Object:
    """Version, kind, metadata and field types; unknown and repeated fields as `fieldValidation` wants them treated.

    `refuse` makes the error out of what is wrong.
    """
    api_version = obj.get("apiVersion") or kind.api_version
    name = obj.get("kind") or kind.kind
    fits = api_version == kind.api_version and name == kind.kind
    named = isinstance(name, str) and isinstance(api_version, str) and api_version.count("/") < 2
    if not fits and (kind.builtin or not named):
        raise refuse(_mismatch(kind, obj, api_version, name))
    wrong = metadata.check_types(obj)
    if wrong is not None:
        raise refuse(kind.strategy.unreadable(obj) or wrong)
    decoded = kind.strategy.decode(obj) if fits else _decode_other(kind, obj)
    # apiVersion and kind lead every stored object; the rest keeps the order it came in.
    ordered: Object = {"apiVersion": api_version, "kind": name, "metadata": obj["metadata"]}
    ordered.update((key, value) for key, value in obj.items() if key not in ordered)
    if decoded.mistyped:
        raise refuse(decoded.mistyped[0])
    if (decoded.unknown or duplicates) and validation != "Ignore":
        found = [*duplicates]
        found += [f'unknown field "{path}"' for path in decoded.unknown]
        if validation == "Strict":
            raise refuse(f"strict decoding error: {', '.join(found)}")
        call.warnings += found
    return ordered


def _decode_other(kind: Kind, obj: Object) -> Decoded:
    """A custom resource that calls itself something else, which validation will tell it.

    Nothing is known of the fields of another kind, and another version of its own has none.
    """
    if obj.get("kind") != kind.kind or obj["apiVersion"].rpartition("/")[0] != kind.group:
        return Decoded()
    unknown = tuple(sorted(key for key in obj if key not in ("apiVersion", "kind", "metadata")))
    for key in unknown:
        del obj[key]
    return Decoded(unknown)


def misnamed(kind: Kind, obj: Object) -> list[FieldError]:
    """What a custom resource says it is, where that is something else. Its other rules are not looked at then."""
    errors = []
    if obj["kind"] != kind.kind:
        errors.append(invalid("kind", obj["kind"], f"must be {kind.kind}"))
    if obj["apiVersion"] != kind.api_version:
        errors.append(invalid("apiVersion", obj["apiVersion"], f"must be {kind.api_version}"))
    return errors + kind.strategy.validate_parts(obj) if errors else []


def refused(obj: Object, errors: Sequence[FieldError]) -> ApiError:
    """422, about what the object says it is."""
    group = obj["apiVersion"].rpartition("/")[0]
    return status.invalid_kind(group, obj["kind"], obj["metadata"].get("name", ""), errors)


def _mismatch(kind: Kind, obj: Object, api_version: Any, name: Any) -> str:
    """A body is read as what it says it is, and only then found to be out of place."""
    if str(api_version).count("/") > 1:
        return f"unexpected GroupVersion string: {api_version}"
    group, _, version = str(api_version).rpartition("/")
    # Definitions and API services have schemes of their own, which know no other kinds.
    apart = kind.group in _OWN_SCHEMES and group != kind.group
    type = None if apart else schema.load().kind(group, version, str(name))
    if type is None:
        return f'no kind "{name}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:111"'
    if mistyped := schema.check(type, obj).mistyped:
        return mistyped[0]
    if name == kind.kind and group == kind.group:
        expected = f"the expected API version ({kind.api_version})"
        return f"the API version in the data ({api_version}) does not match {expected}"
    internal = "core" if kind.storage_key == "core/events" else kind.group.partition(".")[0] or "core"
    return f"converting ({version}.{name}) to ({internal}.{kind.kind}): unknown conversion"
