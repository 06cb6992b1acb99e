"""The event loop of a command: uvloop where there is one, and signals that mean "stop"."""

import asyncio
import contextlib
import gc
import resource
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["run", "stop_on_signals"]

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """For processes that serve; short commands use asyncio's own loop and save the import."""
    _allow_many_connections()
    _collect_less_often()
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    result: T = uvloop.run(work)
    return result


def _allow_many_connections() -> None:
    """Each is an open file, and the usual limit of 1,024 is meant for programs that use select(2)."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _collect_less_often() -> None:
    """A server holds many objects for long and makes few cycles; looking through all of them again and again is wasted."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 50)


def stop_on_signals() -> asyncio.Event:
    """Set by SIGINT or SIGTERM instead of an exception somewhere in the middle."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    return stop
