"""Ways into a member: service accounts and their tokens, credentials that change, rights that follow or are missing."""

import base64
import functools
from typing import Any

import msgspec
import pytest

from argosy.api import keys, resources
from argosy.api.conditions import AUTHORIZED, JOINED
from argosy.api.types import FederatedCluster
from argosy.control import join, memberrole
from argosy.fleet.tokens import life_of
from argosy.kube.errors import Forbidden, NotFound
from argosy.kube.resource import Resource
from argosy.server.embedded import EmbeddedServer
from tests.harness import eventually as waiting
from tests.harness.eventually import holds
from tests.harness.federation import DEPLOYMENTS, EVENTS, NAMESPACES, QUICK, SECRETS, Federation
from tests.harness.relay import Relay

#: Generous: what comes true does so in a moment, on a machine that has nothing else to do.
eventually = functools.partial(waiting.eventually, timeout=30.0)

ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
RBAC_TYPES = [f"{plural}.rbac.authorization.k8s.io" for plural in memberrole._ESCALATIONS]
USERS = (keys.SECRET_CLIENT_CERTIFICATE, keys.SECRET_CLIENT_KEY, keys.SECRET_BOOTSTRAP_TOKEN)
#: Every token is due for renewal as soon as it is there.
RESTLESS = msgspec.structs.replace(QUICK, token_renewal=0)
WIDGETS = {
    "apiVersion": keys.API_VERSION,
    "kind": "FederatedTypeConfig",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "sourceType": {
            "group": "example.com",
            "version": "v1",
            "kind": "Widget",
            "pluralName": "widgets",
            "scope": "Namespaced",
        }
    },
}


class Party(Federation):
    """One member, with a service account in it unless a test wants it otherwise."""

    def __init__(self, *, accounts: bool = True, **options: Any):
        super().__init__(1, **options)
        self.spec = {"useServiceAccount": True} if accounts else {}

    async def join(self, name: str, **spec: Any) -> None:
        await super().join(name, **{**self.spec, **spec})

    async def secret(self) -> dict[str, bytes]:
        found = await self.client.get(SECRETS, "m1", keys.SYSTEM_NAMESPACE)
        return {key: base64.b64decode(value) for key, value in found["data"].items()}

    async def token(self) -> bytes:
        return (await self.secret())[keys.SECRET_SERVICE_ACCOUNT_TOKEN]

    async def put(self, **data: bytes | None) -> None:
        body = {key: base64.b64encode(value).decode() if value is not None else None for key, value in data.items()}
        await self.client.patch(SECRETS, "m1", {"data": body}, keys.SYSTEM_NAMESPACE)

    async def forget_user(self) -> None:
        await self.put(**dict.fromkeys(USERS))

    async def cluster(self) -> FederatedCluster:
        return await self.client.get(resources.FEDERATED_CLUSTERS, "m1", into=FederatedCluster)

    async def condition(self, type: str = AUTHORIZED) -> tuple[str, str, str]:
        found = (await self.cluster()).condition(type)
        return (found.status, found.reason, found.message) if found is not None else ("", "", "")

    async def told(self, reason: str, *words: str) -> str:
        async def probe() -> bool:
            status, found, message = await self.condition()
            return status == "False" and found == reason and all(word in message for word in words)

        try:
            await eventually(probe)
        except AssertionError:
            raise AssertionError(f"expected {reason} {words}, found {await self.condition()}") from None
        return (await self.condition())[2]

    async def rules(self) -> list[dict[str, Any]]:
        return (await self.member("m1").get(join.ROLES, keys.MEMBER_CLUSTER_ROLE))["rules"]

    async def propagates(self, name: str = "web") -> None:
        await self.deploy(name, replicas=1)
        await self.eventually_replicas({"m1": 1}, name, timeout=20)


def secret(name: str, data: dict[str, bytes]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": keys.SYSTEM_NAMESPACE},
        "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
    }


@pytest.fixture
async def party():
    async with Party() as fed:
        await fed.policy()
        yield fed


