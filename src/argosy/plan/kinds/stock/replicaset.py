"""ReplicaSet and ReplicationController: a number of pods, without a roll-out."""

from collections.abc import Sequence
from typing import Final

from argosy.kube.conditions import find
from argosy.plan.fields import Json
from argosy.plan.kinds.kind import Kind
from argosy.plan.kinds.merging import Member, merged, sums
from argosy.plan.kinds.observation import Aggregation
from argosy.plan.kinds.rollout import count, missing_replicas, replicas_of, status_of, surplus, unobserved

__all__ = ["KIND"]

_UNLESS_ZERO: Final = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas", "terminatingReplicas")


def _merge(members: Sequence[Member], aggregation: Aggregation) -> Json:
    return sums(members, ("replicas",), _UNLESS_ZERO)


def _unfinished(desired: Json, copy: Json) -> list[str]:
    if behind := unobserved(copy):
        return behind
    wanted = replicas_of(desired)
    found = missing_replicas(count(copy, "availableReplicas"), wanted, "available") or surplus(copy, wanted)
    failing = find(status_of(copy).get("conditions"), "ReplicaFailure") or {}
    if failing.get("status") == "True":
        found.append(f"pods cannot be created: {failing.get('message')}")
    return found


KIND: Final = Kind(pod_spec=("spec", "template", "spec"), aggregate=merged(_merge), unfinished=_unfinished)
