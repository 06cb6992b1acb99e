"""Health: what a copy lacks, by rules."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from argosy.api.statusrules import Count, HealthRules, Reached, StateOfCondition
from argosy.kube.conditions import find, stated
from argosy.plan import fields
from argosy.plan.fields import Json
from argosy.plan.kinds.rollout import UNOBSERVED, missing_replicas, status_of, unobserved

__all__ = ["unfinished_by"]


@lru_cache(maxsize=256)
def unfinished_by(rules: HealthRules) -> Callable[[Json, Json], list[str]]:
    def unfinished(desired: Json, copy: Json) -> list[str]:
        if rules.suspended and fields.get(desired, rules.suspended, None) is True:
            return ["it is suspended"]
        if (rules.observes_generation or "observedGeneration" in status_of(copy)) and (behind := unobserved(copy)):
            return behind
        return list(dict.fromkeys(_lacking(rules, desired, copy)))

    return unfinished


def _lacking(rules: HealthRules, desired: Json, copy: Json) -> Iterator[str]:
    for count in rules.counts:
        yield from _count(count, desired, copy)
    for phase in rules.phases:
        yield from _phase(phase, copy)
    for condition in rules.conditions:
        yield from _condition(condition, copy)


def _count(rule: Count, desired: Json, copy: Json) -> list[str]:
    """Without any number, one replica is wanted, as for Kubernetes' own kinds."""
    found = (fields.number(copy if path.startswith("status.") else desired, path) for path in rule.of)
    wanted = next((number for number in found if number is not None), 1)
    number = fields.number(copy, rule.path) or 0
    if rule.surplus:
        return [f"{number - wanted} replicas too many are still running"] if number > wanted else []
    return missing_replicas(number, wanted, rule.what or rule.path.rpartition(".")[2])


def _phase(rule: Reached, copy: Json) -> list[str]:
    found: Any = fields.get(copy, rule.path, None)
    if found in rule.one_of or (rule.optional and not found):
        return []
    why = fields.get(copy, rule.message, None) if rule.message else None
    return [f"it is {found or 'not reported on yet'}" + (f": {why}" if why else "")]


def _condition(rule: StateOfCondition, copy: Json) -> list[str]:
    condition = find(stated(status_of(copy)), rule.type)
    if condition is None:
        return [] if rule.optional else [f"its condition {rule.type} is not reported yet"]
    observed = fields.number(condition, "observedGeneration")
    if observed is not None and observed < (fields.number(copy, "metadata.generation") or 0):
        return [UNOBSERVED]
    if condition.get("status") == rule.status:
        return []
    why = condition.get("message") or condition.get("reason")
    return [f"{rule.type} is {condition.get('status')}" + (f": {why}" if why else "")]
