"""What becomes of the way into a stock member: tokens are renewed, credentials change, rights follow, suffice or are missing."""

import datetime

import msgspec

from argosy.api import keys, resources
from argosy.api.conditions import READY
from argosy.control.members import join, role
from argosy.kube.resource import Resource
from argosy.testing.certificates import Authority
from argosy.testing.pytest_plugin import Kubernetes
from tests.harness.eventually import holds
from tests.harness.membership import ACCOUNTS, RBAC, RBAC_TYPES, widget_type
from tests.harness.user import DEPLOYMENTS, SECRETS
from tests.real.hub import ACCOUNT, CALM, MEMBER, Hub

ROLES = Resource(RBAC, "v1", "roles", "Role")
ROLE_BINDINGS = Resource(RBAC, "v1", "rolebindings", "RoleBinding")
#: Kubernetes issues no token for less than ten minutes, so these are renewed after a hundredth of that.
RESTLESS = msgspec.structs.replace(CALM, token_lifetime=600.0, token_renewal=1)


async def test_an_account_renews_its_token_without_anybodys_help(kubernetes: Kubernetes):
    async with Hub(await kubernetes.shared(MEMBER), RESTLESS) as hub:
        await hub.take_in(hub.certificate(), useServiceAccount=True)
        await hub.forget_user()
        member = hub.inside.members.get("m1")
        await hub.propagates("before")
        first = await hub.account_token()
        informer = hub.inside.collector.informers()["m1", "deployments.apps"]
        await hub.eventually(lambda: informer.has_synced)
        lists = informer.lists

        async def renewed() -> bool:
            return first not in (await hub.account_token(), hub.inside.access.in_use("m1").token)

        await hub.eventually(renewed)
        await hub.propagates("after")
        tokens = await hub.eventually(lambda: (hub.token_of("before"), hub.token_of("after")), "the log has both")
        assert tokens[0] != tokens[1]
        # The same member, its caches as they were.
        assert hub.inside.members.get("m1") is member
        assert informer.lists == lists
        # After a restart the token itself says when it is time.
        await hub.stop_controllers()
        second = await hub.account_token()
        await hub.start_controllers()
        await hub.eventually(lambda: hub.ready_clusters() == ["m1"])

        async def renewed_again() -> bool:
            return await hub.account_token() != second

        await hub.eventually(renewed_again)


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
    message = await hub.told("CredentialsRejected", "401", "argosy join m1 --kubeconfig")
    assert "eyJ" not in message
    assert await hub.replicas() == {"m1": 1}
    config = str(hub.stock.kubeconfig)
    code, said = await hub.argosy(tmp_path, "join", "m1", "--kubeconfig", config, "--timeout", "120")
    assert code == 0, said
    await hub.granted()
    await hub.scale("web", 2)
    await hub.eventually_replicas({"m1": 2})


async def test_rotated_credentials_are_used_and_useless_ones_cut_nothing(hub):
    await hub.take_in(hub.certificate("first"))
    await hub.propagates("one")
    informer = hub.inside.collector.informers()["m1", "deployments.apps"]
    await hub.eventually(lambda: informer.has_synced)
    lists = informer.lists
    second = hub.certificate("second")
    await hub.put(**second)
    await hub.eventually(lambda: hub.inside.access.in_use("m1").cert_data == _certificate(second))
    await hub.propagates("two")

    def made() -> dict[str, str]:
        return {
            event["objectRef"].get("name"): event["user"].get("username")
            for event in hub.stock.audit
            if event["verb"] == "create" and event["objectRef"].get("resource") == "deployments"
        }

    await hub.eventually(lambda: {"one", "two"} <= made().keys(), "the log has both")
    assert (made()["one"], made()["two"]) == ("first", "second")
    for useless, words in (
        (hub.certificate("third", Authority("stranger")), "Unauthorized"),
        (hub.certificate("third", lifetime=datetime.timedelta(days=-1)), "Unauthorized"),
        ({keys.SECRET_CLIENT_CERTIFICATE: b"no certificate"}, "not PEM"),
    ):
        await hub.put(**useless)
        await hub.told("CredentialsUnusable", words)
    await hub.propagates("three")
    assert informer.lists == lists
    assert hub.ready_clusters() == ["m1"]
    await hub.put(**second)
    await hub.granted()


