"""Work queue: which key is reconciled next, and the workers that do it. All retry behaviour of the loops is here.

A key is in the queue at most once. A key that is being reconciled is never handed out again; if added meanwhile, it runs once
more afterwards. Lower priority numbers go first, equal ones in order of arrival; every so often it is the turn of the key that
has waited longest, so that nobody waits forever while more urgent keys keep coming. A delayed key waits outside the queue until
its time; of several delays the earliest counts, and a run in between does not cancel it.

The queue belongs to one event loop and owns one timer, no task. `run_workers` owns its workers and ends with them; after each
run a worker yields to the event loop, and no key can monopolize it (`pace`).
"""

import asyncio
import heapq
import itertools
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

import msgspec

from argosy.kube.backoff import Backoff
from argosy.kube.errors import ApiError, Conflict, TransportError
from argosy.kube.pace import Pace

__all__ = ["Result", "ShutDown", "WorkQueue", "run_workers"]

K = TypeVar("K", bound=Hashable)
log = logging.getLogger(__name__)

#: A conflict means that our cache was behind; the event is already on its way.
CONFLICT_DELAY = 0.5
BACKOFF = Backoff(base=0.2, cap=60.0)
#: One turn in so many is that of the key that has waited longest.
_TURNS = 32


class ShutDown(Exception):
    """The queue was shut down and has nothing left to hand out."""


class Result(msgspec.Struct, frozen=True):
    """What a reconcile asks for: nothing, another run after some seconds, or a retry with back-off because of `error`."""

    requeue_after: float | None = None
    error: str | None = None


class _Waiting(msgspec.Struct):
    priority: int
    order: int
    since: float
    #: Its order when it came, before it became more urgent.
    first: int


