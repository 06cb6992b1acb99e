"""Catalog: the current federated types, by name and by kind, and the fields read of their member objects."""

from collections.abc import Iterator
from typing import NamedTuple

from argosy.api.types import FederatedTypeConfig
from argosy.control.caches.projection import projection
from argosy.control.wake import Signal
from argosy.kube import clock
from argosy.kube.informer import Change
from argosy.kube.objects import HasMetadata

__all__ = ["Catalog", "TypeChange", "member_type"]


class TypeChange(NamedTuple):
    """A type was added (`old` is None), changed, or removed (`new` is None)."""

    old: FederatedTypeConfig | None
    new: FederatedTypeConfig | None


class Catalog:
    """Fed by the type configs' informer. Of two type configs for one kind, the one known first counts."""

    def __init__(self) -> None:
        self._known: dict[str, FederatedTypeConfig] = {}
        self._by_name: dict[str, FederatedTypeConfig] = {}
        self._by_kind: dict[tuple[str, str], str] = {}
        #: By group and kind; of two versions, the one by whose name it is known first.
        self._by_group: dict[tuple[str, str], str] = {}
        #: Types that are no longer federated, and since when.
        self._gone: dict[str, tuple[FederatedTypeConfig, float]] = {}
        self.changes: Signal[TypeChange] = Signal("federated types")

    def get(self, name: str) -> FederatedTypeConfig | None:
        return self._by_name.get(name)

    def of_kind(self, api_version: str, kind: str) -> FederatedTypeConfig | None:
        name = self._by_kind.get((api_version, kind))
        return self._by_name[name] if name else None

    def of_group(self, group: str, kind: str) -> FederatedTypeConfig | None:
        """The same in whatever version."""
        name = self._by_group.get((group, kind))
        return self._by_name.get(name) if name else None

    def __iter__(self) -> Iterator[FederatedTypeConfig]:
        return iter(list(self._by_name.values()))

    def lately(self, seconds: float) -> list[FederatedTypeConfig]:
        """The types, including those removed less than so many seconds ago: their type config may be being replaced."""
        now = clock.monotonic()
        gone = (config for config, since in self._gone.values() if now - since < seconds)
        return [*self._by_name.values(), *gone]

    def observe(self, change: Change[FederatedTypeConfig]) -> None:
        """Handler for the type configs' informer."""
        old, new = self._by_name.get(change.key), change.new
        if new is not None:
            self._known[change.key] = new
        else:
            self._known.pop(change.key, None)
        kind = _kind(new) if new is not None else None
        if old is not None and _kind(old) != kind:
            del self._by_name[old.name]
            del self._by_kind[_kind(old)]
            self._regroup()
            self._gone[old.name] = (old, clock.monotonic())
        if new is not None and kind is not None:
            if self._by_kind.setdefault(kind, new.name) == new.name:
                self._by_name[new.name] = new
                self._gone.pop(new.name, None)
                self._regroup()
            else:
                new = None  # a second type config for the same kind is refused
        if old is not None or new is not None:
            self.changes.tell(TypeChange(old, new))
        if old is not None and _kind(old) not in self._by_kind:
            self._succeed(old)

    def _regroup(self) -> None:
        self._by_group = {}
        for config in self._by_name.values():
            self._by_group.setdefault((config.resource.group, config.kind), config.name)

    def _succeed(self, gone: FederatedTypeConfig) -> None:
        """A type config that was refused because of this one takes its place."""
        for config in self._known.values():
            if _kind(config) == _kind(gone) and config.name not in self._by_name:
                self._by_kind[_kind(config)] = config.name
                self._by_name[config.name] = config
                self._regroup()
                self.changes.tell(TypeChange(None, config))
                return


def _kind(config: FederatedTypeConfig) -> tuple[str, str]:
    return config.api_version, config.kind


def member_type(config: FederatedTypeConfig) -> type[HasMetadata]:
    """The projection for member objects of this type: metadata, collected fields, replica numbers, status."""
    spec = config.spec
    paths = set(spec.status_collection.fields) if spec.status_collection.enabled else set()
    numbers = spec.path_definition
    paths |= {
        path
        for path in (
            numbers.replicas_spec,
            numbers.replicas_status,
            numbers.ready_replicas_status,
            numbers.available_replicas_status,
        )
        if path
    }
    if spec.status_aggregation.enabled:
        paths.add("status")
    # A path inside another one that is read anyway would split it up.
    return projection(path for path in paths if not any(path.startswith(f"{other}.") for other in paths))
