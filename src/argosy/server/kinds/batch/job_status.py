"""The status of a Job: what its controller may write, so that readers can trust a finished Job to be finished.

Most rules check only what a write changes: a status stored before a rule existed stays writable.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from argosy.kube.timestamps import parse
from argosy.server.fielderrors import OMITTED, FieldError, duplicate, invalid, required
from argosy.server.kinds.apps import workloads
from argosy.server.kinds.batch import job_policies
from argosy.server.kinds.shared import meta_rules as rules
from argosy.server.registry import Object

__all__ = ["is_true", "validate"]

Status = Mapping[str, Any]
CONDITIONS = "status.conditions"


def is_true(status: Status, condition: str) -> bool:
    return _state(status, condition) == "True"


def _state(status: Status, condition: str) -> str:
    found = (c.get("status", "") for c in status.get("conditions") or () if c.get("type") == condition)
    return next(found, "")


def _is_finished(status: Status) -> bool:
    return is_true(status, "Complete") or is_true(status, "Failed")


def validate(new: Object, old: Object) -> list[FieldError]:
    status, stored, spec = new.get("status") or {}, old.get("status") or {}, new["spec"]
    errors = workloads.counters(status, "status", ("active", "succeeded", "failed", "ready", "terminating"))
    errors += _uncounted(status)
    errors += _ends(status, stored)
    errors += _completion_time(status, stored)
    errors += _reached(status, stored)
    errors += _finished(status, stored, spec)
    errors += _indexes(status, stored, spec)
    errors += _pods_left(status, stored)
    errors += _success(status, spec)
    return errors + _kept(status, stored, spec)


def _uncounted(status: Status) -> list[FieldError]:
    errors = []
    seen: set[str] = set()
    for field in ("succeeded", "failed"):
        for i, uid in enumerate((status.get("uncountedTerminatedPods") or {}).get(field) or ()):
            path = f"status.uncountedTerminatedPods.{field}[{i}]"
            if not uid:
                errors.append(invalid(path, uid, "must not be empty"))
            elif uid in seen:
                errors.append(duplicate(path, uid))
            seen.add(uid)
    return errors


def _ends(status: Status, stored: Status) -> list[FieldError]:
    """A Job can end only one way."""
    complete, failed, failing = (is_true(status, kind) for kind in ("Complete", "Failed", "FailureTarget"))
    completed = complete != is_true(stored, "Complete")
    found = []
    if complete and failed and (completed or failed != is_true(stored, "Failed")):
        found.append("cannot set Complete=True and Failed=true conditions")
    if complete and failing and (completed or failing != is_true(stored, "FailureTarget")):
        found.append("cannot set Complete=True and FailureTarget=true conditions")
    return [invalid(CONDITIONS, OMITTED, detail) for detail in found]


def _completion_time(status: Status, stored: Status) -> list[FieldError]:
    errors = []
    path, start, end = "status.completionTime", status.get("startTime"), status.get("completionTime")
    complete = is_true(status, "Complete")
    ended_anew = end != stored.get("completionTime")
    if complete != is_true(stored, "Complete") or ended_anew:
        if end is not None and not complete:
            errors.append(invalid(path, end, "cannot set completionTime when there is no Complete=True condition"))
        if end is None and complete:
            errors.append(required(path, "completionTime is required for Complete jobs"))
    changed = ended_anew or start != stored.get("startTime")
    if changed and start and end and _moment(end) < _moment(start):
        errors.append(invalid(path, end, "must be equal to or after `startTime`"))
    return errors


def _reached(status: Status, stored: Status) -> list[FieldError]:
    """An end is announced before it is reached, so that pods can terminate in between."""
    complete, failed = is_true(status, "Complete"), is_true(status, "Failed")
    announced = is_true(status, "SuccessCriteriaMet")
    found = []
    failed_anew = failed != is_true(stored, "Failed") or status.get("failedIndexes") != stored.get("failedIndexes")
    if failed and not is_true(status, "FailureTarget") and failed_anew:
        found.append("cannot set Failed=True condition without the FailureTarget=true condition")
    changed = complete != is_true(stored, "Complete") or announced != is_true(stored, "SuccessCriteriaMet")
    if complete and not announced and changed:
        found.append("cannot set Complete=True condition without the SuccessCriteriaMet=true condition")
    return [invalid(CONDITIONS, OMITTED, detail) for detail in found]


def _success(status: Status, spec: Mapping[str, Any]) -> list[FieldError]:
    succeeding = is_true(status, "SuccessCriteriaMet")
    found = []
    if succeeding and is_true(status, "Failed"):
        found.append("cannot set SuccessCriteriaMet=True and Failed=true conditions")
    if succeeding and is_true(status, "FailureTarget"):
        found.append("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions")
    if spec.get("successPolicy") is not None and is_true(status, "Complete") and not succeeding:
        found.append("cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True")
    return [invalid(CONDITIONS, OMITTED, detail) for detail in found]


def _moment(text: str) -> datetime:
    return parse(text) or datetime.fromtimestamp(0, UTC)


def _finished(status: Status, stored: Status, spec: Mapping[str, Any]) -> list[FieldError]:
    """A finished Job has no pods left to count."""
    errors = []
    finished = _is_finished(status)
    changed = finished != _is_finished(stored)

    def touched(field: str) -> bool:
        return changed or status.get(field) != stored.get(field)

    active = status.get("active") or 0
    if finished and active > 0 and touched("active"):
        errors.append(invalid("status.active", active, "active>0 is invalid for finished job"))
    never_started = spec.get("suspend") and spec.get("completions") == 0
    if finished and status.get("startTime") is None and touched("startTime") and not never_started:
        errors.append(required("status.startTime", "startTime is required for finished job"))
    uncounted = status.get("uncountedTerminatedPods") or {}
    pending = uncounted.get("succeeded") or uncounted.get("failed")
    if finished and pending and touched("uncountedTerminatedPods"):
        errors.append(invalid("status.uncountedTerminatedPods", uncounted, "must be empty for finished job"))
    return errors


def _pods_left(status: Status, stored: Status) -> list[FieldError]:
    errors = []
    active, ready, terminating = (status.get(f) or 0 for f in ("active", "ready", "terminating"))
    finished = _is_finished(status)
    changed = finished != _is_finished(stored) or status.get("terminating") != stored.get("terminating")
    if finished and terminating > 0 and changed:
        errors.append(invalid("status.terminating", terminating, "terminating>0 is invalid for finished job"))
    if ready > active and any(status.get(f) != stored.get(f) for f in ("ready", "active")):
        errors.append(invalid("status.ready", ready, "cannot set more ready pods than active"))
    return errors


def _indexes(status: Status, stored: Status, spec: Mapping[str, Any]) -> list[FieldError]:
    errors: list[FieldError] = []
    completions, limited = spec.get("completions"), spec.get("backoffLimitPerIndex") is not None
    completed, failed = status.get("completedIndexes") or "", status.get("failedIndexes")
    completed_anew = completed != (stored.get("completedIndexes") or "")
    failed_anew = failed != stored.get("failedIndexes")
    # A stored value that is unreadable does not fail this write: its error is dropped.
    done = _intervals("completedIndexes", completed, completions, errors if completed_anew else [])
    lost = _intervals("failedIndexes", failed or "", completions, errors if failed_anew and limited else [])
    if completed_anew and completed and spec.get("completionMode") != "Indexed":
        detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
        errors.append(invalid("status.completedIndexes", completed, detail))
    if failed_anew and failed is not None and not limited:
        detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        errors.append(invalid("status.failedIndexes", failed, detail))
    if not (completed_anew or failed_anew):
        return errors
    for start, end in done:
        for first, last in lost:
            if start <= last and first <= end:
                detail = f"failedIndexes and completedIndexes overlap at index: {max(start, first)}"
                return [*errors, invalid("status.failedIndexes", failed, detail)]
    return errors


def _intervals(field: str, text: str, completions: int | None, errors: list[FieldError]) -> list[tuple[int, int]]:
    if completions is None:
        return []
    try:
        return job_policies.index_intervals(text, completions)
    except job_policies.IndexesError as error:
        errors.append(invalid(f"status.{field}", text, f"error parsing {field}: {error}"))
        return []


def _kept(status: Status, stored: Status, spec: Mapping[str, Any]) -> list[FieldError]:
    """A reached end is never revoked."""
    errors = []
    for condition in ("Failed", "Complete", "FailureTarget"):
        if is_true(stored, condition) and not is_true(status, condition):
            detail = f"cannot disable the terminal {condition}=True condition"
            errors.append(invalid(CONDITIONS, OMITTED, detail))
    elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    errors += [
        invalid(f"status.{field}", status.get(field) or 0, f"cannot decrease the {field} counter")
        for field in (("failed",) if elastic else ("failed", "succeeded"))
        if (status.get(field) or 0) < (stored.get(field) or 0)
    ]
    start, end = status.get("startTime"), status.get("completionTime")
    if None not in (end, stored.get("completionTime")) and end != stored["completionTime"]:
        errors.append(invalid("status.completionTime", end, rules.IMMUTABLE))
    resuming = is_true(stored, "Suspended") and _state(status, "Suspended") == "False"
    moved = stored.get("startTime") is not None and start != stored["startTime"]
    if moved and not resuming and not spec.get("suspend"):
        errors.append(invalid("status.startTime", start, "field is immutable for unsuspended job once set"))
    met = is_true(status, "SuccessCriteriaMet")
    if is_true(stored, "SuccessCriteriaMet") and not met:
        errors.append(invalid(CONDITIONS, OMITTED, "cannot disable the SuccessCriteriaMet=True condition"))
    if is_true(stored, "Complete") and not is_true(stored, "SuccessCriteriaMet") and met:
        detail = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        errors.append(invalid(CONDITIONS, OMITTED, detail))
    return errors
