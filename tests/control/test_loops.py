"""The controllers' loops: one that would spin is slowed down and counted, one that does not get on is a problem."""

import asyncio

from argosy.control import manager
from argosy.kube import pace
from argosy.kube.pace import Pace
from argosy.kube.queue import Result, WorkQueue
from tests.harness.eventually import eventually
from tests.harness.federation import Federation


async def test_a_loop_that_spins_leaves_the_others_their_time(monkeypatch):
    monkeypatch.setattr(pace, "GAP", 60.0)  # a machine that stands still for a moment is no rest
    async with Federation(1) as fed:
        queue: WorkQueue[str] = WorkQueue()
        runs = 0

        async def reconcile(key: str) -> Result | None:
            nonlocal runs
            runs += 1
            queue.add("b" if key == "a" else "a")
            return None

        fed.manager._start_loop("spins", queue, reconcile, 4)
        queue.add("a")
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
    monkeypatch.setattr(manager, "Pace", lambda name, on_spin: Pace(name, on_spin, patience=0.5))
    async with Federation(1) as fed:
        queue: WorkQueue[str] = WorkQueue()

        async def reconcile(key: str) -> Result | None:
            await asyncio.Event().wait()
            return None

        fed.manager._start_loop("hangs", queue, reconcile, 1)
        queue.add("a")
        await eventually(lambda: any(problem.startswith("hangs has been at a") for problem in fed.manager.problems()))
