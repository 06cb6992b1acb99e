"""The event loop of a command: uvloop where there is one, and signals that mean "stop"."""

import asyncio
import contextlib
import gc
import resource
import signal
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

from argosy.kube import memory

__all__ = ["prepare", "run", "stop_on_signals"]

T = TypeVar("T")
#: Seconds after which a thread that computes lets the loop's go on; the usual 5 ms are paid at each turn of the loop.
_SWITCH = 0.001


def run(work: Coroutine[Any, Any, T]) -> T:
    """For processes that serve; short commands use asyncio's own loop and save the import."""
    prepare()
    try:
        import uvloop
    except ImportError:
        return asyncio.run(_tended(work))
    result: T = uvloop.run(_tended(work))
    return result


def prepare() -> None:
    """What a process that serves wants of the interpreter and the system."""
    memory.keep_together()
    _allow_many_connections()
    _collect_less_often()
    sys.setswitchinterval(_SWITCH)


async def _tended(work: Coroutine[Any, Any, T]) -> T:
    tending = asyncio.create_task(memory.tend(), name="give memory back")
    try:
        return await work
    finally:
        tending.cancel()


def _allow_many_connections() -> None:
    """Each is an open file, and the usual limit of 1,024 is meant for programs that use select(2)."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _collect_less_often() -> None:
    """A server holds many objects for long and makes few cycles; looking through all of them again and again is wasted.

    And everybody waits meanwhile: what is new is looked through in small portions, and the rest hardly ever.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 5, 1_000)


def stop_on_signals() -> asyncio.Event:
    """Set by SIGINT or SIGTERM instead of an exception somewhere in the middle."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    return stop
