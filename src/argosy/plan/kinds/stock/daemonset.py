"""DaemonSet: each member's own nodes decide how many pods there are."""

from collections.abc import Sequence
from typing import Final

from argosy.plan import fields
from argosy.plan.fields import Json
from argosy.plan.kinds.kind import Kind
from argosy.plan.kinds.merging import Member, merged, sums
from argosy.plan.kinds.observation import Aggregation
from argosy.plan.kinds.rollout import count, unobserved

__all__ = ["KIND"]


def _unfinished(desired: Json, copy: Json) -> list[str]:
    if behind := unobserved(copy):
        return behind
    wanted, found = count(copy, "desiredNumberScheduled"), []
    updated, available = count(copy, "updatedNumberScheduled"), count(copy, "numberAvailable")
    if updated < wanted:
        on_delete = fields.get(desired, "spec.updateStrategy.type", None) == "OnDelete"
        how = ": with OnDelete, the other pods have to be deleted" if on_delete else ""
        found.append(f"{updated} of {wanted} nodes are updated{how}")
    if available < wanted:
        found.append(f"{available} of {wanted} nodes have an available pod")
    return found


_ALWAYS: Final = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
_UNLESS_ZERO: Final = ("updatedNumberScheduled", "numberAvailable", "numberUnavailable")


def _merge(members: Sequence[Member], aggregation: Aggregation) -> Json:
    # A server does not allow it to go back, or away.
    collisions = {key: value for key, value in aggregation.status.items() if key == "collisionCount"}
    return sums(members, _ALWAYS, _UNLESS_ZERO) | collisions


KIND: Final = Kind(pod_spec=("spec", "template", "spec"), aggregate=merged(_merge), unfinished=_unfinished)
