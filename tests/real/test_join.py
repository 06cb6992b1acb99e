"""Joining stock clusters by each kind of credentials, and what becomes of those: renewed, rotated, refused, taken back."""

import asyncio
import base64
import datetime
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from argosy.api import keys, resources
from argosy.api.conditions import AUTHORIZED, JOINED, READY
from argosy.api.types import FederatedCluster
from argosy.control import join, memberrole
from argosy.control.timings import Timings
from argosy.fleet.tokens import life_of
from argosy.kube.client import Client
from argosy.kube.resource import Resource
from argosy.testing import Cluster, Options
from argosy.testing.certificates import Authority
from argosy.testing.pytest_plugin import Kubernetes
from tests.harness.eventually import holds
from tests.harness.federation import QUICK, Federation
from tests.harness.user import DEPLOYMENTS, NAMESPACES, SECRETS, cluster_secret, exists, federated_cluster

_RBAC = "rbac.authorization.k8s.io"
ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
BINDINGS = Resource(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
ROLES = Resource(_RBAC, "v1", "roles", "Role")
ROLE_BINDINGS = Resource(_RBAC, "v1", "rolebindings", "RoleBinding")

#: Nothing has to run; the writes are looked at.
MEMBER = Options(nodes=0, audit=True)
#: Time to answer for processes that share two cores.
CALM = msgspec.structs.replace(QUICK, health_period=1.0, health_threshold=1.0)
#: Kubernetes issues no token for less than ten minutes, so these are renewed after a hundredth of that.
RESTLESS = msgspec.structs.replace(CALM, token_lifetime=600.0, token_renewal=1)
PATIENCE = 60.0
ACCOUNT = f"system:serviceaccount:{keys.SYSTEM_NAMESPACE}:{keys.MEMBER_SERVICE_ACCOUNT}"
USERS = (keys.SECRET_CLIENT_CERTIFICATE, keys.SECRET_CLIENT_KEY, keys.SECRET_BOOTSTRAP_TOKEN)


class Hub(Federation):
    """An embedded control plane, and one stock cluster to join as m1."""

    def __init__(self, cluster: Cluster, timings: Timings = CALM):
        super().__init__(0, timings=timings)
        self.cluster = cluster
        self.patience = PATIENCE
        self._member = cluster.client()

    async def __aenter__(self) -> "Hub":
        await super().__aenter__()
        self.names = ["m1"]
        await self.policy()
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self.leave()
        finally:
            await self._member.close()
            await super().__aexit__()

    def member(self, name: str) -> Client:
        return self._member

    def certificate(self, user: str = "admin", authority: Authority | None = None, **options: Any) -> dict[str, bytes]:
        pair = (authority or self.cluster.authority).client(user, ["system:masters"], **options)
        return {keys.SECRET_CLIENT_CERTIFICATE: pair.certificate, keys.SECRET_CLIENT_KEY: pair.key}

    def token(self) -> dict[str, bytes]:
        return {keys.SECRET_BOOTSTRAP_TOKEN: self.cluster.token.encode()}

    async def take_in(
        self, credentials: dict[str, bytes], *, ready: bool = True, name: str = "m1", **spec: Any
    ) -> None:
        data = {keys.SECRET_CA: self.cluster.authority.certificate, **credentials}
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        await self.client.create(SECRETS, cluster_secret(name, encoded))
        endpoint = spec.pop("apiEndpoint", self.cluster.server)
        await self.client.create(resources.FEDERATED_CLUSTERS, federated_cluster(name, endpoint, **spec))
        if ready:
            await self.eventually(lambda: self.ready_clusters() == [name], f"{name} is ready")

    async def leave(self) -> None:
        """With everything of ours in it; then it can be joined again."""
        for cluster in (await self.client.list(resources.FEDERATED_CLUSTERS)).items:
            name = cluster["metadata"]["name"]
            await self.annotate(resources.FEDERATED_CLUSTERS, name, None, **{keys.CASCADING_DELETE: "true"})
            await self.client.delete(resources.FEDERATED_CLUSTERS, name)
        manager = self.manager
        assert manager is not None
        await self.eventually(lambda: not list(manager.caches.clusters.values()), "all clusters have left")
        await self.eventually(self.is_clean, "the member is as it was")

    async def is_clean(self) -> bool:
        made = (
            (NAMESPACES, keys.SYSTEM_NAMESPACE),
            (join.ROLES, keys.MEMBER_CLUSTER_ROLE),
            (BINDINGS, keys.MEMBER_CLUSTER_ROLE),
        )
        return not any([await exists(self._member, resource, name) for resource, name in made])

    async def secret(self) -> dict[str, bytes]:
        found = await self.client.get(SECRETS, "m1", keys.SYSTEM_NAMESPACE)
        return {key: base64.b64decode(value) for key, value in (found.get("data") or {}).items()}

    async def account_token(self) -> bytes:
        return (await self.secret())[keys.SECRET_SERVICE_ACCOUNT_TOKEN]

    async def put(self, **data: bytes | None) -> None:
        body = {key: base64.b64encode(value).decode() if value is not None else None for key, value in data.items()}
        await self.client.patch(SECRETS, "m1", {"data": body}, keys.SYSTEM_NAMESPACE)

    async def forget_user(self) -> None:
        await self.put(**dict.fromkeys(USERS))

    async def told(self, type: str, reason: str, *words: str) -> str:
        last: tuple[str, ...] = ()

        async def probe() -> bool:
            nonlocal last
            cluster = await self.client.get(resources.FEDERATED_CLUSTERS, "m1", into=FederatedCluster)
            found = cluster.condition(type)
            last = (found.status, found.reason, found.message) if found is not None else ()
            return len(last) == 3 and last[1] == reason and all(word in last[2] for word in words)

        try:
            await self.eventually(probe)
        except AssertionError:
            raise AssertionError(f"expected {reason} {words}, found {last}") from None
        return last[2]

    async def propagates(self, name: str = "web") -> None:
        await self.deploy(name, replicas=1)
        await self.eventually_replicas({"m1": 1}, name)

    def writes(self, name: str = "") -> list[dict[str, Any]]:
        """What was written in the member by the service account, finished, oldest first; of objects of this name."""
        return [
            event
            for event in self.cluster.audit
            if event["user"]["username"] == ACCOUNT
            and event["stage"] == "ResponseComplete"
            and (
                not name or event["objectRef"].get("name") == name or name in json.dumps(event.get("requestObject", ""))
            )
        ]


@pytest.fixture
async def hub(kubernetes: Kubernetes) -> AsyncIterator[Hub]:
    async with Hub(await kubernetes.shared(MEMBER)) as entered:
        yield entered


# Each kind of credentials.


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
    assert _token_of(hub, "web")
    await hub.leave()
    assert keys.SECRET_SERVICE_ACCOUNT_TOKEN not in await hub.secret()


async def test_a_legacy_token_goes_on_working(hub):
    await hub.take_in(hub.certificate(), useServiceAccount=True)
    await hub.member("m1").create(SECRETS, memberrole.token_secret())

    async def filled() -> str:
        found = await hub.member("m1").get(SECRETS, keys.MEMBER_SERVICE_ACCOUNT, keys.SYSTEM_NAMESPACE)
        return str(found["data"]["token"])

    legacy = base64.b64decode(await hub.eventually(filled))
    assert life_of(legacy) is None
    await hub.put(**{keys.SECRET_SERVICE_ACCOUNT_TOKEN: legacy})
    await hub.eventually(lambda: hub.manager.clusters.access.in_use("m1").token == legacy)
    await hub.propagates()
    assert await hub.account_token() == legacy


async def argosy(hub: Hub, folder: Path, *arguments: str) -> tuple[int, str]:
    config = folder / "hub"
    config.write_text(yaml.safe_dump(hub.plane.kubeconfig("hub")))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "argosy.cli",
        "--kubeconfig",
        str(config),
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    return process.returncode or 0, out.decode()


async def test_a_kubeconfig_with_a_credential_plugin(hub, tmp_path):
    """As cloud providers have it. What the plugin answers never gets to the control plane."""
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": hub.cluster.token},
    }
    (tmp_path / "credential.json").write_text(json.dumps(credential))
    config = {**hub.cluster.config}
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "cat",
        "args": [str(tmp_path / "credential.json")],
        "interactiveMode": "Never",
    }
    config["users"] = [{"name": config["users"][0]["name"], "user": {"exec": plugin}}]
    path = tmp_path / "member"
    path.write_text(yaml.safe_dump(config))
    code, said = await argosy(hub, tmp_path, "join", "m1", "--kubeconfig", str(path), "--timeout", "120")
    assert code == 0, said
    assert "m1 joined and ready" in said
    secret = await hub.secret()
    assert set(secret) == {keys.SECRET_CA, keys.SECRET_SERVICE_ACCOUNT_TOKEN}
    assert not await hub.events("JoinClusterError")
    await hub.propagates()
    code, said = await argosy(hub, tmp_path, "join", "m1", "--kubeconfig", str(path), "--timeout", "120")
    assert (code, "was a member already" in said) == (0, True), said
    assert await hub.account_token() != secret[keys.SECRET_SERVICE_ACCOUNT_TOKEN]
    code, said = await argosy(hub, tmp_path, "unjoin", "m1", "--cascade", "--timeout", "120")
    assert code == 0, said
    await hub.eventually(hub.is_clean)
    assert await hub.replicas() == {}


