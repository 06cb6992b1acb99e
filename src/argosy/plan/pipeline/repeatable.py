"""Repeatable: whether a decision made again in the same fleet comes out the same, however full the clusters are by then.

The record of a decision has the clusters' labels, taints and APIs, not their room, nor whether they are ready. A decision that
rests on these has to be on record: else a restart would make it again, and move what runs.
"""

from typing import Final

from argosy.api.policies import PropagationPolicy
from argosy.plan.plugins import api_resources, cluster_affinity, cluster_terminating, placement_filter, taint_toleration
from argosy.plan.scheduling.rules import NO_RULES
from argosy.plan.scheduling.schedule import Decision

__all__ = ["is_repeatable"]

#: The filters whose answers follow from the record, or do not change any more.
_ON_RECORD: Final = frozenset(
    plugin.FILTER.name
    for plugin in (api_resources, taint_toleration, placement_filter, cluster_affinity, cluster_terminating)
)


def is_repeatable(decision: Decision, policy: PropagationPolicy) -> bool:
    unit = decision.unit
    if policy.spec.scheduling_profile or unit.rules != NO_RULES or decision.unschedulable or decision.shortfall:
        return False
    if unit.divides and not (unit.avoid_disruption and policy.spec.avoid_disruption):
        return False
    if unit.max_clusters is None and unit.divides:
        return True  # as many run as are wanted, so none starts or stops
    if unit.max_clusters is not None and not unit.stays_put:
        return False
    filtered = decision.filtered
    return filtered is not None and all(filtered.plugins[each].name in _ON_RECORD for each in filtered.refused_by())
