"""Who may write what, and what that makes the control plane do in members: a test for each row of the table in docs/security.md.

Users here have exactly the rights that a row speaks of, on an embedded control plane whose controllers run.
"""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from argosy.api import keys, resources, rights
from argosy.kube.client import Client
from argosy.kube.errors import Forbidden, NotFound
from argosy.kube.resource import Resource
from argosy.plan.copies.held_copies import held_copies
from argosy.plan.scheduling.unit import unit_of
from argosy.plan.scheduling.webhook import scheduling_unit
from argosy.server.auth.identity import User as Identity
from tests.harness.eventually import eventually, holds
from tests.harness.federation import CONFIGMAPS, NAMESPACES, SECRETS, Federation
from tests.harness.guarding import CLUSTER_ROLES, ROLE_BINDINGS, bind, grant, rule
from tests.harness.user import exists
from tests.unit.plan.worlds import TYPE_CONFIGS, policy

DOCS = Path(__file__).parents[2] / "docs" / "security.md"
TESTS = Path(__file__).parents[1]
RBAC = rights.GROUP
WRITE = ["get", "create", "update", "patch", "delete"]
POLICIES = ["propagationpolicies", "overridepolicies"]
NAMED = {keys.PROPAGATION_POLICY_LABEL: "all", keys.OVERRIDE_POLICY_LABEL: "differ"}
ADOPT = {keys.CONFLICT_RESOLUTION: "adopt", keys.CLUSTERS_TO_ADOPT: '{"regexp": ".*"}'}


@pytest.fixture
async def fed() -> AsyncIterator[Federation]:
    async with Federation(1) as federation:
        for name in ("shop", "other"):
            await federation.client.create(NAMESPACES, namespace(name))
            await eventually(lambda name=name: exists(federation.member("m1"), NAMESPACES, name))
        federation.namespace = "shop"
        yield federation


def namespace(name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **metadata}}


def config_map(name: str, where: str = "shop", **metadata: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": where, **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"whose": "theirs"}}


def policy_object(kind: str, name: str, where: str = "", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": where} if where else {})}
    return {"apiVersion": keys.API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}


def patches(*operations: dict[str, Any], where: str = "shop") -> dict[str, Any]:
    """An override policy with these."""
    rules = [{"overriders": {"jsonpatch": list(operations)}}]
    return policy_object("OverridePolicy", "differ", where, overrideRules=rules)


def as_user(fed: Federation, name: str) -> Client:
    return fed.plane.client(Identity(name, ("system:authenticated",)))


async def tenant(fed: Federation, name: str = "ann", where: str = "shop") -> Client:
    """Somebody with Kubernetes' own role `admin` in a namespace, and policies there, as an operator would give them."""
    await bind(fed.client, name, "ClusterRole", "admin", where)
    await grant(fed.client, name, [rule(POLICIES, WRITE)], where)
    user = as_user(fed, name)
    await user.create(
        resources.PROPAGATION_POLICIES, policy_object("PropagationPolicy", "all", where, schedulingMode="Duplicate")
    )
    return user


async def held(fed: Federation, name: str, where: str | None = "shop") -> bool:
    """The federated object says why it does not go further, or not to m1."""
    resource = resources.FEDERATED_OBJECTS if where else resources.CLUSTER_FEDERATED_OBJECTS
    found = await fed.client.get(resource, name, where)
    annotations = found["metadata"].get("annotations") or {}
    return keys.HELD in annotations or bool(held_copies(annotations).why("m1"))


async def told(fed: Federation, name: str, reason: str) -> bool:
    found = await fed.client.get(resources.CLUSTER_FEDERATED_OBJECTS, name)
    return any(each.get("reason") == reason for each in (found.get("status") or {}).get("conditions") or ())


async def test_a_user_of_a_namespace_reaches_that_namespace_of_members_and_no_other(fed):
    ann, member = await tenant(fed), fed.member("m1")
    for where in ("shop", "other"):
        await member.create(CONFIGMAPS, config_map("there-before", where, labels={"mine": "yes"}))
    # Not without asking, and then the one in the same place.
    await ann.create(CONFIGMAPS, config_map("there-before", labels=NAMED))
    await ann.create(resources.OVERRIDE_POLICIES, patches())
    name = "there-before-configmaps"
    await eventually(lambda: fed.propagation(name))

    async def exists_already() -> bool:
        return await fed.propagation(name) == {"m1": "AlreadyExists"}

    await eventually(exists_already)
    await ann.patch(CONFIGMAPS, "there-before", {"metadata": {"annotations": ADOPT}}, "shop")

    async def adopted() -> bool:
        found = await member.get(CONFIGMAPS, "there-before", "shop")
        return (found["metadata"].get("annotations") or {}).get(keys.ADOPTED) == "true"

    await eventually(adopted)
    untouched = await member.get(CONFIGMAPS, "there-before", "other")
    assert untouched["metadata"]["labels"] == {"mine": "yes"}
    with pytest.raises(Forbidden):
        await ann.create(CONFIGMAPS, config_map("there-before", "other"))


async def test_a_policy_is_for_the_objects_of_its_namespace(fed):
    await tenant(fed)
    await fed.client.create(CONFIGMAPS, config_map("elsewhere", "other", labels=NAMED))
    await eventually(lambda: held(fed, "elsewhere-configmaps", "other"))
    assert not await exists(fed.member("m1"), CONFIGMAPS, "elsewhere", "other")


@pytest.mark.parametrize(
    "operation",
    [
        {"operator": "replace", "path": "/metadata/namespace", "value": "other"},
        {"operator": "replace", "path": "/metadata", "value": {"name": "evil", "namespace": "kube-system"}},
        {"operator": "replace", "path": "/kind", "value": "Secret"},
        {"operator": "replace", "path": "/apiVersion", "value": "v2"},
    ],
    ids=lambda operation: operation["path"],
)
async def test_an_override_moves_no_object(fed, operation):
    ann = await tenant(fed)
    await ann.create(resources.OVERRIDE_POLICIES, patches(operation))
    await ann.create(CONFIGMAPS, config_map("evil", labels=NAMED))
    await eventually(lambda: held(fed, "evil-configmaps"))
    for where in ("shop", "other", "kube-system"):
        assert not await exists(fed.member("m1"), CONFIGMAPS, "evil", where)


def role_binding(role: str) -> dict[str, Any]:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "friends", "namespace": "shop", "labels": NAMED},
        "subjects": [rights.user("ann")],
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
    }


