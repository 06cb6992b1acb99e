"""Members come and go: by whom they are joined, what leaving takes along, and what is waited for on the way."""

import msgspec
import orjson
import pytest

from argosy.api import keys, resources
from argosy.api.conditions import JOINED, TOKEN_NOT_OBTAINED_REASON
from argosy.api.types import FederatedCluster
from argosy.cli.client import membership
from argosy.control.members import join, role
from tests.harness.eventually import eventually
from tests.harness.federation import DEPLOYMENTS, NAMESPACES, QUICK, SECRETS
from tests.harness.liar import Liar, head
from tests.harness.membership import ACCOUNTS, Outsider, Party, encoded
from tests.harness.user import cluster_secret, exists, federated_cluster


async def test_an_account_made_by_somebody_else_joins_with_its_token_alone():
    """What `argosy join` does: the control plane never sees the credentials it was made with."""
    async with Party(0) as fed, Outsider() as server:
        manifest = federated_cluster("m1", server.url, useServiceAccount=True)
        made = await fed.client.create(resources.FEDERATED_CLUSTERS, manifest)
        cluster = msgspec.convert(made, FederatedCluster)
        namespace = await join.claim(server.client(), cluster)
        await join.furnish(server.client(), namespace, role.rules_for(cluster, fed.inside.catalog))
        token = await join.new_token(server.client(), 3600)
        data = {keys.SECRET_CA: server.authority.certificate, keys.SECRET_SERVICE_ACCOUNT_TOKEN: token}
        await fed.client.create(SECRETS, cluster_secret("m1", encoded(data)))
        await fed.eventually(lambda: fed.ready_clusters() == ["m1"])
        assert not await fed.events("JoinClusterError")


async def test_a_member_tells_its_version_and_when_it_was_heard_of_last(party):
    status = (await party.cluster()).status
    assert status.kubernetes_version == (await party.member("m1").version())["gitVersion"]
    heard = status.last_heard_time

    async def heard_again() -> bool:
        return (await party.cluster()).status.last_heard_time > heard

    await party.eventually(heard_again)
    await party.servers["m1"].close_door()

    async def probed_in_vain() -> bool:
        cluster = await party.cluster()
        return cluster.condition("Ready").last_probe_time > cluster.status.last_heard_time

    await party.eventually(probed_in_vain)
    assert (await party.cluster()).status.kubernetes_version == status.kubernetes_version


async def test_leaving_takes_account_rights_and_token_away(party):
    await party.forget_user()
    await party.client.delete(resources.FEDERATED_CLUSTERS, "m1")
    await party.eventually(party.has_left)
    await party.eventually(party.is_clean)
    assert set(await party.secret()) == {keys.SECRET_CA}


async def test_a_member_that_was_not_ready_when_it_was_to_leave_loses_its_copies_once_it_is_back(party):
    await party.propagates()
    await party.servers["m1"].close_door()

    async def unready() -> bool:
        return not (await party.cluster()).ready

    await eventually(unready, 600)
    await membership.leave(party.client, "m1", cascade=True)
    await party.servers["m1"].open_door()
    await eventually(party.has_left, 600)
    assert not await exists(party.member("m1"), DEPLOYMENTS, "web", "default")


async def test_what_a_join_that_never_came_about_made_is_taken_back(party):
    """The account was made, and then the user thought better of it."""
    credentials = {key: (await party.secret())[key] for key in (keys.SECRET_CLIENT_CERTIFICATE, keys.SECRET_CLIENT_KEY)}
    await party.client.delete(resources.FEDERATED_CLUSTERS, "m1")
    await party.eventually(party.has_left)
    await party.stop_controllers()
    await party.put(**credentials)
    manifest = federated_cluster("m1", party.servers["m1"].url, useServiceAccount=True)
    manifest["metadata"]["finalizers"] = [keys.CLUSTER_FINALIZER]
    made = await party.client.create(resources.FEDERATED_CLUSTERS, manifest)
    await join.claim(party.member("m1"), msgspec.convert(made, FederatedCluster))
    await party.client.delete(resources.FEDERATED_CLUSTERS, "m1")
    await party.start_controllers()
    await party.eventually(party.has_left)
    assert not await exists(party.member("m1"), NAMESPACES, keys.SYSTEM_NAMESPACE)


