"""Forecast: what a change of one or many federated objects does to their clusters, in numbers.

It compares two versions of a federated object and adds up the differences. It decides nothing; `whatif` makes the second
version.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from argosy.api import keys
from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.plan import fields
from argosy.plan.changes import is_secret
from argosy.plan.copies.held_copies import HeldCopies, held_copies
from argosy.plan.copies.placement import overrides_by_cluster, placed, value_at
from argosy.plan.explain.snapshot import replicas_path
from argosy.plan.fields import Json, equal
from argosy.plan.metadata import annotations_of
from argosy.plan.pipeline import pending
from argosy.plan.pipeline.held import Held

__all__ = ["ClusterChange", "Copies", "Counts", "Forecast", "ObjectChange", "Totals", "object_change", "summed"]


class ClusterChange(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What happens to an object's copy in one cluster. Replicas are None for kinds without replicas, and where no copy is."""

    cluster: str
    copy: Literal["added", "removed", "kept"]
    replicas_before: int | None = None
    replicas_after: int | None = None
    #: The copy stays, with another content.
    updated: bool = False
    #: Its overrides change (for a new copy: it has some); `op path = value`.
    overridden: bool = False
    overrides: tuple[str, ...] = ()
    #: Why the copy stays as it is although something else is wanted.
    held: str = ""

    @property
    def more(self) -> int:
        """Replicas that start, or stop if negative."""
        if self.held:
            return 0
        return (self.replicas_after or 0) - (self.replicas_before or 0)


