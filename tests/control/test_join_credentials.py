"""A member's credentials and address change: good ones are used, bad ones cut nothing, another cluster's are seen through."""

import pytest

from argosy.api import keys, resources
from argosy.server.embedded import EmbeddedServer
from tests.harness.federation import DEPLOYMENTS, EVENTS, NAMESPACES
from tests.harness.membership import Outsider, Party
from tests.harness.servers import new_relay, new_server
from tests.harness.user import exists


async def test_a_rotated_certificate_is_used_and_nothing_is_listed_again():
    async with Party(accounts=False) as fed:
        await fed.policy()
        await fed.propagates("before")
        member = fed.inside.members.get("m1")
        informer = fed.inside.collector.informers()["m1", "deployments.apps"]
        lists = informer.lists
        pair = fed.servers["m1"].authority.issue("rotated", groups=["system:masters"])
        await fed.put(**{keys.SECRET_CLIENT_CERTIFICATE: pair.certificate, keys.SECRET_CLIENT_KEY: pair.key})
        await fed.eventually(lambda: fed.inside.access.in_use("m1").cert_data == pair.certificate)
        await fed.propagates("after")
        assert fed.inside.members.get("m1") is member
        assert informer.lists == lists
        assert fed.ready_clusters() == ["m1"]


async def test_a_secret_of_no_use_cuts_nothing_and_is_told():
    async with Party(accounts=False) as fed:
        await fed.policy()
        stranger = new_server()
        before = await fed.secret()
        pair = stranger.authority.issue("admin", groups=["system:masters"])
        await fed.put(**{keys.SECRET_CLIENT_CERTIFICATE: pair.certificate, keys.SECRET_CLIENT_KEY: pair.key})
        await fed.told("CredentialsUnusable", 'secret "m1"', "previous ones stay in use")
        await fed.propagates("certificate")
        await fed.put(**{keys.SECRET_CLIENT_KEY: None})
        await fed.told("CredentialsUnusable", "authentication information is missing")
        await fed.put(**{keys.SECRET_CA: stranger.authority.certificate, **_pair(before)})
        await fed.told("CredentialsUnusable", "certificate")
        await fed.propagates("authority")
        assert fed.ready_clusters() == ["m1"]
        await fed.put(**before)
        await fed.granted()


def _pair(data: dict[str, bytes]) -> dict[str, bytes]:
    return {key: data[key] for key in (keys.SECRET_CLIENT_CERTIFICATE, keys.SECRET_CLIENT_KEY)}


#: Another cluster, as it may be found: somebody else's member, or nobody's yet.
of_others = pytest.mark.parametrize("owner", ["other", None], ids=["taken", "fresh"])


async def _mistake(fed: Party, other: EmbeddedServer, url: str, owner: str | None) -> None:
    """Have m1's credentials and address be those of another cluster."""
    if owner is not None:
        namespace = {"name": keys.SYSTEM_NAMESPACE, "annotations": {keys.FEDERATED_CLUSTER_UID: owner}}
        await other.client().create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": namespace})
    pair = other.authority.issue("admin", groups=["system:masters"])
    await fed.put(
        **{
            keys.SECRET_CA: other.authority.certificate,
            keys.SECRET_CLIENT_CERTIFICATE: pair.certificate,
            keys.SECRET_CLIENT_KEY: pair.key,
        }
    )
    await fed.client.patch(resources.FEDERATED_CLUSTERS, "m1", {"spec": {"apiEndpoint": url}})


async def _untouched(other: EmbeddedServer, owner: str | None) -> bool:
    """Nothing was made there, and nobody's cluster is nobody's still."""
    marked = await exists(other.client(), NAMESPACES, keys.SYSTEM_NAMESPACE)
    return (await other.client().list(DEPLOYMENTS)).items == [] and marked == (owner is not None)


async def _told_as_event(fed: Party) -> bool:
    events = (await fed.client.list(EVENTS)).items
    return any("is not the one that joined" in event["message"] for event in events)


@of_others
async def test_another_cluster_at_a_new_address_is_not_taken_for_the_member(owner):
    async with Party(accounts=False) as fed, Outsider() as other:
        await fed.policy()
        await _mistake(fed, other, other.url, owner)
        await fed.told("CredentialsUnusable", "is not the one that joined", *(() if owner else ("m1 --reclaim",)))
        await fed.propagates()
        assert await _untouched(other, owner)


@of_others
async def test_nor_by_controllers_that_never_saw_the_one_that_joined(owner):
    async with Party(accounts=False) as fed, Outsider() as other:
        await fed.policy()
        await fed.propagates()
        await fed.stop_controllers()
        await _mistake(fed, other, other.url, owner)
        await fed.start_controllers()
        await fed.eventually(lambda: _told_as_event(fed))
        await fed.told("ClusterIdentityChanged", "is not the one that joined", *(() if owner else ("m1 --reclaim",)))
        assert fed.inside.members.get("m1") is None
        assert await _untouched(other, owner)


@of_others
async def test_nor_when_it_did_not_answer_at_first(owner):
    async with Party(accounts=False) as fed, Outsider() as other, new_relay(other.port) as relay:
        await fed.policy()
        await fed.propagates()
        await fed.stop_controllers()
        await _mistake(fed, other, relay.url, owner)
        relay.refuse()
        await fed.start_controllers()
        await fed.eventually(lambda: fed.inside.members.get("m1") is not None)
        relay.heal()
        await fed.eventually(lambda: _told_as_event(fed))
        await fed.eventually(lambda: fed.inside.members.get("m1") is None)
        assert await _untouched(other, owner)


async def test_one_that_did_not_answer_at_first_is_used_when_it_does():
    async with Party(accounts=False) as fed, new_relay(fed.servers["m1"].port) as relay:
        await fed.policy()
        await fed.propagates("before")
        await fed.stop_controllers()
        await fed.client.patch(resources.FEDERATED_CLUSTERS, "m1", {"spec": {"apiEndpoint": relay.url}})
        relay.refuse()
        await fed.start_controllers()
        await fed.eventually(lambda: fed.inside.members.get("m1") is not None)
        relay.heal()
        await fed.propagates("after")


async def test_what_could_not_be_sent_is_not_told_as_carried():
    """The member is shown to be ready for a while yet, and is not connected: nothing in its secret is of use."""
    async with Party(accounts=False) as fed:
        await fed.policy()
        await fed.propagates()
        await fed.stop_controllers()
        await fed.put(**{keys.SECRET_CLIENT_KEY: None})
        await fed.start_controllers()
        await fed.told("CredentialsUnusable", "authentication information is missing")
        await fed.scale("web", 3)

        async def told() -> bool:
            return await fed.propagation() == {"m1": "PendingCreate"}

        await fed.eventually(told)
        assert fed.ready_clusters() == ["m1"]
