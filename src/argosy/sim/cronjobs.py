"""The CronJob controller: a Job whenever the schedule is due, and a history of those that have ended.

It sleeps until the next time that is due. Times that were missed make one Job, the latest, unless their deadline is over.
"""

import contextlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from argosy.kube import clock, cron, timestamps
from argosy.kube.conditions import is_true
from argosy.kube.errors import AlreadyExists, ApiError, NotFound
from argosy.kube.owners import controller_of, owner_reference
from argosy.kube.queue import Result
from argosy.kube.references import reference_to
from argosy.kube.resource import Resource
from argosy.server.trusted import Entry, StoreEvent
from argosy.sim import jobstatus
from argosy.sim.cluster import Object
from argosy.sim.workload import Workload

__all__ = ["CronJobs", "Missed", "job_for", "latest_missed"]

_JOBS = Resource("batch", "v1", "jobs", "Job")
_JOBS_TABLE = "batch/jobs/"
_SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"
#: More missed times than this are told of.
_MANY = 100
_STRETCHES = [timedelta(days=days) for days in (0.05, 1.0, 32.0, 367.0, 5 * 367.0)]
#: After the time that is due, so that it has come.
_MOMENT = 0.1


class Missed(NamedTuple):
    """The times that were due since something last happened."""

    since: datetime
    #: The latest of them.
    latest: datetime | None = None
    number: int = 0


def latest_missed(obj: Object, schedule: cron.Schedule, now: datetime, *, within_deadline: bool = True) -> Missed:
    spec, status = obj["spec"], obj.get("status") or {}
    begun = timestamps.parse(status.get("lastScheduleTime")) or timestamps.parse(obj["metadata"]["creationTimestamp"])
    since = begun or now
    deadline = spec.get("startingDeadlineSeconds")
    if within_deadline and deadline is not None:
        since = max(since, now - timedelta(seconds=deadline))
    first = schedule.after(since)
    if first is None or now < first:
        return Missed(since)
    second = schedule.after(first)
    if second is None or now < second:
        return Missed(since, first, 1)
    # As Kubernetes estimates it: as if the schedule were even.
    number = int((now - first) / max(second - first, timedelta(seconds=1))) + 1
    return Missed(since, _latest(schedule, first, now), number)


def _latest(schedule: cron.Schedule, first: datetime, now: datetime) -> datetime:
    """The last time until now, of which `first` is one: looked for in a short stretch, then in longer ones."""
    if isinstance(schedule, cron.Every):
        step = timedelta(seconds=schedule.seconds)
        return first + (now - first) // step * step
    for back in _STRETCHES:
        moment = first if now - back <= first else schedule.after(now - back)
        latest = None
        while moment is not None and moment <= now:
            latest, moment = moment, schedule.after(moment)
        if latest is not None:
            return latest
    return first