# Service accounts.


async def test_an_account_gets_a_token_that_ends_and_needs_nothing_else(party):
    life = life_of(await party.token())
    assert life is not None
    assert life.expires - life.issued == QUICK.token_lifetime
    with pytest.raises(NotFound):
        await party.member("m1").get(SECRETS, keys.MEMBER_SERVICE_ACCOUNT, keys.SYSTEM_NAMESPACE)
    await party.forget_user()
    in_use = party.manager.clusters.access.in_use("m1")
    assert in_use.token == await party.token()
    assert not in_use.cert_data
    await party.propagates()
    assert await party.condition() == ("", "", "")


async def test_a_token_is_left_alone_until_it_is_due(party):
    before = await party.client.get(SECRETS, "m1", keys.SYSTEM_NAMESPACE)

    async def same() -> bool:
        return await party.client.get(SECRETS, "m1", keys.SYSTEM_NAMESPACE) == before

    await holds(same, 4 * QUICK.health_period)
    await party.stop_controllers()
    await party.start_controllers()
    await holds(same, 2 * QUICK.health_period)


async def test_an_account_renews_its_token_by_itself_and_uses_the_new_one():
    async with Party(timings=RESTLESS) as fed:
        await fed.policy()
        await fed.forget_user()
        member, first = fed.manager.members.get("m1"), await fed.token()

        async def renewed() -> bool:
            return await fed.token() != first and fed.manager.clusters.access.in_use("m1").token != first

        await eventually(renewed)
        assert fed.manager.members.get("m1") is member
        await fed.propagates()


async def test_a_token_that_is_refused_is_replaced_with_the_users_credentials(party):
    await party.member("m1").delete(ACCOUNTS, keys.MEMBER_SERVICE_ACCOUNT, keys.SYSTEM_NAMESPACE)
    before = await party.token()

    async def replaced() -> bool:
        return await party.token() != before

    await eventually(replaced)
    await party.propagates()


async def test_a_token_that_is_refused_for_good_is_told_with_the_way_out(party):
    await party.forget_user()
    await party.propagates()
    await party.member("m1").delete(ACCOUNTS, keys.MEMBER_SERVICE_ACCOUNT, keys.SYSTEM_NAMESPACE)
    message = await party.told("CredentialsRejected", "401", "argosy join m1 --kubeconfig")
    assert "eyJ" not in message
    assert await party.replicas() == {"m1": 1}


async def test_a_token_that_cannot_be_kept_is_told_and_the_member_is_looked_after_all_the_same(monkeypatch):
    async with Party(timings=RESTLESS) as fed:
        asked = 0

        async def refuse(cluster: FederatedCluster, token: bytes | None) -> None:
            nonlocal asked
            asked += 1
            raise Forbidden(403, "Forbidden", "secrets is forbidden", {})

        monkeypatch.setattr(fed.manager.clusters.access, "keep_token", refuse)
        await fed.told("TokenNotRenewed", "secrets is forbidden")
        before = asked
        probed = (await fed.cluster()).condition("Ready").last_probe_time

        async def probed_again() -> bool:
            return (await fed.cluster()).condition("Ready").last_probe_time != probed

        await eventually(probed_again)
        assert asked - before <= 4, "one a health period"


async def test_a_legacy_token_goes_on_working(party):
    """As a secret that KubeAdmiral wrote holds one."""
    await party.member("m1").create(SECRETS, memberrole.token_secret())

    async def filled() -> str:
        found = await party.member("m1").get(SECRETS, keys.MEMBER_SERVICE_ACCOUNT, keys.SYSTEM_NAMESPACE)
        return found["data"]["token"]

    legacy = base64.b64decode(await eventually(filled))
    await party.put(**{keys.SECRET_SERVICE_ACCOUNT_TOKEN: legacy})
    await eventually(lambda: party.manager.clusters.access.in_use("m1").token == legacy)
    await party.propagates()
    assert await party.token() == legacy


