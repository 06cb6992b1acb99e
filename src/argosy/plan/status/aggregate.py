"""Aggregate: what flows back into the user's object: one status of many, and the feedback annotations.

How statuses merge is the kind's matter (`kinds`); here is decided whether there is anything to write.
"""

from collections.abc import Iterable, Mapping, Sequence

from argosy.api import keys
from argosy.api.federated import FederatedObject
from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.plan import fields
from argosy.plan.fields import Json, equal
from argosy.plan.kinds.observation import Aggregation, Observation
from argosy.plan.kinds.registry import kind_of
from argosy.plan.metadata import annotations_of, copy_keys
from argosy.plan.pipeline.federate import up_to_date

__all__ = ["feedback", "feedback_of", "in_motion", "source_status"]


def source_status(
    source: Json, federated: FederatedObject, observations: Sequence[Observation], now: str
) -> Json | None:
    """The status to write to the source, None where it has that one already or nothing can be said.

    One observation for each cluster the object is placed in, sorted or not; `now` is used only where something changed.
    """
    aggregation = Aggregation(
        source=source,
        observations=sorted(observations, key=lambda each: each.cluster),
        up_to_date=up_to_date(source, federated),
        now=now,
    )
    status = kind_of(source).aggregate(aggregation)
    if status is None or equal(status, source.get("status") or {}):
        return None
    return status


def feedback(
    source: Mapping[str, str] | None,
    federated: Mapping[str, str] | None,
    wanted: Iterable[str] = keys.FEEDBACK_ANNOTATIONS,
) -> dict[str, str] | None:
    """The source's annotations with what the federated object reports, None when they have it already."""
    annotations, changes = copy_keys(federated, source, wanted)
    return annotations if changes else None


def feedback_of(source: Json, federated: FederatedObject) -> dict[str, str] | None:
    return feedback(annotations_of(source), federated.metadata.annotations)


def in_motion(type_config: FederatedTypeConfig, members: Iterable[Json | None]) -> bool:
    """Whether what there is to tell will be another thing soon: a member's copy is on its way (None), or replicas are
    starting or stopping.

    Copies that never come and replicas that never become ready look the same. Then it is told later, never not at all.
    """
    numbers = type_config.spec.path_definition
    counts = [path for path in (numbers.replicas_status, numbers.ready_replicas_status) if path]
    has_replicas = bool(numbers.replicas_spec and numbers.ready_replicas_status)
    for each in members:
        if each is None:
            return True
        wanted = fields.get(each, numbers.replicas_spec, None) if has_replicas else None
        if wanted is not None and any((fields.get(each, path, None) or 0) != wanted for path in counts):
            return True
    return False
