"""Custom resource definitions as they come and go: which kinds the registry serves, and the status that says so.

kube-apiserver accepts names and establishes a definition in controllers, some time after it was written. Here both are
decided in the write itself (`accept_names`), and the kinds are served when that write is acknowledged (`observe`), so
nobody has to wait. A definition whose names are taken is stored, not served, and says why; it is looked at again when it
is written again.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from argosy.kube.conditions import find, is_true, set_condition
from argosy.server.crd.strategy import CustomResourceStrategy
from argosy.server.crd.structural import unevaluated_rules
from argosy.server.metadata import now
from argosy.server.registry import Kind, Object, Registry, ScalePaths

__all__ = ["CustomResources", "accept_names", "rule_warnings"]


class CustomResources:
    """Keeps the registry's custom kinds in step with the stored definitions. Not a task: the core calls `observe`."""

    def __init__(self, registry: Registry):
        self._registry = registry

    def observe(self, obj: Object | None, old: Object | None) -> None:
        """A definition was created (`old` None), changed or deleted (`obj` None)."""
        if obj is not None and old is not None and _serving(obj) == _serving(old):
            return
        served = {kind.version: kind for kind in _kinds(obj)} if obj is not None else {}
        if old is not None:
            spec = old["spec"]
            for version in spec["versions"]:
                if version["name"] not in served:
                    self._registry.remove(spec["group"], version["name"], spec["names"]["plural"])
        for kind in served.values():
            self._registry.add(kind)


def _serving(definition: Object) -> tuple[Any, ...]:
    """All that decides what is served; other writes (labels, conditions) cost no compiling and no new discovery."""
    status = definition.get("status") or {}
    return definition["spec"], status.get("acceptedNames"), is_true(status.get("conditions"), "Established")


def _kinds(definition: Object) -> list[Kind]:
    status, spec = definition.get("status") or {}, definition["spec"]
    if not is_true(status.get("conditions"), "Established"):
        return []
    names = status.get("acceptedNames") or spec["names"]
    storage = next(v["name"] for v in spec["versions"] if v.get("storage"))
    strategies = {version["name"]: CustomResourceStrategy(version) for version in spec["versions"]}
    return [
        _kind(definition, version, names, storage, strategies) for version in spec["versions"] if version.get("served")
    ]


def _kind(
    definition: Object, version: Object, names: Object, storage: str, strategies: Mapping[str, CustomResourceStrategy]
) -> Kind:
    spec, subresources = definition["spec"], version.get("subresources") or {}
    scale = subresources.get("scale")
    strategy = strategies[version["name"]]

    def from_storage(obj: Object) -> None:
        """Defaulted by the version it is stored in, then seen through this one."""
        stored = strategies.get(obj["apiVersion"].rpartition("/")[2])
        if stored is not None:
            stored.default(obj)
        strategy.from_stored(obj)

    return Kind(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=spec["names"]["plural"],
        singular=names.get("singular") or names["kind"].lower(),
        namespaced=spec["scope"] == "Namespaced",
        strategy=strategy,
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=frozenset(name for name in ("status", "scale") if subresources.get(name) is not None),
        scale=_scale_paths(scale) if scale else None,
        storage_version=storage,
        from_storage=from_storage,
        rules_since=int(definition["metadata"].get("resourceVersion") or 0),
        deprecation=_deprecation(spec["group"], version, names["kind"]),
    )


def _deprecation(group: str, version: Object, kind: str) -> str:
    if not version.get("deprecated"):
        return ""
    return version.get("deprecationWarning") or f"{group}/{version['name']} {kind} is deprecated"


def _scale_paths(scale: Object) -> ScalePaths:
    selector = scale.get("labelSelectorPath")
    return ScalePaths(
        spec_replicas=scale["specReplicasPath"].removeprefix("."),
        status_replicas=scale["statusReplicasPath"].removeprefix("."),
        selector=selector.removeprefix(".") if selector else None,
    )


def accept_names(obj: Object, existing: Iterable[Object]) -> dict[str, Any]:
    """The status a definition is stored with; `existing` are the other definitions, whose accepted names are taken."""
    spec, before = obj["spec"], obj.get("status") or {}
    accepted: dict[str, Any] = dict(before.get("acceptedNames") or {})
    reason, message = _claim(spec["names"], accepted, *_taken(obj, existing))
    conditions = list(before.get("conditions") or ())
    moment = now()
    if reason:
        conditions = set_condition(conditions, "NamesAccepted", "False", reason, message, moment)
        if find(conditions, "Established") is None:
            text = "not all names are accepted"
            conditions = set_condition(conditions, "Established", "False", "NotAccepted", text, moment)
    else:
        text = "no conflicts found"
        conditions = set_condition(conditions, "NamesAccepted", "True", "NoConflicts", text, moment)
        if not is_true(conditions, "Established"):
            text = "the initial names have been accepted"
            conditions = set_condition(conditions, "Established", "True", "InitialNamesAccepted", text, moment)
    stored = list(before.get("storedVersions") or ())
    stored += [v["name"] for v in spec["versions"] if v.get("storage") and v["name"] not in stored]
    return {**before, "acceptedNames": accepted, "conditions": conditions, "storedVersions": stored}


def _taken(obj: Object, existing: Iterable[Object]) -> tuple[set[str], set[str]]:
    """Resource names and kinds that other definitions of the group hold."""
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in existing:
        if other["metadata"]["name"] == obj["metadata"]["name"] or other["spec"]["group"] != obj["spec"]["group"]:
            continue
        names = (other.get("status") or {}).get("acceptedNames") or {}
        resources.update(name for name in (names.get("plural"), names.get("singular")) if name)
        resources.update(names.get("shortNames") or ())
        kinds.update(name for name in (names.get("kind"), names.get("listKind")) if name)
    return resources, kinds


def _claim(wanted: Object, accepted: Object, resources: set[str], kinds: set[str]) -> tuple[str, str]:
    """Take over into `accepted` every wanted name that is free; the last conflict is the reason told."""
    reason = message = ""
    for field, taken in (("plural", resources), ("singular", resources), ("shortNames", resources),
                         ("kind", kinds), ("listKind", kinds)):  # fmt: skip
        value = wanted.get(field)
        held = accepted.get(field)
        names = value or [] if field == "shortNames" else [value or ""]
        ours = held or [] if field == "shortNames" else [held or ""]
        conflicts = [f'"{name}" is already in use' for name in names if name in taken and name not in ours]
        if conflicts:
            reason = f"{field[0].upper()}{field[1:]}Conflict"
            message = conflicts[0] if len(conflicts) == 1 else f"[{', '.join(conflicts)}]"
        elif value:
            accepted[field] = value
        else:
            accepted.pop(field, None)
    if wanted.get("categories"):
        accepted["categories"] = wanted["categories"]
    else:
        accepted.pop("categories", None)
    return reason, message


def rule_warnings(definition: Object) -> list[str]:
    """Warnings for the author of a definition with CEL rules, which are kept and published but not evaluated yet."""
    found = []
    for index, version in enumerate(definition["spec"].get("versions") or ()):
        path = f"spec.versions[{index}].schema.openAPIV3Schema"
        found += unevaluated_rules((version.get("schema") or {}).get("openAPIV3Schema"), path)
    return [f"{path}: rules are stored but not evaluated by this server" for path in found]