async def test_nobody_grants_in_members_what_he_may_not_grant_here(fed):
    """What a role holds and to whom is checked where it is written; an override comes after that."""
    ann = await tenant(fed)
    with pytest.raises(Forbidden):
        await ann.create(ROLE_BINDINGS, role_binding("cluster-admin"))
    await ann.create(
        resources.OVERRIDE_POLICIES,
        patches({"operator": "replace", "path": "/roleRef/name", "value": "cluster-admin"}),
    )
    await ann.create(ROLE_BINDINGS, role_binding("view"))
    await eventually(lambda: held(fed, f"friends-rolebindings.{RBAC}"))
    await holds(lambda: _none(fed, ROLE_BINDINGS, "friends", "shop"), 0.3)
    # Without the override it goes, as it is.
    await ann.delete(resources.OVERRIDE_POLICIES, "differ", "shop")
    await ann.patch(ROLE_BINDINGS, "friends", {"metadata": {"labels": {keys.OVERRIDE_POLICY_LABEL: None}}}, "shop")
    copy = await eventually(lambda: fed.member("m1").get(ROLE_BINDINGS, "friends", "shop"))
    assert copy["roleRef"]["name"] == "view"


async def _none(fed: Federation, resource: Resource, name: str, where: str | None = None) -> bool:
    return not await exists(fed.member("m1"), resource, name, where)


async def test_the_federations_own_rights_in_members_are_nobodys_template(fed):
    """Even for somebody who may write cluster roles and cluster-wide policies here."""
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": keys.MEMBER_CLUSTER_ROLE}}
    member = fed.member("m1")
    await member.create(CLUSTER_ROLES, {**role, "rules": rules})
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    await grant(fed.client, "boss", [everything])
    boss = as_user(fed, "boss")
    spec = policy_object("ClusterPropagationPolicy", "all", schedulingMode="Duplicate")
    await boss.create(resources.CLUSTER_PROPAGATION_POLICIES, spec)
    labels = {keys.CLUSTER_PROPAGATION_POLICY_LABEL: "all"}
    metadata = {**role["metadata"], "labels": labels, "annotations": ADOPT}
    await boss.create(CLUSTER_ROLES, {**role, "metadata": metadata, "rules": [everything]})

    async def refused() -> bool:
        federated = (await fed.client.list(resources.CLUSTER_FEDERATED_OBJECTS)).items
        names = [each["metadata"]["name"] for each in federated if "clusterroles" in each["metadata"]["name"]]
        return bool(names) and await told(fed, names[0], "TemplateRefused")

    await eventually(refused)
    assert (await member.get(CLUSTER_ROLES, keys.MEMBER_CLUSTER_ROLE))["rules"] == rules


