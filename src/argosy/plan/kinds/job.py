"""Job: the job controller of each cluster makes the selector and labels of its pods. The Job ends when it has ended everywhere.

Divided, each cluster gets a share of the completions together with its parallelism, so that all clusters together do the work
once. Indexes cannot be divided: they start at 0 in every cluster.

Kubernetes allows no Job status to go back (counts, times, its end), so the merge avoids that where it can.
"""

from collections.abc import Sequence
from typing import Any, Final

from argosy.kube.conditions import find, is_true
from argosy.plan import fields
from argosy.plan.fields import Json
from argosy.plan.kinds.conditions import settled, unreachable
from argosy.plan.kinds.kind import Divided, Kind, Shares, by_number, replace
from argosy.plan.kinds.observation import Aggregation, Observation
from argosy.plan.kinds.rollout import count, status_of

__all__ = ["KIND", "failed"]

#: The label was renamed in Kubernetes 1.27; controllers write both.
_GENERATED: Final = ("controller-uid", "batch.kubernetes.io/controller-uid")
_LABELS: Final = ("spec", "template", "metadata", "labels")


def _strip(desired: Json) -> Json:
    if fields.get(desired, "spec.manualSelector", None) is True:
        return desired
    for label in _GENERATED:
        desired = fields.without(desired, (*_LABELS, label))
        desired = fields.without(desired, ("spec", "selector", "matchLabels", label))
    return desired


def _retain(desired: Json, observed: Json) -> Json:
    if fields.get(desired, "spec.manualSelector", None) is True:
        return desired
    for path in (("spec", "selector"), _LABELS):
        value = fields.get(observed, path, None)
        if value is not None:
            desired = fields.put(desired, path, value)
    return desired


_PARALLELISM: Final = "/spec/parallelism"
_COMPLETIONS: Final = "/spec/completions"
INDEXED = "a Job with completionMode Indexed cannot be divided: every cluster would run the same indexes"


MISSING = (
    "{missing} of {completions} completions are in no cluster: only a cluster that has none yet can take them over"
)


def _divide(shares: Shares) -> Divided:
    completions = fields.get(shares.template, "spec.completions", None)
    if shares.pointer != _PARALLELISM or not isinstance(completions, int):
        return by_number(shares)
    # Here, because it needs numpy, which takes longer to load than most commands take that only look at a kind.
    from argosy.plan.replicas.completions import job_parts

    held = {
        cluster: number
        for cluster in shares.before
        if (number := shares.number_before(cluster, _COMPLETIONS)) is not None
    }
    parts = job_parts(completions, shares.wanted, held)
    missing = completions - sum(part.completions for part in parts.values())
    return Divided(
        {
            cluster: [replace(_PARALLELISM, part.parallelism), replace(_COMPLETIONS, part.completions)]
            for cluster, part in sorted(parts.items())
        },
        MISSING.format(missing=missing, completions=completions) if missing > 0 else "",
    )


def _indivisible(template: Json) -> str:
    return INDEXED if fields.get(template, "spec.completionMode", None) == "Indexed" else ""


_COUNTS: Final = ("active", "ready", "terminating", "succeeded", "failed")
#: Counts that a Job's controller never lowers.
_ENDED: Final = ("succeeded", "failed")
#: Conditions that announce an end: Kubernetes requires them together with the final ones.
_ANNOUNCED: Final = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}


def failed(status: Json) -> bool:
    return is_true(status.get("conditions"), "Failed")


def _aggregate(aggregation: Aggregation) -> Json | None:
    members = aggregation.present
    if not members:
        return None
    before = aggregation.status
    if not aggregation.complete:
        return {**before, "conditions": _with_times([*_untimed(before), *unreachable(aggregation)], aggregation)}
    end = _end(members) if len(members) == len(aggregation.observations) else []
    status = _counts(members, before if _still_holds(before, end) else {})
    start = _start(aggregation)
    if start:
        status["startTime"] = start
    if end and end[0]["type"] == "Complete":
        status["completionTime"] = before.get("completionTime") or max(_said(members, "completionTime"), default=start)
    conditions = _with_times([*end, *unreachable(aggregation)], aggregation)
    return {**status, "conditions": conditions} if conditions else status


