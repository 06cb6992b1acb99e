"""Shards that nobody runs: the others say so, and so does `argosy status`; they themselves go on and are ready."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec
import pytest

from argosy.api import keys
from argosy.api.shards import Shard, lease_name
from argosy.cli.client.fleet import read_fleet
from argosy.cli.local.probes import Probes
from argosy.cli.output.report import gather, report
from argosy.control.manager import Manager
from argosy.control.options import Options
from argosy.control.timings import Timings
from argosy.kube.client import Client
from argosy.kube.errors import TransportError
from argosy.kube.lease import LeaderElector
from argosy.kube.transport import Event, Page, Request, Response, Transport
from tests.harness.eventually import eventually, holds
from tests.harness.federation import DEPLOYMENTS, EVENTS, QUICK, Federation
from tests.harness.user import NAMESPACES, deployment
from tests.harness.virtual_server import connector

COUNT = 3
#: Owned by shards 0, 1 and 2 of 3.
NAMED = {
    index: next(name for n in range(100) if Shard(index, COUNT).owns(name := f"team-{n}")) for index in range(COUNT)
}
MISSING = "shard 1/3 is missing: nobody holds the lease argosy-controllers-1-of-3, so nobody works on its namespaces"


class Leases:
    """A transport, on which the leases can be made unreadable."""

    def __init__(self, inner: Transport):
        self._inner = inner
        self.deaf = False

    @property
    def name(self) -> str:
        return self._inner.name

    async def send(self, request: Request) -> Response:
        return await self._inner.send(request)

    async def list(self, request: Request) -> Page:
        if self.deaf and request.path.endswith("/leases"):
            raise TransportError("no answer")
        return await self._inner.list(request)

    def watch(self, request: Request) -> contextlib.AbstractAsyncContextManager[AsyncIterator[Event]]:
        return self._inner.watch(request)

    async def close(self) -> None:
        await self._inner.close()


class Process:
    """One shard, elected as by `argosy controllers`."""

    def __init__(self, fed: Federation, index: int, timings: Timings = QUICK):
        self.shard = Shard(index, COUNT)
        self.leases = Leases(fed.plane.client().transport)
        self.manager = Manager(
            Client(self.leases), options=Options(shard=self.shard), timings=timings, connect=connector()
        )
        self._elector = LeaderElector(
            fed.plane.client(), keys.SYSTEM_NAMESPACE, lease_name(self.shard), f"process-{index}"
        )
        self._task = asyncio.create_task(self._elector.run(self.manager.run))

    async def ready(self) -> None:
        await eventually(self.manager.ready.is_set, 60)

    async def kill(self) -> None:
        """It does not give its lease back."""
        self._elector.release = _nothing  # type: ignore[method-assign]
        await self.stop()

    async def stop(self) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    def told(self) -> dict[str, float]:
        (family,) = (each for each in self.manager.metrics.registry.collect() if each.name == "argosy_shard_missing")
        return {sample.labels["shard"]: sample.value for sample in family.samples}


async def _nothing() -> None: ...


class Shards(Federation):
    """A control plane without members, where each test starts the shards it wants."""

    def __init__(self) -> None:
        super().__init__(0)
        self.processes: list[Process] = []

    async def start_controllers(self) -> None: ...

    def ready_clusters(self) -> list[str]:
        return []

    async def stop_controllers(self) -> None:
        for process in self.processes:
            await process.stop()

    async def start(self, *indexes: int) -> list[Process]:
        started = [Process(self, index) for index in indexes]
        self.processes += started
        for process in started:
            await process.ready()
        return started

    async def events(self, reason: str) -> list[dict[str, Any]]:
        listed = await self.client.list(EVENTS, "default")
        return [each for each in listed.items if each["reason"] == reason]

    async def status(self, namespace: str) -> Any:
        return report(await gather(self.client, DEPLOYMENTS, "web", namespace))


@pytest.fixture
async def fed() -> Any:
    async with Shards() as made:
        for name in NAMED.values():
            await made.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        yield made


async def test_a_shard_that_was_killed_is_told_of_by_all_others_until_it_is_back(fed: Shards) -> None:
    first, second, third = await fed.start(0, 1, 2)
    await holds(lambda: first.told() == {"1/3": 0, "2/3": 0} and not first.manager.notes(), 100.0)
    await second.kill()
    await eventually(lambda: first.told() == {"1/3": 1, "2/3": 0} and third.told() == {"0/3": 0, "1/3": 1}, 40.0)
    assert first.manager.notes() == [MISSING]
    # All are ready as before, or each restart would stop the others'.
    assert first.manager.ready.is_set()
    assert first.manager.problems() == []
    told = await eventually(lambda: fed.events("ShardMissing"), 5.0)
    assert [(each["type"], each["message"], each["involvedObject"]["name"]) for each in told] == [
        ("Warning", MISSING, keys.SYSTEM_NAMESPACE)
    ]
    await fed.start(1)
    await eventually(lambda: first.told() == {"1/3": 0, "2/3": 0}, 10.0)
    assert first.manager.notes() == []
    await eventually(lambda: fed.events("ShardBack"), 5.0)
    # One of them tells.
    assert [each.get("count", 1) for each in await fed.events("ShardMissing")] == [1]


async def test_a_shard_that_was_never_started_is_missing_as_well(fed: Shards) -> None:
    (third,) = await fed.start(2)
    await holds(lambda: not third.manager.notes(), 25.0)
    await eventually(lambda: third.told() == {"0/3": 1, "1/3": 1}, 15.0)
    assert "nobody works on its namespaces, the cluster-scoped objects or the clusters" in third.manager.notes()[0]


async def test_a_restart_is_no_missing_shard(fed: Shards) -> None:
    first, second = await fed.start(0, 1)
    await fed.start(2)
    await second.stop()
    await holds(lambda: first.told()["1/3"] == 0, 20.0)
    await fed.start(1)
    await holds(lambda: first.told()["1/3"] == 0, 60.0)


async def test_an_api_server_that_does_not_answer_is_no_missing_shard(fed: Shards) -> None:
    first, *_ = await fed.start(0, 1, 2)
    first.leases.deaf = True
    await holds(lambda: first.told() == {"1/3": 0, "2/3": 0}, 100.0)
    first.leases.deaf = False
    await holds(lambda: first.told() == {"1/3": 0, "2/3": 0}, 20.0)


async def test_status_says_who_does_not_look_after_an_object(fed: Shards) -> None:
    processes = await fed.start(0, 1, 2)
    for namespace in NAMED.values():
        await fed.client.create(DEPLOYMENTS, deployment("web", 2, "policy", namespace), namespace)
    assert [(await fed.status(NAMED[index])).unattended for index in range(COUNT)] == ["", "", ""]
    assert (await read_fleet(fed.client)).trouble == ()
    await processes[1].kill()
    await asyncio.sleep(60.0)
    told = [(await fed.status(NAMED[index])).unattended for index in range(COUNT)]
    assert [bool(text) for text in told] == [False, True, False]
    assert "shard 1/3 does not run: nobody holds the lease argosy-controllers-1-of-3" in told[1]
    assert (await fed.status(NAMED[1])).waiting[0] == told[1]
    found = await read_fleet(fed.client)
    assert found.trouble == (told[1],)
    assert not found.well


@pytest.mark.real_time("probes are asked over HTTP")
async def test_who_asks_whether_it_is_ready_hears_of_it_if_he_wants_to() -> None:
    quick = msgspec.structs.replace(QUICK, shards_watched=0.1, shard_missing=0.3)
    async with Shards() as fed:
        process = Process(fed, 0, quick)
        fed.processes.append(process)
        await process.ready()
        await eventually(lambda: len(process.manager.notes()) == 2, 10)
        probes = Probes()
        probes.manager = process.manager
        await probes.open("127.0.0.1", 0)
        try:
            async with aiohttp.ClientSession() as session:
                async with session.get(f"{probes.url}/readyz") as answer:
                    assert (answer.status, await answer.text()) == (200, "ok")
                async with session.get(f"{probes.url}/readyz?verbose") as answer:
                    assert answer.status == 200
                    assert (await answer.text()).startswith(f"ok\n{MISSING}\nshard 2/3 is missing")
        finally:
            await probes.close()