class WorkQueue(Generic[K]):
    def __init__(self, backoff: Backoff = BACKOFF) -> None:
        self._backoff = backoff
        self._order = itertools.count()
        # Heap entries are never removed, only outdated: an entry counts if its order is the one in `_waiting`.
        self._heap: list[tuple[int, int, K]] = []
        self._waiting: dict[K, _Waiting] = {}
        #: Keys by arrival, with their first order; outdated entries are left in it, too.
        self._arrivals: deque[tuple[int, K]] = deque()
        self._turn = 0
        #: Keys being reconciled, and how long they had been ready when they were handed out.
        self._processing: dict[K, float] = {}
        self._again: dict[K, int] = {}
        self._failures: dict[K, int] = {}
        self._delayed_heap: list[tuple[float, int, K]] = []
        self._delayed: dict[K, tuple[float, int]] = {}
        self._timer: asyncio.TimerHandle | None = None
        #: When the timer fires (not every loop's handles can tell).
        self._timer_at = 0.0
        self._getters: deque[asyncio.Future[None]] = deque()
        self._idle: asyncio.Event = asyncio.Event()
        self._idle.set()
        self._closed = False

    def __len__(self) -> int:
        """Keys that are ready."""
        return len(self._waiting)

    @property
    def delayed(self) -> int:
        return len(self._delayed)

    @property
    def processing(self) -> int:
        return len(self._processing)

    def oldest_age(self) -> float:
        """Seconds that the longest waiting key has been ready."""
        if not self._waiting:
            return 0.0
        now = asyncio.get_running_loop().time()
        return now - min(waiting.since for waiting in self._waiting.values())

    def waited(self, key: K) -> float:
        """Seconds that a key being reconciled had been ready before."""
        return self._processing.get(key, 0.0)

    def add(self, key: K, priority: int = 0, after: float = 0.0) -> None:
        """Add `key`, to be ready `after` seconds from now. Adding it again can only make it more urgent."""
        if self._closed:
            return
        if after > 0:
            self._add_delayed(key, priority, after)
        elif key in self._processing:
            self._again[key] = min(priority, self._again.get(key, priority))
        else:
            self._add_now(key, priority, asyncio.get_running_loop().time())

    def _add_now(self, key: K, priority: int, since: float) -> None:
        waiting = self._waiting.get(key)
        if waiting is not None and waiting.priority <= priority:
            return
        order = next(self._order)
        if waiting is None:
            self._waiting[key] = _Waiting(priority, order, since, order)
            self._arrivals.append((order, key))
        else:
            self._waiting[key] = _Waiting(priority, order, waiting.since, waiting.first)
        heapq.heappush(self._heap, (priority, order, key))
        self._idle.clear()
        self._wake_one()

    def _add_delayed(self, key: K, priority: int, after: float) -> None:
        when = asyncio.get_running_loop().time() + after
        earlier = self._delayed.get(key)
        if earlier is not None:
            priority = min(priority, earlier[1])
            if earlier[0] <= when:
                self._delayed[key] = (earlier[0], priority)
                return
        self._delayed[key] = (when, priority)
        heapq.heappush(self._delayed_heap, (when, next(self._order), key))
        self._set_timer()

    def _set_timer(self) -> None:
        while self._delayed_heap and self._outdated(self._delayed_heap[0]):
            heapq.heappop(self._delayed_heap)
        if self._timer is not None:
            if self._delayed_heap and self._timer_at <= self._delayed_heap[0][0]:
                return
            self._timer.cancel()
            self._timer = None
        if self._delayed_heap:
            self._timer_at = self._delayed_heap[0][0]
            self._timer = asyncio.get_running_loop().call_at(self._timer_at, self._release_due)

    def _outdated(self, entry: tuple[float, int, K]) -> bool:
        when, _, key = entry
        current = self._delayed.get(key)
        return current is None or current[0] != when

    def _release_due(self) -> None:
        self._timer = None
        # The event loop may call a timer up to its clock resolution early.
        now = asyncio.get_running_loop().time() + 0.001
        while self._delayed_heap and self._delayed_heap[0][0] <= now:
            entry = heapq.heappop(self._delayed_heap)
            if self._outdated(entry):
                continue
            when, _, key = entry
            _, priority = self._delayed.pop(key)
            if key in self._processing:
                self.add(key, priority)
            else:
                self._add_now(key, priority, when)  # a late timer does not count as later arrival
        self._set_timer()

    def add_rate_limited(self, key: K, priority: int = 0) -> float:
        """Add `key` after its own back-off, which doubles until `forget`; returns the delay."""
        failures = self._failures.get(key, 0) + 1
        self._failures[key] = failures
        delay = self._backoff.delay(failures)
        self.add(key, priority, delay)
        return delay

    def forget(self, key: K) -> None:
        """The key succeeded: its next failure starts from the smallest delay again."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        return self._failures.get(key, 0)

    async def get(self) -> K:
        """The most urgent key; the caller must call `done`. Raises ShutDown if no more will come."""
        while True:
            if self._waiting:
                key = self._next()
                waiting = self._waiting.pop(key)
                self._processing[key] = asyncio.get_running_loop().time() - waiting.since
                return key
            if self._closed:
                raise ShutDown
            getter = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except asyncio.CancelledError:
                # Pass the wake-up of this getter on to another one.
                if getter.done() and not getter.cancelled():
                    self._wake_one()
                raise
            finally:
                if getter in self._getters:
                    self._getters.remove(getter)

    def _next(self) -> K:
        """There is one."""
        while (oldest := self._waiting.get(self._arrivals[0][1])) is None or oldest.first != self._arrivals[0][0]:
            self._arrivals.popleft()
        self._turn = (self._turn + 1) % _TURNS
        if not self._turn:
            return self._arrivals[0][1]
        while True:
            _, order, key = heapq.heappop(self._heap)
            waiting = self._waiting.get(key)
            if waiting is not None and waiting.order == order:
                return key

    def _wake_one(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def done(self, key: K) -> None:
        """The key's run has ended, with or without success."""
        self._processing.pop(key, None)
        priority = self._again.pop(key, None)
        if priority is not None and not self._closed:
            self._add_now(key, priority, asyncio.get_running_loop().time())
        if not self._processing and not self._waiting:
            self._idle.set()

    def shut_down(self, drain: bool = True) -> None:
        """Accept no more keys and drop the delayed ones; ready ones are still handed out if `drain`, else dropped."""
        self._closed = True
        self._delayed.clear()
        self._delayed_heap.clear()
        self._again.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not drain:
            self._heap.clear()
            self._arrivals.clear()
            self._waiting.clear()
            if not self._processing:
                self._idle.set()
        while self._getters:
            self._wake_one()

    async def idle(self) -> None:
        """Wait until no key is ready or being reconciled (delayed ones do not count)."""
        if self._processing or self._waiting:
            self._idle.clear()
        await self._idle.wait()


