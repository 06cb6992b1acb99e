"""Joining stock clusters by each kind of credentials, and what keeps them from joining."""

import datetime
import json

import pytest
import yaml

from argosy.api import keys, resources
from argosy.api.conditions import JOINED
from argosy.control.members import join
from argosy.fleet.tokens import life_of
from argosy.testing.certificates import Authority
from tests.harness.user import NAMESPACES, SECRETS, exists


@pytest.mark.parametrize("kind", ["certificate", "token", "both"])
async def test_a_members_own_credentials(hub, kind):
    credentials = {"certificate": hub.certificate(), "token": hub.token(), "both": {**hub.certificate(), **hub.token()}}
    await hub.take_in(credentials[kind])
    await hub.propagates()
    assert not await exists(hub.member("m1"), join.ROLES, keys.MEMBER_CLUSTER_ROLE)


@pytest.mark.parametrize("kind", ["certificate", "token"])
async def test_a_service_account_made_with(hub, kind):
    await hub.take_in(hub.certificate() if kind == "certificate" else hub.token(), useServiceAccount=True)
    await hub.propagates()
    life = life_of(await hub.account_token())
    assert life is not None
    assert life.expires - life.issued == hub.timings.token_lifetime
    assert not await exists(hub.member("m1"), SECRETS, keys.MEMBER_SERVICE_ACCOUNT, keys.SYSTEM_NAMESPACE)
    assert hub.token_of("web")
    await hub.leave()
    assert keys.SECRET_SERVICE_ACCOUNT_TOKEN not in await hub.secret()


async def test_a_legacy_token_goes_on_working(hub):
    await hub.take_in(hub.certificate(), useServiceAccount=True)
    legacy = await hub.legacy_token()
    assert life_of(legacy) is None
    await hub.put(**{keys.SECRET_SERVICE_ACCOUNT_TOKEN: legacy})
    await hub.eventually(lambda: hub.inside.access.in_use("m1").token == legacy)
    await hub.propagates()
    assert await hub.account_token() == legacy


async def test_a_kubeconfig_with_a_credential_plugin(hub, tmp_path):
    """As cloud providers have it. What the plugin answers never gets to the control plane."""
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": hub.stock.token},
    }
    (tmp_path / "credential.json").write_text(json.dumps(credential))
    config = {**hub.stock.config}
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "cat",
        "args": [str(tmp_path / "credential.json")],
        "interactiveMode": "Never",
    }
    config["users"] = [{"name": config["users"][0]["name"], "user": {"exec": plugin}}]
    path = tmp_path / "member"
    path.write_text(yaml.safe_dump(config))
    code, said = await hub.argosy(tmp_path, "join", "m1", "--kubeconfig", str(path), "--timeout", "120")
    assert code == 0, said
    assert "m1 joined and ready" in said
    secret = await hub.secret()
    assert set(secret) == {keys.SECRET_CA, keys.SECRET_SERVICE_ACCOUNT_TOKEN}
    assert not await hub.events("JoinClusterError")
    await hub.propagates()
    code, said = await hub.argosy(tmp_path, "join", "m1", "--kubeconfig", str(path), "--timeout", "120")
    assert (code, "was a member already" in said) == (0, True), said
    assert await hub.account_token() != secret[keys.SECRET_SERVICE_ACCOUNT_TOKEN]
    code, said = await hub.argosy(tmp_path, "unjoin", "m1", "--cascade", "--timeout", "120")
    assert code == 0, said
    await hub.eventually(hub.is_clean)
    assert await hub.replicas() == {}


async def test_a_user_without_the_rights_to_make_an_account_is_told_and_nothing_is_left(hub, tmp_path):
    path = hub.stock.kubeconfig_of("nobody")
    code, said = await hub.argosy(tmp_path, "join", "m1", "--kubeconfig", str(path))
    assert code == 1
    assert 'User "nobody" cannot get resource "namespaces"' in said
    assert "--keep-credentials" in said
    await hub.eventually(hub.has_left)


@pytest.mark.parametrize("case", ["wrong authority", "expired certificate", "stranger", "no address", "no rights"])
async def test_what_keeps_a_cluster_from_joining_is_told(hub, case):
    stranger = Authority("stranger")
    dead = {"apiEndpoint": "https://127.0.0.1:1"}
    nobody = hub.stock.authority.client("nobody")
    powerless = {keys.SECRET_CLIENT_CERTIFICATE: nobody.certificate, keys.SECRET_CLIENT_KEY: nobody.key}
    credentials, spec, words = {
        "wrong authority": ({**hub.certificate(), keys.SECRET_CA: stranger.certificate}, {}, "certificate"),
        "expired certificate": (hub.certificate(lifetime=datetime.timedelta(days=-1)), {}, "expired"),
        "stranger": (hub.certificate(authority=stranger), {}, "Unauthorized"),
        "no address": (hub.certificate(), dead, "127.0.0.1:1"),
        "no rights": (powerless, {}, 'User "nobody" cannot get resource "namespaces"'),
    }[case]
    await hub.ask_to_join(credentials, **spec)
    await hub.told("TokenNotObtained", words, type=JOINED)
    assert not (await hub.cluster()).status.join_performed


async def test_a_member_of_another_federation_is_refused(hub, tmp_path):
    annotations = {keys.FEDERATED_CLUSTER_UID: "another"}
    theirs = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": keys.SYSTEM_NAMESPACE, "annotations": annotations},
    }
    await hub.member("m1").create(NAMESPACES, theirs)
    try:
        await hub.ask_to_join(hub.certificate())
        await hub.told("ClusterUnjoinable", type=JOINED)
        code, said = await hub.argosy(tmp_path, "join", "m2", "--kubeconfig", str(hub.stock.kubeconfig))
        assert code == 1
        assert "already joined to another federation" in said
        await hub.client.delete(resources.FEDERATED_CLUSTERS, "m1")
        await hub.eventually(hub.has_left)
        found = await hub.member("m1").get(NAMESPACES, keys.SYSTEM_NAMESPACE)
        assert not found["metadata"].get("deletionTimestamp")
    finally:
        await hub.member("m1").delete(NAMESPACES, keys.SYSTEM_NAMESPACE)
