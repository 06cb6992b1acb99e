"""CronJob: every member starts Jobs of its own. Its last success is the time at which it had succeeded in all of them."""

from collections.abc import Sequence
from typing import Final

from argosy.plan.fields import Json
from argosy.plan.kinds.kind import Kind
from argosy.plan.kinds.merging import Member, earliest, everybody, latest, listed_by_cluster, merged
from argosy.plan.kinds.observation import Aggregation

__all__ = ["KIND"]

_SUCCESS: Final = "lastSuccessfulTime"


def _merge(members: Sequence[Member], aggregation: Aggregation) -> Json:
    status = listed_by_cluster(members, "active") | latest(members, "lastScheduleTime")
    if all(each.status.get(_SUCCESS) for each in everybody(members, aggregation)):
        status |= earliest(members, _SUCCESS)
    return status


def _unfinished(desired: Json, copy: Json) -> list[str]:
    """It is as wanted when it is there: what becomes of its Jobs is told of them."""
    return []


KIND: Final = Kind(
    pod_spec=("spec", "jobTemplate", "spec", "template", "spec"),
    has_conditions=False,
    aggregate=merged(_merge, has_conditions=False),
    unfinished=_unfinished,
)
