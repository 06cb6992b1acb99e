"""`argosy join` and `argosy unjoin` for members: which cluster is meant, and what goes with a membership."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.api import keys, resources
from argosy.server.embedded import EmbeddedServer
from tests.harness.federation import DEPLOYMENTS, NAMESPACES, SECRETS
from tests.harness.membership import Outsider, Party
from tests.harness.user import exists, federated_cluster

pytestmark = pytest.mark.real_time("the commands have an event loop of their own")

OWNED = {"apiVersion": keys.API_VERSION, "kind": "FederatedCluster", "name": "m1"}


def _kubeconfig(folder: Path, server: EmbeddedServer, **cluster: Any) -> str:
    config = server.kubeconfig("member")
    config["clusters"][0]["cluster"].update(cluster)
    path = folder / f"member-{server.port}"
    path.write_text(yaml.safe_dump(config))
    return str(path)


async def _has_copy(server: EmbeddedServer, name: str = "web") -> bool:
    return await exists(server.client(), DEPLOYMENTS, name, "default")


async def _joins(fed: Party, folder: Path, server: EmbeddedServer, *options: str) -> str:
    path = _kubeconfig(folder, server)
    code, said = await fed.argosy(folder, "join", "m1", "--kubeconfig", path, "--timeout", "60", *options)
    assert code == 0, said
    return said


@pytest.mark.parametrize("way", ["--use-service-account", "--keep-credentials"])
async def test_another_cluster_takes_a_members_place_only_when_that_is_asked_for(tmp_path, way):
    async with Party(0) as fed, Outsider() as first, Outsider() as other:
        await _joins(fed, tmp_path, first, way)
        await fed.policy()
        await fed.deploy("web", replicas=1)
        await fed.eventually(lambda: _has_copy(first))
        before, secret = await fed.cluster(), await fed.secret()

        path = _kubeconfig(tmp_path, other)
        access = ("--full-access",) if way == "--use-service-account" else ()
        code, said = await fed.argosy(tmp_path, "join", "m1", "--kubeconfig", path, way, "-l", "a=b", *access)
        assert code == 1
        assert "is not the m1 that joined" in said
        assert "--reclaim" in said
        now = await fed.cluster()
        assert (now.spec, now.metadata.labels, now.metadata.annotations) == (
            before.spec,
            before.metadata.labels,
            before.metadata.annotations,
        )
        assert await fed.secret() == secret
        assert not await exists(other.client(), NAMESPACES, keys.SYSTEM_NAMESPACE)

        await _joins(fed, tmp_path, other, way, "--reclaim")
        await fed.eventually(lambda: _has_copy(other))
        assert (await fed.cluster()).spec.api_endpoint == other.url
        await fed.deploy("more", replicas=1)
        await fed.eventually(lambda: _has_copy(other, "more"))
        assert await _has_copy(first), "what the one before has stays there"
        assert not await _has_copy(first, "more")


async def test_a_namespace_that_was_deleted_in_the_member_is_told_and_made_again_when_asked(party, tmp_path):
    await party.propagates()
    member = party.member("m1")
    await member.delete(NAMESPACES, keys.SYSTEM_NAMESPACE)
    await party.told("CredentialsRejected", "it has no namespace", "argosy join m1 --reclaim")
    await party.stop_controllers()
    await party.start_controllers()
    await party.told("CredentialsRejected", "it has no namespace", "argosy join m1 --reclaim")
    assert not await exists(member, NAMESPACES, keys.SYSTEM_NAMESPACE)
    assert await party.replicas() == {"m1": 1}

    path = _kubeconfig(tmp_path, party.servers["m1"])
    code, said = await party.argosy(tmp_path, "join", "m1", "--kubeconfig", path, "--refresh-role")
    assert code == 1
    assert "--reclaim" in said
    await _joins(party, tmp_path, party.servers["m1"], "--reclaim")
    await party.granted()
    await party.propagates("after")


async def test_a_member_whose_namespace_was_deleted_is_left_alone_by_controllers_that_start(tmp_path):
    """With the user's own credentials, which go on working."""
    async with Party(accounts=False) as fed:
        await fed.policy()
        await fed.propagates()
        await fed.stop_controllers()
        await fed.member("m1").delete(NAMESPACES, keys.SYSTEM_NAMESPACE)
        await fed.start_controllers()
        await fed.told("ClusterIdentityChanged", "it has no namespace", "argosy join m1 --reclaim")
        assert await fed.replicas() == {"m1": 1}
        await _joins(fed, tmp_path, fed.servers["m1"], "--reclaim")
        await fed.granted()
        await fed.propagates("after")


