"""Plugins of a Python package in a federation: whatever one does, it holds up the objects that ask it, and nobody else."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from importlib.metadata import EntryPoint
from pathlib import Path

import msgspec
import numpy as np
import pytest

from argosy.api import keys, resources
from argosy.cli.client.plugin_session import PluginSession
from argosy.cli.client.snapshot import read_snapshot
from argosy.control.scheduling.plugin_workers import PluginWorkers
from argosy.control.timings import Timings
from argosy.fleet.snapshot import Fleet
from argosy.kube.client import Patch
from argosy.plan.explain.snapshot import ObjectKey
from argosy.plan.explain.whatif import WhatIf
from argosy.plan.pipeline.held import HeldReason, held_of
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
from argosy.plan.scheduling.unit import Unit
from argosy.plugins import cluster, wire
from tests.harness.eventually import PATIENCE, eventually
from tests.harness.federation import QUICK, Federation
from tests.harness.package import Package

pytestmark = pytest.mark.real_time("the workers are processes")

#: Long enough for a process on a busy machine to answer, short enough to be waited for.
TIMINGS = msgspec.structs.replace(QUICK, plugin_answer=2.0, plugin_load=PATIENCE, plugin_retry=0.3, breaker_open=0.1)
#: What a plugin that hangs is given, and what the API server may take at most meanwhile; without one it takes a few milliseconds.
HANGING = 4.0
LONGEST = 3.5


@pytest.fixture
def package(tmp_path, monkeypatch):
    made = Package(tmp_path / "package", "wait")
    monkeypatch.syspath_prepend(made.folder)
    return made


@pytest.fixture
def timings(request):
    """With the seconds that an answer may take, where they matter."""
    return msgspec.structs.replace(TIMINGS, plugin_answer=getattr(request, "param", TIMINGS.plugin_answer))


@pytest.fixture
async def workers(package, timings):
    workers = PluginWorkers(timings)
    await workers.load()
    yield workers
    await workers.close()


@pytest.fixture
async def fed(workers, timings):
    async with Federation(2, timings=timings, workers=workers) as fed:
        await profile(fed, filter={"enabled": [{"name": "Theirs"}]})
        await fed.policy("asking", schedulingMode="Duplicate", schedulingProfile="profile")
        await fed.policy("free", schedulingMode="Duplicate")
        yield fed


async def profile(fed, name="profile", config=(), **plugins):
    body = {
        "apiVersion": keys.API_VERSION,
        "kind": "SchedulingProfile",
        "metadata": {"name": name},
        "spec": {"plugins": plugins, "pluginConfig": list(config)},
    }
    await fed.client.create(resources.SCHEDULING_PROFILES, body)


async def placed_in(fed, name, clusters):
    async def probe():
        return sorted(await fed.copies(name)) == clusters

    await eventually(probe, why=f"{name} in {clusters}")


async def held(fed, name):
    return held_of((await fed.federated(f"{name}-deployments.apps"))["metadata"].get("annotations") or {})


async def held_for(fed, name, text):
    async def probe():
        found = await held(fed, name)
        return found is not None and found.reason == HeldReason.UNSCHEDULABLE and text in found.message

    try:
        await eventually(probe)
    except AssertionError:
        raise AssertionError(f"{name} is not held for {text!r}: {await held(fed, name)}") from None


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


async def test_one_that_eats_memory_gets_no_more_than_its_share(package):
    workers = PluginWorkers(msgspec.structs.replace(TIMINGS, plugin_answer=PATIENCE))
    await workers.load()
    package.behave("memory")
    try:
        ask = next(decide(Unit(name="web"), FLEET, Profile(filters=(workers.registry.filters["Theirs"],))))
        reply = await workers.answer(question_of(ask))
        assert reply.error.startswith("plugin 'Theirs' failed: MemoryError")
    finally:
        await workers.close()


async def test_a_process_that_was_killed_is_started_anew_and_ends_with_its_parent(workers):
    def question():
        return question_of(next(decide(WEB, FLEET, Profile(filters=(workers.registry.filters["Theirs"],)))))

    assert not (await workers.answer(question())).error
    process = workers._workers[0]._process
    process.kill()
    await process.wait()
    assert not (await workers.answer(question())).error
    another = workers._workers[0]._process
    await workers.close()
    assert another.returncode is not None


def theirs(workers):
    return question_of(next(decide(WEB, FLEET, Profile(filters=(workers.registry.filters["Theirs"],)))))


@pytest.fixture
async def impatient(package):
    """Nothing is asked here that answers."""
    quick = msgspec.structs.replace(TIMINGS, plugin_answer=0.5, breaker_failures=2, breaker_open=PATIENCE)
    workers = PluginWorkers(quick)
    await workers.load()
    yield workers
    await workers.close()


async def test_one_that_hangs_is_left_alone_by_those_who_wait_too(impatient, package):
    package.behave("sleep")
    replies = await asyncio.gather(*(impatient.answer(theirs(impatient)) for _ in range(12)))
    assert {reply.error for reply in replies} == {"plugin 'Theirs' gave no answer within 0.5 s"}
    assert impatient.ended == {"argosy-theirs 1.0": 2}, "as often as it was asked"


async def test_who_loses_interest_while_waiting_is_not_asked_for(workers, package):
    package.behave("sleep")
    asking = [asyncio.create_task(workers.answer(theirs(workers))) for _ in range(20)]
    await asyncio.sleep(0.1)
    for task in asking:
        task.cancel()
    await asyncio.wait(asking)
    named = question_of(next(decide(WEB, FLEET, Profile(filters=(workers.registry.filters["Named"],)))))
    assert not (await workers.answer(named)).error
    assert workers.ended == {"argosy-theirs 1.0": 1}, "the one that was under way"


async def gone(pid, seconds=PATIENCE):
    def probe():
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except FileNotFoundError:
            return True

    await eventually(probe, seconds, why=f"process {pid} is gone")


async def test_what_a_plugin_has_started_ends_with_it(impatient, package):
    package.behave("child")
    assert (await impatient.answer(theirs(impatient))).error
    await gone(int((package.folder / "child").read_text()))


async def test_a_process_is_ended_though_nobody_waits_for_its_end(package):
    workers = PluginWorkers(msgspec.structs.replace(TIMINGS, plugin_answer=10 * PATIENCE))
    await workers.load()
    package.behave("child")
    asking = asyncio.create_task(workers.answer(theirs(workers)))
    await eventually((package.folder / "child").exists)
    worker = workers._workers[0]
    pid = worker._process.pid
    ending = asyncio.create_task(worker._end())
    await asyncio.sleep(0)
    ending.cancel()
    await asyncio.wait({ending})
    await workers.close()
    await asyncio.wait({asking})
    await gone(pid)


PARENT = """
import asyncio, sys
from argosy.control.scheduling.plugin_workers import PluginWorkers
from argosy.control.timings import Timings

