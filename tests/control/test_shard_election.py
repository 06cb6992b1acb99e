"""Divisions: processes with different numbers of shards never work at the same time, and somebody always does in the end."""

import asyncio
import contextlib
import random
from collections.abc import Callable

import pytest

from argosy.api import keys
from argosy.api.shards import Shard, lease_name
from argosy.control.sharding.election import ShardElection
from argosy.kube import clock
from argosy.kube.client import Client
from argosy.kube.lease import LEASES, LeaderElector
from argosy.server.embedded import EmbeddedServer
from tests.harness.eventually import eventually, holds
from tests.harness.servers import new_server
from tests.harness.user import NAMESPACES


@pytest.fixture
async def server():
    server = new_server()
    await server.start()
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": keys.SYSTEM_NAMESPACE}}
    await server.client().create(NAMESPACES, namespace)
    yield server
    await server.stop()


class Work:
    """Who is at work, and whether ever two divisions, or two of one shard, were so at once."""

    def __init__(self) -> None:
        self.leading: list[Shard] = []
        self.led: set[Shard] = set()
        self.clashes: list[list[Shard]] = []

    async def lead(self, shard: Shard) -> None:
        self.leading.append(shard)
        self.led.add(shard)
        if len({each.count for each in self.leading}) > 1 or len(set(self.leading)) < len(self.leading):
            self.clashes.append(list(self.leading))
        try:
            await asyncio.Event().wait()
        finally:
            self.leading.remove(shard)


class Process:
    """Its lease lasts longer than any pause of a busy machine: who stops gives it back."""

    def __init__(self, client: Client, shard: Shard, work: Work, clock: Callable[[], float] = clock.elapsed):
        self.shard = shard
        self.division = ShardElection(client, shard, retry=0.02, clock=clock)
        timings = {"duration": 30.0, "renew": 20.0, "retry": 0.02}
        identity = f"{shard}-{random.random()}"
        self._running = self.division.run(
            lambda: LeaderElector(client, keys.SYSTEM_NAMESPACE, lease_name(shard), identity, **timings),
            lambda elector: work.lead(shard),
        )
        self._task = asyncio.create_task(self._running)

    async def stop(self) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task


async def test_another_division_waits_until_the_last_of_the_old_one_has_gone(server: EmbeddedServer) -> None:
    work, client = Work(), server.client()
    old = [Process(client, Shard(index, 2), work) for index in range(2)]
    await eventually(lambda: len(work.leading) == 2)
    new = [Process(client, Shard(index, 3), work) for index in range(3)]
    whole = Process(client, Shard(0, 1), work)
    await eventually(lambda: "argosy-controllers-0-of-2" in new[0].division.waiting)
    await old[0].stop()
    await holds(lambda: work.leading == [Shard(1, 2)], 0.5)
    await whole.stop()
    await old[1].stop()
    await eventually(lambda: len(work.leading) == 3)
    assert {shard.count for shard in work.leading} == {3}
    assert work.clashes == []
    for process in new:
        await process.stop()


async def test_a_division_that_died_is_waited_for_as_long_as_its_leases_last_and_once_only(
    server: EmbeddedServer,
) -> None:
    client, name = server.client(), lease_name(Shard(1, 2))
    dead = LeaderElector(client, keys.SYSTEM_NAMESPACE, name, "dead", duration=20, renew=10, retry=0.1)
    await dead.acquire()
    work, time = Work(), 0.0
    first = Process(client, Shard(0, 3), work, lambda: time)
    await eventually(lambda: name in first.division.waiting)
    time = 19.9
    await holds(lambda: not work.leading, 0.2)
    time = 20.1
    await eventually(lambda: work.leading)
    assert not (await client.get(LEASES, name, keys.SYSTEM_NAMESPACE))["spec"]["holderIdentity"]
    second = Process(client, Shard(1, 3), work, lambda: 0.0)
    await eventually(lambda: len(work.leading) == 2, why="no time passes for the second, so it waited for nobody")
    await first.stop()
    await second.stop()


@pytest.mark.parametrize("seed", range(3))
async def test_whoever_comes_and_goes_no_two_divisions_work_at_once(server: EmbeddedServer, seed: int) -> None:
    chosen = random.Random(seed)
    work, running = Work(), []
    for _ in range(60):
        if running and chosen.random() < 0.45:
            await running.pop(chosen.randrange(len(running))).stop()
        else:
            count = chosen.randint(1, 3)
            running.append(Process(server.client(), Shard(chosen.randrange(count), count), work))
        await asyncio.sleep(chosen.choice([0, 0, 0.01, 0.05]))
        assert work.clashes == []
    if not running:
        running.append(Process(server.client(), Shard(0, 1), work))
    await eventually(lambda: work.leading, why="somebody works in the end")
    assert work.clashes == []
    assert len({shard.count for shard in work.led}) > 1, "the divisions took turns"
    for process in running:
        await process.stop()
