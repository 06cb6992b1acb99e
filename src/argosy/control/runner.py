"""Runner: a loop's workers under one supervisor, with metrics, a limit against spinning, turns among all loops, and a filter for
other shards' keys."""

from collections.abc import Hashable
from typing import Any, TypeVar

from argosy.control.caches.objectkeys import FederatedKey, SourceKey
from argosy.control.context import ControllerContext
from argosy.control.fence import FenceLost
from argosy.control.wake import Loop
from argosy.kube import clock
from argosy.kube.objects import split_key
from argosy.kube.pace import Pace
from argosy.kube.queue import Result, run_workers
from argosy.kube.turns import Turns

__all__ = ["LoopRunner"]

K = TypeVar("K", bound=Hashable)


class LoopRunner:
    def __init__(self, context: ControllerContext):
        self._metrics = context.metrics
        self._tasks = context.tasks
        self._timings = context.timings
        self._shard = context.options.shard
        self._paces: list[Pace[Any]] = []
        self._turns = Turns()

    def start(self, loop: Loop[K]) -> None:
        name = loop.name
        seconds, failures = self._metrics.reconcile.labels(name), self._metrics.failures.labels(name)
        shard = self._shard

        async def measured(key: K) -> Result | None:
            # Keys of another shard are dropped, whatever woke the loop.
            if isinstance(key, SourceKey | FederatedKey) and not shard.owns(split_key(key.key)[0]):
                return None
            await self._turns.begin()
            started = clock.monotonic()
            try:
                return await loop.reconcile(key)
            except FenceLost:
                return None
            finally:
                seconds.observe(clock.monotonic() - started)

        def failed(key: K, error: Exception) -> None:
            failures.inc()

        pace: Pace[K] = Pace(name, self._metrics.spinning.labels(name).inc)
        self._paces.append(pace)
        self._tasks.start(
            name,
            lambda: run_workers(
                loop.queue, measured, loop.workers, on_error=failed, pace=pace, conflict_delay=self._timings.conflict
            ),
        )

    def problems(self) -> list[str]:
        """Loops that make no progress."""
        return [problem for pace in self._paces if (problem := pace.problem())]
