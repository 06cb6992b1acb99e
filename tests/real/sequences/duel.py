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
from tests.real.sequences.families import View, released, stuck
from tests.real.sequences.side import PATIENCE, Side
from tests.real.sequences.steps import Step
from tests.real.sequences.trace import Trace
from tests.server import matching
from tests.server.replay import Server, Watch

__all__ = ["Difference", "duel", "shrunk"]

_ENDS = "k8s.io/initial-events-end"
#: How long both are given to send an event that the other did not.
SETTLE = 0.15
#: How long a family has to look alike, and how long it may take to.
QUIET = 0.4
GARBAGE_PATIENCE = 15.0


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
        if step.family:
            ours, theirs = await _settled(sides)
            if circle := stuck(theirs) - stuck(ours):
                # A circle that only the embedded server breaks (docs/server.md): from here on they hold different things.
                if still := circle & ours.keys() & _unheld(ours):
                    return Difference(list(steps[:number]), [f"{still} still wait"], _shown(ours), _shown(theirs))
                return None
            differing = {path for path in ours | theirs if _named(ours).get(path) != _named(theirs).get(path)}
            if differing and differing <= released(theirs) | released(ours):
                return None
            if lines := matching.differences(_named(theirs), _named(ours)):
                return Difference(list(steps[:number]), lines, _shown(ours), _shown(theirs))
    for pair in zip(*(side.watches for side in sides), strict=True):
        ours, theirs = await _events(*pair, traces)
        lines = matching.differences(theirs, ours)
        if lines:
            return Difference(list(steps), lines, ours, theirs)
    return None


async def _settled(sides: tuple[Side, Side]) -> tuple[dict[str, View], dict[str, View]]:
    """Both families, as soon as they look alike and nothing moves any more; or else as they are in the end."""
    deadline = time.monotonic() + GARBAGE_PATIENCE
    quiet_since, last = time.monotonic(), None
    while True:
        ours, theirs = await asyncio.gather(*(side.family() for side in sides))
        now = time.monotonic()
        if (ours, theirs) != last:
            quiet_since, last = now, (ours, theirs)
        quiet = now - quiet_since
        alike = _named(ours) == _named(theirs) or (stuck(theirs) and quiet > 5 * QUIET)
        if (alike and quiet > QUIET) or now > deadline:
            return ours, theirs
        await asyncio.sleep(0.05)


def _named(views: dict[str, View]) -> dict[str, Any]:
    """With paths instead of uids, which are each server's own."""
    paths = {view.uid: path for path, view in views.items()}
    return {
        path: {
            "deleting": view.deleting,
            "finalizers": list(view.finalizers),
            "owners": sorted([paths.get(uid, "gone"), blocks] for uid, blocks in view.owners),
        }
        for path, view in views.items()
    }


def _shown(views: dict[str, View]) -> dict[str, Any]:
    return {path: msgspec.to_builtins(view) for path, view in views.items()}


def _unheld(views: dict[str, View]) -> set[str]:
    return {path for path, view in views.items() if set(view.finalizers) <= {"foregroundDeletion"}}


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
