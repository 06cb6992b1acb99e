"""`argosy controllers`: bad options are one line, and nothing is started; beside `argosy up` it waits."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import aiohttp
import pytest

from argosy.api import keys
from argosy.api.shards import WHOLE, lease_name
from argosy.cli.commands.controllers import _shard
from argosy.cli.local import access
from argosy.cli.local.controllers import IDENTITY, LocalControllers
from argosy.cli.local.probes import Probes
from argosy.cli.output.failures import Failure
from argosy.control.install.installer import install
from argosy.control.sharding.election import ShardElection
from argosy.kube.lease import LeaderElector
from argosy.server.auth.identity import User
from argosy.server.embedded import EmbeddedServer
from tests.harness.eventually import eventually
from tests.harness.servers import new_server


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("2", "'2' is not a shard; write i/n, for example 0/3, 1/3 and 2/3"),
        ("1/1", "shards count from 0: the last of 1 is 0/1"),
        ("3/3", "shards count from 0: the last of 3 is 2/3"),
        ("0/0", "there can be 1 to 64 shards, not 0"),
        ("0/65", "there can be 1 to 64 shards, not 65"),
    ],
)
def test_a_shard_that_cannot_be_is_refused(text: str, told: str) -> None:
    with pytest.raises(Failure) as failure:
        _shard(text, leader_elect=True)
    assert (failure.value.message, failure.value.code) == (f"--shard: {told}", 2)


def test_shards_without_leases_are_refused() -> None:
    with pytest.raises(Failure, match="--shard needs leader election") as failure:
        _shard("0/2", leader_elect=False)
    assert failure.value.hint == "leave out --no-leader-elect"
    assert str(_shard("0/1", leader_elect=False)) == "0/1"


@pytest.mark.real_time("probes are asked over HTTP")
async def test_probes_on_an_address_this_machine_does_not_have_are_refused() -> None:
    with pytest.raises(Failure, match=r"203.0.113.1 port 0 cannot be used for probes: ") as failure:
        await Probes().open("203.0.113.1", 0)
    assert "--probe-address" in failure.value.hint


@pytest.mark.real_time("probes are asked over HTTP")
async def test_probes_tell_what_is_waited_for_and_who_holds_the_lease() -> None:
    async with _plane() as server:
        client, name = server.client(), lease_name(WHOLE)
        first = LeaderElector(client, keys.SYSTEM_NAMESPACE, name, "first")
        await first.acquire()
        election = ShardElection(client, WHOLE)
        probes = Probes(election)
        await probes.open("127.0.0.1", 0)
        second = asyncio.create_task(
            election.run(
                lambda: LeaderElector(client, keys.SYSTEM_NAMESPACE, name, "second", retry=0.1, renew=1.0),
                lambda elector: asyncio.Event().wait(),
            )
        )
        try:
            async with aiohttp.ClientSession() as session:

                async def told(path: str) -> str:
                    async with session.get(f"{probes.url}{path}") as answer:
                        assert answer.status == 200
                        return await answer.text()

                async def has(path: str, text: str) -> bool:
                    return text in await told(path)

                await eventually(lambda: has("/readyz", "ok: waiting for the lease, held by first"))
                assert 'argosy_lease_held{lease="argosy-controllers"} 0.0' in await told("/metrics")
                assert 'argosy_lease_failures_total{lease="argosy-controllers"} 0.0' in await told("/metrics")
                await first.release()
                await eventually(lambda: has("/metrics", 'argosy_lease_held{lease="argosy-controllers"} 1.0'))
        finally:
            await _ended(second)
            await probes.close()


@pytest.mark.real_time("probes are asked over HTTP")
async def test_who_needs_no_lease_leads() -> None:
    probes = Probes()
    await probes.open("127.0.0.1", 0)
    try:
        async with aiohttp.ClientSession() as session, session.get(f"{probes.url}/metrics") as answer:
            assert 'argosy_lease_held{lease=""} 1.0' in await answer.text()
    finally:
        await probes.close()


async def test_controllers_wait_for_those_of_argosy_up_and_those_for_them() -> None:
    async with _plane() as server:
        client = server.client()
        standing = LocalControllers(server.client(User(access.CONTROLLERS, ("system:authenticated",))))
        inside = asyncio.create_task(standing.run())
        await eventually(standing.ready.is_set, 30)
        outside = LeaderElector(client, keys.SYSTEM_NAMESPACE, lease_name(WHOLE), "outside", renew=0.2, retry=0.1)
        led: list[LeaderElector] = []

        async def lead(elector: LeaderElector) -> None:
            led.append(elector)
            await asyncio.Event().wait()

        others = asyncio.create_task(ShardElection(client, WHOLE).run(lambda: outside, lead))
        await eventually(lambda: outside.holder == IDENTITY)
        await _ended(inside)
        await eventually(lambda: led)
        again = LocalControllers(client)
        inside = asyncio.create_task(again.run())
        await eventually(lambda: "held by outside" in again.waiting)
        assert not again.ready.is_set()
        await _ended(others)
        await eventually(again.ready.is_set, 30)
        await _ended(inside)


async def test_argosy_up_does_not_wait_for_one_that_was_killed() -> None:
    async with _plane() as server:
        client = server.client()
        killed = LeaderElector(client, keys.SYSTEM_NAMESPACE, lease_name(WHOLE), IDENTITY, duration=600)
        await killed.acquire()
        standing = LocalControllers(client)
        inside = asyncio.create_task(standing.run())
        await eventually(standing.ready.is_set, 30)
        await _ended(inside)


@contextlib.asynccontextmanager
async def _plane() -> AsyncIterator[EmbeddedServer]:
    server = new_server()
    await server.start()
    await install(server.client(), chosen=access.INSTALLATION)
    yield server
    await server.stop()


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
