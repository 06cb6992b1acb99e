"""Roll-outs: what a workload in one member lacks until all its replicas are the newest and available.

The same numbers as `kubectl rollout status` looks at, for each member.
"""

from typing import Final

from argosy.plan import fields
from argosy.plan.fields import Json
from argosy.plan.kinds.observation import observed_in

__all__ = ["UNOBSERVED", "count", "missing_replicas", "replicas_of", "status_of", "surplus", "unobserved"]

UNOBSERVED: Final = "its newest change is not observed yet"


def status_of(copy: Json) -> Json:
    status = copy.get("status")
    return status if isinstance(status, dict) else {}


def count(copy: Json, field: str) -> int:
    """A number in the status; Kubernetes leaves zeros out."""
    return fields.number(status_of(copy), field) or 0


def replicas_of(desired: Json) -> int:
    """What an API server takes for an absent number is 1."""
    number = fields.number(desired, "spec.replicas")
    return 1 if number is None else number


def unobserved(copy: Json) -> list[str]:
    """Whether its controller in the member has yet to see it, or its last change: until then all counts are old."""
    observed = observed_in(status_of(copy))
    if observed is None or observed < (fields.number(copy, "metadata.generation") or 0):
        return [UNOBSERVED]
    return []


def missing_replicas(found: int, wanted: int, what: str) -> list[str]:
    return [f"{found} of {wanted} replicas are {what}"] if found < wanted else []


def surplus(copy: Json, wanted: int) -> list[str]:
    more = count(copy, "replicas") - wanted
    return [f"{more} replicas too many are still running"] if more > 0 else []
