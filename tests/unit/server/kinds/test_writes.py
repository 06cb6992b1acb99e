"""What a write does besides being allowed: generations, orphans, who may create by updating, what is generated."""

import copy
from typing import Any

import pytest

from argosy.server.kinds import builtin_kinds
from argosy.server.kinds.shared.meta_rules import IMMUTABLE

Object = dict[str, Any]
KINDS = {kind.plural: kind for kind in builtin_kinds() if kind.group}


def stored(plural: str, **fields: Any) -> Object:
    kind = KINDS[plural]
    obj: Object = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "a", "uid": "u"}, **fields}
    kind.strategy.default(obj)
    kind.strategy.prepare_create(obj)
    return obj


def grows(plural: str, old: Object, **changes: Object) -> bool:
    new = copy.deepcopy(old)
    for part, values in changes.items():
        new[part] = {**(new.get(part) or {}), **values}
    return KINDS[plural].strategy.generation_grows(new, old)


def test_annotations_of_a_deployment_are_a_new_generation() -> None:
    deployment = stored("deployments")
    assert grows("deployments", deployment, spec={"replicas": 3})
    assert grows("deployments", deployment, metadata={"annotations": {"a": "b"}})
    assert not grows("deployments", deployment, metadata={"labels": {"a": "b"}})
    assert not grows("deployments", deployment, status={"replicas": 3})


def test_annotations_of_other_workloads_are_not() -> None:
    assert not grows("statefulsets", stored("statefulsets"), metadata={"annotations": {"a": "b"}})


def test_labels_of_an_endpoint_slice_are_a_new_generation() -> None:
    assert grows("endpointslices", stored("endpointslices"), metadata={"labels": {"a": "b"}})


def test_a_priority_class_stays_in_its_first_generation() -> None:
    old = stored("priorityclasses")
    assert not KINDS["priorityclasses"].strategy.generation_grows({**old, "description": "new"}, old)


@pytest.mark.parametrize(
    ("plural", "keeps"),
    [
        *((p, True) for p in ("deployments", "jobs", "ingresses", "networkpolicies", "poddisruptionbudgets")),
        *((p, True) for p in ("priorityclasses", "endpointslices", "customresourcedefinitions", "flowschemas")),
        *((p, False) for p in ("leases", "roles", "storageclasses", "horizontalpodautoscalers", "controllerrevisions")),
        *((p, False) for p in ("resourceclaims", "apiservices", "certificatesigningrequests", "volumeattachments")),
    ],
)
def test_generations_are_kept_where_kubernetes_keeps_them(plural: str, keeps: bool) -> None:
    assert KINDS[plural].strategy.generation is keeps


def test_only_jobs_orphan_their_pods_unless_told_otherwise() -> None:
    assert [plural for plural, kind in KINDS.items() if kind.strategy.orphan_by_default] == ["jobs"]


def test_who_may_be_created_by_an_update() -> None:
    created = {plural for plural, kind in KINDS.items() if kind.strategy.create_on_update}
    roles = {"roles", "rolebindings", "clusterroles", "clusterrolebindings"}
    assert created == roles | {"leases", "events", "runtimeclasses"}


def test_who_must_name_the_version_it_updates() -> None:
    careful = {plural for plural, kind in KINDS.items() if not kind.strategy.unconditional_update}
    assert {"leases", "poddisruptionbudgets", "customresourcedefinitions", "csidrivers", "apiservices"} <= careful
    assert not {"deployments", "roles", "jobs", "storageclasses", "ingresses"} & careful


def test_a_request_for_a_certificate_does_not_say_who_asks() -> None:
    spec = {"username": "somebody-else", "groups": ["system:masters"], "signerName": "a.b/c"}
    assert stored("certificatesigningrequests", spec=spec)["spec"] == {"signerName": "a.b/c"}


def test_a_definition_remembers_every_version_it_stored_objects_in() -> None:
    kind = KINDS["customresourcedefinitions"]
    versions = [{"name": "v1", "storage": True}, {"name": "v2", "storage": False}]
    old = stored("customresourcedefinitions", spec={"versions": versions})
    assert old["status"]["storedVersions"] == ["v1"]
    new = copy.deepcopy(old)
    new["spec"]["versions"] = [{"name": "v1", "storage": False}, {"name": "v2", "storage": True}]
    kind.strategy.prepare_update(new, old)
    assert new["status"]["storedVersions"] == ["v1", "v2"]
    new["spec"]["versions"] = [{"name": "v2", "storage": True}]
    found = [error.message for error in kind.strategy.validate(new) if error.field == "status.storedVersions[0]"]
    assert found[0].startswith('Invalid value: "v1": missing from spec.versions; v1 was previously a storage version')


@pytest.mark.parametrize("plural", ["deployments", "replicasets", "jobs", "cronjobs"])
def test_a_name_that_makes_a_poor_hostname_is_warned_of(plural: str) -> None:
    obj = stored(plural)
    assert KINDS[plural].strategy.warnings(obj) == []
    obj["metadata"]["name"] = "a.b"
    assert KINDS[plural].strategy.warnings(obj) == [
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
        "a DNS label is recommended: [must not contain dots]"
    ]


@pytest.mark.parametrize("field", ["podFailurePolicy", "successPolicy"])
def test_an_empty_policy_cannot_be_given_to_a_job_later(field: str) -> None:
    old = stored("jobs")
    new = copy.deepcopy(old)
    new["spec"][field] = {}
    found = [error.field for error in KINDS["jobs"].strategy.validate_update(new, old) if error.detail == IMMUTABLE]
    assert found == [f"spec.{field}"]