async def test_a_user_without_the_rights_to_make_an_account_is_told_and_nothing_is_left(hub, tmp_path):
    path = hub.cluster.kubeconfig_of("nobody")
    code, said = await argosy(hub, tmp_path, "join", "m1", "--kubeconfig", str(path))
    assert code == 1
    assert 'User "nobody" cannot get resource "namespaces"' in said
    assert "--keep-credentials" in said
    await hub.eventually(lambda: not list(hub.manager.caches.clusters.values()))


# Tokens are renewed.


async def test_an_account_renews_its_token_without_anybodys_help(kubernetes: Kubernetes):
    async with Hub(await kubernetes.shared(MEMBER), RESTLESS) as hub:
        await hub.take_in(hub.certificate(), useServiceAccount=True)
        await hub.forget_user()
        first = await hub.account_token()
        member = hub.manager.members.get("m1")
        await hub.propagates("before")
        informer = hub.manager.collector.informers()["m1", "deployments.apps"]
        lists = informer.lists

        async def renewed() -> bool:
            return first not in (await hub.account_token(), hub.manager.clusters.access.in_use("m1").token)

        await hub.eventually(renewed)
        await hub.propagates("after")
        assert _token_of(hub, "before") != _token_of(hub, "after")
        # The same member, its caches as they were.
        assert hub.manager.members.get("m1") is member
        assert informer.lists == lists
        # After a restart the token itself says when it is time.
        await hub.stop_controllers()
        second = await hub.account_token()
        await hub.start_controllers()
        await hub.eventually(lambda: hub.ready_clusters() == ["m1"])

        async def renewed_again() -> bool:
            return await hub.account_token() != second

        await hub.eventually(renewed_again)


