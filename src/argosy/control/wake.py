"""How changes wake loops: declared by each loop, subscribed only here, and printed as one table.

A source signals changes: an informer, or a `Signal` of derived state. A loop declares, in its own file, what wakes it: `Wake`
(these changes concern these keys) and `Sweep` (these changes may concern any object, so all are checked). State that is only
kept current declares what it follows: `Follow`. State is subscribed before loops, so that all state is up to date when a change
reaches a loop.

A change carries its `origin`: the loop of ours that wrote it, or "" for any other writer.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from argosy.kube.queue import Result, WorkQueue

__all__ = [
    "AGGREGATE",
    "DISPATCH",
    "FEDERATE",
    "Due",
    "Follow",
    "Loop",
    "Row",
    "Signal",
    "Source",
    "State",
    "Subscriptions",
    "Sweep",
    "Wake",
    "itself",
    "table",
]

C = TypeVar("C")
C_co = TypeVar("C_co", covariant=True)
K = TypeVar("K", bound=Hashable)
log = logging.getLogger(__name__)

#: Origins: the loops whose own writes are told apart from users' writes.
FEDERATE = "federate"
DISPATCH = "dispatch"
AGGREGATE = "aggregate"

#: How long a sweep may block the event loop.
_SLICE = 0.005


class Source(Protocol[C_co]):
    @property
    def name(self) -> str:
        """What changes, for the table."""

    def add_handler(self, handler: Callable[[C_co], None], /) -> None: ...

    def remove_handler(self, handler: Callable[[C_co], None], /) -> None: ...


class Signal(Generic[C]):
    """A source of our own: its owner calls `tell`."""

    def __init__(self, name: str):
        self.name = name
        self._handlers: list[Callable[[C], None]] = []

    def add_handler(self, handler: Callable[[C], None]) -> None:
        self._handlers.append(handler)

    def remove_handler(self, handler: Callable[[C], None]) -> None:
        self._handlers.remove(handler)

    def tell(self, change: C) -> None:
        for handler in self._handlers:
            try:
                handler(change)
            except Exception:  # a failing handler must not keep the change from the others
                log.exception("a handler of %s failed", self.name)


class Due(NamedTuple, Generic[K]):
    """A key with a priority of its own."""

    key: K
    priority: int


class Wake(msgspec.Struct, Generic[C, K], frozen=True):
    """Changes of a source, and the keys to reconcile because of them. `keys` may record what it sees."""

    source: Source[C]
    keys: Callable[[C], Iterable[K]]
    why: str
    #: The queue priority; lower goes first.
    priority: int | Callable[[K], int] = 0
    #: Seconds to wait, so that one reconcile serves several changes.
    delay: float = 0.0


class Sweep(msgspec.Struct, Generic[C, K], frozen=True):
    """Changes after which all objects are checked, a few milliseconds at a time.

    `named` gives the names of what changed. Changes during a sweep are handled by the next one, so that a flapping fleet costs
    one sweep after another and no more. `keys` yields None for each object that is not affected, which counts as a step. Sweeps
    of a loop with the same `keys` are one.
    """

    source: Source[C]
    named: Callable[[C], Iterable[str]]
    keys: Callable[[Collection[str]], Iterator[K | Due[K] | None]]
    why: str
    priority: int | Callable[[K], int] = 0


class Follow(msgspec.Struct, Generic[C], frozen=True):
    """Changes that keep state current."""

    source: Source[C]
    apply: Callable[[C], None]
    why: str


class State(Protocol):
    """State derived from changes, and read by loops."""

    @property
    def name(self) -> str: ...

    def follows(self) -> Iterable[Follow[Any]]: ...


class Loop(ABC, Generic[K]):
    """One controller: a queue of keys, and how each is reconciled."""

    name: str
    #: How many keys are reconciled concurrently.
    workers: int
    queue: WorkQueue[K]

    @abstractmethod
    def wakes(self) -> Iterable[Wake[Any, K] | Sweep[Any, K]]:
        """Everything that wakes the loop, except its own timers and retries."""

    @abstractmethod
    async def reconcile(self, key: K) -> Result | None:
        """Compare actual and desired state, and bring them closer."""

    async def close(self) -> None:
        """End what the loop started besides its workers."""


class Row(NamedTuple):
    """One row of the table: who is woken by what, and why."""

    who: str
    source: str
    why: str
    how: str


class Subscriptions:
    """All subscriptions. `sweepers` run each loop's sweeps until cancelled; `close` ends every subscription."""

    def __init__(self, states: Iterable[State], loops: Iterable[Loop[Any]], pause: float):
        """`pause` is the time between two sweeps of one loop."""
        self.rows: list[Row] = []
        self.sweepers: dict[str, _Sweeper[Any]] = {}
        self._handlers: list[tuple[Source[Any], Callable[[Any], None]]] = []
        for state in states:
            for follow in state.follows():
                self._add(state.name, follow.source, follow.apply, follow.why, "kept current")
        for loop in loops:
            for wake in loop.wakes():
                if isinstance(wake, Wake):
                    handler = _waking(loop.queue, wake)
                else:
                    sweeper = self.sweepers.setdefault(loop.name, _Sweeper(loop.queue, pause))
                    handler = sweeper.asking(wake)
                self._add(loop.name, wake.source, handler, wake.why, _how(wake))

    def close(self) -> None:
        for source, handler in self._handlers:
            source.remove_handler(handler)
        self._handlers.clear()

    def _add(self, who: str, source: Source[Any], handler: Callable[[Any], None], why: str, how: str) -> None:
        source.add_handler(handler)
        self._handlers.append((source, handler))
        self.rows.append(Row(who, source.name, why, how))