async def run_workers(
    queue: WorkQueue[K],
    reconcile: Callable[[K], Awaitable[Result | None]],
    workers: int,
    on_error: Callable[[K, Exception], None] | None = None,
    *,
    pace: Pace[K] | None = None,
    conflict_delay: float = CONFLICT_DELAY,
    grace: float = 5.0,
) -> None:
    """Reconcile keys until the queue is shut down and empty. A `pace` is for this loop alone; its owner may ask for problems.

    When cancelled, it hands out no more keys, waits up to `grace` seconds for runs in progress, and only then cancels them.
    """
    worker = _Worker(queue, reconcile, on_error, pace or Pace(), conflict_delay)
    tasks = [asyncio.create_task(worker.run(), name=f"worker-{number}") for number in range(workers)]
    try:
        # Not gather: it would pass a cancellation on to runs in the middle of a write.
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        queue.shut_down(drain=False)
        await _finish(tasks, grace)
    for task in tasks:
        task.result()


async def _finish(tasks: list[asyncio.Task[None]], grace: float) -> None:
    try:
        await asyncio.wait(tasks, timeout=grace)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Worker(Generic[K]):
    def __init__(
        self,
        queue: WorkQueue[K],
        reconcile: Callable[[K], Awaitable[Result | None]],
        on_error: Callable[[K, Exception], None] | None,
        pace: Pace[K],
        conflict_delay: float,
    ) -> None:
        self.queue = queue
        self.reconcile = reconcile
        self.on_error = on_error
        self.pace = pace
        self.conflict_delay = conflict_delay
        #: The last error of a key: the same error again is not logged as an error.
        self.last_error: dict[K, str] = {}

    async def run(self) -> None:
        while True:
            try:
                key = await self.queue.get()
            except ShutDown:
                return
            if wait := self.pace.begin(key, self.queue.waited(key)):
                self.queue.done(key)
                self.queue.add(key, after=wait)
                continue
            try:
                await self._once(key)
            finally:
                self.pace.end(key)
                self.queue.done(key)
            # A run that never waited, as in one process it may, would block everything else.
            await asyncio.sleep(0)

    async def _once(self, key: K) -> None:
        try:
            result = await self.reconcile(key)
        except Conflict as conflict:
            log.debug("%s: %s; trying again", key, conflict)
            self.queue.add(key, after=self.conflict_delay)
            return
        except Exception as error:
            # A server's answer, or its silence, is no defect of the code: a traceback would not help.
            expected = isinstance(error, ApiError | TransportError)
            self._failed(key, f"{type(error).__name__}: {error}", None if expected else error)
            if self.on_error is not None:
                self.on_error(key, error)
            return
        if result is not None and result.error is not None:
            self._failed(key, result.error, None)
            return
        self.queue.forget(key)
        self.last_error.pop(key, None)
        if result is not None and result.requeue_after is not None:
            self.queue.add(key, after=max(result.requeue_after, 0.001))

    def _failed(self, key: K, message: str, error: Exception | None) -> None:
        delay = self.queue.add_rate_limited(key)
        known = self.last_error.get(key) == message
        self.last_error[key] = message
        if known:
            log.debug("%s: %s (again; next try in %.1f s)", key, message, delay)
        else:
            log.error("%s: %s (next try in %.1f s)", key, message, delay, exc_info=error)