async def test_an_account_made_by_somebody_else_joins_with_its_token_alone():
    """What `argosy join` does: the control plane never sees the credentials it was made with."""
    async with Federation(0) as fed, Outsider() as server:
        manifest = {
            "apiVersion": keys.API_VERSION,
            "kind": "FederatedCluster",
            "metadata": {"name": "m1"},
            "spec": {"apiEndpoint": server.url, "secretRef": {"name": "m1"}, "useServiceAccount": True},
        }
        made = await fed.client.create(resources.FEDERATED_CLUSTERS, manifest)
        cluster = msgspec.convert(made, FederatedCluster)
        namespace = await join.claim(server.client(), cluster)
        await join.furnish(server.client(), namespace, memberrole.rules_for(cluster, fed.manager.caches.catalog))
        token = await join.new_token(server.client(), 3600)
        data = {keys.SECRET_CA: server.authority.certificate, keys.SECRET_SERVICE_ACCOUNT_TOKEN: token}
        await fed.client.create(SECRETS, secret("m1", data))
        await eventually(lambda: fed.ready_clusters() == ["m1"])
        assert not await fed.events("JoinClusterError")


class Outsider:
    """A cluster that is no member yet."""

    async def __aenter__(self) -> EmbeddedServer:
        self._server = EmbeddedServer()
        await self._server.start()
        return self._server

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop()


# Coming and going.


async def test_leaving_takes_account_rights_and_token_away(party):
    await party.forget_user()
    await party.client.delete(resources.FEDERATED_CLUSTERS, "m1")
    await eventually(lambda: party.manager.caches.clusters.get("m1") is None)
    member = party.member("m1")

    async def clean() -> bool:
        for resource, name in (
            (NAMESPACES, keys.SYSTEM_NAMESPACE),
            (join.ROLES, keys.MEMBER_CLUSTER_ROLE),
            (BINDINGS, keys.MEMBER_CLUSTER_ROLE),
        ):
            with pytest.raises(NotFound):
                await member.get(resource, name)
        return True

    await eventually(clean)
    assert set(await party.secret()) == {keys.SECRET_CA}


async def test_what_a_join_that_never_came_about_made_is_taken_back(party):
    """The account was made, and then the user thought better of it."""
    await party.client.delete(resources.FEDERATED_CLUSTERS, "m1")
    await eventually(lambda: party.manager.caches.clusters.get("m1") is None)
    await party.stop_controllers()
    manifest = {
        "apiVersion": keys.API_VERSION,
        "kind": "FederatedCluster",
        "metadata": {"name": "m1", "finalizers": [keys.CLUSTER_FINALIZER]},
        "spec": {"apiEndpoint": party.servers["m1"].url, "secretRef": {"name": "m1"}, "useServiceAccount": True},
    }
    user = party.servers["m1"].kubeconfig("m1")["users"][0]["user"]
    await party.put(
        **{
            keys.SECRET_CLIENT_CERTIFICATE: base64.b64decode(user["client-certificate-data"]),
            keys.SECRET_CLIENT_KEY: base64.b64decode(user["client-key-data"]),
        }
    )
    made = await party.client.create(resources.FEDERATED_CLUSTERS, manifest)
    await join.claim(party.member("m1"), msgspec.convert(made, FederatedCluster))
    await party.client.delete(resources.FEDERATED_CLUSTERS, "m1")
    await party.start_controllers()
    await eventually(lambda: party.manager.caches.clusters.get("m1") is None)
    with pytest.raises(NotFound):
        await party.member("m1").get(NAMESPACES, keys.SYSTEM_NAMESPACE)


async def test_a_member_that_is_still_leaving_is_waited_for(party):
    member = party.member("m1")
    blocker = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "late", "namespace": keys.SYSTEM_NAMESPACE, "finalizers": ["example.com/late"]},
    }
    await member.create(ACCOUNTS, blocker)
    await party.client.delete(resources.FEDERATED_CLUSTERS, "m1")
    await eventually(lambda: party.manager.caches.clusters.get("m1") is None)
    await party.client.delete(SECRETS, "m1", keys.SYSTEM_NAMESPACE)
    await party.join("m1")

    async def waits() -> bool:
        return "still being deleted" in (await party.condition(JOINED))[2]

    await eventually(waits)
    await member.patch(ACCOUNTS, "late", {"metadata": {"finalizers": None}}, keys.SYSTEM_NAMESPACE)
    await eventually(lambda: party.ready_clusters() == ["m1"])