def _token_of(hub: Hub, name: str) -> str:
    """Which of its tokens the account had when it made the Deployment."""
    made = [event for event in hub.writes(name) if event["verb"] == "create" and event["objectRef"]["name"] == name]
    return str(made[-1]["user"]["extra"]["authentication.kubernetes.io/credential-id"])


async def test_a_token_that_is_not_due_is_not_renewed(hub):
    await hub.take_in(hub.certificate(), useServiceAccount=True)
    before = await hub.client.get(SECRETS, "m1", keys.SYSTEM_NAMESPACE)

    async def same() -> bool:
        return await hub.client.get(SECRETS, "m1", keys.SYSTEM_NAMESPACE) == before

    await holds(same, 4 * hub.timings.health_period)


async def test_an_account_that_was_deleted_is_made_anew_with_the_users_credentials(hub):
    await hub.take_in(hub.certificate(), useServiceAccount=True)
    before = await hub.account_token()
    await hub.member("m1").delete(ACCOUNTS, keys.MEMBER_SERVICE_ACCOUNT, keys.SYSTEM_NAMESPACE)

    async def replaced() -> bool:
        return await hub.account_token() != before

    await hub.eventually(replaced)
    await hub.propagates()


async def test_without_them_the_condition_says_what_to_run_and_that_helps(hub, tmp_path):
    await hub.take_in(hub.certificate(), useServiceAccount=True)
    await hub.forget_user()
    await hub.propagates()
    await hub.member("m1").delete(ACCOUNTS, keys.MEMBER_SERVICE_ACCOUNT, keys.SYSTEM_NAMESPACE)
    message = await hub.told(AUTHORIZED, "CredentialsRejected", "401", "argosy join m1 --kubeconfig")
    assert "eyJ" not in message
    assert await hub.replicas() == {"m1": 1}
    config = str(hub.cluster.kubeconfig)
    code, said = await argosy(hub, tmp_path, "join", "m1", "--kubeconfig", config, "--timeout", "120")
    assert code == 0, said
    await hub.told(AUTHORIZED, "AccessGranted")
    await hub.scale("web", 2)
    await hub.eventually_replicas({"m1": 2})


