"""Rights in members: those the type configs ask for, widened and narrowed with them, and told by name where one is missing."""

import msgspec
import pytest

from argosy.api import keys, resources
from argosy.control.members import join, role
from argosy.kube.errors import Forbidden
from argosy.server.auth.identity import User
from tests.harness.eventually import holds
from tests.harness.federation import NAMESPACES, QUICK, WATCHFUL
from tests.harness.membership import ACCOUNTS, RBAC_TYPES, Party, widget_type


async def test_rights_are_those_the_type_configs_ask_for(party):
    cluster = await party.cluster()
    rules = role.rules_for(cluster, party.inside.catalog)
    assert await party.rules() == rules
    assert not any("*" in values for rule in rules for values in (rule["verbs"], rule.get("resources", ())))
    backwards = list(party.inside.catalog)[::-1]
    assert role.rules_for(cluster, backwards) == rules


async def test_full_access_is_an_option(party):
    annotation = {"metadata": {"annotations": {keys.MEMBER_ACCESS: keys.FULL}}}
    await party.client.patch(resources.FEDERATED_CLUSTERS, "m1", annotation)

    async def may_everything() -> bool:
        return await party.rules() == role.FULL_ACCESS

    await party.eventually(may_everything)


async def test_rights_follow_the_type_configs(party):
    await party.forget_user()
    await party.client.create(resources.FEDERATED_TYPE_CONFIGS, widget_type())
    await party.eventually(lambda: party.has_right_to("widgets"))
    await party.client.delete(resources.FEDERATED_TYPE_CONFIGS, "widgets.example.com")

    async def gone() -> bool:
        return not await party.has_right_to("widgets")

    await party.eventually(gone)
    assert await party.condition() == ("", "", "")


async def test_a_type_config_that_is_being_replaced_costs_no_rights():
    async with Party(timings=msgspec.structs.replace(QUICK, rights_kept=60.0)) as party:
        await party.client.create(resources.FEDERATED_TYPE_CONFIGS, widget_type())
        await party.eventually(lambda: party.has_right_to("widgets"))
        before = await party.role()
        await party.client.delete(resources.FEDERATED_TYPE_CONFIGS, "widgets.example.com")
        await party.eventually(lambda: party.inside.catalog.get("widgets.example.com") is None)

        async def same() -> bool:
            return await party.role() == before

        await holds(same, 4 * QUICK.health_period)


async def _federate_no_roles(party: Party) -> None:
    for name in RBAC_TYPES:
        await party.client.delete(resources.FEDERATED_TYPE_CONFIGS, name)

    async def narrowed() -> bool:
        return not any({"escalate", "bind"} & set(rule["verbs"]) for rule in await party.rules())

    await party.eventually(narrowed)


async def test_where_roles_are_not_federated_an_account_cannot_widen_its_rights_and_says_what_to_run(party):
    await party.forget_user()
    await _federate_no_roles(party)
    await party.client.create(resources.FEDERATED_TYPE_CONFIGS, widget_type())
    await party.told(
        "RoleOutdated", "missing: widgets.example.com", "argosy join m1 --refresh-role --kubeconfig", "forbidden"
    )
    cluster = await party.cluster()
    member = party.member("m1")
    namespace = await member.get(NAMESPACES, keys.SYSTEM_NAMESPACE)
    await join.furnish(member, namespace, role.rules_for(cluster, party.inside.catalog))
    await party.granted()


async def test_the_users_credentials_widen_the_rights_where_they_were_kept(party):
    await _federate_no_roles(party)
    await party.client.create(resources.FEDERATED_TYPE_CONFIGS, widget_type())
    await party.eventually(lambda: party.has_right_to("widgets"))


async def test_a_role_that_others_made_is_left_as_it_is(party):
    """KubeAdmiral's, say, in a member that was taken over."""
    found = await party.role()
    del found["metadata"]["labels"]
    await party.member("m1").update(join.ROLES, {**found, "rules": role.FULL_ACCESS})
    await party.client.create(resources.FEDERATED_TYPE_CONFIGS, widget_type())

    async def same() -> bool:
        return await party.rules() == role.FULL_ACCESS

    await holds(same, 4 * QUICK.health_period)


async def test_a_right_that_is_missing_is_told_with_verb_and_resource_and_nothing_is_deleted(party):
    await party.forget_user()
    await party.propagates()
    found = await party.role()
    del found["metadata"]["labels"]  # its maker's from now on
    rules = [rule for rule in found["rules"] if rule.get("apiGroups") != ["apps"]]
    reading = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list", "watch"]}
    await party.member("m1").update(join.ROLES, {**found, "rules": [*rules, reading]})
    await party.scale("web", 2)
    await party.told("RightsMissing", 'cannot update resource "deployments" in API group "apps"')
    assert await party.replicas() == {"m1": 1}
    assert party.ready_clusters() == ["m1"]
    await party.member("m1").update(join.ROLES, {**await party.role(), "rules": role.FULL_ACCESS})
    await party.eventually_replicas({"m1": 2})
    await party.granted()


async def test_nodes_that_may_not_be_read_are_named_in_the_condition(party):
    found = await party.role()
    del found["metadata"]["labels"]
    rules = [rule for rule in found["rules"] if "nodes" not in rule.get("resources", ())]
    await party.member("m1").update(join.ROLES, {**found, "rules": rules})
    await party.stop_controllers()
    party.timings = WATCHFUL
    await party.start_controllers()

    async def told() -> bool:
        return 'cannot list resource "nodes"' in (await party.condition("Ready"))[2]

    await party.eventually(told)


async def test_an_account_gets_no_tokens_but_its_own_and_no_rights_by_itself(party):
    account = f"system:serviceaccount:{keys.SYSTEM_NAMESPACE}:{keys.MEMBER_SERVICE_ACCOUNT}"
    client = party.servers["m1"].client(User(account, ("system:serviceaccounts", "system:authenticated")))
    assert await join.new_token(client, 600)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    for namespace, name in ((keys.SYSTEM_NAMESPACE, "default"), ("default", "default")):
        with pytest.raises(Forbidden):
            await client.create(ACCOUNTS, body, namespace, name=name, subresource="token")
    await _federate_no_roles(party)
    found = await client.get(join.ROLES, keys.MEMBER_CLUSTER_ROLE)
    with pytest.raises(Forbidden):
        await client.update(join.ROLES, {**found, "rules": role.FULL_ACCESS})