async def test_a_secret_that_comes_a_moment_later_is_no_failure():
    timings = msgspec.structs.replace(QUICK, secret_grace=30.0)
    async with Federation(0, timings=timings) as fed, Outsider() as server:
        manifest = {
            "apiVersion": keys.API_VERSION,
            "kind": "FederatedCluster",
            "metadata": {"name": "m1"},
            "spec": {"apiEndpoint": server.url, "secretRef": {"name": "late"}},
        }
        await fed.client.create(resources.FEDERATED_CLUSTERS, manifest)
        await eventually(lambda: fed.manager.caches.clusters.get("m1").metadata.finalizers)
        pair = server.authority.issue("admin", groups=["system:masters"])
        data = {
            keys.SECRET_CA: server.authority.certificate,
            keys.SECRET_CLIENT_CERTIFICATE: pair.certificate,
            keys.SECRET_CLIENT_KEY: pair.key,
        }
        await fed.client.create(SECRETS, secret("late", data))
        await eventually(lambda: fed.ready_clusters() == ["m1"])
        assert not await fed.events("JoinClusterError")


# Credentials that change.


async def test_a_rotated_certificate_is_used_and_nothing_is_listed_again():
    async with Party(accounts=False) as fed:
        await fed.policy()
        await fed.propagates("before")
        member = fed.manager.members.get("m1")
        informer = fed.manager.collector.informers()["m1", "deployments.apps"]
        lists = informer.lists
        pair = fed.servers["m1"].authority.issue("rotated", groups=["system:masters"])
        await fed.put(**{keys.SECRET_CLIENT_CERTIFICATE: pair.certificate, keys.SECRET_CLIENT_KEY: pair.key})
        await eventually(lambda: fed.manager.clusters.access.in_use("m1").cert_data == pair.certificate)
        await fed.propagates("after")
        assert fed.manager.members.get("m1") is member
        assert informer.lists == lists
        assert fed.ready_clusters() == ["m1"]


async def test_a_secret_of_no_use_cuts_nothing_and_is_told():
    async with Party(accounts=False) as fed:
        await fed.policy()
        stranger = EmbeddedServer()
        before = await fed.secret()
        pair = stranger.authority.issue("admin", groups=["system:masters"])
        await fed.put(**{keys.SECRET_CLIENT_CERTIFICATE: pair.certificate, keys.SECRET_CLIENT_KEY: pair.key})
        await fed.told("CredentialsUnusable", 'secret "m1"', "earlier credentials stay in use")
        await fed.propagates("certificate")
        await fed.put(**{keys.SECRET_CLIENT_KEY: None})
        await fed.told("CredentialsUnusable", "authentication information is missing")
        await fed.put(**{keys.SECRET_CA: stranger.authority.certificate, **_pair(before)})
        await fed.told("CredentialsUnusable", "certificate")
        await fed.propagates("authority")
        assert fed.ready_clusters() == ["m1"]
        await fed.put(**before)

        async def well() -> bool:
            return (await fed.condition())[0] == "True"

        await eventually(well)


def _pair(data: dict[str, bytes]) -> dict[str, bytes]:
    return {key: data[key] for key in (keys.SECRET_CLIENT_CERTIFICATE, keys.SECRET_CLIENT_KEY)}


async def _mistake(fed: Party, other: EmbeddedServer, url: str) -> None:
    """Have m1's credentials and address be those of a cluster that is somebody else's member."""
    namespace = {"name": keys.SYSTEM_NAMESPACE, "annotations": {keys.FEDERATED_CLUSTER_UID: "other"}}
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


