"""Processes of a benchmark: whatever it starts ends with it, however it ends.

Children are `argosy.testing`'s components, which the kernel kills with their parent. `run` is how a benchmark's `main` is run: a
SIGTERM unwinds it like Ctrl-C, so that temporary folders go as well.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import uvloop

from argosy.testing import launch
from argosy.testing.component import Component

_POLL = 0.02


def run(main: Coroutine[Any, Any, None]) -> None:
    try:
        uvloop.run(_stoppable(main))
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.exit("stopped")


async def _stoppable(main: Coroutine[Any, Any, None]) -> None:
    task = asyncio.current_task()
    assert task is not None
    # SIGINT too: in the background of a script it is ignored unless somebody asks for it.
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    await main


def argosy(name: str, folder: Path, *arguments: str) -> Component:
    """`argosy` with these arguments, started; its output is in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    component = Component(name, [sys.executable, "-m", "argosy.cli", *arguments], folder)
    component.start()
    return component


async def until(component: Component, ready: Callable[[], bool], patience: float = 60.0) -> None:
    """Wait for what the component is about to do; SystemExit with the end of its log where it does not."""
    try:
        async with asyncio.timeout(patience):
            while not ready():
                if component.exit_code is not None:
                    raise SystemExit(f"{component.name} ended; its log ends with:\n{component.tail()}")
                await asyncio.sleep(_POLL)
    except TimeoutError:
        raise SystemExit(f"{component.name} was not ready within {patience:g} s:\n{component.tail()}") from None


async def child(module: str, *arguments: str, environ: dict[str, str] | None = None) -> asyncio.subprocess.Process:
    """One of our own modules as a process to talk to on its standard streams."""
    end, ready = os.pipe()
    try:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", launch.__file__, str(os.getpid()), str(ready)),
            *(sys.executable, "-m", module, *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=[ready],
            env=environ,
        )
    finally:
        os.close(end)
        os.close(ready)


def pid_of(component: Component) -> int:
    if component.pid is None:
        raise SystemExit(f"{component.name} ended; its log ends with:\n{component.tail()}")
    return component.pid