class ObjectChange(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What happens to one object. `clusters` has only those where something changes."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    clusters: tuple[ClusterChange, ...] = ()
    #: Why its placement will be held, unless it is held already; and whether it will no longer be held.
    held: Held | None = None
    released: bool = False
    #: Replicas that stop in one cluster and start in another; then those that only start or only stop.
    moved: int = 0
    started: int = 0
    stopped: int = 0

    @property
    def changes(self) -> bool:
        return bool(self.clusters) or self.held is not None or self.released

    @property
    def placed_nowhere(self) -> bool:
        return self.held is not None and self.held.reason == "Unschedulable"


class Counts(msgspec.Struct, frozen=True, rename="camel"):
    """What happens in one cluster: replicas started and stopped, and copies."""

    started: int = 0
    stopped: int = 0
    added: int = 0
    removed: int = 0
    updated: int = 0
    overridden: int = 0


class Totals(Counts, frozen=True, rename="camel"):
    """Over all clusters. Replicas that move neither start nor stop."""

    objects: int = 0
    moved: int = 0
    unschedulable: int = 0
    #: Objects held for another reason than that no cluster fits.
    held: int = 0
    released: int = 0


class Forecast(msgspec.Struct, frozen=True, rename="camel"):
    """Everything that would follow."""

    total: Totals = Totals()
    clusters: dict[str, Counts] = {}
    objects: tuple[ObjectChange, ...] = ()
    #: How many objects were evaluated.
    examined: int = 0
    #: Objects that will change whether or not the supposed change happens; those changes are not counted.
    unsettled: tuple[str, ...] = ()
    #: Objects the change affects that stay as they are, and why.
    deferred: dict[str, str] = {}
    #: Stands for exactly the copies that would be removed; empty if none would (`plan.brake.orders`).
    plan: str = ""
    #: Assumptions, and what could not be determined.
    notes: tuple[str, ...] = ()

    @property
    def changes(self) -> bool:
        return bool(self.objects)


def object_change(
    config: FederatedTypeConfig,
    source: Json,
    before: Json | None,
    after: Json | None,
    *,
    held_before: Held | None,
    held: Held | None,
) -> ObjectChange:
    """The change between two versions of a federated object; None stands for no object.

    An object that is held before a step of the pipeline is not propagated: its copies stay. When it goes on, members get the
    pending version; which version they have now is not known here.
    """
    old, new = Copies(config, before), Copies(config, after)
    waits, goes_on = _is_stopped(after, held), _is_stopped(before, held_before)
    names = [] if waits else sorted(old.clusters | new.clusters)
    same_content = equal(old.content, new.content) and not goes_on
    holding = [held_copies(annotations_of(each or {})) for each in (before, after)]
    changes = [_cluster_change(name, old, new, holding, same_content=same_content) for name in names]
    clusters = tuple(change for change in changes if change is not None)
    more = sum(each.more for each in clusters if each.more > 0)
    fewer = -sum(each.more for each in clusters if each.more < 0)
    moved = min(more, fewer)
    metadata = source["metadata"]
    return ObjectChange(
        api_version=source["apiVersion"],
        kind=source["kind"],
        name=metadata["name"],
        namespace=metadata.get("namespace") or "",
        clusters=clusters,
        held=held if held is not None and (held_before is None or held_before.reason != held.reason) else None,
        released=held is None and held_before is not None,
        moved=moved,
        started=more - moved,
        stopped=fewer - moved,
    )


def _is_stopped(federated: Json | None, held: Held | None) -> bool:
    if federated is None or held is None:
        return False
    return not pending.finished(annotations_of(federated).get(keys.PENDING_CONTROLLERS))


def summed(objects: Iterable[ObjectChange]) -> tuple[Totals, dict[str, Counts]]:
    totals: dict[str, int] = dict.fromkeys(Totals.__struct_fields__, 0)
    clusters: dict[str, dict[str, int]] = {}
    for each in objects:
        totals["objects"] += 1
        for field in ("moved", "started", "stopped"):
            totals[field] += getattr(each, field)
        totals["unschedulable"] += each.placed_nowhere
        totals["held"] += each.held is not None and not each.placed_nowhere
        totals["released"] += each.released
        for change in each.clusters:
            counts = clusters.setdefault(change.cluster, dict.fromkeys(Counts.__struct_fields__, 0))
            counts["started"] += max(change.more, 0)
            counts["stopped"] += max(-change.more, 0)
            for field, happens in (
                ("added", change.copy == "added" and not change.held),
                ("removed", change.copy == "removed"),
                ("updated", change.updated),
                ("overridden", change.overridden),
            ):
                counts[field] += happens
                totals[field] += happens
    return Totals(**totals), {name: Counts(**clusters[name]) for name in sorted(clusters)}


class Copies:
    """The copies that a federated object has in its clusters."""

    def __init__(self, config: FederatedTypeConfig, federated: Json | None) -> None:
        spec: Mapping[str, Any] = federated["spec"] if federated is not None else {}
        self.clusters = frozenset(placed(spec))
        path = replicas_path(config)
        self._pointer = fields.pointer(path)
        template = spec.get("template") or {}
        self.secret = is_secret(template)
        base = fields.get(template, path, None)
        self._replicas = base if isinstance(base, int) else None
        # Another generation alone is no other content, and replicas are reported separately.
        self.content = fields.without(fields.without(template, path), "metadata.generation")
        entries, steps = spec.get("overrides") or (), config.spec.controllers
        self._patches = overrides_by_cluster(entries, steps)
        own = [entry for entry in entries if entry["controller"] == keys.GLOBAL_SCHEDULER]
        others = [entry for entry in entries if entry["controller"] != keys.GLOBAL_SCHEDULER]
        self._scheduled = overrides_by_cluster(own, steps)
        self._overrides = overrides_by_cluster(others, steps)

    def replicas(self, cluster: str) -> int | None:
        if cluster not in self.clusters or self._replicas is None:
            return None
        number = value_at(self._patches.get(cluster, ()), self._pointer)
        return number if isinstance(number, int) else self._replicas

    def scheduled(self, cluster: str) -> list[Json]:
        """Scheduling's own overrides for a cluster, besides the number of replicas."""
        return [patch for patch in self._scheduled.get(cluster, ()) if patch["path"] != self._pointer]

    def overrides(self, cluster: str) -> list[Json]:
        return self._overrides.get(cluster, []) if cluster in self.clusters else []


def _cluster_change(
    name: str, old: Copies, new: Copies, holding: Sequence[HeldCopies], *, same_content: bool
) -> ClusterChange | None:
    """`holding` are the copies held before and after."""
    before, after = (each.why(name) for each in holding)
    # One that goes on gets all that it missed.
    same_content = same_content and not before
    was, will_be = name in old.clusters, name in new.clusters
    overrides = new.overrides(name)
    overridden = will_be and old.overrides(name) != overrides
    change = ClusterChange(
        cluster=name,
        copy="kept" if was and will_be else "added" if will_be else "removed",
        replicas_before=old.replicas(name),
        replicas_after=new.replicas(name),
        updated=was and will_be and not after and not (same_content and old.scheduled(name) == new.scheduled(name)),
        overridden=overridden,
        overrides=tuple(_text(patch, secret=new.secret) for patch in overrides) if overridden else (),
        held=after if will_be and after != before else "",
    )
    if will_be and after and not change.held:
        return None
    same = change.copy == "kept" and change.replicas_before == change.replicas_after
    return None if same and not (change.updated or change.overridden or change.held) else change


def _text(patch: Json, *, secret: bool) -> str:
    value = f" = {msgspec.json.encode(patch['value']).decode()}" if "value" in patch and not secret else ""
    return f"{patch.get('op') or 'replace'} {patch['path']}{value}"
