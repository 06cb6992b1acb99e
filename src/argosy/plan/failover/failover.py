"""Failover: which clusters have failed, and which replicas leave them.

A cluster that has been unready for long gets our NoExecute taint, which evicts what does not tolerate it. Once it has been
ready for long again, the taint is removed. While too many of the clusters are unready (`pacing`), no cluster is tainted: then
more likely the control plane is cut off than that they all failed.

Replicas start in other clusters. Copies in a failed cluster are not deleted but recorded as to be removed when it returns.
Replicas that no other cluster takes stay placed where they are. `failback` decides how replicas return. Pure;
`control/failover` has the clock and the writes.
"""

import datetime
from collections.abc import Collection, Mapping
from typing import NamedTuple

import msgspec

from argosy.api import keys
from argosy.api.clusters import FederatedCluster, Taint
from argosy.api.conditions import READY
from argosy.fleet.member import digest
from argosy.fleet.snapshot import Fleet
from argosy.kube import duration, timestamps
from argosy.kube.taints import NO_EXECUTE

__all__ = [
    "BEHIND_ALL",
    "Evacuation",
    "Rules",
    "Unready",
    "Verdict",
    "all_failed",
    "evacuated",
    "failed_clusters",
    "has_failed",
    "rank",
    "rules_for",
    "staying",
    "trusting",
    "unready_of",
    "verdict",
]

Placements = dict[str, int | None]

#: The highest priority of a pod: that of the classes every cluster has.
_HIGHEST_PRIORITY = 2_000_001_000
#: Above every rank. Subtracting it from ranks keeps their order and makes all of them negative.
BEHIND_ALL = 2 * _HIGHEST_PRIORITY + 2


# Clusters.


class Rules(msgspec.Struct, frozen=True):
    """Seconds a cluster must be unready to count as failed, and ready to count as recovered. None: never."""

    failover_after: float | None = None
    failback_after: float = 300.0


class Verdict(msgspec.Struct, frozen=True):
    """The taints a cluster should have (None: unchanged), and when to look again."""

    taints: tuple[Taint, ...] | None = None
    look_again: float | None = None


def rules_for(cluster: FederatedCluster, rules: Rules) -> Rules:
    """The operator's rules, overridden by the cluster's own annotations; an annotation that is no duration is ignored."""
    annotations = cluster.metadata.annotations
    after = annotations.get(keys.FAILOVER_AFTER)
    return Rules(
        None if after == keys.NEVER else _seconds(after, rules.failover_after),
        _seconds(annotations.get(keys.FAILBACK_AFTER), rules.failback_after) or 0.0,
    )


def _seconds(text: str | None, otherwise: float | None) -> float | None:
    try:
        return max(duration.parse(text or "") / 10**9, 0.0)
    except ValueError:
        return otherwise


def verdict(cluster: FederatedCluster, rules: Rules, now: datetime.datetime, *, watched: float, doubt: bool) -> Verdict:
    """Whether a cluster counts as failed. With `doubt` no further cluster does.

    Unready time counts only while it was observed, `watched` seconds so far: the cluster may have been ready in between.
    """
    rules = rules_for(cluster, rules)
    tainted = has_failed(cluster)
    ready = cluster.condition(READY)
    if ready is None or not cluster.joined or cluster.terminating:
        return Verdict()
    if (ready.status == "True") != tainted:
        return Verdict()  # ready and trusted, or failed and tainted already
    limit = rules.failback_after if tainted else rules.failover_after
    if limit is None or (doubt and not tainted):
        return Verdict()
    age = _age(ready.last_transition_time, now)
    left = limit - (age if tainted else min(age, watched))
    if left > 0:
        return Verdict(look_again=left)
    others = tuple(taint for taint in cluster.spec.taints if not _is_ours(taint))
    if tainted:
        return Verdict(others)
    ours = Taint(keys.UNREADY_TAINT, NO_EXECUTE, time_added=timestamps.timestamp(now))
    return Verdict((*others, ours))


class Unready(NamedTuple):
    """How many of the joined clusters are unready."""

    unready: int
    clusters: int


def unready_of(clusters: Collection[FederatedCluster]) -> Unready:
    known = [each for each in clusters if each.joined and not each.terminating and each.condition(READY) is not None]
    return Unready(sum(not cluster.ready for cluster in known), len(known))


def has_failed(cluster: FederatedCluster) -> bool:
    """Whether a cluster counts as failed, which it also does for a while after it is back."""
    return any(_is_ours(taint) for taint in cluster.spec.taints)


def failed_clusters(fleet: Fleet, names: Collection[str]) -> set[str]:
    """Those of the named clusters that count as failed."""
    found = set()
    for name in names:
        member = fleet.member(name)
        if member is not None and any(key == keys.UNREADY_TAINT for key, _, _ in member.taints):
            found.add(name)
    return found


def all_failed(fleet: Fleet) -> frozenset[str]:
    return fleet.remembered("failed", lambda: frozenset(failed_clusters(fleet, fleet.names)), among="facts")


def trusting(fleet: Fleet, clusters: Collection[str]) -> Fleet:
    """The fleet as an object sees it that may not leave these failed clusters yet."""
    for name in sorted(clusters):
        member = fleet.member(name)
        if member is not None:
            taints = tuple(each for each in member.taints if each[0] != keys.UNREADY_TAINT)
            after = msgspec.structs.replace(member, taints=taints, taints_digest=digest(sorted(taints)))
            fleet = fleet.with_member(after)
    return fleet


def _is_ours(taint: Taint) -> bool:
    return taint.key == keys.UNREADY_TAINT


def _age(timestamp: str | None, now: datetime.datetime) -> float:
    then = timestamps.parse(timestamp)
    return 0.0 if then is None else (now - then).total_seconds()


# Workloads that leave.


def rank(priority: int) -> int:
    """The queue rank of a workload whose pods have this priority. Lower is sooner, and all ranks are above 0."""
    return 1 + _HIGHEST_PRIORITY - max(min(priority, _HIGHEST_PRIORITY), -_HIGHEST_PRIORITY)


class Evacuation(NamedTuple):
    placements: Placements
    #: Whether replicas stay in a failed cluster because no other cluster takes them.
    incomplete: bool


def evacuated(
    current: Mapping[str, int | None], decided: Placements, failed: Collection[str], desired: int
) -> Evacuation:
    """The decision, plus the replicas in failed clusters that no other cluster takes: those stay.

    Leaving helps only if something starts elsewhere. A duplicated copy leaves when another cluster gets one instead; of divided
    replicas those leave that other clusters take.
    """
    leaving = [name for name in sorted(current) if name in failed and name not in decided]
    if not leaving or not decided:
        return Evacuation(decided, incomplete=False)
    if None in decided.values():
        moved = bool(decided.keys() - current.keys())
        return Evacuation(decided if moved else {**decided, **dict.fromkeys(leaving)}, incomplete=not moved)
    unplaced = desired - sum(number or 0 for number in decided.values())
    staying = {}
    for name in leaving:
        number = min(current[name] or 0, max(unplaced, 0))
        if number > 0:
            staying[name] = number
            unplaced -= number
    return Evacuation(dict(sorted({**decided, **staying}.items())), incomplete=bool(staying))


def staying(current: Mapping[str, int | None], evacuation: Evacuation, failed: Collection[str]) -> Evacuation:
    """The same, with what no other cluster can take over left in the failed clusters."""
    kept = {name: number for name, number in current.items() if name in failed and name not in evacuation.placements}
    return Evacuation(dict(sorted({**evacuation.placements, **kept}.items())), incomplete=True) if kept else evacuation