async def test_a_member_that_is_still_leaving_is_waited_for(party):
    member = party.member("m1")
    blocker = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "late", "namespace": keys.SYSTEM_NAMESPACE, "finalizers": ["example.com/late"]},
    }
    await member.create(ACCOUNTS, blocker)
    await party.client.delete(resources.FEDERATED_CLUSTERS, "m1")
    await party.eventually(party.has_left)
    await party.client.delete(SECRETS, "m1", keys.SYSTEM_NAMESPACE)
    await party.join("m1")

    async def waits() -> bool:
        return "still being deleted" in (await party.condition(JOINED))[2]

    await party.eventually(waits)
    await member.patch(ACCOUNTS, "late", {"metadata": {"finalizers": None}}, keys.SYSTEM_NAMESPACE)
    await party.eventually(lambda: party.ready_clusters() == ["m1"])


@pytest.mark.parametrize("uid", [{}, {"uid": None}, {"uid": ""}], ids=str)
@pytest.mark.real_time("lies are bytes on a socket")
async def test_a_cluster_without_a_uid_to_be_known_by_does_not_join_and_is_told(uid, caplog):
    async def unknown(asked):
        status, body = await asked.truth()
        if status < 300:
            answer = orjson.loads(body)
            del answer["metadata"]["uid"]
            body = orjson.dumps(answer | {"metadata": answer["metadata"] | uid})
        yield head(status, len(body), {"Connection": "close"}) + body

    async with Party(0) as fed, Outsider() as server, Liar(server) as liar:
        pair = server.authority.client_pair("admin", "admin", ["system:masters"])
        data = {
            keys.SECRET_CA: server.authority.certificate,
            keys.SECRET_CLIENT_CERTIFICATE: pair.certificate,
            keys.SECRET_CLIENT_KEY: pair.key,
        }
        await fed.client.create(SECRETS, cluster_secret("m1", encoded(data)))
        with liar.lying(f"(GET|POST) /api/v1/namespaces(/{keys.SYSTEM_NAMESPACE})?", unknown):
            await fed.client.create(resources.FEDERATED_CLUSTERS, federated_cluster("m1", liar.url))
            await fed.told(TOKEN_NOT_OBTAINED_REASON, "has no uid", type=JOINED)
            await fed.eventually(lambda: fed.events("JoinClusterError"))
        await fed.eventually(lambda: fed.ready_clusters() == ["m1"])
    assert not [record.getMessage() for record in caplog.records if record.exc_info]


async def test_a_secret_that_comes_a_moment_later_is_no_failure():
    timings = msgspec.structs.replace(QUICK, secret_grace=30.0)
    async with Party(0, timings=timings) as fed, Outsider() as server:
        manifest = federated_cluster("m1", server.url, secretRef={"name": "late"})
        await fed.client.create(resources.FEDERATED_CLUSTERS, manifest)
        await fed.eventually(lambda: fed.inside.caches.clusters.get("m1").metadata.finalizers)
        pair = server.authority.issue("admin", groups=["system:masters"])
        data = {
            keys.SECRET_CA: server.authority.certificate,
            keys.SECRET_CLIENT_CERTIFICATE: pair.certificate,
            keys.SECRET_CLIENT_KEY: pair.key,
        }
        await fed.client.create(SECRETS, cluster_secret("late", encoded(data)))
        await fed.eventually(lambda: fed.ready_clusters() == ["m1"])
        assert not await fed.events("JoinClusterError")


async def test_a_member_that_falls_silent_is_told_of_before_its_conditions_change():
    async with Party(accounts=False) as fed:
        await fed.servers["m1"].close_door()

        async def told() -> bool:
            return bool(await fed.events("ClusterNotReachable"))

        await fed.eventually(told)
        assert fed.ready_clusters() == ["m1"]
