"""Duel: a sequence run on two servers in step. The first difference ends it, since from there on they hold different things.

A record is what is needed to see a difference again: the steps left after all were dropped that are not needed for it.
"""

import asyncio
import secrets
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from tests.real.sequences import rules
from tests.real.sequences.side import PATIENCE, Side
from tests.real.sequences.steps import Step
from tests.real.sequences.trace import Trace
from tests.server import matching
from tests.server.replay import Server, Watch

__all__ = ["Difference", "duel", "shrunk"]

_ENDS = "k8s.io/initial-events-end"
#: How long both are given to send an event that the other did not.
SETTLE = 0.15


class Difference(msgspec.Struct, frozen=True):
    steps: list[Step]
    lines: list[str]
    embedded: Any
    stock: Any

    def __str__(self) -> str:
        steps = [msgspec.json.encode(step).decode() for step in self.steps]
        lines = ["differs (embedded instead of stock):", *(f"  {line}" for line in self.lines)]
        lines += ["steps:", *(f"  {step}" for step in steps)]
        lines += [f"embedded: {_short(self.embedded)}", f"stock:    {_short(self.stock)}"]
        return "\n".join(lines)


def _short(value: Any) -> str:
    return msgspec.json.encode(value).decode()[:1500]


async def duel(embedded: Server, stock: Server, steps: Sequence[Step]) -> Difference | None:
    identity = secrets.token_hex(4)
    sides = Side(embedded, identity), Side(stock, identity)
    try:
        await asyncio.gather(*(side.open() for side in sides))
        return await _run(sides, steps)
    finally:
        await asyncio.gather(*(side.close() for side in sides))


async def _run(sides: tuple[Side, Side], steps: Sequence[Step]) -> Difference | None:
    traces = Trace(), Trace()
    for number, step in enumerate(steps, 1):
        answers = await asyncio.gather(*(side.run(step) for side in sides))
        ours, theirs = (
            trace.answer(answer) if answer is not None else {"watch": "open"}
            for trace, answer in zip(traces, answers, strict=True)
        )
        lines = rules.told(step, matching.differences(*rules.applied(step, theirs, ours)))
        if lines:
            return Difference(list(steps[:number]), lines, ours, theirs)
    for pair in zip(*(side.watches for side in sides), strict=True):
        ours, theirs = await _events(*pair, traces)
        lines = matching.differences(theirs, ours)
        if lines:
            return Difference(list(steps), lines, ours, theirs)
    return None


async def _events(embedded: Watch, stock: Watch, traces: tuple[Trace, Trace]) -> tuple[list[Any], list[Any]]:
    """All events so far. When the same number came from both, and no more for a moment, that is all."""
    deadline = time.monotonic() + PATIENCE
    seen: tuple[list[Any], list[Any]] = [], []
    while True:
        came = False
        for watch, events, trace in zip((embedded, stock), seen, traces, strict=True):
            for event in await _ready(watch):
                came = True
                events.append(trace.event(event))
        if came:
            continue
        if len(seen[0]) == len(seen[1]) or time.monotonic() > deadline:
            return seen


async def _ready(watch: Watch) -> list[dict[str, Any]]:
    events = []
    try:
        while (event := await watch.next(time.monotonic() + SETTLE)) is not None:
            if event["type"] != "BOOKMARK" or _ENDS in event["object"]["metadata"].get("annotations", {}):
                events.append(event)
    except TimeoutError:
        pass
    return events


async def shrunk(embedded: Server, stock: Server, difference: Difference) -> Difference:
    """The same difference, or another, with fewer steps: halves are dropped first, then single steps."""
    size = max(1, len(difference.steps) // 2)
    while size:
        start = 0
        while start < len(difference.steps):
            fewer = difference.steps[:start] + difference.steps[start + size :]
            found = await duel(embedded, stock, fewer) if fewer else None
            if found is None:
                start += size
            else:
                difference = found
        size //= 2
    return difference
