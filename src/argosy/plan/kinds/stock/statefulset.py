"""StatefulSet: replicas are divided as ranges of ordinals, so that each pod name exists in one cluster only.

A StatefulSet that was divided without regard to ordinals has the same ordinals in several clusters. It stays so: renaming
running pods would cost them their volumes.
"""

from collections.abc import Sequence
from typing import Final

from argosy.plan import fields
from argosy.plan.copies.placement import Patches, value_at
from argosy.plan.fields import Json
from argosy.plan.kinds.kind import Divided, Kind, Shares, by_number, replace
from argosy.plan.kinds.lack import About
from argosy.plan.kinds.merging import Member, merged, revisions, sums
from argosy.plan.kinds.observation import Aggregation
from argosy.plan.kinds.rollout import count, missing_replicas, replicas_of, surplus, unobserved
from argosy.plan.replicas.ordinals import Range, gaps_of, ranges

__all__ = ["KIND"]

_REPLICAS: Final = "/spec/replicas"
_ORDINALS: Final = "/spec/ordinals"


MISSING = "ordinals {ordinals} are in no cluster: the clusters that could run them have no room"


def _divide(shares: Shares) -> Divided:
    if shares.pointer != _REPLICAS:
        return by_number(shares)
    held: dict[str, Range] = {}
    for cluster in shares.before:
        number = shares.number_before(cluster, _REPLICAS)
        if number is None:
            continue  # it had all of them until now: any range is part of what it runs
        start = _start_before(shares, cluster)
        if start is None:
            return by_number(shares)
        held[cluster] = Range(start, min(number, shares.limited.get(cluster, number)))
    total = int(fields.get(shares.template, "spec.replicas", 0) or 0)
    asked = Range(_start(fields.get(shares.template, "spec.ordinals", None)) or 0, total)
    if total <= 0:
        # The objects stay, and their ranges keep their start.
        return Divided({cluster: _patches(Range(held.get(cluster, asked).start, 0)) for cluster in shares.wanted})
    parts = ranges(asked, held, shares.wanted, shares.room, most_clusters=shares.most_clusters)
    gaps = ", ".join(f"{gap.start}–{gap.end - 1}" for gap in gaps_of(asked, parts))
    missing = MISSING.format(ordinals=gaps) if gaps else ""
    return Divided({cluster: _patches(part) for cluster, part in sorted(parts.items())}, missing)


def _patches(part: Range) -> Patches:
    # "add" also replaces: the template may or may not have ordinals.
    return [replace(_REPLICAS, part.replicas), {"op": "add", "path": _ORDINALS, "value": {"start": part.start}}]


def _start_before(shares: Shares, cluster: str) -> int | None:
    return _start(value_at(shares.before[cluster], _ORDINALS))


def _start(ordinals: object) -> int | None:
    start = ordinals.get("start") if isinstance(ordinals, dict) else None
    return start if isinstance(start, int) and not isinstance(start, bool) and start >= 0 else None


def _unfinished(desired: Json, copy: Json) -> list[str]:
    """A partition keeps pods of the old revision on purpose. With OnDelete somebody has to delete them."""
    if behind := unobserved(copy):
        return behind
    wanted = replicas_of(desired)
    due = max(0, wanted - (fields.number(desired, "spec.updateStrategy.rollingUpdate.partition") or 0))
    found = missing_replicas(count(copy, "updatedReplicas"), due, "updated")
    if found and fields.get(desired, "spec.updateStrategy.type", None) == "OnDelete":
        found = [f"{found[0]}: with OnDelete, the other pods have to be deleted"]
    return [
        *found,
        *missing_replicas(count(copy, "availableReplicas"), wanted, "available"),
        *surplus(copy, wanted),
    ]


def _merge(members: Sequence[Member], aggregation: Aggregation) -> Json:
    status = sums(members, ("replicas", "availableReplicas"), ("readyReplicas", "currentReplicas"))
    if updated := _updated(members, aggregation):
        status["updatedReplicas"] = updated
    # A server does not allow it to go back, or away.
    collisions = {key: value for key, value in aggregation.status.items() if key == "collisionCount"}
    return status | revisions(members, "currentRevision", "updateRevision") | collisions


def _updated(members: Sequence[Member], aggregation: Aggregation) -> int:
    """Their sum. But where every cluster has all replicas, the sum reaches the number that is asked for long before all is done,
    and `kubectl rollout status` would end: while anything is missing there, fewer count as updated."""
    updated = sums(members, ("updatedReplicas",))["updatedReplicas"]
    asked = replicas_of(aggregation.source)
    together = sum(replicas_of(each.object or {}) for each in aggregation.present)
    if together <= asked or not aggregation.lacks(About.COMPLETION, About.OBSERVATION):
        return int(updated)
    partition = fields.number(aggregation.source, "spec.updateStrategy.rollingUpdate.partition") or 0
    return min(int(updated), max(0, asked - partition - 1))


KIND: Final[Kind] = Kind(
    pod_spec=("spec", "template", "spec"), divide=_divide, aggregate=merged(_merge), unfinished=_unfinished
)
