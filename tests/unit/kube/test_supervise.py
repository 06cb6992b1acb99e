"""Supervision: a dead task is noticed, leaving ends everything."""

import asyncio
from collections.abc import Callable

import pytest

from argosy.kube.backoff import Backoff
from argosy.kube.supervise import Supervisor

FAST = Backoff(base=0.001, cap=0.002, jitter=0.0)


async def forever() -> None:
    await asyncio.Event().wait()


async def broken() -> None:
    raise RuntimeError("no more")


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while True:
            if condition():
                return
            await asyncio.sleep(0.001)


async def test_tasks_that_run_are_healthy_and_end_with_the_supervisor() -> None:
    async with Supervisor() as tasks:
        task = tasks.start("a", forever)
        await asyncio.sleep(0)
        assert tasks.healthy()
        assert tasks.names() == ["a"]
    assert task.cancelled()


async def test_a_task_that_dies_is_recorded() -> None:
    async with Supervisor() as tasks:
        tasks.start("a", broken)
        await until(lambda: not tasks.healthy())
        assert tasks.failures == {"a": "RuntimeError: no more"}


async def test_a_task_that_just_ends_is_a_failure_unless_it_may() -> None:
    async def ends() -> None:
        return

    async with Supervisor() as tasks:
        tasks.start_once("once", ends)
        tasks.start("a", ends)
        await until(lambda: bool(tasks.failures))
        assert tasks.failures == {"a": "it ended by itself"}


async def test_a_restarted_task_comes_back_and_is_well_after_a_while() -> None:
    runs = 0

    async def unlucky() -> None:
        nonlocal runs
        runs += 1
        if runs < 3:
            raise RuntimeError("again")
        await forever()

    async with Supervisor(backoff=FAST, recovery=0.05) as tasks:
        tasks.start("a", unlucky, restart=True)
        await until(lambda: runs == 3)
        assert not tasks.healthy()
        await until(tasks.healthy)
        assert tasks.restarts == {"a": 2}


async def test_two_tasks_cannot_have_one_name_but_a_stopped_name_is_free() -> None:
    async with Supervisor() as tasks:
        tasks.start("a", forever)
        with pytest.raises(ValueError, match="already running"):
            tasks.start("a", forever)
        await tasks.stop("a")
        tasks.start("a", forever)
        assert tasks.names() == ["a"]


async def test_leaving_waits_for_tasks_that_clean_up() -> None:
    cleaned: list[str] = []
    started = asyncio.Event()

    async def slow() -> None:
        started.set()
        try:
            await forever()
        finally:
            await asyncio.sleep(0.01)
            cleaned.append("a")

    async with Supervisor() as tasks:
        tasks.start("a", slow)
        await started.wait()
    assert cleaned == ["a"]