async def test_nothing_of_the_system_namespace_is_carried(fed):
    where = keys.SYSTEM_NAMESPACE
    spec = policy_object("PropagationPolicy", "all", where, schedulingMode="Duplicate")
    await fed.client.create(resources.PROPAGATION_POLICIES, spec)
    await fed.client.create(CONFIGMAPS, config_map("evil", where, labels={keys.PROPAGATION_POLICY_LABEL: "all"}))
    await fed.client.patch(
        SECRETS, "m1", {"metadata": {"labels": {keys.PROPAGATION_POLICY_LABEL: "all"}}}, where
    )  # the member's own credentials
    await fed.policy("all", schedulingMode="Duplicate")
    await fed.configure("later", {}, "all")
    await eventually(lambda: exists(fed.member("m1"), CONFIGMAPS, "later", "shop"))
    assert not (await fed.client.list(resources.FEDERATED_OBJECTS, where)).items
    assert await _none(fed, CONFIGMAPS, "evil", where)
    assert await _none(fed, SECRETS, "m1", where)


async def test_namespaces_that_are_every_members_own_are_left_alone(fed):
    """A namespace of the same name is otherwise taken for the same: that is `test_a_namespace_that_was_there_before…`."""
    label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}
    for name in ("kube-system", "default"):
        await fed.client.patch(NAMESPACES, name, label)
    await fed.client.patch(NAMESPACES, "shop", label)

    async def labelled(name: str) -> bool:
        found = await fed.member("m1").get(NAMESPACES, name)
        return "pod-security.kubernetes.io/enforce" in (found["metadata"].get("labels") or {})

    await eventually(lambda: labelled("shop"))
    assert not await labelled("kube-system")
    assert not await labelled("default")


async def _theirs(fed: Federation) -> None:
    """A namespace that was in the member before anybody here spoke of it."""
    await fed.member("m1").create(NAMESPACES, namespace("istio-system", labels={"whose": "theirs", "tier": "mesh"}))
    await fed.member("m1").create(CONFIGMAPS, config_map("precious", "istio-system"))


async def _managed(fed: Federation, **annotations: str | None) -> bool:
    """Whether the member's namespace is under our management and has these annotations, None for those that it lacks."""
    metadata = (await fed.member("m1").get(NAMESPACES, "istio-system"))["metadata"]
    found = {key: (metadata.get("annotations") or {}).get(key) for key in annotations}
    return metadata.get("labels", {}).get(keys.MANAGED_LABEL) == "true" and found == annotations


async def _outlives(fed: Federation) -> None:
    async def there() -> bool:
        metadata = (await fed.member("m1").get(NAMESPACES, "istio-system"))["metadata"]
        precious = await fed.member("m1").get(CONFIGMAPS, "precious", "istio-system")
        return not metadata.get("deletionTimestamp") and not precious["metadata"].get("deletionTimestamp")

    await eventually(there)
    await holds(there, 0.5)


@pytest.mark.parametrize("said", ["false", "true", ""])
async def test_who_makes_a_namespace_here_takes_none_away_that_was_there(fed, said):
    """Whatever he says of it; `was there` is the member's copy's to say."""
    await _theirs(fed)
    annotations = {keys.ADOPTED: said, keys.PROPAGATED_ANNOTATION_KEYS: keys.ADOPTED, "step": "1"}
    labels = {"whose": "ours", keys.MANAGED_LABEL: "false", keys.BUCKET_LABEL: "7"}
    await fed.client.create(NAMESPACES, namespace("istio-system", annotations=annotations, labels=labels))
    await eventually(lambda: _managed(fed, step="1"))
    assert await _managed(fed, **{keys.ADOPTED: "true"})
    # Said, and taken back again: that does not take along what is the member's.
    change = {keys.ADOPTED: None, keys.PROPAGATED_ANNOTATION_KEYS: None, "step": "2"}
    await fed.client.patch(NAMESPACES, "istio-system", {"metadata": {"annotations": change}})
    await eventually(lambda: _managed(fed, step="2"))
    assert await _managed(fed, **{keys.ADOPTED: "true"})
    found = (await fed.member("m1").get(NAMESPACES, "istio-system"))["metadata"]["labels"]
    assert (found["tier"], found["whose"]) == ("mesh", "ours"), "labels of ours replace the member's of the same key"
    assert keys.BUCKET_LABEL not in found
    await fed.client.delete(NAMESPACES, "istio-system")
    await fed.eventually(lambda: _gone(fed, "istio-system"))
    await _outlives(fed)


async def test_nor_does_a_leave_that_takes_copies_along(fed):
    await _theirs(fed)
    await fed.client.create(NAMESPACES, namespace("istio-system", annotations={keys.ADOPTED: "false"}))
    await eventually(lambda: _managed(fed))
    await fed.annotate(resources.FEDERATED_CLUSTERS, "m1", None, **{keys.CASCADING_DELETE: "true"})
    await fed.client.delete(resources.FEDERATED_CLUSTERS, "m1")
    await eventually(lambda: fed.inside.caches.clusters.get("m1") is None)
    assert not await exists(fed.member("m1"), NAMESPACES, "shop"), "what was ours goes"
    await _outlives(fed)


