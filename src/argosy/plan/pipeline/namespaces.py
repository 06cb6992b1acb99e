"""Namespaces: the step that propagates them to every cluster without a policy, unless they opt out.

Namespaces that members already have are adopted, and adopted ones are never deleted.
"""

from collections.abc import Mapping
from typing import Final

from argosy.api import keys
from argosy.plan.copies.placement import with_placement
from argosy.plan.metadata import annotations_of
from argosy.plan.pipeline.automatic import propagates
from argosy.plan.pipeline.inputs import PassInputs
from argosy.plan.pipeline.state import State

__all__ = ["ANNOTATIONS", "propagate_namespace", "propagates"]

#: What makes dispatch adopt existing namespaces and leave adopted ones behind.
ANNOTATIONS: Final[Mapping[str, str]] = {
    keys.INTERNAL_CONFLICT_RESOLUTION: keys.ADOPT,
    keys.INTERNAL_CLUSTERS_TO_ADOPT: '{"regexp":".*"}',
    keys.INTERNAL_ORPHAN: keys.ORPHAN_ADOPTED,
}


def propagate_namespace(inputs: PassInputs, state: State) -> State:
    """Placed in all clusters. A namespace that opts out stays where it is: it may be in use there."""
    name = inputs.source["metadata"]["name"]
    if not propagates(name, annotations_of(inputs.source), inputs.exclude_namespaces):
        return state
    placed = state.with_spec(with_placement(state.spec, keys.NSAUTOPROP_CONTROLLER, inputs.fleet.names))
    return placed.with_annotations({**state.annotations, **ANNOTATIONS})
