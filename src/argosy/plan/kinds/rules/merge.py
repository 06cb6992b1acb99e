"""Merge: a status merge made of rules."""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from argosy.api.statusrules import MergeRules, Phase
from argosy.plan import fields
from argosy.plan.fields import ABSENT, Json
from argosy.plan.kinds.folding import BAD_NEWS
from argosy.plan.kinds.generic import of_all
from argosy.plan.kinds.merging import Member, everybody, merged, revisions, worst
from argosy.plan.kinds.observation import Aggregation

__all__ = ["merge_by"]


@lru_cache(maxsize=256)
def merge_by(rules: MergeRules) -> Callable[[Aggregation], Json | None]:
    def merge(members: Sequence[Member], aggregation: Aggregation) -> Json:
        return _merge(rules, members, aggregation)

    return merged(merge, has_conditions=rules.conditions, bad_news=BAD_NEWS.union(rules.bad_news))


def _merge(rules: MergeRules, members: Sequence[Member], aggregation: Aggregation) -> Json:
    status = of_all(members, aggregation)
    for path in rules.sums:
        if members or fields.number(aggregation.status, path) is None:
            status = _put(status, path, _sum(_values(members, path)))
        else:
            status = _put(status, path, 0)
    for path in rules.highest:
        status = _put(status, path, max(_comparable(_values(members, path)), default=ABSENT))
    for path in rules.lowest:
        status = _put(status, path, min(_comparable(_values(members, path)), default=ABSENT))
    for path in rules.any_true:
        values = _values(members, path)
        status = _put(status, path, any(value is True for value in values) if values else ABSENT)
    for phase in rules.worst:
        status = _with_phase(status, phase, everybody(members, aggregation))
    if len(rules.revisions) == 2:
        current, newest = rules.revisions
        status |= revisions(members, current, newest)
    for path in rules.omitted:
        status = fields.without(status, path)
    return status


def _values(members: Iterable[Member], path: str) -> list[Any]:
    found = (fields.get(each.status, path) for each in members)
    return [value for value in found if value is not ABSENT]


def _put(status: Json, path: str, value: Any) -> Json:
    return fields.without(status, path) if value is ABSENT else fields.put(status, path, value)


def _sum(values: Iterable[Any]) -> Any:
    numbers = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
    return sum(numbers) if numbers else ABSENT


def _comparable(values: Iterable[Any]) -> list[Any]:
    """Numbers, or if there are none, times: their texts are in order."""
    values = list(values)
    numbers = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
    return numbers or [value for value in values if isinstance(value, str) and value]


def _with_phase(status: Json, phase: Phase, members: Sequence[Member]) -> Json:
    """A text beside the phase names the cluster, if there are several."""
    chosen = worst(members, phase.field, phase.order)
    if not chosen:
        return fields.without(status, phase.field)
    status = fields.put(status, phase.field, chosen)
    concerned = next((each for each in members if fields.get(each.status, phase.field, None) == chosen), members[0])
    for path in phase.with_:
        value = fields.get(concerned.status, path)
        if isinstance(value, str) and value and len(members) > 1 and path.rpartition(".")[2] == "message":
            value = f"{concerned.cluster}: {value}"
        status = _put(status, path, value)
    return status
