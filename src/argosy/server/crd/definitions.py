"""Custom resource definitions, and which kinds the registry serves because of them.

kube-apiserver accepts names and establishes a definition in controllers, some time after it was written. Here both happen in
the write itself (`naming`), and the kinds are served when that write is acknowledged (`observe`), so clients need not wait. A
definition whose names are taken is stored, not served, and says why; it is checked again when it is written again.

Nothing here reads a schema: hundreds of definitions with megabytes of schemas are served at once, and each schema is compiled
when its first object is written (`strategy`).
"""

from collections.abc import Iterable, Mapping

import msgspec

from argosy.kube.conditions import is_true
from argosy.server.crd.strategy import CustomResourceStrategy, Version
from argosy.server.registry import Kind, Object, Registry, ScalePaths
from argosy.server.watchcache.store import Store, StoreEvent

__all__ = ["DEFINITIONS", "CustomResources"]

#: The table of the stored definitions.
DEFINITIONS = "apiextensions.k8s.io/customresourcedefinitions"


class _Identity(msgspec.Struct, rename="camel"):
    name: str
    resource_version: str = ""


class _Spec(msgspec.Struct):
    group: str
    scope: str
    names: Object
    versions: list[Version]


class _Status(msgspec.Struct, rename="camel"):
    accepted_names: Object = {}
    conditions: list[Object] = []
    stored_versions: list[str] = []


class _Definition(msgspec.Struct):
    """The fields that decide what is served."""

    metadata: _Identity
    spec: _Spec
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def established(self) -> bool:
        return is_true(self.status.conditions, "Established")

    def serves_as(self, other: "_Definition") -> bool:
        names = self.status.accepted_names == other.status.accepted_names
        return names and self.spec == other.spec and self.established == other.established


_decode = msgspec.json.Decoder(_Definition).decode


class CustomResources:
    """Keeps the registry's custom kinds in sync with the stored definitions. Not a task."""

    def __init__(self, registry: Registry):
        self._registry = registry
        self._names: dict[str, Object] = {}

    def follow(self, store: Store) -> None:
        """Called within each commit: a definition whose write is acknowledged is served."""
        store.follow(self._changed, DEFINITIONS)

    def _changed(self, event: StoreEvent) -> None:
        new = None if event.deleted else event.entry.value
        self.observe(new, event.previous.value if event.previous is not None else None)

    def names(self) -> Iterable[Object]:
        """What others must know of each definition: its name, its group and its accepted names."""
        return self._names.values()

    def observe(self, new: bytes | None, old: bytes | None) -> None:
        """A definition was created (`old` None), changed or deleted (`new` None); both as they are stored."""
        definition = _decode(new) if new is not None else None
        before = _decode(old) if old is not None else None
        if before is not None:
            self._names.pop(before.metadata.name, None)
        if definition is not None:
            self._names[definition.metadata.name] = {
                "metadata": {"name": definition.metadata.name},
                "spec": {"group": definition.spec.group},
                "status": {"acceptedNames": definition.status.accepted_names},
            }
            # Other writes (labels, conditions) cause no compilation and no new discovery.
            if before is not None and definition.serves_as(before):
                return
        served = {kind.version: kind for kind in _kinds(definition)} if definition is not None else {}
        for version in before.spec.versions if before is not None else ():
            if before is not None and version.name not in served:
                self._registry.remove(before.spec.group, version.name, before.spec.names["plural"])
        for kind in served.values():
            self._registry.add(kind)


def _kinds(definition: _Definition) -> list[Kind]:
    if not definition.established:
        return []
    strategies = {version.name: CustomResourceStrategy(version) for version in definition.spec.versions}
    return [_kind(definition, version, strategies) for version in definition.spec.versions if version.served]


def _kind(definition: _Definition, version: Version, strategies: Mapping[str, CustomResourceStrategy]) -> Kind:
    spec, status, subresources = definition.spec, definition.status, version.subresources or {}
    names = status.accepted_names or spec.names
    scale = subresources.get("scale")
    strategy = strategies[version.name]

    def from_storage(obj: Object) -> None:
        """Defaulted by the version it is stored in, then converted to this one."""
        stored = strategies.get(obj["apiVersion"].rpartition("/")[2])
        if stored is not None:
            stored.default(obj)
        strategy.from_stored(obj)

    others = (strategies[name] for name in status.stored_versions if name in strategies and name != version.name)
    return Kind(
        group=spec.group,
        version=version.name,
        kind=names["kind"],
        plural=spec.names["plural"],
        singular=names.get("singular") or names["kind"].lower(),
        namespaced=spec.scope == "Namespaced",
        strategy=strategy,
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=frozenset(name for name in ("status", "scale") if subresources.get(name) is not None),
        scale=_scale_paths(scale) if scale else None,
        storage_version=next(version.name for version in spec.versions if version.storage),
        from_storage=from_storage,
        rules_since=int(definition.metadata.resource_version or 0),
        deprecation=_deprecation(spec.group, version, names["kind"]),
        needs=(strategy, *others),
    )


def _deprecation(group: str, version: Version, kind: str) -> str:
    if not version.deprecated:
        return ""
    return version.deprecation_warning or f"{group}/{version.name} {kind} is deprecated"


def _scale_paths(scale: Object) -> ScalePaths:
    selector = scale.get("labelSelectorPath")
    return ScalePaths(
        spec_replicas=scale["specReplicasPath"].removeprefix("."),
        status_replicas=scale["statusReplicasPath"].removeprefix("."),
        selector=selector.removeprefix(".") if selector else None,
    )