async def main():
    workers = PluginWorkers(Timings())
    loading = asyncio.create_task(workers.load())
    while not loading.done() if sys.argv[1] == "thread" else workers._workers[0]._process is None:
        await asyncio.sleep(0.05)
    print(workers._workers[0]._process.pid, flush=True)
    await asyncio.sleep(3600)

asyncio.run(main())
"""


@pytest.mark.parametrize("imported", ["sleep", "thread"])
async def test_a_process_does_not_outlive_a_parent_that_was_killed(tmp_path, imported):
    """Though its package hangs in its import, or has a thread that an ordinary exit would wait for."""
    package = Package(tmp_path / "package", imported)
    path = os.pathsep.join([str(package.folder), *filter(None, sys.path)])
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARENT, imported, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE
    )
    pid = int(await parent.stdout.readline())
    try:
        if imported == "sleep":  # in the import, not before it
            await eventually((package.folder / "imported").exists)
        parent.kill()
        await parent.wait()
        await gone(pid, 5.0)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def started():
    """The process of a package, by our own hand: what it was told last, and its end of the connection."""
    processes = []

    def start(hello, parent=None):
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-P", "-m", "argosy.plugins.worker", str(theirs.fileno())]
            process = subprocess.Popen([*command, str(parent or os.getpid())], pass_fds=[theirs.fileno()])
        processes.append((process, ours))
        ours.sendall(wire.framed(hello))
        return process

    yield start
    for process, ours in processes:
        process.kill()
        process.wait()
        ours.close()


def hello(package, seconds=PATIENCE):
    path = (str(package.folder), *sys.path)
    return wire.Hello("argosy-theirs 1.0", (("theirs", "argosy_theirs:PLUGINS"),), path, seconds, 1 << 32, 1 << 30)


async def test_loading_that_takes_too_long_ends_the_process_by_its_own_hand(tmp_path, started):
    process = started(hello(Package(tmp_path / "package", "sleep"), seconds=1.0))
    assert await asyncio.to_thread(process.wait, PATIENCE) == 1


async def test_a_process_whose_parent_is_gone_already_does_nothing(package, started):
    process = started(hello(package), parent=1 << 30)
    assert await asyncio.to_thread(process.wait, PATIENCE) == 0


async def test_a_question_that_waits_when_all_is_closed_starts_no_process(workers, package):
    package.behave("sleep")
    asking = [asyncio.create_task(workers.answer(theirs(workers))) for _ in range(3)]
    await asyncio.sleep(0.1)
    await workers.close()
    await asyncio.wait(asking)
    assert workers._workers[0]._process is None


def environment(pid):
    return Path(f"/proc/{pid}/environ").read_text().split("\0")


async def test_the_environment_of_the_control_plane_stays_there(package, monkeypatch):
    monkeypatch.setenv("SOMEBODYS_TOKEN", "secret")
    monkeypatch.setenv("LC_TIME", "C")
    workers = PluginWorkers(TIMINGS)
    await workers.load()
    try:
        given = environment(workers._workers[0]._process.pid)
        assert f"PATH={os.environ['PATH']}" in given
        assert "LC_TIME=C" in given
        assert not [each for each in given if "SOMEBODYS_TOKEN" in each]
    finally:
        await workers.close()


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


# However much a plugin says, little of it is told.


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


# While a package is being loaded.


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


# What is decided is what the same functions decide in this process.

FLEET = Fleet.of([cluster(f"m{number}", labels={"zone": f"z{number % 2}"}) for number in range(5)])
WEB = Unit(group="apps", version="v1", kind="Deployment", name="web")
DIVIDED = msgspec.structs.replace(WEB, mode="Divide", desired_replicas=7)


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
