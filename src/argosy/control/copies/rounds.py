"""Rounds: one object's work in several members at once, without waiting for the slowest.

Work that takes longer than the patience continues in the background and wakes the object when it ends; meanwhile it is not
started again. So a member that accepts requests and never answers blocks no worker. Late results go to the object's next
round, unless that needs something else by then. An exception counts as one cluster's failure; only a lost lease is everybody's.
"""

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Generic, NamedTuple, TypeVar

from argosy.api.conditions import Propagation
from argosy.control.copies.operations import Applied
from argosy.control.fence import FenceLost
from argosy.kube.queue import Result

__all__ = ["Rounds", "Work", "next_round"]

K = TypeVar("K", bound=Hashable)
log = logging.getLogger(__name__)


class Work(NamedTuple):
    """What is to be done in one cluster; works with the same `aim` are the same."""

    aim: str
    run: Callable[[], Awaitable[Applied]]


def next_round(results: Mapping[str, Applied], recheck: float) -> Result | None:
    """When the object is to be looked at again, after a round with these results; removals are looked at after `recheck`."""
    waits = [applied.retry_after for applied in results.values() if applied.retry_after is not None]
    errors = [f"{name}: {applied.error}" for name, applied in results.items() if applied.failed]
    if errors:
        return Result(error="; ".join(errors[:3]))
    if any(applied.status is Propagation.WAITING_FOR_REMOVAL for applied in results.values()):
        waits.append(recheck)
    return Result(requeue_after=min(waits)) if waits else None


class _Late(NamedTuple):
    aim: str
    task: asyncio.Future[Applied]


class Rounds(Generic[K]):
    def __init__(self, patience: float, wake: Callable[[K], None]):
        self._patience = patience
        self._wake = wake
        self._late: dict[tuple[K, str], _Late] = {}

    async def run(self, key: K, works: Mapping[str, Work]) -> dict[str, Applied]:
        """Results by cluster, without those still in progress."""
        results: dict[str, Applied] = {}
        tasks: dict[str, asyncio.Future[Applied]] = {}
        for cluster, work in works.items():
            late = self._late.get((key, cluster))
            if late is not None and not late.task.done():
                continue
            self._late.pop((key, cluster), None)
            if late is not None and late.aim == work.aim and _succeeded(late.task):
                results[cluster] = late.task.result()
            else:
                tasks[cluster] = asyncio.ensure_future(work.run())
                tasks[cluster].add_done_callback(_looked_at)
        try:
            if tasks:
                await asyncio.wait(tasks.values(), timeout=self._patience)
        except asyncio.CancelledError:
            for task in tasks.values():
                task.cancel()
            raise
        for cluster, task in tasks.items():
            if not task.done():
                self._late[key, cluster] = _Late(works[cluster].aim, task)
                task.add_done_callback(functools.partial(self._ended, key))
        return results | {cluster: _result(key, cluster, task) for cluster, task in tasks.items() if task.done()}

    def _ended(self, key: K, task: asyncio.Future[Applied]) -> None:
        if task.cancelled():
            return
        if task.exception() is not None:  # the next round meets it again and reports it
            log.debug("%s: %s", key, task.exception())
        self._wake(key)

    async def close(self) -> None:
        """Cancel the work in progress."""
        tasks = [late.task for late in self._late.values()]
        self._late.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _looked_at(task: asyncio.Future[Applied]) -> None:
    """Raises one of several exceptions (all fail when the lease is lost)."""
    if not task.cancelled():
        task.exception()


def _result(key: Hashable, cluster: str, task: asyncio.Future[Applied]) -> Applied:
    try:
        return task.result()
    except FenceLost:
        raise
    except Exception as error:
        log.exception("%s in %s", key, cluster)
        return Applied(Propagation.COMPUTE_RESOURCE_FAILED, error=f"{type(error).__name__}: {error}"[:300])


def _succeeded(task: asyncio.Future[Applied]) -> bool:
    return not task.cancelled() and task.exception() is None and not task.result().withheld
