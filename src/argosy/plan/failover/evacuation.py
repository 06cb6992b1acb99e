"""Evacuation: how an object is divided while clusters have failed. Healthy clusters start what failed ones lose, as much as they
have room for. Nothing of theirs is stopped or moved for it, whatever the policy allows otherwise.
"""

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from argosy.fleet.snapshot import Fleet
from argosy.kube.taints import NO_EXECUTE
from argosy.plan.failover.failback import failback_of
from argosy.plan.failover.failover import all_failed
from argosy.plan.scheduling.triggers import POLICY_CONTENT_CHANGED, UNANSWERED, Verdict
from argosy.plan.scheduling.unit import Unit

__all__ = ["careful", "leaves", "told"]

_STAY: Final = (
    "{replicas} replicas stay in {clusters}, not ready for long: no other cluster has room for them, or may take them"
)


def careful(
    unit: Unit, fleet: Fleet, annotations: Mapping[str, str], verdict: Verdict, bound: Collection[str] = ()
) -> Unit:
    """The unit for a decision that has this reason. Clusters it is `bound` to have failed, although the fleet denies it."""
    failed = all_failed(fleet).union(bound)
    if not failed or not unit.divides or unit.sticky:
        return unit
    repelling = fleet.taints.untolerated(unit.tolerations, NO_EXECUTE)
    if any(name in failed and repelling[fleet.index[name]] for name in unit.current):
        rules = msgspec.structs.replace(unit.rules, within_available=True)
        return msgspec.structs.replace(unit, rules=rules, avoid_disruption=True)
    returns = not failed.issuperset(failback_of(annotations).left)
    return unit if returns or _is_asked_for(verdict) else msgspec.structs.replace(unit, avoid_disruption=True)


def _is_asked_for(verdict: Verdict) -> bool:
    """Whether the object or its policy changed, not only the fleet."""
    changed = verdict.difference
    return changed is None or changed.stable not in ((), (UNANSWERED,)) or verdict.reason == POLICY_CONTENT_CHANGED


def told(staying: Mapping[str, int | None]) -> str:
    """That replicas stay in clusters that have failed; empty if none do."""
    clusters, replicas = sorted(staying), sum(number or 0 for number in staying.values())
    return _STAY.format(replicas=replicas, clusters=", ".join(clusters)) if replicas else ""


def leaves(
    before: Mapping[str, int | None], after: Mapping[str, int | None], failed: Collection[str]
) -> frozenset[str]:
    """The failed clusters that a placement takes a copy or replicas from."""
    return frozenset(name for name in failed if name in before and _is_less(before[name], after.get(name, 0)))


def _is_less(before: int | None, after: int | None) -> bool:
    return after is not None and (before is None or after < before)
