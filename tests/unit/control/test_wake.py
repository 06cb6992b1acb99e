"""How loops hear of changes: sources, declarations, sweeps, and that everything is subscribed in one place."""

import ast
import asyncio
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.control.wake import Due, Follow, Loop, Signal, Subscriptions, Sweep, Wake, itself, table
from argosy.kube.queue import Result, WorkQueue

SOURCE = Path(__file__).parents[3] / "src" / "argosy"


class Listening(Loop[str]):
    name = "listening"
    workers = 1

    def __init__(self, *wakes: Wake[Any, str] | Sweep[Any, str]) -> None:
        self.queue = WorkQueue()
        self._wakes = wakes

    def wakes(self) -> tuple[Wake[Any, str] | Sweep[Any, str], ...]:
        return self._wakes

    async def reconcile(self, key: str) -> Result | None:
        return None

    async def taken(self) -> list[str]:
        return [await self.queue.get() for _ in range(len(self.queue))]


class Counting:
    """State that counts what it is told."""

    name = "counting"

    def __init__(self, source: Signal[str]) -> None:
        self.told: list[str] = []
        self._source = source

    def follows(self) -> list[Follow[str]]:
        return [Follow(self._source, self.told.append, "it counts")]


async def test_a_change_wakes_the_keys_it_concerns_in_the_order_of_their_priority() -> None:
    numbers: Signal[int] = Signal("numbers")
    first = Wake(numbers, lambda number: [f"{number}-late", f"{number}-soon"], "both", lambda key: key.endswith("late"))
    loop = Listening(first, Wake(numbers, lambda number: [] if number > 1 else ["small"], "small ones", -1))
    Subscriptions([], [loop], 0.0)
    numbers.tell(1)
    assert await loop.taken() == ["small", "1-soon", "1-late"]
    numbers.tell(2)
    assert await loop.taken() == ["2-soon", "2-late"]


async def test_a_delay_gathers_changes() -> None:
    names: Signal[str] = Signal("names")
    loop = Listening(Wake(names, itself, "it came", delay=0.01))
    Subscriptions([], [loop], 0.0)
    names.tell("a")
    names.tell("a")
    assert (len(loop.queue), loop.queue.delayed) == (0, 1)
    assert await loop.queue.get() == "a"
    assert loop.queue.delayed == 0


async def test_state_hears_of_a_change_before_a_loop_is_asked_for_keys() -> None:
    names: Signal[str] = Signal("names")
    state = Counting(names)
    loop = Listening(Wake(names, lambda name: list(state.told), "all so far"))
    Subscriptions([state], [loop], 0.0)
    names.tell("a")
    assert await loop.taken() == ["a"]


async def test_a_handler_that_fails_keeps_nobody_from_hearing(caplog: pytest.LogCaptureFixture) -> None:
    names: Signal[str] = Signal("names")

    def broken(name: str) -> list[str]:
        raise ValueError(name)

    loop = Listening(Wake(names, broken, "broken"), Wake(names, itself, "it came"))
    Subscriptions([], [loop], 0.0)
    names.tell("a")
    assert await loop.taken() == ["a"]
    assert "a handler of names failed" in caplog.text


async def test_sweeps_gather_changes_share_a_visit_and_let_others_have_the_loop() -> None:
    clusters: Signal[str] = Signal("clusters")
    members: Signal[str] = Signal("members")
    visits: list[set[str]] = []

    class Sweeping(Listening):
        def in_clusters(self, names: Collection[str]) -> Iterator[str | Due[str] | None]:
            visits.append(set(names))
            yield None
            yield "plain"
            yield Due("urgent", -1)

        def wakes(self) -> tuple[Sweep[Any, str], ...]:
            return (
                Sweep(clusters, itself, self.in_clusters, "a cluster changed", 1),
                Sweep(members, itself, self.in_clusters, "a member came", 1),
            )

    loop = Sweeping()
    subscriptions = Subscriptions([], [loop], 0.001)
    clusters.tell("m1")
    members.tell("m2")
    task = asyncio.create_task(subscriptions.sweepers["listening"].run())
    try:
        assert [await loop.queue.get() for _ in range(2)] == ["urgent", "plain"]
        assert visits == [{"m1", "m2"}]
        for key in ("plain", "urgent"):
            loop.queue.done(key)
        clusters.tell("m3")
        assert [await loop.queue.get() for _ in range(2)] == ["urgent", "plain"]
        assert visits[1:] == [{"m3"}]
    finally:
        task.cancel()


async def test_closed_subscriptions_hear_of_nothing() -> None:
    names: Signal[str] = Signal("names")
    loop = Listening(Wake(names, itself, "it came"))
    Subscriptions([], [loop], 0.0).close()
    names.tell("a")
    assert not len(loop.queue)


async def test_the_table_says_who_hears_of_what_and_why() -> None:
    names: Signal[str] = Signal("names")
    loop = Listening(Wake(names, itself, "it came", delay=2.5), Sweep(names, itself, lambda names: iter(()), "all"))
    rows = Subscriptions([Counting(names)], [loop], 0.0).rows
    assert table(rows).splitlines()[2:] == [
        "| counting | names | it counts | kept current |",
        "| listening | names | it came | after 2.5 s |",
        "| listening | names | all | with a sweep |",
    ]


def test_nothing_subscribes_but_what_is_declared() -> None:
    calls = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_handler"
    ]
    assert [call.split(":")[0] for call in calls] == ["control/wake.py"], calls


def test_no_part_of_the_controllers_assigns_another_ones_attributes() -> None:
    """What an object holds is its own matter: it gets what it needs in its constructor."""
    assigned = [
        f"{path.relative_to(SOURCE)}:{node.lineno} {ast.unparse(node)}"
        for path in (SOURCE / "control").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) != "self"
    ]
    assert assigned == []


def test_no_callback_slot_waits_to_be_filled() -> None:
    """`self.x = lambda …` is a slot that somebody else fills later, or never."""
    slots = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in (SOURCE / "control").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Lambda)
    ]
    assert slots == []
