"""A member that is not heard of: who says so, how soon, and what nobody does because of it. With the default timings."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from argosy.api import resources
from argosy.cli.commands.get import _cluster_row
from argosy.cli.output.report import gather, report
from argosy.control.timings import Timings
from argosy.kube.errors import TransportError
from tests.control.test_rules import Writes
from tests.harness.eventually import eventually, holds
from tests.harness.ground import Ground, World, simulated_ground
from tests.harness.user import DEPLOYMENTS, weights
from tests.scenarios.outages import cut, silence
from tests.scenarios.seen import eventually_rolled_out
from tests.world.wire import Wire

#: Seconds, as docs/members.md has them: told after the first failure, a silent member found out, and ready or not.
TOLD, FOUND, READY = 10.0, 21.0, 60.0


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with simulated_ground(tmp_path, timings=Timings()) as ground, ground.world() as made:
        await made.policy(**weights(m1=1, m2=1))
        await made.deploy(replicas=4)
        await eventually_rolled_out(made, 4)
        await ground.eventually(lambda: _as_wanted(made))
        yield made


async def _waiting(world: World) -> list[str]:
    return report(await gather(world.client, DEPLOYMENTS, "web", world.namespace)).waiting


async def _as_wanted(world: World) -> bool:
    return not await _waiting(world)


async def _condition(ground: Ground, type: str, name: str = "m2") -> tuple[str, str]:
    found = (await ground.conditions(name)).get(type, {})
    return found.get("status", ""), found.get("message", "")


async def _is(ground: Ground, type: str, status: str) -> bool:
    return (await _condition(ground, type))[0] == status


async def _unreachable(world: World) -> str:
    conditions = (await world.source())["status"]["conditions"]
    return next((each["message"] for each in conditions if each["type"] == "MembersUnreachable"), "")


async def _problem(world: World) -> str:
    """The last column of `argosy get clusters`."""
    return _cluster_row(await world.client.get(resources.FEDERATED_CLUSTERS, "m2"))[-1]


@pytest.mark.parametrize(("fail", "within"), [(cut, TOLD), (silence, FOUND)])
async def test_a_member_that_is_gone_is_told_within_seconds_and_moves_nothing(world: World, fail, within: float):
    ground = world.ground
    loop = asyncio.get_running_loop()
    before, began = await world.replicas(), loop.time()
    fail(ground.candidates["m2"].relay)
    await eventually(lambda: _unreachable(world), within, "the object tells of it")
    assert "m2 (not heard of since 20" in await _unreachable(world)
    assert await _is(ground, "Ready", "True"), "workloads are not moved because of it"
    since = (await ground.conditions("m2"))["Responding"]["lastTransitionTime"]
    assert await _condition(ground, "Responding") == ("False", f"not heard of since {since}")
    assert f"m2: not heard of since {since}" in await _waiting(world)
    assert await _problem(world) == f"not heard of since {since}"
    assert (await world.source())["status"]["readyReplicas"] == 4
    await eventually(lambda: _is(ground, "Ready", "Unknown"), READY, "it is unready, too")
    assert loop.time() - began <= READY
    assert (await ground.conditions("m2"))["Responding"]["lastTransitionTime"] == since
    assert (await world.source())["status"]["readyReplicas"] == 4
    # It is back, and believed at once.
    healed = loop.time()
    ground.candidates["m2"].relay.heal()
    await eventually(lambda: _is(ground, "Responding", "True"), FOUND, "it is heard of again")
    await eventually(lambda: _is(ground, "Ready", "True"), READY)
    assert loop.time() - healed <= READY
    await world.eventually(lambda: _as_wanted(world), "all is as wanted again")
    assert await world.replicas() == before


async def test_what_was_reset_once_is_not_told_and_costs_nothing(world: World):
    """Watches end at any time, when a server restarts or a proxy is tired: the member answers."""
    ground = world.ground
    writes = Writes(ground.plane.server)
    ground.candidates["m2"].relay.cut()

    async def quiet() -> bool:
        return "Responding" not in await ground.conditions("m2")

    await holds(quiet, 25.0)
    # That the new policy is used is counted in its status, meanwhile.
    assert [key for key in writes.keys if "propagationpolicies" not in key] == []


async def test_a_healthy_member_is_asked_little_and_written_about_less(world: World, monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []
    send = Wire.send

    async def noted(self: Wire, request: Any) -> Any:
        if self.name == world.ground.candidates["m2"].relay.url:
            asked.append(request.path)
        return await send(self, request)

    monkeypatch.setattr(Wire, "send", noted)
    written = []

    async def status() -> Any:
        found = await world.client.get(resources.FEDERATED_CLUSTERS, "m2")
        if not written or written[-1] != found["metadata"]["resourceVersion"]:
            written.append(found["metadata"]["resourceVersion"])
        return True

    await holds(status, 100.0)
    assert 9 <= asked.count("/healthz") <= 12, "every ten seconds"
    assert asked.count("/version") <= 4, "the rest every thirty"
    assert len(written) <= 5, "as is the heartbeat"
    assert len(asked) <= 50, sorted(asked)


async def test_a_changed_endpoint_that_leads_nowhere_is_blamed_and_the_member_is_unreachable(world: World):
    ground = world.ground
    right = ground.candidates["m2"].url
    await ground.client.patch(resources.FEDERATED_CLUSTERS, "m2", {"spec": {"apiEndpoint": "https://nowhere:6443"}})
    await eventually(lambda: _is(ground, "Responding", "False"), FOUND, "the endpoint does not answer")
    _, message = await _condition(ground, "Responding")
    assert "the API endpoint https://nowhere:6443 in the spec cannot be reached" in message
    assert "Authorized" not in await ground.conditions("m2"), "nothing is wrong with the secret"
    await eventually(lambda: _is(ground, "Ready", "Unknown"), READY, "nobody can tell how the member does")
    assert "https://nowhere:6443" in (await _condition(ground, "Ready"))[1]
    assert not await _as_wanted(world)
    await ground.client.patch(resources.FEDERATED_CLUSTERS, "m2", {"spec": {"apiEndpoint": right}})
    await eventually(lambda: _is(ground, "Responding", "True"), TOLD, "and it does again")
    await eventually(lambda: _is(ground, "Ready", "True"), READY)
    assert await world.replicas() == {"m1": 2, "m2": 2}


async def test_watches_are_open_again_as_soon_as_a_member_that_was_away_for_long_answers(world: World):
    """Their back-off has grown by then."""
    ground = world.ground
    cut(ground.candidates["m2"].relay)
    await asyncio.sleep(300.0)
    ground.candidates["m2"].relay.heal()
    await eventually(lambda: _is(ground, "Responding", "True"), FOUND)
    assert not [each for each in await ground.events("NotHeardOf") if "watches on it fail" in each["message"]]
    informers = [each for (name, _), each in ground.inside.collector.informers().items() if name == "m2"]
    assert informers
    await eventually(lambda: all(not each.unreachable_for for each in informers), 4.0, "all of them")


async def test_a_member_that_answers_and_lets_nobody_watch_is_not_heard_of(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    ground, relay, watch = world.ground, world.ground.candidates["m2"].relay, Wire.watch

    def refused(self: Wire, request: Any) -> Any:
        if self.name == relay.url:
            raise TransportError("connection reset")
        return watch(self, request)

    monkeypatch.setattr(Wire, "watch", refused)
    relay.cut()
    await eventually(lambda: _is(ground, "Responding", "False"), TOLD)
    assert "watches on it fail" in (await _condition(ground, "Responding"))[1]
    await eventually(lambda: _unreachable(world), 1.0)
    assert await _is(ground, "Ready", "True")
    monkeypatch.setattr(Wire, "watch", watch)
    # With the next probe, and a moment to say so.
    await eventually(lambda: _is(ground, "Responding", "True"), TOLD + 2.0)


async def test_controllers_that_start_go_on_saying_it(world: World):
    ground = world.ground
    silence(ground.candidates["m2"].relay)
    await eventually(lambda: _is(ground, "Responding", "False"), FOUND)
    since = (await ground.conditions("m2"))["Responding"]["lastTransitionTime"]
    await ground.stop_controllers()
    await ground.start_controllers()
    await holds(lambda: _is(ground, "Responding", "False"), 60.0)
    assert (await ground.conditions("m2"))["Responding"]["lastTransitionTime"] == since
    ground.candidates["m2"].relay.heal()
    await eventually(lambda: _is(ground, "Responding", "True"), FOUND)


async def test_requests_that_fail_are_reason_enough_to_look(tmp_path: Path):
    """Long before the next probe is due."""
    seldom = msgspec.structs.replace(Timings(), health_period=120.0)
    async with simulated_ground(tmp_path, timings=seldom) as ground:
        cut(ground.candidates["m2"].relay)
        await eventually(lambda: _is(ground, "Responding", "False"), TOLD)
