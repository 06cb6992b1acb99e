"""Runs in processes of their own: what a run leaves behind ends with its process. Everything made before is shared with it."""

import os
import select
import signal
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from tests.world.run import Outcome, run
from tests.world.steps import Script
from tests.world.world import prepare

__all__ = ["isolated", "together"]

#: Seconds of the processor for a run: one that takes longer goes round in circles.
LONGEST = 240


class _Child(NamedTuple):
    pid: int
    #: Where it tells the outcome.
    told: int


def isolated(seed: int, script: Script, trace: Path | None = None) -> Outcome:
    """The outcome of a run. One that dies has failed."""
    return _outcome(_start(seed, script, trace))


def together(scripts: Iterator[tuple[int, Script]], jobs: int) -> Iterator[tuple[int, Outcome]]:
    """The outcomes of many seeds, as they come, so many at a time."""
    under_way: dict[int, tuple[int, _Child]] = {}
    while True:
        while len(under_way) < jobs and (one := next(scripts, None)) is not None:
            seed, script = one
            child = _start(seed, script)
            under_way[child.told] = (seed, child)
        if not under_way:
            return
        ready, _, _ = select.select(list(under_way), [], [])
        for told in ready:
            seed, child = under_way.pop(told)
            yield seed, _outcome(child)


def _start(seed: int, script: Script, trace: Path | None = None) -> _Child:
    prepare()
    reading, writing = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if not child:
        _work(seed, script, trace, writing)
    os.close(writing)
    return _Child(child, reading)


def _outcome(child: _Child) -> Outcome:
    with os.fdopen(child.told, "rb") as told:
        body = told.read()
    _, status = os.waitpid(child.pid, 0)
    if not body:
        return Outcome([f"the run ended with status {status}"], "", 0, 0.0, 0.0)
    return msgspec.json.decode(body, type=Outcome)


class TooLong(KeyboardInterrupt):
    """An event loop takes anything else for a callback's own failure, and goes on."""


def _too_long(*_: object) -> None:
    raise TooLong(f"it did not end within {LONGEST} s")


def _work(seed: int, script: Script, trace: Path | None, writing: int) -> None:
    """In the child. It ends here, with all that still runs in it."""
    try:
        signal.signal(signal.SIGPROF, _too_long)
        signal.setitimer(signal.ITIMER_PROF, LONGEST)
        output = trace.open("w") if trace is not None else None
        try:
            outcome = run(seed, script, output)
        except BaseException:
            outcome = Outcome([traceback.format_exc()], "", 0, 0.0, 0.0)
        if output is not None:
            output.close()
        with os.fdopen(writing, "wb") as told:
            told.write(msgspec.json.encode(outcome))
    finally:
        os._exit(0)
