"""Job: the job controller of each cluster makes the selector and labels of its pods. The Job ends when it has ended everywhere.

Divided, each cluster gets a share of the completions together with its parallelism, so that all clusters together do the work
once. It is complete when all completions have succeeded, in clusters it was moved away from as well (`replicas.completed`).
Indexes cannot be divided: they start at 0 in every cluster.

Kubernetes allows no Job status to go back (counts, times, its end), so the merge avoids that where it can.
"""

from collections.abc import Sequence
from typing import Any, Final

from argosy.api import keys
from argosy.api.conditions import MEMBERS_UNREACHABLE
from argosy.kube.conditions import find, is_true
from argosy.plan import fields
from argosy.plan.fields import Json
from argosy.plan.kinds.conditions import settled, unreachable
from argosy.plan.kinds.kind import Divided, Kind, Shares, by_number, replace
from argosy.plan.kinds.observation import Aggregation, Observation
from argosy.plan.kinds.rollout import count, status_of
from argosy.plan.replicas.completed import NOTHING, completed_of

__all__ = ["KIND", "failed"]

#: The label was renamed in Kubernetes 1.27; controllers write both.
_GENERATED: Final = ("controller-uid", "batch.kubernetes.io/controller-uid")
_LABELS: Final = ("spec", "template", "metadata", "labels")


def _strip(desired: Json) -> Json:
    # A member that deletes its finished copy would be given a new one, which does the work again. The source's own time counts.
    desired = fields.without(desired, ("spec", "ttlSecondsAfterFinished"))
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
    parts = job_parts(completions, shares.wanted, held, shares.elsewhere, shares.open_to)
    missing = 0 if shares.over else completions - shares.elsewhere - sum(part.completions for part in parts.values())
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


def _over(source: Json) -> bool:
    """Whether it has come to an end, which is never revoked."""
    status = status_of(source)
    return failed(status) or is_true(status.get("conditions"), "Complete")


def _done(copy: Json) -> int:
    """The completions that have succeeded, also those that the job controller has yet to count."""
    status = status_of(copy)
    uncounted = status.get("uncountedTerminatedPods")
    uncounted = uncounted.get("succeeded") if isinstance(uncounted, dict) else None
    counted = status.get("succeeded")
    counted = counted if isinstance(counted, int) and not isinstance(counted, bool) else 0
    return max(counted, 0) + (len(uncounted) if isinstance(uncounted, list) else 0)


def _aggregate(aggregation: Aggregation) -> Json | None:
    members = aggregation.present
    before = aggregation.status
    if not members and not before:
        return None
    if not aggregation.complete or _is_final(before):
        return {**before, "conditions": _with_times([*_reported(before), *unreachable(aggregation)], aggregation)}
    end = _end(members) if members and len(members) == len(aggregation.observations) else []
    if end and end[0]["type"] == "Complete" and _lacking(aggregation) > 0:
        end = []
    status = _counts(aggregation, before if _still_holds(before, end) else {})
    start = _start(aggregation)
    if start:
        status["startTime"] = start
    if end and end[0]["type"] == "Complete":
        status["completionTime"] = before.get("completionTime") or max(_said(members, "completionTime"), default=start)
    conditions = _with_times([*end, *unreachable(aggregation)], aggregation)
    return {**status, "conditions": conditions} if conditions else status


def _is_final(status: Json) -> bool:
    """Whether Kubernetes refuses to take the end back. (Versions that announce no end do not.)"""
    stated = status.get("conditions")
    return any(is_true(stated, end) and is_true(stated, _ANNOUNCED[end]) for end in _ANNOUNCED)


def _still_holds(before: Json, end: Sequence[Json]) -> bool:
    """Whether the members do not contradict the stored end. If they do, neither it nor its counts are theirs."""
    told = {each["type"] for each in _reported(before)} & _ANNOUNCED.keys()
    return told <= {each["type"] for each in end}


def _left(aggregation: Aggregation) -> int | None:
    """What succeeded in clusters it left; None if it is not divided."""
    federated = aggregation.federated
    if federated is None:
        return None
    completed = completed_of(federated.metadata.annotations)
    patches = [patch for theirs in federated.overrides_of(keys.GLOBAL_SCHEDULER).values() for patch in theirs]
    divided = completed != NOTHING or any(patch.path == _COMPLETIONS for patch in patches)
    return completed.done if divided else None


def _lacking(aggregation: Aggregation) -> int:
    """The completions that have not succeeded anywhere, of a divided Job."""
    completions, left = fields.number(aggregation.source, "spec.completions"), _left(aggregation)
    if completions is None or left is None:
        return 0
    return completions - left - sum(_done(each.object or {}) for each in aggregation.present)


def _counts(aggregation: Aggregation, before: Json) -> Json:
    """Finished pods stay counted when their cluster leaves. Zero counts are left out, as in Kubernetes."""
    sums = {field: sum(int(_status(each).get(field) or 0) for each in aggregation.present) for field in _COUNTS}
    sums["succeeded"] += _left(aggregation) or 0
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


def _reported(status: Json) -> list[Json]:
    """The conditions as they are, but for the one that tells of unreachable clusters."""
    stated = [each for each in status.get("conditions") or () if each["type"] != MEMBERS_UNREACHABLE]
    return [{k: v for k, v in each.items() if not k.startswith("last")} for each in stated]


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
    stays_whole=True,
    aggregate=_aggregate,
    unfinished=_unfinished,
    work=_COMPLETIONS,
    done=_done,
    over=_over,
)