# Credentials change.


async def test_rotated_credentials_are_used_and_useless_ones_cut_nothing(hub):
    await hub.take_in(hub.certificate("first"))
    await hub.propagates("one")
    informer = hub.manager.collector.informers()["m1", "deployments.apps"]
    lists = informer.lists
    second = hub.certificate("second")
    await hub.put(**second)
    await hub.eventually(lambda: hub.manager.clusters.access.in_use("m1").cert_data == _certificate(second))
    await hub.propagates("two")
    made = {
        event["objectRef"]["name"]: event["user"]["username"]
        for event in hub.cluster.audit
        if event["verb"] == "create" and event["objectRef"].get("resource") == "deployments"
    }
    assert (made["one"], made["two"]) == ("first", "second")
    for useless, words in (
        (hub.certificate("third", Authority("stranger")), "Unauthorized"),
        (hub.certificate("third", lifetime=datetime.timedelta(days=-1)), "Unauthorized"),
        ({keys.SECRET_CLIENT_CERTIFICATE: b"no certificate"}, "not PEM"),
    ):
        await hub.put(**useless)
        await hub.told(AUTHORIZED, "CredentialsUnusable", words)
    await hub.propagates("three")
    assert informer.lists == lists
    assert hub.ready_clusters() == ["m1"]
    await hub.put(**second)
    await hub.told(AUTHORIZED, "AccessGranted")


def _certificate(data: dict[str, bytes]) -> bytes:
    return data[keys.SECRET_CLIENT_CERTIFICATE]


# Members that cannot be joined.


@pytest.mark.parametrize("case", ["wrong authority", "expired certificate", "stranger", "no address", "no rights"])
async def test_what_keeps_a_cluster_from_joining_is_told(hub, case):
    stranger = Authority("stranger")
    dead = {"apiEndpoint": "https://127.0.0.1:1"}
    nobody = hub.cluster.authority.client("nobody")
    powerless = {keys.SECRET_CLIENT_CERTIFICATE: nobody.certificate, keys.SECRET_CLIENT_KEY: nobody.key}
    credentials, spec, words = {
        "wrong authority": ({**hub.certificate(), keys.SECRET_CA: stranger.certificate}, {}, "certificate"),
        "expired certificate": (hub.certificate(lifetime=datetime.timedelta(days=-1)), {}, "expired"),
        "stranger": (hub.certificate(authority=stranger), {}, "Unauthorized"),
        "no address": (hub.certificate(), dead, "127.0.0.1:1"),
        "no rights": (powerless, {}, 'User "nobody" cannot get resource "namespaces"'),
    }[case]
    await hub.take_in(credentials, ready=False, **spec)
    await hub.told(JOINED, "TokenNotObtained", words)
    cluster = await hub.client.get(resources.FEDERATED_CLUSTERS, "m1", into=FederatedCluster)
    assert not cluster.status.join_performed


async def test_a_member_of_another_federation_is_refused(hub, tmp_path):
    annotations = {keys.FEDERATED_CLUSTER_UID: "another"}
    theirs = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": keys.SYSTEM_NAMESPACE, "annotations": annotations},
    }
    await hub.member("m1").create(NAMESPACES, theirs)
    try:
        await hub.take_in(hub.certificate(), ready=False)
        await hub.told(JOINED, "ClusterUnjoinable")
        code, said = await argosy(hub, tmp_path, "join", "m2", "--kubeconfig", str(hub.cluster.kubeconfig))
        assert code == 1
        assert "already joined to another federation" in said
        await hub.client.delete(resources.FEDERATED_CLUSTERS, "m1")
        await hub.eventually(lambda: not list(hub.manager.caches.clusters.values()))
        found = await hub.member("m1").get(NAMESPACES, keys.SYSTEM_NAMESPACE)
        assert not found["metadata"].get("deletionTimestamp")
    finally:
        await hub.member("m1").delete(NAMESPACES, keys.SYSTEM_NAMESPACE)


# Rights.


