"""Members that do not come back are given up: only when they could not be released, and wherever leaving was stuck."""

import asyncio

import pytest

from argosy.api import keys, resources
from argosy.cli.client import giving_up, membership
from argosy.cli.output.failures import Failure
from argosy.kube import timestamps
from tests.harness.federation import DEPLOYMENTS, NAMESPACES, SECRETS
from tests.harness.user import exists

PATIENCE = 120.0
#: Virtual seconds after which the controllers try as seldom as they ever do.
LONG = 300.0


async def test_leaving_that_fails_is_told_on_the_cluster(party):
    await party.servers["m1"].close_door()
    await party.client.delete(resources.FEDERATED_CLUSTERS, "m1")
    assert await party.told("MemberNotReleased", type="Released")


async def test_what_is_known_of_copies_is_counted_by_kind(party):
    await party.propagates("web")
    await party.propagates("other")
    assert await giving_up.copies_in(party.client, "m1") == {"Deployment": 2}
    assert await giving_up.copies_in(party.client, "m2") == {}


@pytest.mark.parametrize("cascade", [False, True])
async def test_a_silent_member_is_given_up(party, cascade):
    await party.propagates()
    await party.servers["m1"].close_door()
    cluster = await membership.leave(party.client, "m1", cascade=cascade)
    assert await giving_up.give_up(party.client, cluster, PATIENCE)
    await party.eventually(party.has_left)
    assert keys.SECRET_SERVICE_ACCOUNT_TOKEN not in await party.secret()
    await party.client.delete(DEPLOYMENTS, "web", "default")

    async def gone() -> bool:
        return not await exists(party.client, DEPLOYMENTS, "web", "default")

    await party.eventually(gone, why="nobody waits for what was given up")


async def test_so_is_one_that_has_been_leaving_for_long(party):
    await party.servers["m1"].close_door()
    await membership.leave(party.client, "m1", cascade=False)
    await party.told("MemberNotReleased", type="Released")
    await asyncio.sleep(LONG)
    assert await giving_up.give_up(party.client, await party.cluster(), 30.0), "the controllers tried at once"


async def test_one_that_comes_back_in_time_is_released(party):
    await party.servers["m1"].close_door()
    cluster = await membership.leave(party.client, "m1", cascade=False)
    giving = asyncio.create_task(giving_up.give_up(party.client, cluster, PATIENCE))
    await party.told("MemberNotReleased", type="Released")
    await party.servers["m1"].open_door()
    assert await giving is None
    await party.eventually(party.is_clean)


async def test_so_is_one_that_comes_back_when_nobody_would_try_for_long(party):
    await party.servers["m1"].close_door()
    await membership.leave(party.client, "m1", cascade=False)
    await party.told("MemberNotReleased", type="Released")
    await asyncio.sleep(LONG)
    cluster = await party.cluster()
    giving = asyncio.create_task(giving_up.give_up(party.client, cluster, PATIENCE))

    async def failed_again() -> bool:
        return (await party.cluster()).condition("Released") != cluster.condition("Released")

    await party.eventually(failed_again, why="the attempt that was asked for")
    await party.servers["m1"].open_door()
    assert await giving is None
    await party.eventually(party.is_clean)


async def test_without_controllers_nobody_knows_whether_it_answers(party):
    await party.stop_controllers()
    cluster = await membership.leave(party.client, "m1", cascade=False)
    with pytest.raises(Failure, match="no attempt to release it has failed"):
        await giving_up.give_up(party.client, cluster, PATIENCE)
    assert await exists(party.client, resources.FEDERATED_CLUSTERS, "m1")
    assert await exists(party.member("m1"), NAMESPACES, keys.SYSTEM_NAMESPACE)
    assert await exists(party.client, SECRETS, "m1", keys.SYSTEM_NAMESPACE)
    assert timestamps.parse((await party.cluster()).metadata.annotations[keys.GIVE_UP_ASKED])
