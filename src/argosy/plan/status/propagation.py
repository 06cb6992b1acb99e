"""Propagation: the status of a federated object, from the results in each cluster.

An unchanged status is not written again; times change only with what they belong to.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from argosy.api.conditions import (
    CHECK_CLUSTERS,
    DRIFT_NOT_REPAIRED_REASON,
    DRIFT_REPORTED_REASON,
    DRIFTED,
    OVERRIDES_APPLIED,
    PROPAGATED,
    Propagation,
)
from argosy.api.federated import FederatedCondition, FederatedObject, FederatedStatus, PropagationEntry
from argosy.plan.brake.held_removal import CONDITION as REMOVAL_HELD
from argosy.plan.brake.held_removal import HeldRemoval
from argosy.plan.copies.drift import Drift, left_in, noted, told, within_bounds
from argosy.plan.copies.held_copies import NONE, HeldCopies
from argosy.plan.pipeline.held import CONDITION, Held, HeldReason

__all__ = ["Result", "held_results", "propagation_status", "synced_clusters"]

#: Held because of its overrides: then nobody knows what is wanted in any cluster. The second is of earlier versions.
_OVERRIDES: Final = frozenset({HeldReason.OVERRIDE_POLICY_MISSING, HeldReason.OVERRIDES_INVALID})


#: Of what is told of copies that others changed.
_MOST_CLAUSES: Final = 4


class Result(msgspec.Struct, frozen=True):
    """The result for the object in one cluster.

    `version` is empty if the member's object was neither written nor checked. Then the stored record stays, so that a cluster
    that comes back is not written without need.
    """

    status: str
    generation: int = 0
    version: str = ""
    digest: str = ""
    uid: str = ""
    message: str = ""
    #: What others changed in the copy; None if nobody looked.
    drift: Drift | None = None


def propagation_status(
    before: FederatedStatus,
    generation: int,
    results: Mapping[str, Result],
    now: str,
    *,
    reason: str = "",
    held: Held | None = None,
    held_copies: HeldCopies = NONE,
    held_removal: HeldRemoval | None = None,
    reports_drift: bool = False,
) -> FederatedStatus | None:
    """The status after a round over the clusters in `results`, None if it is unchanged.

    `generation` is the federated object's generation the round propagated; `reason` says why a round failed as a whole.
    """
    known = {entry.cluster: entry for entry in before.clusters}
    clusters = within_bounds(tuple(_entry(name, results[name], known.get(name), now) for name in sorted(results)))
    others = (*_scheduled(held), *_overrides(clusters, held, held_copies), *_removal_held(held_removal))
    conditions = (_propagated(clusters, reason), *others, *_drifted(clusters, reported=reports_drift))
    unchanged = (
        clusters == before.clusters
        and generation == before.synced_generation
        and conditions == tuple(_without_times(condition) for condition in before.conditions)
    )
    if unchanged:
        return None
    return FederatedStatus(
        synced_generation=generation,
        conditions=tuple(_timed(condition, before, now) for condition in conditions),
        clusters=clusters,
    )


def synced_clusters(status: FederatedStatus) -> str:
    """In how many clusters the object is as wanted, of those it is or belongs in: `2/3`."""
    return f"{sum(entry.status == Propagation.OK for entry in status.clusters)}/{len(status.clusters)}"


def held_results(federated: FederatedObject, held: Held) -> dict[str, Result]:
    """The results of an object that is not sent at all because it is held.

    Without valid overrides no cluster has what is wanted. Otherwise what was recorded stays true.
    """
    results = {entry.cluster: Result(entry.status, message=entry.message) for entry in federated.status.clusters}
    if held.reason in _OVERRIDES:
        results |= dict.fromkeys(federated.placed, Result(Propagation.APPLY_OVERRIDES_FAILED, message=held.message))
    return results


def _entry(cluster: str, result: Result, before: PropagationEntry | None, now: str) -> PropagationEntry:
    drift = before.drift if before is not None else ()
    if result.drift is not None:
        drift = noted(drift, result.drift, now)
    if not result.version and before is not None:
        return msgspec.structs.replace(before, status=result.status, message=result.message, drift=drift)
    entry = PropagationEntry(
        cluster, result.status, result.generation, result.version, result.digest, result.uid, result.message, drift
    )
    # A record of an earlier version has no uid. It gets one with the next change, but the missing uid alone is no change.
    return before if before == msgspec.structs.replace(entry, uid="") else entry


def _propagated(clusters: tuple[PropagationEntry, ...], reason: str) -> FederatedCondition:
    if not reason and any(entry.status != Propagation.OK for entry in clusters):
        reason = CHECK_CLUSTERS
    return FederatedCondition(PROPAGATED, "False" if reason else "True", reason=reason)


def _scheduled(held: Held | None) -> tuple[FederatedCondition, ...]:
    return () if held is None else (FederatedCondition(CONDITION, "False", reason=held.reason),)


def _removal_held(held: HeldRemoval | None) -> tuple[FederatedCondition, ...]:
    return () if held is None else (FederatedCondition(REMOVAL_HELD, "True", reason=held.cause, message=held.message),)


def _overrides(
    clusters: tuple[PropagationEntry, ...], held: Held | None, copies: HeldCopies
) -> tuple[FederatedCondition, ...]:
    """Also if they could be applied to the template, and not to the copy in a member."""
    failed = [each for each in clusters if each.status == Propagation.APPLY_OVERRIDES_FAILED and each.message]
    if held is not None and held.reason in _OVERRIDES:
        told = (held.reason, held.message)
    elif copies:
        told = (HeldReason.OVERRIDES_INVALID, copies.message)
    elif failed:
        told = (HeldReason.OVERRIDES_INVALID, f"cluster {failed[0].cluster}: {failed[0].message}")
    else:
        return ()
    return (FederatedCondition(OVERRIDES_APPLIED, "False", reason=told[0], message=told[1]),)


def _drifted(clusters: tuple[PropagationEntry, ...], *, reported: bool) -> tuple[FederatedCondition, ...]:
    left = [(entry.cluster, each) for entry in clusters for each in left_in(entry)]
    if not left:
        return ()
    clauses = [f"{cluster}: {told(each)}" for cluster, each in left[:_MOST_CLAUSES]]
    more = [f"and {len(left) - _MOST_CLAUSES} more"] if len(left) > _MOST_CLAUSES else []
    reason = DRIFT_REPORTED_REASON if reported else DRIFT_NOT_REPAIRED_REASON
    return (FederatedCondition(DRIFTED, "True", reason=reason, message="; ".join([*clauses, *more])),)


def _without_times(condition: FederatedCondition) -> FederatedCondition:
    return msgspec.structs.replace(condition, last_update_time=None, last_transition_time=None)


def _timed(condition: FederatedCondition, before: FederatedStatus, now: str) -> FederatedCondition:
    transition = now
    for other in before.conditions:
        if other.type == condition.type and other.status == condition.status and other.last_transition_time:
            transition = other.last_transition_time
    return msgspec.structs.replace(condition, last_update_time=now, last_transition_time=transition)
