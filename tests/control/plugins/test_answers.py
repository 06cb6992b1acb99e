"""However much a plugin says, little of it is told; and what is decided is what the same functions decide in this process."""

import asyncio
import time

import numpy as np
import pytest

from argosy.control.timings import Timings
from argosy.plan.plugins import DEFAULT_PROFILE
from argosy.plan.scheduling.framework import (
    Always,
    Ask,
    Division,
    Filter,
    Profile,
    Ranked,
    Remote,
    Replicas,
    Score,
    Select,
)
from argosy.plan.scheduling.package_plugins import question_of
from argosy.plan.scheduling.schedule import decide, schedule
from argosy.plugins import wire
from tests.control.plugins.asking import DIVIDED, FLEET, WEB, held, held_for, theirs

pytestmark = pytest.mark.real_time("the workers are processes")


async def test_an_error_of_any_length_is_told_in_short(fed, package):
    package.behave("wordy")
    await fed.deploy("asking", 1, "asking")
    await held_for(fed, "asking", "plugin 'Theirs': xxx")
    assert len((await held(fed, "asking")).message) < 1200


async def loop_held_by(work):
    """The result, and the longest turn of the loop meanwhile."""
    task, longest = asyncio.ensure_future(work), 0.0
    while not task.done():
        started = time.perf_counter()
        await asyncio.sleep(0.001)
        longest = max(longest, time.perf_counter() - started)
    return task.result(), longest


async def test_of_a_million_steps_a_few_are_told(workers, package):
    package.behave("wordy")
    rows = np.arange(len(FLEET))
    ask = Ask(workers.registry.replicas["AllInOne"], DIVIDED, FLEET, Ranked(rows, rows))
    reply, longest = await loop_held_by(workers.answer(question_of(ask)))
    steps = reply.division.steps
    assert len(steps) == 32
    assert {len(step) for step in steps[:-1]} == {300}
    assert steps[-1] == "… and 999969 more"
    assert longest < 0.2


async def test_an_answer_longer_than_any_can_be_is_not_read(workers, package):
    package.behave("shout")
    reply, longest = await loop_held_by(workers.answer(theirs(workers)))
    said = "sent an unreadable answer: 60000000 bytes, more than 65856"
    assert reply.error == f"plugin 'Theirs' {said}"
    assert longest < 0.2
    package.behave("")
    assert not (await workers.answer(theirs(workers))).error


def test_what_comes_from_a_process_is_cut_again():
    rows = np.arange(2)
    assert len(wire.reply_of(wire.Told(1, error="x" * 5000), "filter", rows).error) == 1000
    zeros = np.zeros(2, dtype=np.int64).tobytes()
    divided = wire.reply_of(wire.Told(1, scores=zeros, overflow=zeros, texts=["x" * 500] * 500), "replicas", rows)
    assert (len(divided.division.steps), len(divided.division.steps[0])) == (32, 300)
    refused = wire.reply_of(wire.Told(1, passed=bytes(2), codes=zeros, texts=["x" * 500]), "filter", rows)
    assert [len(reason) for reason in refused.reasons.values()] == [300, 300]
    beyond = np.full(2, 40, dtype=np.int64).tobytes()
    with pytest.raises(wire.WireError):
        wire.reply_of(wire.Told(1, passed=bytes(2), codes=beyond, texts=["x"] * 50), "filter", rows)
    unusable = wire.described(wire.framed(wire.Described([], {"a": "x" * 5000}))[wire.HEAD.size :]).unusable
    assert len(unusable["a"]) == 1000


def test_the_longest_answer_there_is_fits():
    count = 1000
    texts, error = ["\U0001f4a5" * 300] * 32, "\U0001f4a5" * 1000
    longest = wire.Told(2**60, error, bytes(count), bytes(8 * count), texts, bytes(8 * count), bytes(8 * count), b"")
    assert len(wire.framed(longest)) < wire.longest_answer(count)


def first(unit, fleet):
    return np.arange(len(fleet)) < 1


def by_name(unit, fleet):
    return np.arange(len(fleet), dtype=np.int64)


def backwards(unit, fleet, ranked):
    return Ranked(ranked.rows[::-1], ranked.scores[::-1] + 1)


def all_in_one(unit, fleet, rows):
    replicas = np.zeros(len(rows), dtype=np.int64)
    replicas[-1:] = unit.desired_replicas
    return Division(replicas, np.zeros(len(rows), dtype=np.int64), ("all in the last",))


HERE = {
    "Theirs": Filter("Theirs", first, Always("cluster(s) come after m0")),
    "ByName": Score("ByName", by_name, weight=3),
    "Reversed": Select("Reversed", backwards),
    "AllInOne": Replicas("AllInOne", all_in_one),
}


def built(plugins):
    strategies = dict.fromkeys(DEFAULT_PROFILE.replicas, plugins["AllInOne"])
    return (
        Profile(filters=(*DEFAULT_PROFILE.filters, plugins["Theirs"]), replicas=DEFAULT_PROFILE.replicas),
        Profile(scores=(plugins["ByName"]._replace(weight=3),), selects=(plugins["Reversed"],), replicas=strategies),
    )


async def asked(workers, steps):
    try:
        ask = next(steps)
        while True:
            ask = steps.send(await workers.answer(question_of(ask)))
    except StopIteration as done:
        return done.value


@pytest.mark.parametrize("unit", [WEB, DIVIDED], ids=["duplicated", "divided"])
@pytest.mark.parametrize("which", [0, 1], ids=["filter", "others"])
async def test_the_same_is_decided_as_in_this_process(workers, unit, which):
    registry = workers.registry
    remotes = {
        "Theirs": registry.filters["Theirs"],
        "ByName": registry.scores["ByName"],
        "Reversed": registry.selects["Reversed"],
        "AllInOne": registry.replicas["AllInOne"],
    }
    assert all(isinstance(remote, Remote) and remote.packaged for remote in remotes.values())
    # Less is available than members report, and a cluster has changed since the question before.
    fleet = FLEET.with_stale("m1", True)
    for state in (FLEET, fleet):
        there = await asked(workers, decide(unit, state, built(remotes)[which]))
        here = schedule(unit, state, built(HERE)[which])
        assert (there.placements, there.rejected, there.scores) == (here.placements, here.rejected, here.scores)
        assert there.selected == here.selected
        steps = there.division.steps if there.division is not None else ()
        assert steps == (here.division.steps if here.division is not None else ())


def test_the_limits_are_there_by_default():
    assert (Timings().plugin_answer, Timings().plugin_load) == (5.0, 30.0)