async def _told_as_event(fed: Party) -> bool:
    events = (await fed.client.list(EVENTS)).items
    return any("is not the one that joined" in event["message"] for event in events)


async def test_another_cluster_at_a_new_address_is_not_taken_for_the_member():
    async with Party(accounts=False) as fed, Outsider() as other:
        await fed.policy()
        await _mistake(fed, other, other.url)
        await fed.told("CredentialsUnusable", "is not the one that joined")
        await fed.propagates()
        with pytest.raises(NotFound):
            await other.client().get(DEPLOYMENTS, "web", "default")


async def test_nor_by_controllers_that_never_saw_the_one_that_joined():
    async with Party(accounts=False) as fed, Outsider() as other:
        await fed.policy()
        await fed.propagates()
        await fed.stop_controllers()
        await _mistake(fed, other, other.url)
        await fed.start_controllers()
        await eventually(lambda: _told_as_event(fed))
        assert fed.manager.members.get("m1") is None
        assert (await other.client().list(DEPLOYMENTS)).items == []


async def test_nor_when_it_did_not_answer_at_first():
    async with Party(accounts=False) as fed, Outsider() as other, Relay("127.0.0.1", other.port) as relay:
        await fed.stop_controllers()
        await _mistake(fed, other, relay.url)
        relay.refuse()
        await fed.start_controllers()
        await eventually(lambda: fed.manager.members.get("m1") is not None)
        relay.heal()
        await eventually(lambda: _told_as_event(fed))
        await eventually(lambda: fed.manager.members.get("m1") is None)


# Rights.


async def test_rights_are_those_the_type_configs_ask_for(party):
    cluster = await party.cluster()
    rules = memberrole.rules_for(cluster, party.manager.caches.catalog)
    assert await party.rules() == rules
    assert not any("*" in values for rule in rules for values in (rule["verbs"], rule.get("resources", ())))
    backwards = list(party.manager.caches.catalog)[::-1]
    assert memberrole.rules_for(cluster, backwards) == rules


async def test_full_access_is_an_option(party):
    annotation = {"metadata": {"annotations": {keys.MEMBER_ACCESS: keys.FULL}}}
    await party.client.patch(resources.FEDERATED_CLUSTERS, "m1", annotation)

    async def may_everything() -> bool:
        return await party.rules() == memberrole.FULL_ACCESS

    await eventually(may_everything)


async def test_rights_follow_the_type_configs(party):
    await party.forget_user()

    async def has_widgets() -> bool:
        return any("widgets" in rule.get("resources", ()) for rule in await party.rules())

    await party.client.create(resources.FEDERATED_TYPE_CONFIGS, WIDGETS)
    await eventually(has_widgets)
    await party.client.delete(resources.FEDERATED_TYPE_CONFIGS, "widgets.example.com")

    async def gone() -> bool:
        return not await has_widgets()

    await eventually(gone)
    assert await party.condition() == ("", "", "")


async def _federate_no_roles(party: Party) -> None:
    for name in RBAC_TYPES:
        await party.client.delete(resources.FEDERATED_TYPE_CONFIGS, name)

    async def narrowed() -> bool:
        return not any({"escalate", "bind"} & set(rule["verbs"]) for rule in await party.rules())

    await eventually(narrowed)


async def test_where_roles_are_not_federated_an_account_cannot_widen_its_rights_and_says_what_to_run(party):
    await party.forget_user()
    await _federate_no_roles(party)
    await party.client.create(resources.FEDERATED_TYPE_CONFIGS, WIDGETS)
    await party.told(
        "RoleOutdated", "missing: widgets.example.com", "argosy join m1 --refresh-role --kubeconfig", "forbidden"
    )
    cluster = await party.cluster()
    member = party.member("m1")
    namespace = await member.get(NAMESPACES, keys.SYSTEM_NAMESPACE)
    await join.furnish(member, namespace, memberrole.rules_for(cluster, party.manager.caches.catalog))

    async def well() -> bool:
        return (await party.condition())[0] == "True"

    await eventually(well)


