"""Aggregate: what is written back to the user's object: one merged status, and the feedback annotations.

The kind defines how statuses merge (`kinds`); this module decides whether there is anything to write.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from argosy.api import keys
from argosy.api.federated import FederatedObject
from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.plan import fields
from argosy.plan.fields import MISSHAPEN, Json, equal
from argosy.plan.kinds.conditions import concluded
from argosy.plan.kinds.kind import Kind
from argosy.plan.kinds.observation import Aggregation, Observation
from argosy.plan.kinds.registry import kind_in, kind_of
from argosy.plan.kinds.unmergeable import Unmergeable, to_blame
from argosy.plan.metadata import annotations_of, copy_keys
from argosy.plan.pipeline.template import up_to_date
from argosy.plan.status.wanted import Known, lacks

__all__ = ["feedback", "feedback_of", "in_motion", "source_status"]


def source_status(
    source: Json,
    federated: FederatedObject,
    observations: Sequence[Observation],
    now: str,
    known: Known | None = None,
) -> Json | None:
    """The status to write to the source, None if it is unchanged or cannot be determined. Raises Unmergeable.

    One observation for each cluster the object is placed in, in any order; `now` is used only if something changed. `known` is
    what `argosy status` will know: no condition says that all is complete while something is missing.
    """
    aggregation = Aggregation(
        source=source,
        observations=sorted(observations, key=lambda each: each.cluster),
        up_to_date=up_to_date(source, federated),
        now=now,
        federated=federated,
    )
    config = known.type_config if known is not None else None
    kind = kind_in(source, config) if config is not None else kind_of(source)
    status = _merged(kind, aggregation)
    if status is None:
        return None
    if known is not None:
        lacking = lacks(msgspec.structs.replace(known, source={**source, "status": status}))
        if lacking:
            aggregation = msgspec.structs.replace(aggregation, lacking=lacking)
            status = _merged(kind, aggregation) or status
    status = concluded(
        status, aggregation, has_pods=bool(kind.pod_spec) and kind.has_conditions, update_time=kind.update_time
    )
    return None if equal(status, source.get("status") or {}) else status


def _merged(kind: Kind, aggregation: Aggregation) -> Json | None:
    try:
        return kind.aggregate(aggregation)
    except Unmergeable:
        raise
    except MISSHAPEN as error:
        if not (blamed := to_blame(kind.aggregate, aggregation)):
            raise
        raise Unmergeable(blamed) from error


def feedback(
    source: Mapping[str, str] | None,
    federated: Mapping[str, str] | None,
    wanted: Iterable[str] = keys.FEEDBACK_ANNOTATIONS,
) -> dict[str, str] | None:
    """The source's annotations with the feedback of the federated object, None if unchanged."""
    annotations, changes = copy_keys(federated, source, wanted)
    return annotations if changes else None


def feedback_of(source: Json, federated: FederatedObject) -> dict[str, str] | None:
    return feedback(annotations_of(source), federated.metadata.annotations)


def in_motion(type_config: FederatedTypeConfig, members: Iterable[Json | None]) -> bool:
    """Whether the status will change again soon: a member's copy is not there yet (None), or replicas are starting or
    stopping.

    This is also true for copies that never come and replicas that never become ready. It may only delay a write.
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
