"""A loop that would spin is slowed down, one that is merely busy is not, and one that does not get on says so."""

import asyncio
import logging
import time
from collections import Counter

import pytest

from argosy.kube import pace as paces
from argosy.kube.backoff import Backoff
from argosy.kube.pace import Pace
from argosy.kube.queue import Result, WorkQueue, run_workers
from tests.harness.eventually import eventually

SLOWER = Backoff(base=0.2, cap=0.4, jitter=0.0)


class Spins:
    """A loop that wakes itself for ever, over one key or over several, and counts."""

    def __init__(self, keys: int, workers: int = 4):
        self.runs: Counter[int] = Counter()
        self.put_off = 0
        self._keys = keys
        self._queue: WorkQueue[int] = WorkQueue()
        self.pace: Pace[int] = Pace("the test's loop", self._spun, runs=20, slower=SLOWER)
        self._task = asyncio.create_task(run_workers(self._queue, self._reconcile, workers, pace=self.pace, grace=0.0))
        self._queue.add(0)

    def _spun(self) -> None:
        self.put_off += 1

    async def _reconcile(self, key: int) -> Result | None:
        """Waits for nothing at all, as a reconcile over the transport in this process may."""
        self.runs[key] += 1
        self._queue.add((key + 1) % self._keys)
        return None

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.wait({self._task})


@pytest.mark.parametrize("keys", [1, 2, 3])
async def test_a_loop_that_wakes_itself_is_slowed_down(
    keys: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paces, "GAP", 60.0)  # a machine that stands still for a moment is no rest
    with caplog.at_level(logging.ERROR):
        loop = Spins(keys)
        await eventually(
            lambda: loop.put_off > 2 * keys, why="it was noticed; that this runs at all shows that it yields"
        )
        await loop.stop()
    assert max(loop.runs.values()) < 30
    told = [record.getMessage() for record in caplog.records if record.name == paces.__name__]
    assert len(told) <= keys, "once a key"
    assert told[0].startswith("the test's loop: ")


async def test_many_keys_that_wake_themselves_are_slowed_down() -> None:
    """A round of all takes longer than the gap: each waits for its turn, and was due all the while."""
    queue: WorkQueue[int] = WorkQueue()
    put_off = 0

    def spun() -> None:
        nonlocal put_off
        put_off += 1

    async def reconcile(key: int) -> Result | None:
        until = time.monotonic() + 0.0005
        while time.monotonic() < until:
            pass
        queue.add(key)
        return None

    pace: Pace[int] = Pace(on_spin=spun, runs=4, slower=SLOWER)
    task = asyncio.create_task(run_workers(queue, reconcile, 4, pace=pace, grace=0.0))
    for key in range(400):
        queue.add(key)
    await eventually(lambda: put_off > 800, why="they were noticed")
    task.cancel()
    await asyncio.wait({task})


async def test_a_timer_that_rings_late_is_no_rest() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a", after=0.01)
    time.sleep(0.05)  # noqa: ASYNC251 (somebody holds the loop)
    assert await queue.get() == "a"
    assert queue.waited("a") >= 0.03


async def test_runs_that_wait_for_nothing_leave_the_loop_to_others() -> None:
    queue: WorkQueue[int] = WorkQueue()
    ran: list[int] = []
    turns = 0

    async def reconcile(key: int) -> Result | None:
        ran.append(key)
        queue.add(key + 1)  # always another one: no key of it ever spins
        return None

    task = asyncio.create_task(run_workers(queue, reconcile, 4, grace=0.0))
    queue.add(0)
    while len(ran) < 1000:
        turns += 1
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    assert turns > 100


async def test_a_key_that_comes_to_rest_is_quick_again() -> None:
    pace: Pace[str] = Pace(runs=3, slower=SLOWER)
    for _ in range(4):
        assert pace.begin("a") == 0
        pace.end("a")
    wait = pace.begin("a")
    assert 0 < wait <= SLOWER.base
    assert pace.begin("b") == 0, "only the key that spins is held back"
    await asyncio.sleep(wait + paces.GAP + 0.02)
    for _ in range(3):
        assert pace.begin("a") == 0
        pace.end("a")


async def test_a_busy_key_is_left_alone() -> None:
    pace: Pace[str] = Pace(runs=2, slower=SLOWER)
    for _ in range(6):
        assert pace.begin("a") == 0
        pace.end("a")
        await asyncio.sleep(paces.GAP + 0.01)


async def test_what_is_put_off_runs_in_the_end() -> None:
    queue: WorkQueue[str] = WorkQueue()
    seen: list[int] = []
    goal = 0

    async def reconcile(key: str) -> Result | None:
        seen.append(goal)
        return None

    task = asyncio.create_task(run_workers(queue, reconcile, 1, pace=Pace(runs=5, slower=SLOWER), grace=0.0))
    for number in range(1, 30):
        goal = number
        queue.add("a")
        await asyncio.sleep(0.001)
    await eventually(lambda: seen[-1] == 29, why="the last change is seen, however late")
    task.cancel()
    await asyncio.wait({task})
    assert len(seen) < 20


async def test_memory_is_bounded_by_what_ran_lately(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paces, "_MEMORY", 0.01)
    pace: Pace[int] = Pace()
    for key in range(1000):
        pace.begin(key)
        pace.end(key)
    await asyncio.sleep(0.02)
    pace.begin(-1)
    pace.end(-1)
    assert len(pace._rested) == 1


async def test_a_run_that_does_not_end_is_a_problem() -> None:
    pace: Pace[str] = Pace("dispatch", patience=0.02)
    pace.begin("default/web")
    pace.begin("default/other")
    pace.end("default/other")
    assert pace.problem() is None
    await eventually(lambda: pace.problem() == "dispatch has been at default/web for 0 s")
    pace.end("default/web")
    assert pace.problem() is None
