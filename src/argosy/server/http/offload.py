"""Offload: the computing of large requests is done by a few threads, not by the event loop.

Decoding, patching, defaulting, validating, encoding and rendering are pure functions of one request's values, so they may run
anywhere; anything that reads the store or changes shared state stays on the loop. Small work is done in place: the way to a
thread and back takes longer. A thread yields the interpreter every millisecond (`cli.local.loop`), so the loop goes on.

Each user's work has a queue of its own, and the queues take turns: a user who sends much waits for itself. A thread cannot be
stopped: a request that is cancelled meanwhile is answered at once, its work is dropped if it has not begun, and otherwise
counts until it ends. `close` lets the threads finish their work.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from argosy.kube import clock
from argosy.kube.errors import ApiError
from argosy.server import status
from argosy.server.http.limits import Limits
from argosy.server.metrics import Metrics

__all__ = ["Offload"]

T = TypeVar("T")


class _Job:
    __slots__ = ("done", "queued", "work")

    def __init__(self, work: Callable[[], Any], done: "asyncio.Future[Any]"):
        self.work = work
        self.done = done
        self.queued = clock.monotonic()


class Offload:
    def __init__(self, limits: Limits, metrics: Metrics):
        self._limits = limits
        self._metrics = metrics
        self._threads: ThreadPoolExecutor | None = None
        #: Work by user, in the order of turns.
        self._waiting: OrderedDict[str, deque[_Job]] = OrderedDict()
        self.waiting = 0
        self.running = 0
        self._closed = False

    def large(self, effort: int) -> bool:
        """Whether work on so many bytes is too much for the loop."""
        return effort >= self._limits.offload_bytes

    def admit(self, user: str) -> None:
        """Raises 429 if too much is waiting. Called once, before anything is done: work that has begun is finished."""
        queue = self._waiting.get(user)
        of_user = len(queue) if queue is not None else 0
        if self.waiting >= self._limits.offload_waiting or of_user >= self._limits.offload_waiting_of_user:
            self._metrics.offload_refused.inc()
            raise status.too_many_requests()

    async def run(self, user: str, work: Callable[[], T]) -> T:
        """Run it in a thread. Raises what it raises, and 503 once this is closed."""
        if self._closed:
            raise _stopping()
        job = _Job(work, asyncio.get_running_loop().create_future())
        if self.running < self._limits.offload_threads:
            self._start(job)
        else:
            self._queue(user, job)
        try:
            result: T = await job.done
            return result
        finally:
            del job  # it refers to the error, which refers to this frame

    def close(self) -> None:
        """Running work is finished; waiting work fails."""
        self._closed = True
        for queue in self._waiting.values():
            for job in queue:
                if not job.done.done():
                    job.done.set_exception(_stopping())
        self._waiting.clear()
        self.waiting = 0
        if self._threads is not None:
            self._threads.shutdown(wait=False)
            self._threads = None

    def _queue(self, user: str, job: _Job) -> None:
        if user not in self._waiting:
            self._waiting[user] = deque()
        self._waiting[user].append(job)
        self.waiting += 1

    def _start(self, job: _Job) -> None:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._limits.offload_threads, "offload")
        self.running += 1
        started = clock.monotonic()
        self._metrics.offload_waited.observe(started - job.queued)

        def ended(result: "asyncio.Future[Any]") -> None:
            self._metrics.offload_worked.observe(clock.monotonic() - started)
            self.running -= 1
            self._next()
            error = result.exception()  # in any case: asyncio logs an exception that nobody retrieves
            if job.done.done():  # cancelled
                return
            if error is not None:
                job.done.set_exception(error)
            else:
                job.done.set_result(result.result())

        asyncio.get_running_loop().run_in_executor(self._threads, job.work).add_done_callback(ended)

    def _next(self) -> None:
        while self._waiting and self.running < self._limits.offload_threads and self._threads is not None:
            user, queue = self._waiting.popitem(last=False)
            job = queue.popleft()
            self.waiting -= 1
            if queue:
                self._waiting[user] = queue  # at the end: others come first
            if not job.done.done():
                self._start(job)


def _stopping() -> ApiError:
    return status.unavailable("the server is stopping")
