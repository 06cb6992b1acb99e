"""ReplicaSet and ReplicationController: a number of pods and nothing that rolls out: a changed template is for new pods only."""

from typing import Final

from argosy.plan.fields import Json
from argosy.plan.kinds.kind import Kind
from argosy.plan.kinds.rollout import count, missing_replicas, replicas_of, surplus, unobserved

__all__ = ["KIND"]


def _unfinished(desired: Json, copy: Json) -> list[str]:
    if behind := unobserved(copy):
        return behind
    wanted = replicas_of(desired)
    return [*missing_replicas(count(copy, "availableReplicas"), wanted, "available"), *surplus(copy, wanted)]


KIND: Final = Kind(pod_spec=("spec", "template", "spec"), unfinished=_unfinished)
