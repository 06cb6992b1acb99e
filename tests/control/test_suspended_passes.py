"""Questions under way: nobody waits for them, answers are used once and for the question that was asked."""

import asyncio

import numpy as np
import pytest

from argosy.control.scheduling.suspended_passes import SuspendedPasses
from argosy.fleet.snapshot import Fleet
from argosy.plan.scheduling.framework import Ask, Ranked, Remote, Reply
from argosy.plan.scheduling.unit import Unit
from argosy.plugins import cluster
from tests.harness.eventually import eventually

FLEET = Fleet.of([cluster("m1"), cluster("m2")])


def ask(phase="filter", unit="web", plugin="hook"):
    return Ask(Remote(plugin, phase), Unit(name=unit), FLEET, Ranked(np.arange(2), np.zeros(2, dtype=np.int64)))


def steps(*asks):
    """What a pass with these questions made of the answers."""
    told = []
    for each in asks:
        told += [(yield each)]
    return told


class RemotePlugins:
    """Each question waits until it is answered here."""

    def __init__(self):
        self.waiting = {}
        self.asked = []
        self.cancelled = 0

    async def __call__(self, question):
        self.asked.append((question.plugin, question.phase, question.unit.name))
        future = self.waiting[self.asked[-1]] = asyncio.get_running_loop().create_future()
        try:
            return await future
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    def give(self, reply, plugin="hook", phase="filter", unit="web"):
        self.waiting[plugin, phase, unit].set_result(reply)


@pytest.fixture
async def world():
    answers, woken = RemotePlugins(), []
    asking = SuspendedPasses(answers, woken.append)
    yield asking, answers, woken
    await asking.close()
    assert len(asking) == 0


async def test_a_pass_that_asks_nothing_is_done_at_once(world):
    asking, _, _ = world
    assert asking.run("a", steps()) == ([], False)


async def test_a_pass_is_given_up_and_made_again_with_every_answer(world):
    asking, answers, woken = world
    yes, ranked = Reply(passed=np.ones(2, dtype=np.bool_)), Reply(rows=np.array([1]))
    assert asking.run("a", steps(ask(), ask("select"))) is None
    await eventually(lambda: answers.asked == [("hook", "filter", "web")])
    assert asking.run("a", steps(ask(), ask("select"))) is None, "asked already, and not answered"
    answers.give(yes)
    await eventually(lambda: woken == ["a"])
    assert asking.run("a", steps(ask(), ask("select"))) is None
    await eventually(lambda: answers.asked[1:] == [("hook", "select", "web")])
    answers.give(ranked, phase="select")
    await eventually(lambda: woken == ["a", "a"])
    done = asking.run("a", steps(ask(), ask("select")))
    assert done.result == [yes, ranked]
    assert not done.unanswered
    assert len(asking) == 0
    assert asking.run("a", steps(ask())) is None, "an answer counts for the pass it was used in"


async def test_another_question_takes_the_place_of_one_nobody_has_any_more(world):
    asking, answers, woken = world
    asking.run("a", steps(ask()))
    await eventually(lambda: answers.asked)
    asking.run("a", steps(ask(unit="changed")))
    await eventually(lambda: answers.cancelled == 1)
    answers.give(Reply(), unit="changed")
    await eventually(lambda: woken)
    assert asking.run("a", steps(ask(unit="changed"))).result == [Reply()]


@pytest.mark.parametrize("reply", [Reply(error="no"), Reply(passed=np.zeros(2, dtype=np.bool_), errors={0: "no"})])
async def test_answers_that_lack_something_are_told_apart(world, reply):
    asking, answers, woken = world
    asking.run("a", steps(ask()))
    await eventually(lambda: answers.asked)
    answers.give(reply)
    await eventually(lambda: woken)
    assert asking.run("a", steps(ask())).unanswered


async def test_what_nobody_wants_to_know_any_more_is_given_up(world):
    asking, answers, woken = world
    asking.run("a", steps(ask()))
    asking.run("b", steps(ask()))
    await eventually(lambda: len(answers.asked) == 2)
    asking.forget("a")
    await eventually(lambda: answers.cancelled == 1)
    assert len(asking) == 1
    assert woken == []


async def test_another_plugin_of_the_name_is_asked_anew(world):
    asking, answers, _ = world
    asking.run("a", steps(ask()))
    asking.run("b", steps(ask(plugin="other")))
    await eventually(lambda: len(answers.asked) == 2)
    assert asking.plugin_changed("hook") == ["a"]
    await eventually(lambda: answers.cancelled == 1)
    asking.run("a", steps(ask()))
    await eventually(lambda: len(answers.asked) == 3)


async def test_a_defect_in_asking_is_an_answer_too(caplog):
    woken = []

    async def broken(question):
        raise KeyError("oops")

    asking = SuspendedPasses(broken, woken.append)
    asking.run("a", steps(ask()))
    await eventually(lambda: woken)
    done = asking.run("a", steps(ask()))
    assert done.result[0].error == "webhookPlugin(hook): asking it failed: KeyError"
    assert "Traceback" in caplog.text
