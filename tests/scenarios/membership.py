"""Members come, by each kind of credential, and go, with their copies or without; credentials are changed under way."""

import base64

import pytest

from argosy.api import keys, resources
from argosy.control.members.connect import http_connector
from argosy.fleet.credentials import Connection
from argosy.kube.client import Patch
from argosy.kube.errors import NotFound, Unauthorized
from tests.harness.eventually import holds
from tests.harness.ground import Ground, World
from tests.harness.user import NAMESPACES, SECRETS, exists, weights
from tests.harness.virtual_server import connector
from tests.scenarios.seen import eventually_rolled_out, settled, uids

__all__ = [
    "test_a_member_that_left_can_be_joined_again_at_once",
    "test_credentials_rotated_in_the_secret_are_used_without_a_gap",
    "test_leaving_keeps_the_copies_and_coming_back_takes_them_over_as_they_are",
    "test_leaving_with_cascading_deletion_takes_the_copies_along",
    "test_work_is_carried_with_each_kind_of_credential",
]

#: Also in members that join later.
EVERYWHERE = {"schedulingMode": "Duplicate", "reschedulePolicy": {"rescheduleWhen": {"clusterJoined": True}}}


@pytest.mark.parametrize("credentials", ["certificate", "token", "serviceaccount"])
async def test_work_is_carried_with_each_kind_of_credential(world: World, credentials: str) -> None:
    ground = world.ground
    await ground.unjoin("m3")
    await ground.eventually_released("m3")
    await world.rejoin("m3", credentials)
    await world.policy(**weights(m3=1))
    await world.deploy(replicas=2)
    await eventually_rolled_out(world, 2)
    await world.scale("web", 1)
    await eventually_rolled_out(world, 1)


async def test_credentials_rotated_in_the_secret_are_used_without_a_gap(world: World) -> None:
    ground, candidate = world.ground, world.ground.candidates["m2"]
    await world.policy(**weights(m2=1))
    await world.deploy(replicas=1)
    await eventually_rolled_out(world, 1)
    old, new = await candidate.token("first"), await candidate.token("second")
    await _use_token(ground, "m2", old)
    await world.scale("web", 2)
    await eventually_rolled_out(world, 2)
    await _use_token(ground, "m2", new)
    await candidate.revoke("first")
    await world.eventually(lambda: _is_refused(candidate.url, candidate.ca, old), "the old token is refused")
    await world.scale("web", 3)
    await eventually_rolled_out(world, 3)
    # One that cannot be used cuts nothing that works.
    await _use_token(ground, "m2", "nonsense")
    await holds(lambda: ground.is_ready("m2"), 2 * ground.timings.health_period)
    await _use_token(ground, "m2", new)


async def test_leaving_keeps_the_copies_and_coming_back_takes_them_over_as_they_are(world: World) -> None:
    ground = world.ground
    await world.policy(**EVERYWHERE)
    await world.deploy(replicas=1)
    await world.eventually_replicas({"m1": 1, "m2": 1, "m3": 1})
    await settled(world)
    before = await uids(world)
    await ground.unjoin("m3")

    async def forgotten() -> bool:
        return await world.propagation() == {"m1": "OK", "m2": "OK"}

    await world.eventually(forgotten, "the federated object names m3 no more")
    await ground.eventually_released("m3")
    assert await uids(world) == before, "nothing in the member was touched"
    await world.rejoin("m3")

    async def known() -> bool:
        return await world.propagation() == {"m1": "OK", "m2": "OK", "m3": "OK"}

    await world.eventually(known, "m3 is back in the federated object")
    assert await uids(world) == before, "taken over, not made anew"


async def test_leaving_with_cascading_deletion_takes_the_copies_along(world: World) -> None:
    ground = world.ground
    await world.policy(**EVERYWHERE)
    await world.deploy(replicas=1)
    await world.eventually_replicas({"m1": 1, "m2": 1, "m3": 1})
    await settled(world)
    await ground.annotate(resources.FEDERATED_CLUSTERS, "m3", None, **{keys.CASCADING_DELETE: "true"})
    await ground.unjoin("m3")
    assert await world.replicas() == {"m1": 1, "m2": 1}
    assert not await exists(world.member("m3"), NAMESPACES, world.namespace), "namespaces of ours go as well"
    await ground.eventually_released("m3")
    await world.rejoin("m3")
    await world.eventually_replicas({"m1": 1, "m2": 1, "m3": 1})


async def test_a_member_that_left_can_be_joined_again_at_once(world: World) -> None:
    """Its system namespace may still be on its way out: that is a reason to wait, not to give up."""
    await world.ground.unjoin("m3")
    await world.rejoin("m3")


async def _use_token(ground: Ground, name: str, token: str) -> None:
    data = {
        keys.SECRET_BOOTSTRAP_TOKEN: base64.b64encode(token.encode()).decode(),
        keys.SECRET_CLIENT_CERTIFICATE: None,
        keys.SECRET_CLIENT_KEY: None,
    }
    await ground.client.patch(SECRETS, name, {"data": data}, keys.SYSTEM_NAMESPACE, kind=Patch.MERGE)


async def _is_refused(server: str, ca: bytes, token: str) -> bool:
    connect = connector() or http_connector()
    client = connect("", Connection(server, ca_data=ca, token=token.encode()), None)
    try:
        await client.get(NAMESPACES, "nothing")
    except Unauthorized:
        return True
    except NotFound:
        return False
    finally:
        await client.close()
    return False
