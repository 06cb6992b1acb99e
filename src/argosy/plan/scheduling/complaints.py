"""Complaints: what scheduling would say of a policy, or of an object under it, without a look at any cluster."""

from typing import Final

from argosy.api import keys
from argosy.api.admission import caveats
from argosy.api.policies import PropagationPolicy
from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.plan.fields import Json
from argosy.plan.metadata import annotations_of
from argosy.plan.scheduling import selection
from argosy.plan.scheduling.rules import RuleError, rules_of
from argosy.plan.scheduling.unit import UnitError, unit_of

__all__ = ["of_object", "of_policy"]

_HELD: Final = "objects that name this policy are not placed: "


def of_policy(policy: PropagationPolicy) -> list[str]:
    """Why no object can be scheduled by this policy."""
    try:
        rules_of(policy.spec)
        selection.check(policy.spec.cluster_affinity)
    except RuleError as error:
        return [f"{_HELD}spec.{error}"]
    except selection.SelectionError as error:
        return [f"{_HELD}spec.clusterAffinity: {error}"]
    return []


def of_object(source: Json, policy: PropagationPolicy, config: FederatedTypeConfig) -> list[str]:
    """Why it cannot be scheduled, or which of its annotations are ignored, but for those `api.admission.caveats` tells of."""
    try:
        unit = unit_of(source, annotations_of(source), {}, policy, config)
    except UnitError as error:
        return [f"it cannot be scheduled: {error}"]
    refused = policy.metadata.annotations.get(keys.REFUSE_OBJECT_OVERRIDES) == "true"
    return [
        f"annotation {key} is ignored: {why}"
        for key, why in sorted(unit.ignored.items())
        if refused or key not in caveats.CHECKED
    ]
