"""Work of large requests in threads: in turn, bounded, and counted until it ends."""

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Callable

import pytest

from argosy.kube.errors import TooManyRequests, Unavailable
from argosy.server.http.limits import Limits
from argosy.server.http.offload import Offload
from argosy.server.metrics import Metrics
from tests.harness.eventually import PATIENCE, eventually


class Work:
    """Work that lasts until it is told to end."""

    def __init__(self, name: str, log: list[str]):
        self.name = name
        self.started = threading.Event()
        self.end = threading.Event()
        self._log = log

    def __call__(self) -> str:
        self._log.append(self.name)
        self.started.set()
        self.end.wait(30)
        return self.name


@pytest.fixture
async def offload() -> AsyncIterator[Offload]:
    made = Offload(Limits(offload_threads=1, offload_waiting=4, offload_waiting_of_user=3), Metrics())
    yield made
    made.close()


async def test_work_runs_beside_the_loop_and_its_errors_come_back(offload: Offload) -> None:
    assert await offload.run("a", threading.get_ident) != threading.get_ident()

    def broken() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await offload.run("a", broken)
    await eventually(lambda: offload.running == 0)


async def test_an_error_that_nobody_waits_for_is_not_logged(offload: Offload, caplog: pytest.LogCaptureFixture) -> None:
    begun, end = threading.Event(), threading.Event()

    def broken() -> None:
        begun.set()
        end.wait(30)
        raise ValueError("no")

    task = asyncio.create_task(offload.run("a", broken))
    await eventually(begun.is_set)
    task.cancel()
    end.set()
    await eventually(lambda: offload.running == 0)
    gc.collect()
    assert not caplog.records


async def test_users_take_turns(offload: Offload) -> None:
    log: list[str] = []
    first = Work("first", log)
    waiting = [asyncio.create_task(offload.run("busy", first))]
    await eventually(first.started.is_set)

    def note(name: str) -> Callable[[], None]:
        return lambda: log.append(name)

    for user, name in (("busy", "b1"), ("busy", "b2"), ("busy", "b3"), ("quiet", "q1")):
        waiting.append(asyncio.create_task(offload.run(user, note(name))))
        await asyncio.sleep(0)
    first.end.set()
    await asyncio.gather(*waiting)
    assert log == ["first", "b1", "q1", "b2", "b3"]


async def test_too_much_waiting_is_refused_for_the_user_first_and_then_for_all(offload: Offload) -> None:
    log: list[str] = []
    work = Work("work", log)
    tasks = [asyncio.create_task(offload.run("busy", work)) for _ in range(4)]
    await eventually(lambda: offload.waiting == 3)
    with pytest.raises(TooManyRequests):
        offload.admit("busy")
    offload.admit("quiet")
    tasks.append(asyncio.create_task(offload.run("quiet", work)))
    await eventually(lambda: offload.waiting == 4)
    with pytest.raises(TooManyRequests):
        offload.admit("third")
    work.end.set()
    await asyncio.gather(*tasks)
    offload.admit("busy")


async def test_work_that_is_given_up_counts_until_it_ends_and_what_did_not_begin_is_dropped(offload: Offload) -> None:
    log: list[str] = []
    work = Work("work", log)
    running = asyncio.create_task(offload.run("a", work))
    await eventually(work.started.is_set)
    never = asyncio.create_task(offload.run("a", Work("never", log)))
    await eventually(lambda: offload.waiting == 1)
    for task in (running, never):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert offload.running == 1
    work.end.set()
    assert await offload.run("b", lambda: "after") == "after"
    assert log == ["work"]
    await eventually(lambda: offload.running == 0 and offload.waiting == 0)


async def test_what_waits_when_it_is_closed_fails_and_nothing_begins_anew(offload: Offload) -> None:
    log: list[str] = []
    first = Work("first", log)
    running = asyncio.create_task(offload.run("a", first))
    await eventually(first.started.is_set)
    waiting = asyncio.create_task(offload.run("a", Work("second", log)))
    await eventually(lambda: offload.waiting == 1)
    offload.close()
    with pytest.raises(Unavailable):
        await asyncio.wait_for(waiting, PATIENCE)
    with pytest.raises(Unavailable):
        await asyncio.wait_for(offload.run("a", lambda: None), PATIENCE)
    first.end.set()
    assert await running == "first"
    assert log == ["first"]
    assert offload.waiting == 0