async def test_the_users_credentials_widen_the_rights_where_they_were_kept(party):
    await _federate_no_roles(party)
    await party.client.create(resources.FEDERATED_TYPE_CONFIGS, WIDGETS)

    async def has_widgets() -> bool:
        return any("widgets" in rule.get("resources", ()) for rule in await party.rules())

    await eventually(has_widgets)


async def test_a_role_that_others_made_is_left_as_it_is(party):
    """KubeAdmiral's, say, in a member that was taken over."""
    role = await party.member("m1").get(join.ROLES, keys.MEMBER_CLUSTER_ROLE)
    del role["metadata"]["labels"]
    await party.member("m1").update(join.ROLES, {**role, "rules": memberrole.FULL_ACCESS})
    await party.client.create(resources.FEDERATED_TYPE_CONFIGS, WIDGETS)

    async def same() -> bool:
        return await party.rules() == memberrole.FULL_ACCESS

    await holds(same, 4 * QUICK.health_period)


async def test_a_right_that_is_missing_is_told_with_verb_and_resource_and_nothing_is_deleted(party):
    await party.forget_user()
    await party.propagates()
    role = await party.member("m1").get(join.ROLES, keys.MEMBER_CLUSTER_ROLE)
    del role["metadata"]["labels"]  # its maker's from now on
    rules = [rule for rule in role["rules"] if rule.get("apiGroups") != ["apps"]]
    reading = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list", "watch"]}
    await party.member("m1").update(join.ROLES, {**role, "rules": [*rules, reading]})
    await party.scale("web", 2)
    await party.told("RightsMissing", 'cannot update resource "deployments" in API group "apps"')
    assert await party.replicas() == {"m1": 1}
    assert party.ready_clusters() == ["m1"]
    await party.member("m1").update(
        join.ROLES,
        {**await party.member("m1").get(join.ROLES, keys.MEMBER_CLUSTER_ROLE), "rules": memberrole.FULL_ACCESS},
    )
    await party.eventually_replicas({"m1": 2}, timeout=30)

    async def well() -> bool:
        return (await party.condition())[0] == "True"

    await eventually(well)


async def test_nodes_that_may_not_be_read_are_named_in_the_condition(party):
    role = await party.member("m1").get(join.ROLES, keys.MEMBER_CLUSTER_ROLE)
    del role["metadata"]["labels"]
    rules = [rule for rule in role["rules"] if "nodes" not in rule.get("resources", ())]
    await party.member("m1").update(join.ROLES, {**role, "rules": rules})
    await party.stop_controllers()
    await party.start_controllers()

    async def told() -> bool:
        return 'cannot list resource "nodes"' in (await party.condition("Ready"))[2]

    await eventually(told)


async def test_an_account_gets_no_tokens_but_its_own_and_no_rights_by_itself(party):
    from argosy.server.identity import User

    account = f"system:serviceaccount:{keys.SYSTEM_NAMESPACE}:{keys.MEMBER_SERVICE_ACCOUNT}"
    client = party.servers["m1"].client(User(account, ("system:serviceaccounts", "system:authenticated")))
    assert await join.new_token(client, 600)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    for namespace, name in ((keys.SYSTEM_NAMESPACE, "default"), ("default", "default")):
        with pytest.raises(Forbidden):
            await client.create(ACCOUNTS, body, namespace, name=name, subresource="token")
    await _federate_no_roles(party)
    role = await client.get(join.ROLES, keys.MEMBER_CLUSTER_ROLE)
    with pytest.raises(Forbidden):
        await client.update(join.ROLES, {**role, "rules": memberrole.FULL_ACCESS})


async def test_a_member_that_falls_silent_is_told_of_before_its_conditions_change():
    timings = msgspec.structs.replace(QUICK, health_threshold=60.0)
    async with Party(accounts=False, timings=timings) as fed:
        await fed.servers["m1"].close_door()

        async def told() -> bool:
            return bool(await fed.events("ClusterNotReachable"))

        await eventually(told)
        assert fed.ready_clusters() == ["m1"]
