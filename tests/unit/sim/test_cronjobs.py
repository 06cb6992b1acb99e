"""Which time of a CronJob is due, and the Job of it."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from argosy.kube import cron
from argosy.kube.timestamps import timestamp
from argosy.sim.cronjobs import job_for, latest_missed

MADE = datetime(2026, 1, 1, 0, 0, 30, tzinfo=UTC)


def cron_job(last: datetime | None = None, **spec: Any) -> Any:
    metadata = {"name": "report", "namespace": "shop", "uid": "u", "creationTimestamp": timestamp(MADE)}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"template": {}}}
    status = {"lastScheduleTime": timestamp(last)} if last else {}
    spec = {"jobTemplate": template, **spec}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": spec, "status": status}


def minute(number: int) -> datetime:
    return MADE.replace(second=0) + timedelta(minutes=number)


def test_nothing_is_due_before_the_first_time() -> None:
    assert latest_missed(cron_job(), cron.parse("*/5 * * * *"), minute(4)).latest is None


def test_of_several_missed_times_the_latest_is_due() -> None:
    missed = latest_missed(cron_job(), cron.parse("*/5 * * * *"), minute(17))
    assert (missed.latest, missed.number) == (minute(15), 3)


def test_a_deadline_forgets_what_is_older() -> None:
    late = cron_job(startingDeadlineSeconds=60)
    assert latest_missed(late, cron.parse("*/5 * * * *"), minute(8)).latest is None
    assert latest_missed(late, cron.parse("*/5 * * * *"), minute(5)).latest == minute(5)
    assert latest_missed(late, cron.parse("*/5 * * * *"), minute(8), within_deadline=False).latest == minute(5)


@given(
    st.sampled_from(["* * * * *", "*/7 * * * *", "0 3,4 * * *", "30 * * * 1-5", "@daily", "@every 7m"]),
    st.integers(0, 20_000),
)
def test_the_latest_time_is_the_last_one_that_has_come(schedule: str, minutes: int) -> None:
    times, now = cron.parse(schedule), minute(minutes)
    expected, moment = None, times.after(MADE)
    while moment is not None and moment <= now:
        expected, moment = moment, times.after(moment)
    assert latest_missed(cron_job(), times, now).latest == expected


def test_the_job_has_the_name_of_its_minute_and_its_time_in_the_zone() -> None:
    job = job_for(cron_job(timeZone="Asia/Tokyo"), minute(5))
    assert job["metadata"]["name"] == f"report-{int(minute(5).timestamp()) // 60}"
    annotations = {"batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-01T09:05:00+09:00"}
    assert job["metadata"]["annotations"] == annotations
    assert job["metadata"]["labels"] == {"a": "b"}
    assert [(one["kind"], one["controller"]) for one in job["metadata"]["ownerReferences"]] == [("CronJob", True)]