def job_for(obj: Object, due: datetime) -> Object:
    """The Job of one time. Its name is that of the minute, so that there is only one."""
    spec, template = obj["spec"], obj["spec"]["jobTemplate"]
    given = template.get("metadata") or {}
    shown = due.astimezone(ZoneInfo(spec.get("timeZone") or "UTC")).isoformat(timespec="seconds")
    annotations = {**(given.get("annotations") or {}), _SCHEDULED: shown.replace("+00:00", "Z")}
    metadata: Object = {
        "name": f"{obj['metadata']['name']}-{int(due.timestamp()) // 60}",
        "namespace": obj["metadata"]["namespace"],
        "labels": dict(given.get("labels") or {}),
        "annotations": annotations,
        "ownerReferences": [owner_reference(obj, controller=True, block_owner_deletion=True)],
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": template["spec"]}


class CronJobs(Workload):
    name = "cron jobs"
    workers = 4
    resource = Resource("batch", "v1", "cronjobs", "CronJob")
    component = "cronjob-controller"

    def observe(self, event: StoreEvent) -> None:
        super().observe(event)
        if event.entry.key.startswith(_JOBS_TABLE) and event.entry.owners:
            owner = controller_of(event.entry.decode())
            if owner is not None and owner["kind"] == self.resource.kind:
                self.queue.add(
                    f"{self.table}{event.entry.namespace}/{owner['name']}", after=self.cluster.timings.settle
                )

    async def sync(self, entry: Entry, obj: Object) -> Result | None:
        status = obj["status"] = dict(obj.get("status") or {})
        before = dict(status)
        jobs = self._jobs(entry.uid)
        self._note(obj, jobs)
        wait, refused = None, None
        if not entry.deleting:
            try:
                wait = await self._advance(obj)
            except ApiError as error:  # what is known is stored all the same
                refused = error
            await self._tidy(obj, jobs)
        if status != before:
            await self.cluster.access.update(self.resource, obj)
        if refused is not None:
            return Result(error=refused.message)
        return Result(requeue_after=wait) if wait is not None else None

    def _jobs(self, uid: str) -> list[Object]:
        found = (each.decode() for each in self.cluster.access.dependents(uid) if each.key.startswith(_JOBS_TABLE))
        return [job for job in found if (controller_of(job) or {}).get("uid") == uid]

    def _note(self, obj: Object, jobs: Sequence[Object]) -> None:
        """What became of its Jobs."""
        status, there = obj["status"], {job["metadata"]["uid"] for job in jobs}
        active = {each["uid"]: each for each in status.get("active") or ()}
        for job in jobs:
            uid, name, told = job["metadata"]["uid"], job["metadata"]["name"], job.get("status") or {}
            if not jobstatus.finished(told):
                if uid not in active:
                    text = f"Saw a job that the controller did not create or forgot: {name}"
                    self._tell(obj, "Warning", "UnexpectedJob", text)
                continue
            kind = "Complete" if is_true(told.get("conditions"), "Complete") else "Failed"
            if active.pop(uid, None) is not None:
                self._tell(obj, "Normal", "SawCompletedJob", f"Saw completed job: {name}, condition: {kind}")
            if kind == "Complete" and (ended := told.get("completionTime")):
                status["lastSuccessfulTime"] = max(ended, status.get("lastSuccessfulTime") or "")
        for uid in [uid for uid in active if uid not in there]:
            self._tell(obj, "Normal", "MissingJob", f"Active job went missing: {active.pop(uid)['name']}")
        _set_active(status, list(active.values()))

    async def _advance(self, obj: Object) -> float | None:
        """Start what is due; returns the seconds until the next time."""
        spec, status, now = obj["spec"], obj["status"], clock.now()
        if spec.get("suspend"):
            return None
        schedule = self._schedule(obj)
        if schedule is None:
            return None
        missed = latest_missed(obj, schedule, now)
        due = missed.latest
        if due is not None and timestamps.parse(status.get("lastScheduleTime")) != due:
            if missed.number > _MANY:
                text = (
                    f"too many missed start times: {missed.number}. Set or decrease .spec.startingDeadlineSeconds or"
                    " check clock skew"
                )
                self._tell(obj, "Warning", "TooManyMissedTimes", text)
            await self._start(obj, due)
        return _until_next(obj, schedule, now)

    def _schedule(self, obj: Object) -> cron.Schedule | None:
        try:
            return cron.parse(obj["spec"]["schedule"], obj["spec"].get("timeZone") or "")
        except cron.ScheduleError as error:
            text = f'unparseable schedule: "{obj["spec"]["schedule"]}" : {error}'
            self._tell(obj, "Warning", "UnparseableSchedule", text)
            return None

    async def _start(self, obj: Object, due: datetime) -> None:
        status, policy = obj["status"], obj["spec"].get("concurrencyPolicy")
        if policy == "Forbid" and status.get("active"):
            text = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._tell(obj, "Normal", "JobAlreadyActive", text)
            return
        if policy == "Replace":
            for each in status.get("active") or ():
                await self._delete(obj, each["name"], each["uid"])
        wanted = job_for(obj, due)
        name, namespace = wanted["metadata"]["name"], wanted["metadata"]["namespace"]
        try:
            made = await self.client.create(_JOBS, wanted, namespace)
            self._tell(obj, "Normal", "SuccessfulCreate", f"Created job {name}")
        except AlreadyExists:
            # Made right before a status that could not be stored; or it is somebody else's.
            made = await self.client.get(_JOBS, name, namespace)
            if (controller_of(made) or {}).get("uid") != obj["metadata"]["uid"]:
                return
        except ApiError as error:
            self._tell(obj, "Warning", "FailedCreate", f"Error creating job: {error.message}")
            raise
        active = status.get("active") or ()
        known = any(each.get("uid") == made["metadata"]["uid"] for each in active)
        if not known and not jobstatus.finished(made.get("status") or {}):
            reference = {**reference_to(made), "resourceVersion": made["metadata"]["resourceVersion"]}
            _set_active(status, [*active, reference])
        status["lastScheduleTime"] = timestamps.timestamp(due)

    async def _tidy(self, obj: Object, jobs: Sequence[Object]) -> None:
        """Delete the oldest Jobs beyond the limits."""
        for kind, field in (("Complete", "successfulJobsHistoryLimit"), ("Failed", "failedJobsHistoryLimit")):
            limit = obj["spec"].get(field)
            ended = [job for job in jobs if is_true((job.get("status") or {}).get("conditions"), kind)]
            ended.sort(key=lambda job: (job["status"].get("startTime") or "", job["metadata"]["name"]))
            for job in ended[: max(0, len(ended) - limit)] if limit is not None else ():
                if not job["metadata"].get("deletionTimestamp"):
                    await self._delete(obj, job["metadata"]["name"], job["metadata"]["uid"])

    async def _delete(self, obj: Object, name: str, uid: str) -> None:
        status, namespace = obj["status"], obj["metadata"]["namespace"]
        with contextlib.suppress(NotFound):
            await self.client.delete(_JOBS, name, namespace, uid=uid, propagation="Background")
        _set_active(status, [each for each in status.get("active") or () if each["uid"] != uid])
        self._tell(obj, "Normal", "SuccessfulDelete", f"Deleted job {name}")

    def _tell(self, obj: Object, kind: str, reason: str, text: str) -> None:
        self.events.event(reference_to(obj), kind, reason, text)


def _set_active(status: Object, references: list[Object]) -> None:
    if references:
        status["active"] = references
    else:
        status.pop("active", None)


def _until_next(obj: Object, schedule: cron.Schedule, now: datetime) -> float | None:
    """From now; a time that is due and was not used counts as used."""
    missed = latest_missed(obj, schedule, now, within_deadline=False)
    following = schedule.after(missed.latest or missed.since)
    return max(0.0, (following - now.astimezone(UTC)).total_seconds()) + _MOMENT if following is not None else None
