"""The event loop of the world: virtual time, and processes that can be stopped, woken and killed.

Time stands still while anything can run, and jumps to the next timer when nothing can. Every callback belongs to the process
in whose context it was scheduled. Callbacks of one process run in asyncio's own order; which process goes first is drawn. There
are no sockets and no threads: what is given to an executor runs on the loop, a moment later.
"""

import asyncio
import gc
import heapq
from asyncio import base_events
from collections import deque
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from random import Random
from typing import Any, TypeVar

__all__ = ["PROCESS", "Process", "Stuck", "WorldLoop"]

T = TypeVar("T")
#: How long a thread takes for what it is given, in virtual seconds.
_THREAD = (0.0005, 0.01)
#: Cancelled timers that may lie about.
_FEW = 100
#: Turns between two collections of garbage.
_COLLECTED = 200_000


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
        #: Ordered by time, then by when they were set: comparing handles would cost more than all else here.
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._set = 0
        self._cancelled_timers = 0
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
        # Those of others are among them, and end as ever.
        self._remains.extend(asyncio.all_tasks(self))

    def end(self) -> None:
        """Everything stops where it is, for good."""
        self._remains.extend(asyncio.all_tasks(self))
        _ENDED.append(self)

    # What asyncio asks of a loop. This is what most callbacks cost: the ways of the base class are cut short.

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> asyncio.Handle:  # type: ignore[override]
        handle = _Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:  # type: ignore[override]
        return self.call_at(self._virtual + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:  # type: ignore[override]
        handle = _Timer(when, callback, args, self, context)
        self._set += 1
        heapq.heappush(self._timers, (when, self._set, handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Most time-outs are. They go when they are the most."""
        self._cancelled_timers += 1
        if self._cancelled_timers > _FEW and self._cancelled_timers > len(self._timers) // 2:
            self._timers = [each for each in self._timers if not each[2]._cancelled]
            heapq.heapify(self._timers)
            self._cancelled_timers = 0

    def run_forever(self) -> None:
        """Garbage is collected now and then, at the same moments in each run: what is collected may do things in its end."""
        enabled = gc.isenabled()
        gc.disable()
        try:
            super().run_forever()
        finally:
            if enabled:
                gc.enable()

    def _run_once(self) -> None:
        """Many turns."""
        ready = self._ready
        while not self._stopping:
            self.turns += 1
            if not self.turns % _COLLECTED:
                gc.collect()
            self._add_due(ready)
            for handle in (ready.popleft(),) if len(ready) == 1 else self._turn(ready):
                context = handle._context
                process = context.get(PROCESS, WORLD)
                if handle._cancelled or not process.alive:
                    continue
                if process.stopped:
                    process.held.append(handle)
                    continue
                try:
                    context.run(handle._callback, *handle._args)
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:
                    self.call_exception_handler({"message": f"error in {handle._callback}", "exception": error})

    def _add_due(self, ready: "deque[asyncio.Handle]") -> None:
        """When nothing can run, time goes on."""
        timers = self._timers
        if not ready:
            while timers and timers[0][2]._cancelled:
                heapq.heappop(timers)
            if not timers:
                raise Stuck("no task of the world can ever go on")
            self._virtual = max(self._virtual, timers[0][0])
        while timers and timers[0][0] <= self._virtual:
            handle = heapq.heappop(timers)[2]
            if not handle._cancelled:
                ready.append(handle)

    def _turn(self, ready: "deque[asyncio.Handle]") -> list[asyncio.Handle]:
        """What runs in this turn: processes in an order that is drawn, the callbacks of each in theirs."""
        groups: dict[Process, list[asyncio.Handle]] = {}
        for handle in ready:
            process = handle._context.get(PROCESS, WORLD)
            if process in groups:
                groups[process].append(handle)
            else:
                groups[process] = [handle]
        ready.clear()
        order = list(groups.values())
        if len(order) == 1:
            return order[0]
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


class _Handle(asyncio.Handle):
    """Without what is for debugging."""

    __slots__ = ()

    def __init__(self, callback: Any, args: Any, loop: WorldLoop, context: Context | None):
        self._context = context if context is not None else copy_context()
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None


class _Timer(asyncio.TimerHandle):
    __slots__ = ()

    def __init__(self, when: float, callback: Any, args: Any, loop: WorldLoop, context: Context | None):
        self._context = context if context is not None else copy_context()
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None
        self._when = when
        self._scheduled = True
