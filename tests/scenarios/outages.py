"""Members that cannot be reached keep what they have, hold up nobody, and get what they missed when they are back."""

import pytest

from argosy.api import keys
from argosy.testing import Cluster
from tests.harness.candidates import Candidate
from tests.harness.eventually import holds
from tests.harness.ground import World
from tests.harness.relay import Relay
from tests.harness.user import DEPLOYMENTS, weights
from tests.scenarios.seen import eventually_rolled_out, is_ready, pods_of, settled, uids

__all__ = [
    "test_a_deletion_waits_for_a_member_that_is_away",
    "test_a_member_that_is_away_loses_nothing_and_catches_up",
]


def cut(relay: Relay) -> None:
    """Connections are reset and new ones refused."""
    relay.refuse()
    relay.cut()


def silence(relay: Relay) -> None:
    """Connections stay open and nothing is heard on them."""
    relay.silence()


async def lose(candidate: Candidate) -> None:
    """A stock cluster is killed, all of its processes; a simulated one has none of its own, and is cut off."""
    if isinstance(candidate.behind, Cluster):
        candidate.behind.kill()
    else:
        cut(candidate.relay)


async def regain(candidate: Candidate) -> None:
    """It is back, if it was away, with what it had stored."""
    if isinstance(candidate.behind, Cluster) and not candidate.behind["kube-apiserver"].running:
        await candidate.behind.start()
    candidate.relay.heal()


@pytest.mark.parametrize("fail", [cut, silence])
async def test_a_member_that_is_away_loses_nothing_and_catches_up(world: World, fail) -> None:
    ground = world.ground
    await world.policy(**weights(m1=1, m2=1))
    await world.deploy(replicas=4)
    await eventually_rolled_out(world, 4)
    await settled(world)
    before = await uids(world)
    fail(ground.candidates["m2"].relay)
    await world.eventually(lambda: _heard_of(world, "False"), "it is said not to be heard of")
    await ground.eventually_unready("m2")
    await world.scale("web", 6)
    await world.eventually_replicas({"m1": 3, "m2": 2})

    async def told() -> bool:
        return await world.propagation() == {"m1": "OK", "m2": "ClusterNotReady"}

    await world.eventually(told, "the federated object says who is missing")
    assert [is_ready(pod) for pod in await pods_of(world, "m2")] == [True] * 2
    ground.candidates["m2"].relay.heal()
    await world.eventually(lambda: _heard_of(world, "True"), "it is heard of again")
    await ground.eventually_ready("m2")
    await world.eventually_replicas({"m1": 3, "m2": 3})
    await eventually_rolled_out(world, 6)
    assert await uids(world) == before


async def _heard_of(world: World, status: str) -> bool:
    return (await world.ground.conditions("m2")).get("Responding", {}).get("status") == status


async def test_a_deletion_waits_for_a_member_that_is_away(world: World) -> None:
    ground = world.ground
    await world.policy(**weights(m1=1, m2=1))
    await world.deploy(replicas=2)
    await eventually_rolled_out(world, 2)
    await settled(world)
    cut(ground.candidates["m2"].relay)
    await ground.eventually_unready("m2")
    await world.client.delete(DEPLOYMENTS, "web", world.namespace)

    async def only_m2() -> bool:
        return (await world.replicas()).keys() == {"m2"}

    await world.eventually(only_m2, "the copy in m1 is gone")

    async def waits() -> bool:
        return keys.FEDERATE_FINALIZER in (await world.source())["metadata"]["finalizers"]

    await holds(waits, 1.0)
    ground.candidates["m2"].relay.heal()
    await ground.eventually_gone(DEPLOYMENTS, "web", world.namespace)
    assert await world.replicas() == {}