@pytest.mark.parametrize("way", ["--use-service-account", "--keep-credentials"])
async def test_the_secret_that_join_made_goes_with_the_member_though_nobody_waits(tmp_path, way):
    async with Party(0) as fed, Outsider() as server:
        await _joins(fed, tmp_path, server, way)
        found = await fed.client.get(SECRETS, "m1", keys.SYSTEM_NAMESPACE)
        assert found["metadata"]["ownerReferences"] == [{**OWNED, "uid": (await fed.cluster()).metadata.uid}]
        code, said = await fed.argosy(tmp_path, "unjoin", "m1", "--timeout", "0")
        assert (code, said) == (0, "m1 is leaving\n")
        await fed.eventually(fed.has_left)

        async def gone() -> bool:
            return not await exists(fed.client, SECRETS, "m1", keys.SYSTEM_NAMESPACE)

        await fed.eventually(gone)
        assert not await exists(server.client(), NAMESPACES, keys.SYSTEM_NAMESPACE)


async def test_so_does_one_that_was_made_before_secrets_belonged_to_clusters(tmp_path):
    async with Party(0) as fed, Outsider() as server:
        await _joins(fed, tmp_path, server, "--keep-credentials")
        await fed.client.patch(SECRETS, "m1", {"metadata": {"ownerReferences": None}}, keys.SYSTEM_NAMESPACE)
        await fed.argosy(tmp_path, "unjoin", "m1", "--timeout", "0")

        async def gone() -> bool:
            return not await exists(fed.client, SECRETS, "m1", keys.SYSTEM_NAMESPACE)

        await fed.eventually(gone)


async def test_a_secret_that_somebody_else_made_stays(tmp_path):
    async with Party(accounts=False) as fed:
        await _joins(fed, tmp_path, fed.servers["m1"])
        assert "ownerReferences" not in (await fed.client.get(SECRETS, "m1", keys.SYSTEM_NAMESPACE))["metadata"]
        code, said = await fed.argosy(tmp_path, "unjoin", "m1")
        assert (code, said) == (0, "m1 has left\n")
        assert keys.SECRET_CLIENT_KEY in await fed.secret()


@pytest.mark.parametrize("way", [(), ("--reclaim",), ("--keep-credentials", "--reclaim")], ids=" ".join)
async def test_a_member_does_not_join_once_more_under_another_name(tmp_path, way):
    async with Party(0) as fed, Outsider() as server:
        await _joins(fed, tmp_path, server)
        if "--keep-credentials" in way:  # which looks at a cluster only if it knows the name
            await fed.client.create(resources.FEDERATED_CLUSTERS, federated_cluster("m2", "https://127.0.0.1:1"))
        path = _kubeconfig(tmp_path, server)
        code, said = await fed.argosy(tmp_path, "join", "m2", "--kubeconfig", path, *way)
        assert code == 1
        assert "m2 cannot join: the kubeconfig's cluster is a member already, as m1" in said
        assert "argosy join m1" in said
        assert "argosy unjoin m1" in said
        assert "delet" not in said
        assert await exists(server.client(), NAMESPACES, keys.SYSTEM_NAMESPACE)
        assert await exists(fed.client, resources.FEDERATED_CLUSTERS, "m2") == ("--keep-credentials" in way)
        await fed.policy()
        await fed.deploy("web", replicas=1)
        await fed.eventually(lambda: _has_copy(server), why="m1 goes on as before")


async def test_a_member_of_another_federation_is_to_be_unjoined_there(tmp_path):
    async with Party(0) as fed, Party(0) as other, Outsider() as server:
        await _joins(other, tmp_path, server)
        path = _kubeconfig(tmp_path, server)
        code, said = await fed.argosy(tmp_path, "join", "m2", "--kubeconfig", path)
        assert code == 1
        assert "already joined to another federation" in said
        assert "unjoin it there first" in said
        assert "delet" not in said


