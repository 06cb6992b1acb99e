"""Plugins of a Python package in a federation: whatever one does, it holds up the objects that ask it, and nobody else."""

import asyncio
import time

import msgspec
import pytest

from argosy.api import resources
from argosy.cli.client.plugin_session import PluginSession
from argosy.cli.client.snapshot import read_snapshot
from argosy.control.scheduling.plugin_workers import PluginWorkers
from argosy.kube.client import Patch
from argosy.plan.explain.snapshot import ObjectKey
from argosy.plan.explain.whatif import WhatIf
from tests.control.plugins.asking import TIMINGS, held_for, placed_in, profile
from tests.harness.eventually import PATIENCE, eventually
from tests.harness.package import Package

pytestmark = pytest.mark.real_time("the workers are processes")

#: What a plugin that hangs is given, and what the API server may take at most meanwhile; without one it takes a few milliseconds.
HANGING = 4.0
LONGEST = 3.5


class Watched:
    """Asks the API server over and over, and notes how long it took to answer at worst."""

    def __init__(self, fed):
        self._fed = fed
        self.longest = 0.0

    async def __aenter__(self):
        self._task = asyncio.create_task(self._ask())
        return self

    async def __aexit__(self, *_):
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _ask(self):
        while True:
            started = time.monotonic()
            await self._fed.client.request("GET", "/readyz")
            await asyncio.sleep(0.01)
            self.longest = max(self.longest, time.monotonic() - started)


@pytest.mark.parametrize(
    ("timings", "mode", "says"),
    [
        (HANGING, "sleep", "plugin 'Theirs' gave no answer within 4 s"),
        (HANGING, "spin", "plugin 'Theirs' gave no answer within 4 s"),
        (PATIENCE, "exit", "plugin 'Theirs' ended its process (exit code 3)"),
        (PATIENCE, "raise", "plugin 'Theirs' failed: KeyError: 'zone'"),
        (PATIENCE, "undecided", "plugin 'Theirs': nobody knows"),
        (PATIENCE, "nonsense", "plugin 'Theirs' failed: it must return one bool a cluster"),
    ],
    indirect=["timings"],
)
async def test_a_bad_plugin_holds_up_its_own_objects_alone_until_it_is_mended(fed, package, workers, mode, says):
    await fed.deploy("before", 1, "asking")
    await placed_in(fed, "before", ["m1"])

    package.behave(mode)
    async with Watched(fed) as watched:
        await fed.deploy("asking", 1, "asking")
        # What is placed is decided anew, and stays.
        unlike = {"spec": {"plugins": {"score": {"disabled": [{"name": "*"}]}}}}
        await fed.client.patch(resources.SCHEDULING_PROFILES, "profile", unlike, kind=Patch.MERGE)
        await held_for(fed, "asking", says)
        await held_for(fed, "before", says)
        await fed.deploy("free", 1, "free")
        await placed_in(fed, "free", ["m1", "m2"])
        assert await fed.copies("asking") == {}
        assert sorted(await fed.copies("before")) == ["m1"]
    if mode in ("sleep", "spin"):
        assert watched.longest < LONGEST
    if mode in ("sleep", "spin", "exit"):
        assert "Theirs" in workers.silent
        assert fed.manager.notes() == [f"plugin 'Theirs' {workers.silent['Theirs']}"]
    assert fed.manager.problems() == []

    package.behave("")
    await placed_in(fed, "asking", ["m1"])
    await eventually(lambda: not fed.manager.notes())
    seconds = fed.manager.metrics.plugin.labels("Theirs", "failed")
    assert seconds._sum.get() > 0


async def test_arguments_are_the_plugins_matter_and_wrong_ones_are_told(fed):
    await profile(fed, "named", [{"name": "Named", "args": {"cluster": "m2"}}], filter={"enabled": [{"name": "Named"}]})
    await fed.policy("named", schedulingMode="Duplicate", schedulingProfile="named")
    await fed.deploy("named", 1, "named")
    await placed_in(fed, "named", ["m2"])

    await profile(fed, "wrong", [{"name": "Named", "args": {"zone": "x"}}], filter={"enabled": [{"name": "Named"}]})
    await fed.policy("wrong", schedulingMode="Duplicate", schedulingProfile="wrong")
    await fed.deploy("wrong", 1, "wrong")
    await held_for(fed, "wrong", "pluginConfig of 'Named': args.cluster is needed")

    async def told():
        events = await fed.events("SchedulingProfileInvalid")
        return [event for event in events if "args.cluster is needed" in event["message"]]

    await eventually(told)


async def test_a_plan_does_not_wait_for_a_plugin_that_hangs(fed, package):
    await fed.deploy("web", 1, "asking")
    await placed_in(fed, "web", ["m1"])
    package.behave("sleep")
    today = await read_snapshot(fed.client, lambda _: None)
    key = ObjectKey("deployments.apps", "default", "web")
    elsewhere = PluginSession(today, TIMINGS)
    try:
        await elsewhere.open()
        known = elsewhere.known_to(today)
        question = WhatIf(known, known.with_lost("m1"))
        await elsewhere.run(question.steps(key))
        assert elsewhere.notes == (
            "the plugin Theirs could not be asked from here, so that the controllers may decide otherwise: "
            "plugin 'Theirs' gave no answer within 2 s",
        )
    finally:
        await elsewhere.close()


@pytest.mark.parametrize(
    ("imported", "seconds", "says"),
    [
        ("sleep", 3.0, "it took longer than 3 s to be loaded"),
        ("exit", PATIENCE, "it ended its process (exit code 7)"),
        ("memory", PATIENCE, "OSError: [Errno 12] Cannot allocate memory"),
    ],
)
async def test_a_package_that_cannot_be_loaded_costs_its_own_plugins(tmp_path, monkeypatch, imported, seconds, says):
    monkeypatch.syspath_prepend(Package(tmp_path / "package", imported).folder)
    workers = PluginWorkers(msgspec.structs.replace(TIMINGS, plugin_load=seconds))
    await workers.load()
    try:
        assert workers.registry.unusable == {"theirs": f"argosy-theirs 1.0 cannot be loaded: {says}"}
    finally:
        await workers.close()
