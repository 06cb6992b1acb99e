"""Jobs run to completion, fail, wait, and expire."""

from collections.abc import Callable

from tests.real.simulation import view
from tests.real.simulation.build import CRASH, empty, gone, job
from tests.real.simulation.pair import Pair, Side
from tests.real.simulation.record import JOBS

_NOWHERE = {"nodeSelector": {"disk": "none-has-this"}}


def _has(type: str, status: str = "True") -> Callable[[Side], bool]:
    return lambda side: view.conditions(side.one("Job", "web")).get(type, "").startswith(status)


async def keeps_failing(pair: Pair) -> None:
    await pair.create(JOBS, job(image=CRASH, backoffLimit=1))
    await pair.agree("given up", _has("Failed"))


async def fails_at_once(pair: Pair) -> None:
    await pair.create(JOBS, job(image=CRASH, backoffLimit=0, completions=3, parallelism=1))
    await pair.agree("given up", _has("Failed"))


async def too_long(pair: Pair) -> None:
    await pair.create(JOBS, job(pod=_NOWHERE, activeDeadlineSeconds=2))
    await pair.agree("stopped", lambda side: _has("Failed")(side) and empty("Pod")(side))


async def completes(pair: Pair) -> None:
    await pair.create(JOBS, job(completions=3, parallelism=2))
    await pair.agree("complete", _has("Complete"))


async def queue_of_work(pair: Pair) -> None:
    await pair.create(JOBS, job(parallelism=2))
    await pair.agree("complete", _has("Complete"))


async def indexed(pair: Pair) -> None:
    await pair.create(JOBS, job(completions=3, parallelism=3, completionMode="Indexed"))
    await pair.agree("complete", _has("Complete"))


async def suspended_from_the_start(pair: Pair) -> None:
    await pair.create(JOBS, job(suspend=True, completions=2, parallelism=2))
    await pair.agree("suspended", _has("Suspended"))
    await pair.patch(JOBS, "web", {"spec": {"suspend": False}})
    await pair.agree("complete", _has("Complete"))


async def suspended_on_the_way(pair: Pair) -> None:
    await pair.create(JOBS, job(completions=2, parallelism=2, pod=_NOWHERE))
    await pair.agree("started", lambda side: side.one("Job", "web")["status"].get("active") == 2)
    await pair.patch(JOBS, "web", {"spec": {"suspend": True}})
    await pair.agree("suspended", lambda side: _has("Suspended")(side) and empty("Pod")(side))


async def scaled_on_the_way(pair: Pair) -> None:
    await pair.create(JOBS, job(completions=4, parallelism=3, pod=_NOWHERE))
    await pair.agree("started", lambda side: side.one("Job", "web")["status"].get("active") == 3)
    await pair.patch(JOBS, "web", {"spec": {"parallelism": 1}})
    await pair.agree("fewer", lambda side: side.one("Job", "web")["status"].get("active") == 1)


async def expires(pair: Pair) -> None:
    await pair.create(JOBS, job(ttlSecondsAfterFinished=1))
    await pair.agree("gone", lambda side: gone("Job")(side) and empty("Pod")(side))
    pair.same("order", view.ends)


SCENARIOS = (
    keeps_failing,
    fails_at_once,
    too_long,
    completes,
    queue_of_work,
    indexed,
    suspended_from_the_start,
    suspended_on_the_way,
    scaled_on_the_way,
    expires,
)