async def test_an_override_does_not_say_what_was_there(fed):
    await _theirs(fed)
    mark = {"path": f"/metadata/annotations/{keys.ADOPTED.replace('/', '~1')}", "operator": "add", "value": "false"}
    rule = {"overriders": {"jsonpatch": [mark]}}
    body = policy_object("ClusterOverridePolicy", "differ", overrideRules=[rule])
    await fed.client.create(resources.CLUSTER_OVERRIDE_POLICIES, body)
    labels = {keys.CLUSTER_OVERRIDE_POLICY_LABEL: "differ"}
    await fed.client.create(NAMESPACES, namespace("istio-system", labels=labels))
    await eventually(lambda: fed.events("ParseOverridePolicyFailed"))
    await fed.client.delete(NAMESPACES, "istio-system")
    await fed.eventually(lambda: _gone(fed, "istio-system"))
    await _outlives(fed)


async def _gone(fed: Federation, name: str) -> bool:
    return not await fed.exists(NAMESPACES, name)


CLUSTER_WIDE = [
    (resources.FEDERATED_TYPE_CONFIGS, "FederatedTypeConfig"),
    (resources.FEDERATED_CLUSTERS, "FederatedCluster"),
    (resources.CLUSTER_PROPAGATION_POLICIES, "ClusterPropagationPolicy"),
    (resources.CLUSTER_OVERRIDE_POLICIES, "ClusterOverridePolicy"),
    (resources.SCHEDULING_PROFILES, "SchedulingProfile"),
    (resources.SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS, "SchedulerPluginWebhookConfiguration"),
    (resources.CLUSTER_FEDERATED_OBJECTS, "ClusterFederatedObject"),
]


async def test_every_right_in_a_namespace_is_none_to_what_concerns_the_fleet(fed):
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    await grant(fed.client, "ann", [everything], "shop")
    ann = as_user(fed, "ann")
    await ann.create(CONFIGMAPS, config_map("may"))
    for resource, kind in CLUSTER_WIDE:
        with pytest.raises(Forbidden, match="cannot create resource"):
            await ann.create(resource, policy_object(kind, "mine"))
        with pytest.raises(Forbidden, match="cannot list resource"):
            await ann.list(resource)
    for resource in (SECRETS, CONFIGMAPS):
        with pytest.raises(Forbidden):
            await ann.list(resource, keys.SYSTEM_NAMESPACE)


async def test_a_type_config_carries_no_kind_of_the_federation(fed):
    """Whoever may write type configs chooses which kinds are read here and written in members, but for these."""
    source = {"group": keys.GROUP, "version": keys.VERSION, "kind": "PropagationPolicy", "scope": "Namespaced"}
    spec = {"sourceType": {**source, "pluralName": "propagationpolicies"}}
    body = policy_object("FederatedTypeConfig", "policies", **spec)
    await fed.client.create(resources.FEDERATED_TYPE_CONFIGS, body)
    await fed.policy("all", schedulingMode="Duplicate")
    label = {"metadata": {"labels": {keys.PROPAGATION_POLICY_LABEL: "all"}}}
    await fed.client.patch(resources.PROPAGATION_POLICIES, "all", label, "shop")
    await eventually(lambda: fed.federated("all-policies"))
    placed = {"spec": {"placements": [{"controller": "example.com/step", "placement": [{"cluster": "m1"}]}]}}
    await fed.client.patch(resources.FEDERATED_OBJECTS, "all-policies", placed, "shop")
    await eventually(lambda: fed.events("TemplateRefused"))
    with pytest.raises(NotFound):  # the member does not even know the kind
        await fed.member("m1").get(resources.PROPAGATION_POLICIES, "all", "shop")


def test_plugins_are_not_shown_what_is_in_an_object():
    data = {"password": "c2VjcmV0"}
    applied = {keys.LAST_APPLIED: msgspec.json.encode({"kind": "Secret", "data": data}).decode(), "team": "blue"}
    metadata = {"name": "db", "namespace": "shop", "annotations": applied}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
    unit = unit_of(secret, {}, {}, policy(), TYPE_CONFIGS["secrets"])
    shown = msgspec.json.encode(scheduling_unit(unit)).decode()
    assert "c2VjcmV0" not in shown
    assert unit.annotations == {"team": "blue"}


def test_every_row_of_the_table_names_tests_that_are_there():
    section = DOCS.read_text().split("## Who may write what")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")][2:]
    assert len(rows) > 10
    written = "".join(path.read_text() for path in TESTS.rglob("*.py"))
    for row in rows:
        named = re.findall(r"`(test_\w+)`", row)
        assert named, row
        for name in named:
            assert f"def {name}(" in written, f"{name} is not there, in: {row}"