def _still_holds(before: Json, end: Sequence[Json]) -> bool:
    """Whether the members do not contradict the stored end. If they do, neither it nor its counts are theirs."""
    return all(
        each["type"] in {stated["type"] for stated in end} for each in _untimed(before) if each["type"] in _ANNOUNCED
    )


def _counts(members: Sequence[Observation], before: Json) -> Json:
    """Finished pods stay counted when their cluster leaves. Zero counts are left out, as in Kubernetes."""
    sums = {field: sum(int(_status(each).get(field) or 0) for each in members) for field in _COUNTS}
    for field in _ENDED:
        sums[field] = max(sums[field], int(before.get(field) or 0))
    return {field: count for field, count in sums.items() if count}


def _start(aggregation: Aggregation) -> str | None:
    """The earliest start, once all have started: it cannot be changed afterwards."""
    before = aggregation.status.get("startTime")
    started = _said(aggregation.present, "startTime")
    if len(started) < len(aggregation.observations):
        return before
    return min([*started, *([before] if before else [])], default=None)


def _end(members: Sequence[Observation]) -> list[Json]:
    completed = [each.cluster for each in members if is_true(_status(each).get("conditions"), "Complete")]
    broken = [each.cluster for each in members if failed(_status(each))]
    if len(completed) + len(broken) < len(members):
        return []
    if not broken:
        type, reason, message = "Complete", "Completed", f"Job completed in clusters {_named(completed)}"
    elif not completed:
        type, reason, message = "Failed", "Failed", f"Job failed in clusters {_named(broken)}"
    else:
        type, reason = "Failed", "Mixed"
        message = f"Job completed in clusters {_named(completed)} and failed in member clusters {_named(broken)}"
    end = {"type": type, "status": "True", "reason": reason, "message": message}
    announced = any(is_true(_status(each).get("conditions"), _ANNOUNCED[type]) for each in members)
    return [end, {**end, "type": _ANNOUNCED[type]}] if announced else [end]


def _named(clusters: Sequence[str]) -> str:
    return f"[{','.join(sorted(clusters))}]"


def _said(members: Sequence[Observation], field: str) -> list[str]:
    return [str(_status(each)[field]) for each in members if _status(each).get(field)]


def _status(member: Observation) -> dict[str, Any]:
    status = (member.object or {}).get("status")
    return status if isinstance(status, dict) else {}


def _untimed(status: Json) -> list[Json]:
    return [{k: v for k, v in each.items() if not k.startswith("last")} for each in status.get("conditions") or ()]


def _with_times(wanted: Sequence[Json], aggregation: Aggregation) -> list[Json]:
    by_type = {each["type"]: each for each in wanted}
    return settled(list(by_type.values()), aggregation.status.get("conditions"), aggregation.now)


def _unfinished(desired: Json, copy: Json) -> list[str]:
    """A Job is as wanted when it is complete."""
    conditions = status_of(copy).get("conditions")
    if is_true(conditions, "Complete"):
        return []
    if is_true(conditions, "Failed"):
        return [f"the Job failed: {(find(conditions, 'Failed') or {}).get('reason')}"]
    if fields.get(desired, "spec.suspend", None) is True:
        return ["the Job is suspended"]
    completions = fields.number(desired, "spec.completions")
    if completions is None:
        return ["the Job is not complete"]
    return [f"{count(copy, 'succeeded')} of {completions} completions are done"]


KIND: Final = Kind(
    pod_spec=("spec", "template", "spec"),
    strip=_strip,
    retain=_retain,
    divide=_divide,
    indivisible=_indivisible,
    aggregate=_aggregate,
    unfinished=_unfinished,
)
