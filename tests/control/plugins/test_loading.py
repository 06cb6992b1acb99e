"""While a package is being loaded, only the objects that ask its plugins wait."""

from importlib.metadata import EntryPoint

import msgspec
import pytest

from argosy.control.scheduling.plugin_workers import PluginWorkers
from argosy.plan.pipeline.held import HeldReason
from argosy.plan.scheduling.framework import (
    Profile,
    Remote,
)
from argosy.plan.scheduling.package_plugins import question_of
from argosy.plan.scheduling.schedule import decide
from tests.control.plugins.asking import FLEET, TIMINGS, WEB, gone, held, held_for, placed_in, profile
from tests.harness.eventually import PATIENCE, eventually
from tests.harness.federation import Federation

pytestmark = pytest.mark.real_time("the workers are processes")


@pytest.fixture
async def slow(package):
    """A package that is not loaded before its mode is another one, and a federation that has begun without it."""
    package.behave("wait")
    timings = msgspec.structs.replace(TIMINGS, plugin_answer=0.5)
    workers = PluginWorkers(timings)
    async with workers.running(), Federation(2, timings=timings, workers=workers) as fed:
        await profile(fed, filter={"enabled": [{"name": "Theirs"}]})
        await fed.policy("asking", schedulingMode="Duplicate", schedulingProfile="profile")
        await fed.policy("free", schedulingMode="Duplicate")
        yield fed, package, workers


async def test_a_package_that_hangs_in_its_import_holds_up_its_own_objects_alone(slow):
    fed, package, workers = slow
    await fed.deploy("asking", 1, "asking")
    await fed.deploy("free", 1, "free")
    await placed_in(fed, "free", ["m1", "m2"])
    await held_for(fed, "asking", "plugin 'Theirs' is not there yet: argosy-theirs 1.0 is being loaded")
    assert await fed.copies("asking") == {}
    assert workers.loading
    assert not await fed.events("SchedulingProfileInvalid"), "nobody knows yet"

    package.behave("")
    await placed_in(fed, "asking", ["m1"])
    assert await held(fed, "asking") is None
    assert not await fed.events("SchedulingProfileInvalid")


async def test_a_profile_is_judged_once_its_package_is_loaded(slow):
    fed, package, _ = slow
    await profile(fed, "wrong", score={"enabled": [{"name": "Theirs"}]})
    await profile(fed, "unknown", score={"enabled": [{"name": "Nobodys"}]})
    await fed.policy("wrong", schedulingMode="Duplicate", schedulingProfile="wrong")
    await fed.deploy("wrong", 1, "wrong")
    await held_for(fed, "wrong", "is being loaded")
    package.behave("")

    async def told():
        events = await fed.events("SchedulingProfileInvalid")
        return {event["involvedObject"]["name"]: event["message"] for event in events}.items() >= {
            ("wrong", "'Theirs' is not a score plugin (it is one for: filter)"),
            ("unknown", "there is no score plugin 'Nobodys'"),
        }

    await eventually(told)

    async def says_so():
        found = await held(fed, "wrong")
        return found.reason == HeldReason.PROFILE_INVALID and "is not a score plugin" in found.message

    await eventually(says_so)


async def test_what_is_placed_is_not_touched_while_its_package_is_loaded_again(fed, package, timings):
    """Neither held nor decided anew only because the control plane has started, though another plugin would be a reason to."""
    when = {"rescheduleWhen": {"policyContentChanged": True}}
    await profile(fed, "scored", score={"enabled": [{"name": "ByName"}]})
    await fed.policy("moving", schedulingMode="Duplicate", schedulingProfile="scored", reschedulePolicy=when)
    await fed.deploy("web", 1, "moving")
    await placed_in(fed, "web", ["m1", "m2"])
    before = await record(fed, "web")
    await fed.stop_controllers()
    package.behave("wait")
    fed.workers = PluginWorkers(msgspec.structs.replace(timings, plugin_answer=0.3))
    async with fed.workers.running():
        await fed.start_controllers()
        await fed.deploy("asking", 1, "asking")
        await held_for(fed, "asking", "is being loaded")
        assert await record(fed, "web") == before
        package.behave("")
        await placed_in(fed, "asking", ["m1"])
        assert await record(fed, "web") == before
        await fed.stop_controllers()


async def record(fed, name):
    metadata = (await fed.federated(f"{name}-deployments.apps"))["metadata"]
    return metadata["generation"], dict(sorted(metadata["annotations"].items()))


async def test_one_package_does_not_wait_for_another(package):
    hanging = [EntryPoint("hanging", "argosy_hanging:PLUGINS", "argosy.plugins")]
    (package.folder / "argosy_hanging.py").write_text("import time\ntime.sleep(3600)\n")
    good = [EntryPoint("theirs", "argosy_theirs:PLUGINS", "argosy.plugins")]
    workers = PluginWorkers(msgspec.structs.replace(TIMINGS, plugin_answer=PATIENCE), [*hanging, *good])
    async with workers.running():
        assert not (await workers.answer(question_of(ask_theirs()))).error
        assert workers.loading
        assert workers.awaited_from("Unknown") == "argosy_hanging:PLUGINS"
        processes = [worker._process.pid for worker in workers._workers]
    for pid in processes:
        await gone(pid)


def ask_theirs():
    return next(decide(WEB, FLEET, Profile(filters=(Remote("Theirs", "filter", packaged=True),))))


async def test_who_is_closed_while_a_package_is_loaded_leaves_nothing_behind(slow):
    _, _, workers = slow
    await eventually(lambda: workers._workers[0]._process is not None)
    pid = workers._workers[0]._process.pid
    await workers.close()
    await gone(pid)
