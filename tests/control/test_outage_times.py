"""How long an outage takes: until replacements are ready, and until a member that is back has what it missed. Default timings."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from argosy.api import resources
from argosy.control.timings import Timings
from argosy.kube.errors import Forbidden
from argosy.kube.transport import Request
from argosy.server.auth.identity import User
from tests.harness.eventually import eventually
from tests.harness.ground import Ground, World, simulated_ground
from tests.harness.user import weights
from tests.scenarios.outages import cut, silence
from tests.scenarios.seen import eventually_rolled_out, is_ready, pods_of, settled
from tests.world.network import Host
from tests.world.wire import Wire

#: Seconds, as docs/migration.md and docs/members.md have them.
REPLACED, CAUGHT_UP, NOTICED = 90.0, 20.0, 60.0


@pytest.fixture
async def ground(tmp_path: Path) -> AsyncIterator[Ground]:
    timings = msgspec.structs.replace(Timings(), failover_after=10.0)
    async with simulated_ground(tmp_path, timings=timings) as made:
        yield made


@pytest.fixture
async def world(ground: Ground) -> AsyncIterator[World]:
    async with ground.world() as made:
        await made.policy(**weights(m1=1, m2=1, m3=1))
        await made.deploy(replicas=9)
        await eventually_rolled_out(made, 9)
        await settled(made)
        # Time before the controllers have looked for a while does not count for anything.
        await asyncio.sleep(Timings().unready_after)
        yield made


async def _ready(ground: Ground, name: str) -> str:
    return (await ground.conditions(name))["Ready"]["status"]


async def _running(world: World, *members: str) -> int:
    return sum([is_ready(pod) for name in members for pod in await pods_of(world, name)])


async def _at(world: World, name: str, replicas: int) -> bool:
    return (await world.replicas()).get(name, 0) == replicas


@pytest.mark.parametrize("fail", [cut, silence])
async def test_the_replacements_of_a_member_that_is_lost_are_ready_in_time(world: World, fail):
    loop = asyncio.get_running_loop()
    began = loop.time()
    fail(world.ground.candidates["m3"].relay)

    async def replaced() -> bool:
        return await _running(world, "m1", "m2") == 9

    await eventually(replaced, REPLACED, "the replacements are ready")
    assert loop.time() - began < REPLACED


@pytest.mark.parametrize("fail", [cut, silence])
async def test_a_member_that_is_back_has_what_it_missed_before_it_counts_as_ready(world: World, fail):
    loop, relay = asyncio.get_running_loop(), world.ground.candidates["m3"].relay
    await world.annotate(resources.FEDERATED_CLUSTERS, "m3", None, **{"argosy.io/failover-after": "never"})
    fail(relay)
    await eventually(lambda: _is_ready(world.ground, "Unknown"), NOTICED, "it is unready")
    await world.scale("web", 6)
    await eventually(lambda: _at(world, "m1", 2), why="the others scale")
    assert await _at(world, "m3", 3)
    began = loop.time()
    relay.heal()
    await eventually(lambda: _at(world, "m3", 2), CAUGHT_UP, "it scales, too")
    assert loop.time() - began < CAUGHT_UP
    assert await _ready(world.ground, "m3") == "Unknown", "nothing new is placed there yet"

    async def counted() -> bool:
        return (await world.source())["status"]["replicas"] == 6

    await eventually(counted, CAUGHT_UP, "and what it runs counts")
    await eventually(lambda: _is_ready(world.ground, "True"), NOTICED)


async def _is_ready(ground: Ground, status: str) -> bool:
    return await _ready(ground, "m3") == status


async def test_copies_that_were_replaced_are_removed_soon_after_their_member_is_back(world: World):
    loop, relay = asyncio.get_running_loop(), world.ground.candidates["m3"].relay
    cut(relay)

    async def replaced() -> bool:
        return await _running(world, "m1", "m2") == 9

    await eventually(replaced, REPLACED, "the replacements are ready")
    assert await _running(world, "m3") == 3, "nobody could stop them"
    began = loop.time()
    relay.heal()

    async def gone() -> bool:
        return await _running(world, "m3") == 0

    await eventually(gone, CAUGHT_UP, "nothing runs twice")
    assert loop.time() - began < CAUGHT_UP


async def test_a_member_whose_rights_load_after_its_return_is_not_said_to_refuse_us(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    loop, relay = asyncio.get_running_loop(), world.ground.candidates["m3"].relay
    await world.annotate(resources.FEDERATED_CLUSTERS, "m3", None, **{"argosy.io/failover-after": "never"})
    loaded, refused, user = float("inf"), [], Wire._user

    def judged(self: Wire, host: Host, request: Request) -> User:
        if self.name == relay.url and loop.time() < loaded and request.path.startswith("/apis/apps/v1/deployments"):
            refused.append(request.path)
            message = f'deployments.apps is forbidden: User "x" cannot {request.method.lower()} resource "deployments"'
            raise Forbidden(403, "Forbidden", message, {})
        return user(self, host, request)

    cut(relay)
    await eventually(lambda: _is_ready(world.ground, "Unknown"), NOTICED, "it is unready")
    await world.scale("web", 6)
    await eventually(lambda: _at(world, "m1", 2), why="the others scale")
    monkeypatch.setattr(Wire, "_user", judged)
    began, loaded = loop.time(), loop.time() + 10.0
    relay.heal()
    said = []

    async def scaled() -> bool:
        said.append((await world.ground.conditions("m3")).get("Authorized", {}).get("status", "True"))
        return await _at(world, "m3", 2)

    await eventually(scaled, CAUGHT_UP, "it has what it missed")
    assert refused
    assert loop.time() - began < CAUGHT_UP
    assert set(said) == {"True"}
    await eventually(lambda: _is_ready(world.ground, "True"), NOTICED)
    assert "Authorized" not in await world.ground.conditions("m3")
