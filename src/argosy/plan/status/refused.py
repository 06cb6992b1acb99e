"""Refused: why an API server accepts no such status of one of Kubernetes' own kinds, though all its fields have the right types.

Only what would show in a status that is merged: an invalid value of one member would keep out those of all others.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from argosy.kube import names
from argosy.kube.conditions import stated
from argosy.plan import fields
from argosy.plan.fields import Json

__all__ = ["refused"]

#: Kinds with replicas, of which none of these counts may say more.
_WITH_REPLICAS: Final = frozenset(
    {("apps", "Deployment"), ("apps", "StatefulSet"), ("apps", "ReplicaSet"), ("", "ReplicationController")}
)
_OF_REPLICAS: Final = (
    "availableReplicas",
    "currentReplicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "updatedReplicas",
)
#: Kinds whose conditions must have a reason.
_WITH_REASONS: Final = frozenset({("policy", "PodDisruptionBudget"), ("", "Service")})
_STATES: Final = ("True", "False", "Unknown")


def refused(group: str, kind: str, status: Json) -> str:
    """In one line; empty if nothing is wrong with it."""
    return next(_found(group, kind, status), "")


def _found(group: str, kind: str, status: Json) -> Iterator[str]:
    for field in sorted(status):
        value = status[field]
        if isinstance(value, int) and value < 0:
            yield f".status.{field}: {value} is negative"
    if (group, kind) in _WITH_REPLICAS:
        replicas = fields.number(status, "replicas") or 0
        for field in _OF_REPLICAS:
            if (fields.number(status, field) or 0) > replicas:
                yield f".status.{field}: more than {replicas} replicas"
    for condition in stated(status) or ():
        yield from _condition(condition, needs_reason=(group, kind) in _WITH_REASONS)
    points = fields.get(status, "loadBalancer.ingress", None)
    for point in points if isinstance(points, list) else ():
        if isinstance(point, dict):
            yield from _point(point)


def _condition(condition: Json, *, needs_reason: bool) -> Iterator[str]:
    type, status = condition.get("type"), condition.get("status")
    if not isinstance(type, str) or names.qualified_name_errors(type):
        yield f".status.conditions: {str(type)[:60]!r} is no type of a condition"
    elif status not in _STATES:
        yield f".status.conditions: {type} is {str(status)[:60]!r}"
    elif needs_reason and not condition.get("reason"):
        yield f".status.conditions: {type} has no reason"


#: What an address has.
_POINT: Final[tuple[tuple[str, Callable[[str], list[str]]], ...]] = (
    ("ip", names.ip_errors),
    ("hostname", names.dns_subdomain_errors),
)


def _point(point: Json) -> Iterator[str]:
    for field, errors in _POINT:
        value: Any = point.get(field)
        if isinstance(value, str) and value and errors(value):
            yield f".status.loadBalancer.ingress: {value[:60]!r} is no {field}"