def itself(change: C) -> tuple[C]:
    """The key of a change that itself is a key or name."""
    return (change,)


def table(rows: Iterable[Row]) -> str:
    """As Markdown."""
    head = Row("who", "hears of", "because", "how soon")
    lines = [head, Row(*("---",) * len(head)), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _how(wake: Wake[Any, Any] | Sweep[Any, Any]) -> str:
    if isinstance(wake, Sweep):
        return "with a sweep"
    return f"after {wake.delay:g} s" if wake.delay else "at once"


def _waking(queue: WorkQueue[K], wake: Wake[C, K]) -> Callable[[C], None]:
    keys, priority, delay = wake.keys, wake.priority, wake.delay

    def handler(change: C) -> None:
        for key in keys(change):
            queue.add(key, priority(key) if callable(priority) else priority, delay)

    return handler


class _Sweeper(Generic[K]):
    """The sweeps of one loop, one after another."""

    def __init__(self, queue: WorkQueue[K], pause: float):
        self._queue = queue
        self._pause = pause
        self._sweeps: dict[Callable[[Collection[str]], Iterator[K | Due[K] | None]], Sweep[Any, K]] = {}
        self._changed: dict[Callable[..., Any], set[str]] = {}
        self._asked = asyncio.Event()

    def asking(self, sweep: Sweep[Any, K]) -> Callable[[Any], None]:
        self._sweeps.setdefault(sweep.keys, sweep)

        def handler(change: Any) -> None:
            for name in sweep.named(change):
                self._changed.setdefault(sweep.keys, set()).add(name)
                self._asked.set()

        return handler

    async def run(self) -> None:
        """Run until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await self._asked.wait()
            self._asked.clear()
            changed, self._changed = self._changed, {}
            until = loop.time() + _SLICE
            for _ in self._visit(changed):
                if loop.time() >= until:
                    await asyncio.sleep(0)
                    until = loop.time() + _SLICE
            await asyncio.sleep(self._pause)

    def _visit(self, changed: dict[Callable[..., Any], set[str]]) -> Iterator[None]:
        for keys, sweep in self._sweeps.items():
            names = changed.get(keys)
            for found in keys(names) if names else ():
                if isinstance(found, Due):
                    self._queue.add(found.key, found.priority)
                elif found is not None:
                    priority = sweep.priority
                    self._queue.add(found, priority(found) if callable(priority) else priority)
                yield