async def test_the_rights_are_enough_for_all_that_is_done(hub):
    """Also for roles and bindings that grant what the account does not hold, and for leaving with everything."""
    await hub.take_in(hub.certificate(), useServiceAccount=True)
    await hub.forget_user()
    since = len(hub.cluster.audit)
    await hub.propagates()
    await hub.scale("web", 3)
    await hub.eventually_replicas({"m1": 3})
    labels = {keys.PROPAGATION_POLICY_LABEL: "policy"}
    metadata = {"name": "powerful", "namespace": "default", "labels": labels}
    rule = {"apiGroups": ["example.com"], "resources": ["*"], "verbs": ["*"]}
    role = {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]}
    reference = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "cluster-admin"}
    subjects = [{"kind": "User", "apiGroup": _RBAC, "name": "alice"}]
    binding = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": reference,
        "subjects": subjects,
    }
    await hub.client.create(ROLES, role)
    await hub.client.create(ROLE_BINDINGS, binding)
    for resource in (ROLES, ROLE_BINDINGS):
        await hub.eventually(lambda resource=resource: hub.copies("powerful", resource), resource.kind)
    await hub.client.delete(DEPLOYMENTS, "web", "default")
    await hub.eventually_replicas({})
    cluster = await hub.client.get(resources.FEDERATED_CLUSTERS, "m1", into=FederatedCluster)
    assert cluster.condition(AUTHORIZED) is None
    await hub.leave()
    refused = [
        (event["verb"], event["requestURI"])
        for event in hub.cluster.audit[since:]
        if event["user"]["username"] == ACCOUNT and event["responseStatus"]["code"] == 403
    ]
    assert not refused


async def test_rights_follow_the_type_configs_as_far_as_kubernetes_lets_them(hub, tmp_path):
    await hub.take_in(hub.certificate(), useServiceAccount=True)
    await hub.forget_user()
    await hub.client.create(resources.FEDERATED_TYPE_CONFIGS, _widgets("widgets"))

    async def has(plural: str) -> bool:
        role = await hub.member("m1").get(join.ROLES, keys.MEMBER_CLUSTER_ROLE)
        return any(plural in rule.get("resources", ()) for rule in role["rules"])

    await hub.eventually(lambda: has("widgets"))
    for plural in memberrole._ESCALATIONS:
        await hub.client.delete(resources.FEDERATED_TYPE_CONFIGS, f"{plural}.{_RBAC}")

    async def narrowed() -> bool:
        return not await has("rolebindings")

    await hub.eventually(narrowed)
    await hub.client.create(resources.FEDERATED_TYPE_CONFIGS, _widgets("gadgets"))
    await hub.told(AUTHORIZED, "RoleOutdated", "gadgets.example.com", "argosy join m1 --refresh-role --kubeconfig")
    config = str(hub.cluster.kubeconfig)
    code, said = await argosy(hub, tmp_path, "join", "m1", "--refresh-role", "--kubeconfig", config)
    assert code == 0, said
    assert await has("gadgets")
    await hub.told(AUTHORIZED, "AccessGranted")


def _widgets(plural: str) -> dict[str, Any]:
    source = {
        "group": "example.com",
        "version": "v1",
        "kind": plural.title(),
        "pluralName": plural,
        "scope": "Namespaced",
    }
    return {
        "apiVersion": keys.API_VERSION,
        "kind": "FederatedTypeConfig",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {"sourceType": source},
    }


async def test_a_right_that_is_missing_is_told_by_verb_and_resource(hub):
    await hub.take_in(hub.certificate(), useServiceAccount=True)
    await hub.forget_user()
    await hub.propagates()
    role = await hub.member("m1").get(join.ROLES, keys.MEMBER_CLUSTER_ROLE)
    del role["metadata"]["labels"]  # somebody's own from now on
    rules = [rule for rule in role["rules"] if "nodes" not in rule.get("resources", ())]
    reading = {**next(rule for rule in rules if rule.get("apiGroups") == ["apps"]), "verbs": ["get", "list", "watch"]}
    rules = [rule for rule in rules if rule.get("apiGroups") != ["apps"]]
    await hub.member("m1").update(join.ROLES, {**role, "rules": [*rules, reading]})
    await hub.scale("web", 2)
    await hub.told(AUTHORIZED, "RightsMissing", 'cannot update resource "deployments" in API group "apps"')
    await hub.stop_controllers()
    await hub.start_controllers()
    await hub.told(READY, "ClusterResourceCollectionFailed", 'cannot list resource "nodes"')
    assert await hub.replicas() == {"m1": 1}
    role = await hub.member("m1").get(join.ROLES, keys.MEMBER_CLUSTER_ROLE)
    await hub.member("m1").update(join.ROLES, {**role, "rules": memberrole.FULL_ACCESS})
    await hub.eventually_replicas({"m1": 2})
