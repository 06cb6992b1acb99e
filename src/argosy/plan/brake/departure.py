"""Departure: what a pass takes away from clusters, and why.

A copy is taken away where it leaves the placements, and where its replicas are set to 0. It is compared with the object as
stored, so that nothing is missed that an earlier pass, another controller or an interruption left half done.
"""

from collections.abc import Mapping

import msgspec

from argosy.api import keys
from argosy.plan.brake.cause import COUNTED, Cause, gravest
from argosy.plan.copies import placement
from argosy.plan.fields import Json, number, pointer
from argosy.plan.metadata import annotations_of
from argosy.plan.pipeline.inputs import PassInputs
from argosy.plan.pipeline.state import State
from argosy.plan.scheduling.framework import Remote
from argosy.plan.scheduling.triggers import policy_then

__all__ = ["Departure", "departure_of"]

#: What belongs to the object itself, in the names of either form of record.
_OWN = frozenset(
    {"annotations", "replicas", "request", "scheduling_annotations_hash", "replica_count", "resource_request"}
)
_POLICY = frozenset({"policy", "policy_name"})
_MIGRATION = frozenset({"migration", "auto_migration_info"})


class Departure(msgspec.Struct, frozen=True):
    #: Each cluster that loses its copy or all its replicas, and why.
    causes: Mapping[str, Cause]
    #: The propagation policy it was placed by, as `Kind/name`; empty if it had none.
    policy: str = ""

    @property
    def cause(self) -> Cause:
        return gravest(frozenset(self.causes.values()))

    @property
    def clusters(self) -> tuple[str, ...]:
        return tuple(sorted(self.causes))

    @property
    def counted(self) -> tuple[str, ...]:
        """Those that may be a mistake."""
        return tuple(sorted(name for name, cause in self.causes.items() if cause in COUNTED))


def departure_of(inputs: PassInputs, state: State) -> Departure | None:
    """What the object as stored loses by the state after all steps; None if nothing."""
    before = state.before
    if before is None:
        return None
    lost = _lost(before, state.spec)
    emptied = _emptied(before["spec"], state.spec, inputs.replicas_path)
    if not lost and not emptied:
        return None
    causes = {name: _cause(name, inputs, state) for name in lost}
    causes |= {name: _cause_of_none(name, inputs, state) for name in emptied}
    return Departure(causes, policy_then(annotations_of(before).get(keys.SCHEDULING_TRIGGERS)))


def _lost(before: Json, spec: Json) -> set[str]:
    """Clusters that may hold a copy and are no longer to, and for which that is not noted yet."""
    there = set(placement.placed(before["spec"]))
    there.update(entry["cluster"] for entry in (before.get("status") or {}).get("clusters") or ())
    lost = there.difference(placement.placed(spec))
    return lost.difference(placement.to_be_removed(annotations_of(before))) if lost else lost


def _emptied(before: Json, after: Json, path: str) -> set[str]:
    """Clusters that keep their copy and lose all its replicas, although the source wants some."""
    if not path or before.get("overrides") == after.get("overrides"):
        return set()
    wanted, had = (number(spec.get("template") or {}, path) for spec in (after, before))
    if not wanted:
        return set()
    return {
        name
        for name in set(placement.placed(before)).intersection(placement.placed(after))
        if _replicas(after, name, path, wanted) == 0 and _replicas(before, name, path, had) != 0
    }


def _replicas(spec: Json, cluster: str, path: str, otherwise: int | None) -> int | None:
    stated = placement.value_at(placement.overrides_for(spec, cluster, ()), pointer(path))
    return otherwise if stated is None else stated


def _cause(cluster: str, inputs: PassInputs, state: State) -> Cause:
    """Why it loses its copy: the gravest, if several controllers placed it there."""
    member = inputs.fleet.member(cluster)
    if member is None:
        return Cause.ORDERED
    entries = (state.before or {})["spec"].get("placements") or ()
    placed_by = {each["controller"] for each in entries if cluster in placement.names_of(each)}
    return gravest({_of_step(step, cluster, inputs, state) for step in placed_by} or {Cause.OTHERS})


def _of_step(controller: str, cluster: str, inputs: PassInputs, state: State) -> Cause:
    match controller:
        case keys.GLOBAL_SCHEDULER:
            return _of_scheduler(cluster, inputs, state)
        case keys.FOLLOWER_CONTROLLER:
            return Cause.NOT_FOLLOWED if cluster in inputs.leaders_at() else Cause.FOLLOWED
        case _:
            return Cause.UNKNOWN if controller in keys.OWN_STEPS else Cause.OTHERS


def _of_scheduler(cluster: str, inputs: PassInputs, state: State) -> Cause:
    member, changed = inputs.fleet.member(cluster), state.changed
    if member is not None and member.terminating:
        return Cause.LEAVING
    if inputs.in_force.ref is None:
        return Cause.POLICY_UNNAMED
    stable = frozenset(changed.stable) if changed is not None else frozenset()
    if stable & _POLICY:
        return Cause.OTHER_POLICY
    # After what may be a mistake: it is none the less one because the cluster has failed, or is drained.
    taints = {key for key, _, _ in member.taints} if member is not None else set()
    if keys.UNREADY_TAINT in taints:
        return Cause.FAILOVER
    if keys.DRAINED_TAINT in taints:
        return Cause.ORDERED
    if changed is not None and changed.content:
        return Cause.PROFILE if changed.profile else Cause.POLICY_CHANGED
    if (refused := _refused(cluster, state)) is not None:
        return refused
    if keys.FAILBACK in annotations_of(state.before or {}):
        return Cause.FAILBACK
    if stable & _MIGRATION:
        return Cause.CLUSTER
    if changed is None:
        return Cause.UNKNOWN
    return Cause.OWN if stable & _OWN else Cause.FLEET


def _refused(cluster: str, state: State) -> Cause | None:
    """Whether a filter refuses the cluster: a plugin of somebody's own may answer nonsense, ours go by the cluster's facts."""
    filtered = state.decision.filtered if state.decision is not None else None
    if state.decision is None or filtered is None or cluster not in state.decision.fleet:
        return None
    position = int(filtered.failed[state.decision.fleet.index[cluster]])
    if position < 0:
        return None
    return Cause.PLUGIN if isinstance(filtered.plugins[position], Remote) else Cause.CLUSTER


def _cause_of_none(cluster: str, inputs: PassInputs, state: State) -> Cause:
    """Why its replicas are set to 0."""
    path = pointer(inputs.replicas_path)
    own = placement.entry_of(state.spec, "overrides", keys.GLOBAL_SCHEDULER)
    patches = [each for item in own.get("clusters") or () if item["cluster"] == cluster for each in item["patches"]]
    return _of_scheduler(cluster, inputs, state) if placement.value_at(patches, path) == 0 else Cause.OVERRIDES
