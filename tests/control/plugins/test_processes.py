"""The processes of plugins: each is started anew when it ends, and ends with its parent."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from argosy.control.scheduling.plugin_workers import PluginWorkers
from argosy.plan.scheduling.framework import Profile
from argosy.plan.scheduling.package_plugins import question_of
from argosy.plan.scheduling.schedule import decide
from argosy.plan.scheduling.unit import Unit
from argosy.plugins import wire
from tests.control.plugins.asking import FLEET, TIMINGS, WEB, gone, theirs
from tests.harness.eventually import PATIENCE, eventually
from tests.harness.package import Package

pytestmark = pytest.mark.real_time("the workers are processes")


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
