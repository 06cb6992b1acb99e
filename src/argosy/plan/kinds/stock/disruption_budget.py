"""PodDisruptionBudget: goes where the workloads go whose pods it protects. Each member counts its own pods."""

from collections.abc import Sequence
from typing import Final

from argosy.kube.conditions import find
from argosy.plan import fields
from argosy.plan.fields import Json
from argosy.plan.kinds.about import About, PodSelector
from argosy.plan.kinds.kind import Kind
from argosy.plan.kinds.merging import Member, merged, sums
from argosy.plan.kinds.observation import Aggregation
from argosy.plan.kinds.rollout import status_of, unobserved

__all__ = ["KIND"]


def _about(obj: Json) -> About | None:
    """An empty selector selects all pods of the namespace, an absent one none."""
    selector = fields.get(obj, "spec.selector", None)
    return PodSelector(selector) if isinstance(selector, dict) else None


_COUNTS: Final = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
_ALLOWED: Final = "DisruptionAllowed"


def _merge(members: Sequence[Member], aggregation: Aggregation) -> Json:
    disrupted: dict[str, str] = {}
    for each in members:
        pods = each.status.get("disruptedPods")
        for pod, time in pods.items() if isinstance(pods, dict) else ():
            disrupted[pod] = max(str(time), disrupted.get(pod, ""))
    status = sums(members, _COUNTS)
    return status | {"disruptedPods": dict(sorted(disrupted.items()))} if disrupted else status


def _unfinished(desired: Json, copy: Json) -> list[str]:
    """That no pod may be disrupted just now is what it is for. It is not as wanted if its member cannot count the pods."""
    status = status_of(copy)
    if "observedGeneration" in status and (behind := unobserved(copy)):
        return behind
    allowed = find(status.get("conditions"), _ALLOWED) or {}
    return [f"its pods cannot be counted: {allowed.get('message')}"] if allowed.get("reason") == "SyncFailed" else []


KIND: Final = Kind(about=_about, aggregate=merged(_merge), unfinished=_unfinished)