async def test_a_member_that_never_comes_back_is_given_up_and_what_is_left_behind_is_told(tmp_path):
    async with Party(0) as fed, Outsider() as server:
        await _joins(fed, tmp_path, server)
        await fed.policy()
        await fed.deploy("web", replicas=1)
        await fed.eventually(lambda: _has_copy(server))
        await server.stop()
        code, said = await fed.argosy(tmp_path, "unjoin", "m1", "--timeout", "1")
        assert code == 1
        assert "argosy unjoin m1 --force" in said, "the advice"
        code, said = await fed.argosy(tmp_path, "unjoin", "m1", "--force")
        assert code == 0, said
        first, *remains = said.splitlines()
        assert first.startswith("m1 has left without being reached: ")
        assert remains == [
            "left behind there:",
            "  Deployment: up to 1 copies",
            "  namespace kube-admiral-system",
            "  service account kubeadmiral-member in it, with its role and binding",
            "  cluster role kubeadmiral-controller-manager:kubeadmiral-member and its binding",
        ]
        assert not await exists(fed.client, resources.FEDERATED_CLUSTERS, "m1")
        assert not await exists(fed.client, SECRETS, "m1", keys.SYSTEM_NAMESPACE)


async def test_a_member_that_answers_is_not_given_up_but_leaves(tmp_path):
    async with Party(0) as fed, Outsider() as server:
        await _joins(fed, tmp_path, server)
        code, said = await fed.argosy(tmp_path, "unjoin", "m1", "--force")
        assert (code, said) == (0, "m1 answered and has left the ordinary way\n")
        assert not await exists(server.client(), NAMESPACES, keys.SYSTEM_NAMESPACE)


@pytest.mark.parametrize("options", [("--cascade",), ("--timeout", "0")])
async def test_giving_up_goes_with_nothing_that_needs_the_member(tmp_path, options):
    async with Party(0) as fed:
        code, said = await fed.argosy(tmp_path, "unjoin", "m1", "--force", *options)
        assert code == 2
        assert "--force is not for" in said


async def test_a_member_can_leave_when_its_secret_went_first(tmp_path):
    """A deletion in the foreground takes what belongs to the cluster before the cluster."""
    async with Party(0) as fed, Outsider() as server:
        await _joins(fed, tmp_path, server)
        await fed.client.delete(resources.FEDERATED_CLUSTERS, "m1", propagation="Foreground")
        await fed.eventually(fed.has_left)
        assert not await exists(server.client(), NAMESPACES, keys.SYSTEM_NAMESPACE)


@pytest.mark.parametrize("way", ["--use-service-account", "--keep-credentials"])
async def test_labels_are_given_to_a_member_that_is_there_already(tmp_path, way):
    async with Party(0) as fed, Outsider() as server:
        await _joins(fed, tmp_path, server, way, "-l", "region=eu", "-l", "tier=gold")
        said = await _joins(fed, tmp_path, server, way, "--label", "region=us", "--label", "zone=a")
        assert "was a member already" in said
        assert (await fed.cluster()).metadata.labels == {"region": "us", "tier": "gold", "zone": "a"}


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("proxy-url", "http://127.0.0.1:1", "through a proxy (proxy-url)"),
        ("tls-server-name", "kubernetes.example", "'kubernetes.example' (tls-server-name)"),
    ],
)
async def test_a_way_that_the_control_plane_cannot_take_is_refused_at_once(tmp_path, key, value, told):
    async with Party(0) as fed, Outsider() as server:
        for way in ("--use-service-account", "--keep-credentials"):
            path = _kubeconfig(tmp_path, server, **{key: value})
            code, said = await fed.argosy(tmp_path, "join", "m1", "--kubeconfig", path, way)
            assert code == 1
            assert told in said
            assert f"without {key}" in said
        assert (await fed.client.list(resources.FEDERATED_CLUSTERS)).items == []
        assert not await exists(fed.client, SECRETS, "m1", keys.SYSTEM_NAMESPACE)
