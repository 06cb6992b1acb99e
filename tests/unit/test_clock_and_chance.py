"""Time and chance are asked of `kube.clock` and `kube.chance` alone: whoever asks the system is not in the world's hands."""

import ast
import random
from collections.abc import Iterator
from contextvars import Context
from pathlib import Path

import pytest

from argosy.kube import chance, clock, names, timestamps

SOURCE = Path(clock.__file__).parents[1]
ROOMS = ("kube", "server", "control", "sim", "fleet", "plan", "api")
#: With the reason.
EXCEPT = {
    "kube/clock.py": "asks the system for everybody",
    "kube/chance.py": "asks the system for everybody",
    "kube/watchdog.py": "a thread that watches how long the real loop stands still",
}
MODULES = {"time", "random", "secrets", "uuid"}
CALLS = {"datetime.now", "datetime.utcnow", "datetime.today", "date.today", "os.urandom"}


def asks_of_the_system(source: str) -> Iterator[str]:
    """What of a module's source takes time or chance from the system."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (f"import {each.name}" for each in node.names if each.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module in MODULES:
            yield from (f"from {node.module} import {each.name}" for each in node.names)
        elif isinstance(node, ast.Attribute):
            tail = ".".join(ast.unparse(node).split(".")[-2:])
            if tail in CALLS:
                yield tail


@pytest.mark.parametrize(
    "source",
    ["import time", "from random import choice", "import datetime\ndatetime.datetime.now()", "os.urandom(4)"],
)
def test_who_asks_the_system_is_found(source: str) -> None:
    assert list(asks_of_the_system(source))


def test_nobody_asks_the_system() -> None:
    found = {
        str(path.relative_to(SOURCE)): asked
        for room in ROOMS
        for path in (SOURCE / room).rglob("*.py")
        if (asked := list(asks_of_the_system(path.read_text())))
    }
    assert found.keys() == EXCEPT.keys(), found


class Stopped(clock.Clock):
    def monotonic(self) -> float:
        return 5.0

    def elapsed(self) -> float:
        return 6.0

    def time(self) -> float:
        return 86_400.0


def test_a_process_goes_by_its_clock() -> None:
    context = Context()
    context.run(clock.set_clock, Stopped())
    assert [context.run(asked) for asked in (clock.monotonic, clock.elapsed, clock.time)] == [5.0, 6.0, 86_400.0]
    assert context.copy().run(timestamps.now) == "1970-01-02T00:00:00Z"
    assert clock.time() > 86_400.0


def test_a_process_draws_from_its_source() -> None:
    def draw() -> list[object]:
        return [chance.random(), chance.uid(), names.generate("web-"), chance.token(4), chance.sample([1, 2, 3])]

    def drawn() -> list[object]:
        context = Context()
        context.run(chance.set_source, random.Random(1))
        return context.run(draw)

    assert drawn() == drawn()
    assert draw() != draw()
    assert chance.uid()[14] == "4"
