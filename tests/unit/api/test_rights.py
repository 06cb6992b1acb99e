"""The controllers' rights, and the policy that keeps others from writing federated objects."""

import msgspec
import pytest

from argosy.api import keys, rights, typeconfigs
from argosy.api.admission import guard
from argosy.api.installation import manifests
from argosy.api.typeconfigs import FederatedTypeConfig

STOCK = [msgspec.convert(manifest, FederatedTypeConfig) for manifest in typeconfigs.manifests()]


def allows(rules, verb, resource, group=""):
    return any(group in rule["apiGroups"] and resource in rule["resources"] and verb in rule["verbs"] for rule in rules)


def widget(**spec):
    source = {"group": "example.com", "version": "v1", "kind": "Widget", "pluralName": "widgets", "scope": "Cluster"}
    return msgspec.convert(
        {"metadata": {"name": "widgets.example.com"}, "spec": {"sourceType": source, **spec}}, FederatedTypeConfig
    )


def test_nothing_is_granted_with_a_wildcard_and_no_source_may_be_created_or_deleted():
    for manifest in rights.manifests(STOCK, [rights.SERVICE_ACCOUNT]):
        for rule in manifest.get("rules", ()):
            assert "*" not in rule["apiGroups"] + rule["resources"] + rule["verbs"]
            # In the system namespace alone, shards tell each other what they have reserved.
            between_shards = manifest["kind"] == "Role" and rule["resources"] == ["configmaps"]
            own = rule["apiGroups"] in ([keys.GROUP], ["coordination.k8s.io"]) or rule["resources"] == ["events"]
            if not own and not between_shards:
                assert not {"create", "delete", "deletecollection", "escalate", "bind"} & set(rule["verbs"])
            if between_shards:
                assert set(rule["verbs"]) == {"get", "list", "watch", "create", "patch"}


def test_a_source_may_be_read_and_marked_and_its_status_written_where_that_is_asked_for():
    rules = rights.source_rules([widget()])
    assert all(allows(rules, verb, "widgets", "example.com") for verb in ("get", "list", "watch", "patch"))
    assert allows(rules, "patch", "widgets/status", "example.com")
    silent = rights.source_rules([widget(statusAggregation={"enabled": False})])
    assert not allows(silent, "patch", "widgets/status", "example.com")


def test_secrets_are_granted_everywhere_only_while_a_type_config_federates_them():
    without = rights.source_rules([config for config in STOCK if config.kind != "Secret"])
    assert allows(rights.source_rules(STOCK), "list", "secrets")
    assert not allows(without, "list", "secrets")
    [role] = [m for m in rights.manifests([], []) if m["kind"] == "Role"]
    assert allows(role["rules"], "list", "secrets")
    assert role["metadata"]["namespace"] == keys.SYSTEM_NAMESPACE


def test_every_role_is_bound_to_every_subject():
    subjects = [rights.SERVICE_ACCOUNT, rights.user("jane")]
    made = rights.manifests(STOCK, subjects)
    bindings = [manifest for manifest in made if manifest["kind"].endswith("Binding")]
    assert [binding["subjects"] for binding in bindings] == [subjects] * 3
    assert {(b["roleRef"]["kind"], b["roleRef"]["name"]) for b in bindings} == {
        (manifest["kind"], manifest["metadata"]["name"]) for manifest in made if "rules" in manifest
    }


@pytest.mark.parametrize(
    ("subject", "literal"),
    [
        (rights.SERVICE_ACCOUNT, "'system:serviceaccount:kube-admiral-system:argosy-controllers'"),
        (rights.user("o'brien"), r"'o\U00000027brien'"),
        (rights.user("back\\slash"), r"'back\U0000005cslash'"),
        (rights.user("zoë"), r"'zo\U000000eb'"),
        ({"kind": "Group", "name": "fleet"}, "'fleet'"),
    ],
)
def test_the_policy_names_who_runs_the_controllers(subject, literal):
    [policy, binding] = guard.manifests([subject])
    assert literal in policy["spec"]["variables"][0]["expression"]
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]


def test_nothing_of_the_installation_is_federated_itself():
    made = manifests()
    for manifest in [*made.definitions, made.namespace, *made.rights, *made.guard]:
        assert manifest["metadata"]["annotations"][keys.NO_FEDERATED_RESOURCE] == "true"
    names = [(m["kind"], m["metadata"].get("namespace"), m["metadata"]["name"]) for m in made.all()]
    assert len(names) == len(set(names))
