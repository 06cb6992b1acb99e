"""The event loop of the world: virtual time, and processes that can be stopped, woken and killed.

Time stands still while anything can run, and jumps to the next timer when nothing can. Every callback belongs to the process
in whose context it was scheduled. Callbacks of one process run in asyncio's own order; which process goes first is drawn. There
are no sockets and no threads: what is given to an executor runs on the loop, a moment later.
"""

import asyncio
import heapq
from asyncio import base_events
from collections import deque
from collections.abc import Callable
from contextvars import Context, ContextVar
from random import Random
from typing import Any, TypeVar
from weakref import WeakSet

__all__ = ["PROCESS", "Process", "Stuck", "WorldLoop"]

T = TypeVar("T")
#: How long a thread takes for what it is given, in virtual seconds.
_THREAD = (0.0005, 0.01)


#: Loops that ended stay, with all that was under way on them: a task that is collected runs its `finally`.
_ENDED: list["WorldLoop"] = []


class Stuck(Exception):
    """Nothing can run, and nothing ever will."""


class Process:
    """A group of tasks that live, stop and die together."""

    def __init__(self, name: str, gone: "asyncio.Future[None] | None" = None):
        """`gone` is done when the process is dead."""
        self.name = name
        self.alive = True
        self.gone = gone
        self.stopped = False
        #: What became ready while the process was stopped.
        self.held: list[asyncio.Handle] = []
        self.tasks: WeakSet[asyncio.Task[Any]] = WeakSet()

    def __repr__(self) -> str:
        return self.name


#: Everything that is nobody's: the script, the judge, the network.
WORLD = Process("world")
PROCESS: ContextVar[Process] = ContextVar("process", default=WORLD)


class WorldLoop(base_events.BaseEventLoop):
    def __init__(self, chance: Random):
        super().__init__()
        self._chance = chance
        self._virtual = 0.0
        self.turns = 0
        self.set_task_factory(_task)
        self.set_exception_handler(self._unhandled)
        #: What no task or callback handled.
        self.errors: list[str] = []
        #: Kept until the loop goes: a task that nobody refers to is closed, and would do things in its `finally`.
        self._remains: list[asyncio.Task[Any]] = []

    def time(self) -> float:
        return self._virtual

    # Processes.

    def stop_process(self, process: Process) -> None:
        """As SIGSTOP: nothing of it runs; time goes on."""
        process.stopped = True

    def continue_process(self, process: Process) -> None:
        process.stopped = False
        held, process.held = process.held, []
        self._ready.extend(held)

    def kill_process(self, process: Process) -> None:
        """As SIGKILL: nothing of it ever runs again."""
        process.alive = False
        if process.gone is not None:
            process.gone.set_result(None)
        self._remains.extend(process.tasks)

    def end(self) -> None:
        """Everything stops where it is, for good."""
        self._remains.extend(asyncio.all_tasks(self))
        _ENDED.append(self)

    # What asyncio asks of a loop.

    def _run_once(self) -> None:
        self.turns += 1
        scheduled, ready = self._scheduled, self._ready
        while scheduled and scheduled[0]._cancelled:
            heapq.heappop(scheduled)._scheduled = False
            self._timer_cancelled_count -= 1
        if not ready and not self._stopping:
            if not scheduled:
                raise Stuck("no task of the world can ever go on")
            self._virtual = max(self._virtual, scheduled[0]._when)
        while scheduled and scheduled[0]._when <= self._virtual:
            handle = heapq.heappop(scheduled)
            handle._scheduled = False
            if not handle._cancelled:
                ready.append(handle)
        for handle in self._turn(ready):
            process = handle._context.get(PROCESS, WORLD)
            if handle._cancelled or not process.alive:
                continue
            if process.stopped:
                process.held.append(handle)
                continue
            handle._run()

    def _turn(self, ready: "deque[asyncio.Handle]") -> list[asyncio.Handle]:
        """What runs in this turn: processes in an order that is drawn, the callbacks of each in theirs."""
        if len(ready) == 1:
            return [ready.popleft()]
        groups: dict[Process, list[asyncio.Handle]] = {}
        for handle in ready:
            groups.setdefault(handle._context.get(PROCESS, WORLD), []).append(handle)
        ready.clear()
        order = list(groups.values())
        if len(order) > 1:
            self._chance.shuffle(order)
        return [handle for group in order for handle in group]

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> "asyncio.Future[T]":  # type: ignore[override]
        done: asyncio.Future[T] = self.create_future()

        def work() -> None:
            if done.cancelled():
                return
            try:
                result = func(*args)
            except Exception as error:
                done.set_exception(error)
            else:
                done.set_result(result)

        self.call_later(self._chance.uniform(*_THREAD), work)
        return done

    def _process_events(self, event_list: Any) -> None:
        raise NotImplementedError

    def _write_to_self(self) -> None:
        """Nobody waits for anything outside."""

    def _unhandled(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.errors.append(f"{context.get('message')}: {error!r}")


def _task(loop: asyncio.AbstractEventLoop, work: Any, context: Context | None = None) -> "asyncio.Task[Any]":
    task = asyncio.Task(work, loop=loop, context=context)
    (PROCESS.get() if context is None else context.get(PROCESS, WORLD)).tasks.add(task)
    return task
