"""The controllers' loops: one that would spin is slowed down and counted, one that does not get on is a problem."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from argosy.control import runner
from argosy.control.wake import Loop
from argosy.kube import pace
from argosy.kube.pace import Pace
from argosy.kube.queue import Result, WorkQueue
from tests.harness.eventually import eventually
from tests.harness.federation import Federation


class Plain(Loop[str]):
    """Woken by nothing but its queue."""

    def __init__(self, name: str, workers: int, run: Callable[[str], Awaitable[None]]):
        self.name = name
        self.workers = workers
        self.queue = WorkQueue()
        self._run = run

    def wakes(self) -> list[Any]:
        return []

    async def reconcile(self, key: str) -> Result | None:
        await self._run(key)
        return None


async def test_a_loop_that_spins_leaves_the_others_their_time(monkeypatch):
    monkeypatch.setattr(pace, "GAP", 60.0)  # a machine that stands still for a moment is no rest
    async with Federation(1) as fed:
        runs = 0

        async def reconcile(key: str) -> None:
            nonlocal runs
            runs += 1
            loop.queue.add("b" if key == "a" else "a")

        loop = Plain("spins", 4, reconcile)
        fed.inside.run(loop)
        loop.queue.add("a")
        value = fed.manager.metrics.registry.get_sample_value
        await eventually(lambda: value("argosy_loop_spinning_total", {"loop": "spins"}))
        await fed.policy()
        await fed.deploy(replicas=2)
        await fed.eventually_replicas({"m1": 2})
        assert runs <= 2 * pace.RUNS + value("argosy_loop_spinning_total", {"loop": "spins"}), (
            "each further one was put off"
        )
        assert not fed.manager.problems()


async def test_a_loop_that_hangs_is_a_problem(monkeypatch):
    monkeypatch.setattr(runner, "Pace", lambda name, on_spin: Pace(name, on_spin, patience=0.5))
    async with Federation(1) as fed:

        async def reconcile(key: str) -> None:
            await asyncio.Event().wait()

        loop = Plain("hangs", 1, reconcile)
        fed.inside.run(loop)
        loop.queue.add("a")
        await eventually(lambda: any(problem.startswith("hangs has been at a") for problem in fed.manager.problems()))
