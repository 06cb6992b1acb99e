"""Virtual time for tests: a loop on which nobody waits, with a clock, a source of chance and a network of its own.

There are no sockets, threads and processes on it: tests that are about those say `pytest.mark.real_time(why)`.
"""

import asyncio
import itertools
import os
from collections.abc import Callable
from random import Random, SystemRandom
from typing import Any

import pytest

from argosy.kube import chance, clock
from argosy.kube.transport import Event, Request
from argosy.server.embedded import EmbeddedServer
from tests.world.clocks import ProcessClock
from tests.world.loop import WorldLoop
from tests.world.network import Network

__all__ = ["VirtualLoop", "loop_factories", "virtual_loop"]

#: The same for all tests: each of them goes the same way each time. Another one is another order of everything.
_SEED = int(os.environ.get("SEED", "1"))


class VirtualLoop(WorldLoop):
    """Whoever runs on it goes by its time, from when it is made until it is closed."""

    def __init__(self) -> None:
        super().__init__(Random(_SEED))
        self.network = Network(self, Random(_SEED), _Nobody())
        self.ports = itertools.count(40001)
        #: Who shows his certificate at an address.
        self.behind: dict[str, EmbeddedServer] = {}
        clock.set_clock(ProcessClock(self))
        chance.set_source(Random(_SEED))

    def close(self) -> None:
        super().close()
        clock.set_clock(clock.SYSTEM)
        chance.set_source(SystemRandom())

    def _unhandled(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """It is logged, as on other loops."""
        self.default_exception_handler(context)


class _Nobody:
    """Who looks at all that is said on the network."""

    def sent(self, client: str, server: str, request: Request) -> None: ...

    def answered(self, client: str, server: str, request: Request, answer: object) -> None: ...

    def heard(self, client: str, server: str, request: Request, answer: object) -> None: ...

    def told(self, client: str, server: str, request: Request, events: list[Event]) -> None: ...


def virtual_loop() -> VirtualLoop | None:
    """The running loop, if it is one."""
    loop = asyncio.get_running_loop()
    return loop if isinstance(loop, VirtualLoop) else None


def loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """On which loop a test runs: for the folders whose conftest makes it pytest-asyncio's hook of this name."""
    if item.get_closest_marker("real_time") is not None:
        return {"real": asyncio.new_event_loop}
    return {"virtual": VirtualLoop}
