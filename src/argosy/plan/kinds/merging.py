"""Merging: what status merges of many kinds have in common: sums, times, phases, addresses, conditions of several members.

The clusters come in the order of their names, so the same statuses always give the same result.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

import orjson

from argosy.kube.conditions import stated
from argosy.plan import fields
from argosy.plan.fields import ABSENT, Json
from argosy.plan.kinds.conditions import settled, unreachable, with_update_times
from argosy.plan.kinds.folding import BAD_NEWS, folded, unreported
from argosy.plan.kinds.observation import Aggregation

__all__ = [
    "Member",
    "addresses",
    "agreed",
    "earliest",
    "everybody",
    "latest",
    "listed_by_cluster",
    "merged",
    "reported",
    "revisions",
    "sums",
    "with_generation",
    "worst",
]


class Member(NamedTuple):
    cluster: str
    status: Json


Merge = Callable[[Sequence[Member], Aggregation], Json]


def reported(aggregation: Aggregation) -> list[Member]:
    """The members that have the object and report a status of it."""
    return [
        Member(each.cluster, status)
        for each in aggregation.present
        if each.object is not None and isinstance(status := each.object.get("status"), dict)
    ]


def everybody(members: Sequence[Member], aggregation: Aggregation) -> list[Member]:
    """All clusters it is placed in: those that have not reported yet, with an empty status."""
    return [*members, *(Member(cluster, {}) for cluster in _silent(aggregation, members))]


def merged(
    merge: Merge, *, has_conditions: bool = True, bad_news: Collection[str] = BAD_NEWS
) -> Callable[[Aggregation], Json | None]:
    """A kind's `aggregate`, made of what is special about it: everything but conditions and observedGeneration.

    Where the state of a cluster is not known, nobody can tell the sums: the status stays as it was, but for the condition that
    says so. If no member reports anything, nothing is left of what there was: `merge` is asked then, too.
    """

    def aggregate(aggregation: Aggregation) -> Json | None:
        members = reported(aggregation)
        if not members and not aggregation.status:
            return None
        if not aggregation.complete:
            return _marked(dict(aggregation.status), aggregation) if has_conditions else dict(aggregation.status)
        status = with_generation(merge(members, aggregation), members, aggregation)
        if not has_conditions:
            return status
        before = stated(aggregation.status)
        told = [(each.cluster, stated(each.status) or ()) for each in members]
        silent = _silent(aggregation, members)
        wanted = folded(told, bad_news, silent=silent) if members else unreported(before or (), silent)
        timed = with_update_times([each for _, theirs in told for each in theirs] or before or ())
        conditions = settled(wanted, before, aggregation.now, update_time=timed)
        status = {**status, "conditions": conditions} if conditions else status
        return _marked(status, aggregation)

    return aggregate


def _silent(aggregation: Aggregation, members: Sequence[Member]) -> list[str]:
    known = {each.cluster for each in members}
    return [each.cluster for each in aggregation.observations if each.cluster not in known]


def _marked(status: Json, aggregation: Aggregation) -> Json:
    """With the condition that counts are the last known ones, as long as they are, and if there is room for it."""
    if "conditions" in status and stated(status) is None:
        return status
    timed = with_update_times(stated(status) or ())
    mark = settled(unreachable(aggregation), stated(aggregation.status), aggregation.now, update_time=timed)
    types = {each["type"] for each in mark}
    kept = [each for each in stated(status) or () if each.get("type") not in types]
    return {**status, "conditions": [*kept, *mark]} if mark else status


def with_generation(status: Json, members: Iterable[Member], aggregation: Aggregation) -> Json:
    """With the source's observedGeneration instead of the members', if they report any. Without members it stays."""
    status = {key: value for key, value in status.items() if key != "observedGeneration"}
    statuses = [each.status for each in members] or [aggregation.status]
    told = [each["observedGeneration"] for each in statuses if "observedGeneration" in each]
    generation = aggregation.observed_generation
    if told and generation is not None:
        status["observedGeneration"] = str(generation) if isinstance(told[0], str) else generation
    return status


def sums(members: Iterable[Member], always: Sequence[str] = (), unless_zero: Sequence[str] = ()) -> Json:
    """Counts added up. Kubernetes writes some counts even if they are zero, and leaves out others."""
    members = list(members)
    totals = {
        field: sum(fields.number(each.status, field) or 0 for each in members) for field in (*always, *unless_zero)
    }
    return {field: total for field, total in totals.items() if total or field in always}


def revisions(members: Sequence[Member], current: str, updated: str) -> Json:
    """The names of the revision that ran before, and of the newest. Members give them themselves; they are those of a member that
    is not done, and once all are done, the same one twice: health checks look whether they are equal."""
    statuses = [each.status for each in members]
    behind = [each for each in statuses if each.get(current) != each.get(updated)]
    shown = next(iter(behind or statuses), {})
    return {field: shown[field] for field in (current, updated) if shown.get(field)}


def agreed(members: Sequence[Member], *names: str) -> Json:
    """The fields on which all members agree; what they disagree about is left out rather than guessed."""
    result = {}
    for name in names:
        values = [each.status.get(name, ABSENT) for each in members]
        if values and values[0] is not ABSENT and all(value == values[0] for value in values):
            result[name] = values[0]
    return result


def latest(members: Iterable[Member], field: str) -> Json:
    """The latest of the members' times."""
    times = [time for each in members if isinstance(time := each.status.get(field), str) and time]
    return {field: max(times)} if times else {}


def earliest(members: Iterable[Member], field: str) -> Json:
    """The earliest of the members' times."""
    times = [time for each in members if isinstance(time := each.status.get(field), str) and time]
    return {field: min(times)} if times else {}


def worst(members: Sequence[Member], field: str, order: Sequence[str]) -> str:
    """Of a text that is one of a few, such as a phase: the first in `order` that any member has. One that is not in it comes
    first: what it means is not known. No text, if it is not in it, keeps only the last from being said of all."""
    if "" not in order:
        order = [*order[:-1], "", *order[-1:]]
    told = [fields.get(each.status, field, None) for each in members]
    values = sorted({value if isinstance(value, str) else "" for value in told})
    return min(values, default="", key=lambda value: order.index(value) if value in order else -1)


#: What tells addresses apart for a reader: a load balancer's entry has either.
_ADDRESS: Final = ("ip", "hostname")


def addresses(members: Iterable[Member]) -> Json:
    """The load balancers' addresses of all members, each once, in the order of the clusters' names."""
    found: dict[bytes, Any] = {}
    for member in members:
        points = fields.get(member.status, "loadBalancer.ingress", None)
        points = [each for each in points if isinstance(each, dict)] if isinstance(points, list) else []
        for each in sorted(points, key=lambda each: [str(each.get(field) or "") for field in _ADDRESS]):
            found.setdefault(orjson.dumps(each, option=orjson.OPT_SORT_KEYS), each)
    return {"loadBalancer": {"ingress": list(found.values())} if found else {}}


def listed_by_cluster(members: Iterable[Member], field: str, by: str = "name") -> Json:
    """The entries of all members' lists: by cluster, and within it by name."""
    found: list[Any] = []
    for member in members:
        entries = member.status.get(field)
        entries = [each for each in entries if isinstance(each, dict)] if isinstance(entries, list) else []
        found += sorted(entries, key=lambda each: str(each.get(by) or ""))
    return {field: found} if found else {}
