"""Failback: how replicas return to a cluster they left when it failed.

Replicas return a few at a time: only a few are started and not yet available, and none is stopped elsewhere before another
one is available instead. An annotation on the federated object records the progress, so that the next pass continues from
there.
"""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

import msgspec
import orjson

from argosy.api import keys
from argosy.api.policies import PropagationPolicy
from argosy.fleet.snapshot import Fleet
from argosy.plan.failover.failover import Placements, failed_clusters
from argosy.plan.metadata import without_annotations

__all__ = ["Failback", "Progress", "failback_of", "step", "step_size", "towards", "with_failback"]

#: The share of replicas (one in so many) that may return at a time if the policy does not say.
_TENTH: Final = 10


class Failback(msgspec.Struct, frozen=True, omit_defaults=True):
    """Recorded with the object: the clusters it left because they failed, and its target placement while it returns."""

    left: tuple[str, ...] = ()
    target: dict[str, int] = {}


class Progress(NamedTuple):
    """The placement for now, and the annotations that record the steps left."""

    placements: Placements
    annotations: dict[str, str]


def towards(
    target: Placements,
    current: Mapping[str, int | None],
    annotations: Mapping[str, str],
    *,
    policy: PropagationPolicy,
    fleet: Fleet,
    available: Mapping[str, int] | None,
) -> Progress:
    """The next placements on the way to `target`: the target itself, or a step if replicas return.

    `annotations` are the federated object's. `available` has the available replicas of each reachable member. Without it, and
    for objects that are not divided, there are no steps.
    """
    before = failback_of(annotations)
    failed = failed_clusters(fleet, {*current, *before.left})
    left = {name for name in failed if name in before.left or target.get(name, 0) != current.get(name, 0)}
    returning = set(before.left) - failed
    numbers = {name: number for name, number in target.items() if number is not None}
    divided = len(numbers) == len(target) and None not in current.values()
    placements = target
    if returning and available is not None and divided:
        # Nothing is available in clusters that failed or left the federation.
        gone = {name for name in current if fleet.member(name) is None}
        known = {**dict.fromkeys(failed | gone, 0), **available}
        most = step_size(policy.metadata.annotations, sum(numbers.values()))
        placements = {**step(current, numbers, returning, known, most)}
    if placements == target:
        return Progress(placements, with_failback(annotations, Failback(tuple(sorted(left)))))
    return Progress(placements, with_failback(annotations, Failback(tuple(sorted(left | returning)), numbers)))


def failback_of(annotations: Mapping[str, str]) -> Failback:
    try:
        return msgspec.json.decode(annotations.get(keys.FAILBACK, "{}"), type=Failback)
    except msgspec.MsgspecError:
        return Failback()


def with_failback(annotations: Mapping[str, str], failback: Failback) -> dict[str, str]:
    rest = without_annotations(annotations, keys.FAILBACK)
    if failback == Failback():
        return rest
    return {**rest, keys.FAILBACK: orjson.dumps(msgspec.to_builtins(failback), option=orjson.OPT_SORT_KEYS).decode()}


def step_size(annotations: Mapping[str, str], desired: int) -> int:
    """How many replicas may be returning at a time, by the policy's annotations."""
    stated = annotations.get(keys.FAILBACK_REPLICAS, "")
    if stated.isascii() and stated.isdigit() and 0 < len(stated) < 10 and int(stated) > 0:
        return int(stated)
    return max(1, desired // _TENTH)


def step(
    current: Mapping[str, int | None],
    target: Mapping[str, int],
    returning: Collection[str],
    available: Mapping[str, int],
    most: int,
) -> dict[str, int]:
    """The next division on the way from `current` to `target`, whose replicas in `returning` clusters are coming back.

    At most `most` replicas of returning clusters are started and not yet available. Elsewhere only as many are stopped as are
    available beyond the target's total; replicas that are not available may be stopped at once. A cluster missing in
    `available` is unreachable and may serve any number of its replicas: none is stopped there.
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