def _certificate(data: dict[str, bytes]) -> bytes:
    return data[keys.SECRET_CLIENT_CERTIFICATE]


async def test_the_rights_are_enough_for_all_that_is_done(hub):
    """Also for roles and bindings that grant what the account does not hold, and for leaving with everything."""
    await hub.take_in(hub.certificate(), useServiceAccount=True)
    await hub.forget_user()
    # Its first requests may have come before its role was in force; nothing after that.
    granted = await hub.condition()
    assert granted[0] in ("", "True")
    since = len(hub.stock.audit)
    await hub.propagates()
    await hub.scale("web", 3)
    await hub.eventually_replicas({"m1": 3})
    labels = {keys.PROPAGATION_POLICY_LABEL: "policy"}
    metadata = {"name": "powerful", "namespace": "default", "labels": labels}
    rule = {"apiGroups": ["example.com"], "resources": ["*"], "verbs": ["*"]}
    role = {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]}
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}
    subjects = [{"kind": "User", "apiGroup": RBAC, "name": "alice"}]
    binding = {
        "apiVersion": f"{RBAC}/v1",
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
    assert await hub.condition() == granted
    await hub.leave()
    refused = [
        (event["verb"], event["requestURI"])
        for event in hub.stock.audit[since:]
        if event["user"].get("username") == ACCOUNT and event["responseStatus"]["code"] == 403
    ]
    assert not refused


async def test_rights_follow_the_type_configs_as_far_as_kubernetes_lets_them(hub, tmp_path):
    await hub.take_in(hub.certificate(), useServiceAccount=True)
    await hub.forget_user()
    await hub.client.create(resources.FEDERATED_TYPE_CONFIGS, widget_type("widgets"))
    await hub.eventually(lambda: hub.has_right_to("widgets"))
    for name in RBAC_TYPES:
        await hub.client.delete(resources.FEDERATED_TYPE_CONFIGS, name)

    async def narrowed() -> bool:
        return not await hub.has_right_to("rolebindings")

    await hub.eventually(narrowed)
    await hub.eventually_refused("escalate", RBAC, "clusterroles")
    await hub.client.create(resources.FEDERATED_TYPE_CONFIGS, widget_type("gadgets"))
    await hub.told("RoleOutdated", "gadgets.example.com", "argosy join m1 --refresh-role --kubeconfig")
    config = str(hub.stock.kubeconfig)
    code, said = await hub.argosy(tmp_path, "join", "m1", "--refresh-role", "--kubeconfig", config)
    assert code == 0, said
    assert await hub.has_right_to("gadgets")
    await hub.granted()


async def test_a_right_that_is_missing_is_told_by_verb_and_resource(hub):
    await hub.take_in(hub.certificate(), useServiceAccount=True)
    await hub.forget_user()
    await hub.propagates()
    found = await hub.role()
    del found["metadata"]["labels"]  # somebody's own from now on
    rules = [rule for rule in found["rules"] if "nodes" not in rule.get("resources", ())]
    reading = {**next(rule for rule in rules if rule.get("apiGroups") == ["apps"]), "verbs": ["get", "list", "watch"]}
    rules = [rule for rule in rules if rule.get("apiGroups") != ["apps"]]
    await hub.member("m1").update(join.ROLES, {**found, "rules": [*rules, reading]})
    await hub.eventually_refused("update", "apps", "deployments")
    await hub.scale("web", 2)
    await hub.told("RightsMissing", 'cannot update resource "deployments" in API group "apps"')
    await hub.stop_controllers()
    await hub.start_controllers()
    await hub.told("ClusterResourceCollectionFailed", 'cannot list resource "nodes"', type=READY)
    assert await hub.replicas() == {"m1": 1}
    found = await hub.role()
    await hub.member("m1").update(join.ROLES, {**found, "rules": role.FULL_ACCESS})
    await hub.eventually_replicas({"m1": 2})
