"""Failover: clusters that failed, workloads that leave them, and workloads that come back a few replicas at a time.

A cluster that has not been ready for long gets a taint of ours that drives out what does not tolerate it; once it has been
ready for long again, the taint goes. While too many clusters fail at once nobody is tainted: then it is more likely that
we are cut off than that they are all broken. Replicas start elsewhere; the copies in a failed cluster are not deleted but
noted as to be removed when it returns, and what found no other home stays its share.

Coming back is bounded: no more than a few replicas are started at a time, and none is stopped elsewhere before another one
is available instead. Values in, values out; the clock and the writes are `control/failover`'s.
"""

import datetime
from collections.abc import Collection, Mapping

import msgspec
import orjson

from argosy.api import keys
from argosy.api.clusters import FederatedCluster, Taint
from argosy.api.conditions import READY
from argosy.fleet.snapshot import Fleet
from argosy.fleet.taints import NO_EXECUTE
from argosy.kube import duration, timestamps

__all__ = [
    "BEHIND_ALL",
    "Failback",
    "Rules",
    "Verdict",
    "doubtful",
    "failback_of",
    "failed_clusters",
    "has_failed",
    "kept",
    "rank",
    "rules_for",
    "step",
    "step_size",
    "verdict",
    "with_failback",
]

Placements = dict[str, int | None]

#: Where the policy does not say how many replicas may come back at a time: one in so many of them.
_TENTH = 10
#: No pod's priority is beyond those of the classes every cluster has.
_HIGHEST_PRIORITY = 2_000_001_000
#: Above every rank; less this, ranks are in the same order, and all below 0.
BEHIND_ALL = 2 * _HIGHEST_PRIORITY + 2


# Clusters.


class Rules(msgspec.Struct, frozen=True):
    """Seconds of being unready after which a cluster has failed, and of being ready after which it has not. None: never."""

    failover_after: float | None = None
    failback_after: float = 300.0


class Verdict(msgspec.Struct, frozen=True):
    """The taints a cluster is to have from now on (None: those it has), and when to look again."""

    taints: tuple[Taint, ...] | None = None
    look_again: float | None = None


def rules_for(cluster: FederatedCluster, rules: Rules) -> Rules:
    """The operator's rules with what the cluster's own annotations say; one that is no duration says nothing."""
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
    """Whether a cluster counts as failed. With `doubt` nobody new does.

    Against it only time counts in which somebody looked, `watched` seconds so far: it may have recovered while nobody did.
    """
    rules = rules_for(cluster, rules)
    tainted = has_failed(cluster)
    ready = cluster.condition(READY)
    if ready is None or not cluster.joined or cluster.terminating:
        return Verdict()
    if (ready.status == "True") != tainted:
        return Verdict()  # ready and trusted, or failed and known to have
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


def doubtful(clusters: Collection[FederatedCluster]) -> bool:
    """Whether more than half of the joined clusters are unready: then it is rather us who are cut off."""
    known = [each for each in clusters if each.joined and not each.terminating and each.condition(READY) is not None]
    return 2 * sum(not cluster.ready for cluster in known) > len(known)


def has_failed(cluster: FederatedCluster) -> bool:
    """Whether it counts as failed: also for a while after it is back."""
    return any(_is_ours(taint) for taint in cluster.spec.taints)


def failed_clusters(fleet: Fleet, names: Collection[str]) -> set[str]:
    """Those of the clusters named that count as failed."""
    found = set()
    for name in names:
        member = fleet.member(name)
        if member is not None and any(key == keys.UNREADY_TAINT for key, _, _ in member.taints):
            found.add(name)
    return found


def _is_ours(taint: Taint) -> bool:
    return taint.key == keys.UNREADY_TAINT


def _age(timestamp: str | None, now: datetime.datetime) -> float:
    then = timestamps.parse(timestamp)
    return 0.0 if then is None else (now - then).total_seconds()


# Workloads that leave.


def rank(priority: int) -> int:
    """Who goes first: the place in a queue of a workload whose pods have this priority. Lower is sooner, and behind 0."""
    return 1 + _HIGHEST_PRIORITY - max(min(priority, _HIGHEST_PRIORITY), -_HIGHEST_PRIORITY)


def kept(current: Mapping[str, int | None], decided: Placements, failed: Collection[str], desired: int) -> Placements:
    """The decision, with what would leave a failed cluster for nowhere.

    Leaving helps only where something is started elsewhere. A copy that is duplicated leaves when another cluster gets
    one instead; of divided replicas those leave that others take.
    """
    leaving = [name for name in sorted(current) if name in failed and name not in decided]
    if not leaving or not decided:
        return decided
    if None in decided.values():
        return decided if decided.keys() - current.keys() else {**decided, **dict.fromkeys(leaving)}
    homeless = desired - sum(number or 0 for number in decided.values())
    result = dict(decided)
    for name in leaving:
        number = min(current[name] or 0, max(homeless, 0))
        if number > 0:
            result[name] = number
            homeless -= number
    return dict(sorted(result.items()))


# Workloads that come back.


class Failback(msgspec.Struct, frozen=True, omit_defaults=True):
    """On record with the object: clusters it left because they failed, and where it is going while it comes back."""

    left: tuple[str, ...] = ()
    target: dict[str, int] = {}


def failback_of(annotations: Mapping[str, str]) -> Failback:
    try:
        return msgspec.json.decode(annotations.get(keys.FAILBACK, "{}"), type=Failback)
    except msgspec.MsgspecError:
        return Failback()


def with_failback(annotations: Mapping[str, str], failback: Failback) -> dict[str, str]:
    rest = {key: value for key, value in annotations.items() if key != keys.FAILBACK}
    if failback == Failback():
        return rest
    return {**rest, keys.FAILBACK: orjson.dumps(msgspec.to_builtins(failback), option=orjson.OPT_SORT_KEYS).decode()}


def step_size(annotations: Mapping[str, str], desired: int) -> int:
    """How many replicas may be on their way back at a time, as the policy's annotations say."""
    stated = annotations.get(keys.FAILBACK_REPLICAS, "")
    if stated.isascii() and stated.isdigit() and 0 < len(stated) < 10 and int(stated) > 0:
        return int(stated)
    return max(1, -(-desired // _TENTH))


def step(
    current: Mapping[str, int | None],
    target: Mapping[str, int],
    returning: Collection[str],
    available: Mapping[str, int],
    most: int,
) -> dict[str, int]:
    """The next division on the way from `current` to `target`, whose replicas in `returning` clusters come back.

    At most `most` replicas of returning clusters are started and not available yet; elsewhere no more are stopped than
    are available beyond the target's total. What is not available anyway may be stopped at once. A cluster that `available`
    does not name cannot be seen: it may serve all it has, or nothing, and nothing is stopped there.
    """
    names = sorted({*current, *target})
    now = {name: current.get(name) or 0 for name in names}
    serving = {name: min(available.get(name, 0), now[name]) for name in names}
    starting = sum(now[name] - serving[name] for name in names if name in returning)
    may_start = max(most - starting, 0)
    may_stop = max(sum(serving.values()) - sum(target.values()), 0)
    result = {}
    for name in names:
        change = target.get(name, 0) - now[name]
        if change > 0 and name in returning:
            change = min(change, may_start)
            may_start -= change
        elif change < 0 and name not in available:
            change = 0
        elif change < 0:
            idle = min(now[name] - serving[name], -change)
            serving_stopped = min(-change - idle, may_stop)
            may_stop -= serving_stopped
            change = -(idle + serving_stopped)
        result[name] = now[name] + change
    return {name: number for name, number in result.items() if number > 0}
