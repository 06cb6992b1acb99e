"""Rule: everything that is special about a kind, as data."""

from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from typing import Any, Final

import msgspec

from argosy.api.statusrules import StatusRules
from argosy.api.typeconfigs import FederatedTypeConfig, PathDefinition
from argosy.kube import yamlreader
from argosy.kube.podreferences import Reference, named, pod_references, values_at
from argosy.plan import fields
from argosy.plan.fields import Json
from argosy.plan.kinds.kind import Kind
from argosy.plan.kinds.rules.health import unfinished_by
from argosy.plan.kinds.rules.merge import merge_by
from argosy.plan.kinds.rules.retained import keeping_fields

__all__ = ["Rule", "in_type", "kind_by", "read_rule", "shipped"]

_FOLDER: Final = resources.files("argosy.plan.kinds.rules").joinpath("shipped")


class Named(msgspec.Struct, frozen=True, rename="camel"):
    """Objects of the same namespace that an object names: the path of the name, `[*]` for each item of a list."""

    kind: str
    path: str
    group: str = ""
    #: It counts only where the fields beside the name are one of these; an empty text is an absent field.
    where: Mapping[str, tuple[str, ...]] = {}
    #: The field beside the name that says that it may be absent.
    optional_field: str = ""
    #: The field beside the name that names a namespace: another one's objects are not followed.
    namespace_field: str = ""


class Rule(msgspec.Struct, frozen=True, rename="camel"):
    group: str
    kind: str
    #: The path of the one pod spec of a workload; what its pods need follows it.
    pod_spec: str = ""
    #: Paths of further pod specs, `[*]` for each item of a list.
    pod_specs: tuple[str, ...] = ()
    #: What a type config of the kind says of its replicas.
    paths: PathDefinition = PathDefinition()
    references: tuple[Named, ...] = ()
    #: Fields that a member's copy keeps, if it has them.
    retained: tuple[str, ...] = ()
    status_rules: StatusRules = StatusRules()


def read_rule(data: Any) -> Rule:
    """Raises ValueError with the path of what is wrong."""
    rule = msgspec.convert(data, Rule)
    if unknown := _unknown(data, msgspec.to_builtins(rule)):
        raise ValueError(f"a rule has no field {unknown}")
    return rule


def _unknown(data: Any, understood: Any) -> str:
    """The path of the first field that was not understood; empty if all were."""
    if isinstance(data, Mapping) and isinstance(understood, Mapping):
        for key, value in data.items():
            if key not in understood:
                return str(key)
            if found := _unknown(value, understood[key]):
                return f"{key}.{found}"
    elif isinstance(data, list | tuple) and isinstance(understood, list | tuple):
        return next((found for pair in zip(data, understood, strict=False) if (found := _unknown(*pair))), "")
    return ""


def shipped(group: str, kind: str) -> Rule | None:
    """The rule that comes with Argosy for a kind, if there is one."""
    name = f"{kind.lower()}.{group}.yaml"
    if not any(each.name == name for each in _FOLDER.iterdir()):
        return None
    rule = read_rule(yamlreader.read(_FOLDER.joinpath(name).read_bytes()).value)
    return rule if (rule.group, rule.kind) == (group, kind) else None


def kind_by(rule: Rule) -> Kind:
    keys = tuple(rule.pod_spec.split(".")) if rule.pod_spec else ()
    kind = Kind(pod_spec=keys, paths=rule.paths, references=_references(rule), retain=keeping_fields(rule.retained))
    return _described_by(kind, rule.status_rules)


def _described_by(kind: Kind, rules: StatusRules) -> Kind:
    """The kind, with what the rules say instead of it."""
    if rules.merge is not None:
        kind = msgspec.structs.replace(kind, aggregate=merge_by(rules.merge), has_conditions=rules.merge.conditions)
    if rules.health is not None:
        kind = msgspec.structs.replace(kind, unfinished=unfinished_by(rules.health))
    return kind


def _references(rule: Rule) -> Callable[[Json], Iterator[Reference]]:
    def references(obj: Json) -> Iterator[Reference]:
        for path in rule.pod_specs:
            for spec in values_at(obj, path):
                yield from pod_references(spec)
        for each in rule.references:
            yield from _named(each, obj)

    return references


def _named(rule: Named, obj: Json) -> Iterator[Reference]:
    holder, _, field = rule.path.rpartition(".")
    namespace = fields.get(obj, "metadata.namespace", None)
    for found in values_at(obj, holder):
        if not isinstance(found, dict) or any(
            (found.get(key) or "") not in values for key, values in rule.where.items()
        ):
            continue
        if rule.namespace_field and (found.get(rule.namespace_field) or namespace) != namespace:
            continue
        yield from named(rule.kind, found.get(field), found.get(rule.optional_field), rule.group)


def in_type(kind: Kind, config: FederatedTypeConfig) -> Kind:
    """The kind as a type config has it."""
    rules, retained = config.spec.status_rules, config.spec.retained_fields
    if rules is not None:
        kind = _described_by(kind, rules)
    if retained:
        also = keeping_fields(retained)
        kind = msgspec.structs.replace(
            kind, retain=lambda desired, found, own=kind.retain: also(own(desired, found), found)
        )
    return kind
