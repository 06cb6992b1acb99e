"""Whose federated object it is follows from its name; a template that is not that source's is refused, whatever it says."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.api import keys
from argosy.api.conditions import Refused
from argosy.api.federated import FederatedObject
from argosy.api.names import federated_name
from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.kube.objects import Metadata
from argosy.plan.copies.identity import Refusal, refusal, subject_of
from argosy.plan.pipeline.federate import federated_object
from tests.unit.plan.worlds import TYPE_CONFIGS, deployment


class Types:
    def __init__(self, *configs):
        self.configs = configs or tuple(TYPE_CONFIGS.values())

    def of_kind(self, api_version, kind):
        return next((c for c in self.configs if (c.api_version, c.kind) == (api_version, kind)), None)

    def __iter__(self):
        return iter(self.configs)


ALL = Types()
UID = "f00"


def source(kind="deployments.apps", name="web", namespace="shop"):
    config = TYPE_CONFIGS[kind]
    metadata = {"name": name, "uid": UID, **({"namespace": namespace} if config.namespaced else {})}
    return {"apiVersion": config.api_version, "kind": config.kind, "metadata": metadata}


def made(source_object, **template):
    """The federated object of a source, with a template that somebody changed."""
    config = ALL.of_kind(source_object["apiVersion"], source_object["kind"])
    built = federated_object(source_object, None, config)
    meta = {**built["spec"]["template"]["metadata"], **template.pop("metadata", {})}
    built["spec"]["template"] = {**built["spec"]["template"], **template, "metadata": meta}
    return msgspec.convert(built, FederatedObject)


def judged(federated, source_uid=UID, types=ALL):
    subject = subject_of(federated.metadata, federated.spec.template, types)
    if isinstance(subject, Refusal):
        return subject
    return refusal(federated, subject, Metadata(uid=source_uid) if source_uid else None)


@pytest.mark.parametrize("kind", list(TYPE_CONFIGS))
def test_what_was_made_from_a_source_is_carried(kind):
    for name in ("web", "a.b", "system:Odd_Name", "x" * 250):
        federated = made(source(kind, name))
        subject = subject_of(federated.metadata, federated.spec.template, ALL)
        assert (subject.config.name, subject.name) == (kind, name)
        assert subject.key == (f"shop/{name}" if subject.config.namespaced else name)
        assert judged(federated) is None


def test_a_source_that_carries_our_marks_is_carried_without_them():
    marked = source()
    marked["metadata"] |= {field: {**dict.fromkeys(keys.MARKS, "x"), "a": "b"} for field in ("labels", "annotations")}
    federated = made(marked)
    metadata = federated.spec.template["metadata"]
    assert metadata["labels"] == metadata["annotations"] == {"a": "b"}
    assert judged(federated) is None


def test_a_source_made_by_prefix_keeps_it():
    assert judged(made(source(), metadata={"generateName": "we"})) is None


@pytest.mark.parametrize(
    "forged",
    [
        {"metadata": {"namespace": "kube-system"}},
        {"metadata": {"namespace": ""}},
        {"metadata": {"namespace": None}},
        {"metadata": {"namespace": ["shop"]}},
        {"metadata": {"name": "other"}},
        {"metadata": {"name": None, "generateName": "web"}},
        {"metadata": {"name": "../../kube-system/web"}},
        {"kind": "StatefulSet"},
        {"kind": None},
        {"apiVersion": "apps/v2"},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding"},
        {"apiVersion": "v1", "kind": "Secret"},
        {"apiVersion": "example.com/v1", "kind": "Widget"},
        {"metadata": {"uid": "1"}},
        {"metadata": {"resourceVersion": "1"}},
        {"metadata": {"finalizers": ["example.com/f"]}},
        {"metadata": {"ownerReferences": [{"kind": "Node", "name": "n", "uid": "1"}]}},
        {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
        {"metadata": {"managedFields": [{}]}},
        {"metadata": {"labels": "x"}},
        {"metadata": {"labels": {"a": 1}}},
        {"metadata": {"annotations": ["x"]}},
        {"metadata": {"generation": "1"}},
        *({"metadata": {"labels": {key: "true"}}} for key in sorted(keys.MARKS)),
        *({"metadata": {"annotations": {key: "true"}}} for key in sorted(keys.MARKS)),
    ],
    ids=str,
)
def test_a_template_that_is_not_its_sources_is_refused(forged):
    found = judged(made(source(), **forged))
    assert found is not None
    assert found.reason is Refused.TEMPLATE
    assert len(found.message) < 300


@pytest.mark.parametrize("template", [{}, {"metadata": "x"}, {"metadata": []}, {"kind": {"a": []}, "metadata": {}}])
def test_a_template_that_is_nothing_is_refused(template):
    federated = made(source())
    broken = msgspec.structs.replace(federated, spec=msgspec.structs.replace(federated.spec, template=template))
    assert judged(broken).reason is Refused.TEMPLATE


def test_the_place_in_members_is_the_names_and_not_the_templates():
    forged = made(source(), apiVersion="v1", kind="Secret", metadata={"name": "token", "namespace": "kube-system"})
    subject = subject_of(forged.metadata, forged.spec.template, ALL)
    assert (subject.config.kind, subject.key) == ("Deployment", "shop/web")
    # Nor is it the owner's, if that one has another name.
    [owner] = forged.metadata.owner_references
    elsewhere = msgspec.structs.replace(owner, kind="Secret", api_version="v1", name="token")
    moved = msgspec.structs.replace(forged.metadata, owner_references=(elsewhere,))
    assert subject_of(moved, forged.spec.template, ALL) == subject


def test_a_name_that_leads_out_of_its_place_is_nobodys():
    """Signs that a name cannot have become others in a federated object's name, so that this one fits."""
    federated = made(source("roles.rbac.authorization.k8s.io", "a/../../../kube-system/roles/x"))
    unowned = msgspec.structs.replace(federated.metadata, owner_references=())
    for metadata in (federated.metadata, unowned):
        assert subject_of(metadata, federated.spec.template, ALL).reason is Refused.TEMPLATE


def test_a_namespaced_federated_object_carries_nothing_of_the_whole_cluster_and_the_other_way_round():
    binding = made(source("clusterrolebindings.rbac.authorization.k8s.io", "root"))
    inside = msgspec.structs.replace(binding, metadata=msgspec.structs.replace(binding.metadata, namespace="shop"))
    assert judged(inside).reason is Refused.TEMPLATE
    outside = made(source("secrets", "token"))
    outside = msgspec.structs.replace(outside, metadata=msgspec.structs.replace(outside.metadata, namespace=""))
    assert judged(outside).reason is Refused.TEMPLATE


def test_a_kind_without_a_type_config_is_refused():
    types = Types(*(config for name, config in TYPE_CONFIGS.items() if name != "deployments.apps"))
    found = judged(made(source()), types=types)
    assert found == Refusal(Refused.NO_TYPE_CONFIG, 'no FederatedTypeConfig for "apps/v1" "Deployment"')


def test_a_template_without_a_source_of_its_own_is_refused():
    assert judged(made(source()), source_uid="").reason is Refused.NO_SOURCE
    assert judged(made(source()), source_uid="another").reason is Refused.NO_SOURCE
    federated = made(source())
    unowned = msgspec.structs.replace(federated.metadata, owner_references=())
    assert judged(msgspec.structs.replace(federated, metadata=unowned)).reason is Refused.NO_SOURCE


@pytest.mark.parametrize(
    ("kind", "name", "namespace"),
    [
        ("secrets", "token", keys.SYSTEM_NAMESPACE),
        ("namespaces", keys.SYSTEM_NAMESPACE, ""),
        ("namespaces", "kube-system", ""),
        ("clusterroles.rbac.authorization.k8s.io", keys.MEMBER_CLUSTER_ROLE, ""),
        ("clusterrolebindings.rbac.authorization.k8s.io", keys.MEMBER_CLUSTER_ROLE, ""),
    ],
)
def test_what_the_federation_lives_by_in_members_is_nobodys_template(kind, name, namespace):
    assert judged(made(source(kind, name, namespace))).reason is Refused.TEMPLATE


def test_kinds_of_the_federation_are_not_carried():
    spec = {"group": keys.GROUP, "version": keys.VERSION, "kind": "FederatedObject", "pluralName": "federatedobjects"}
    config = msgspec.convert(
        {"metadata": {"name": "fo"}, "spec": {"sourceType": {**spec, "scope": "Namespaced"}}}, FederatedTypeConfig
    )
    carried = {"apiVersion": config.api_version, "kind": config.kind, "metadata": {"name": "a", "namespace": "shop"}}
    built = federated_object({**carried, "metadata": {**carried["metadata"], "uid": UID}}, None, config)
    found = judged(msgspec.convert(built, FederatedObject), types=Types(config))
    assert found.reason is Refused.TEMPLATE
    assert "of the federation itself" in found.message


def test_a_name_that_could_be_of_two_types_is_its_owners_or_nobodys():
    pods = TYPE_CONFIGS["pods"]
    odd = msgspec.structs.replace(
        TYPE_CONFIGS["configmaps"], metadata=msgspec.structs.replace(pods.metadata, name="x-pods")
    )
    types = Types(pods, odd)
    federated = made(source("pods", "a-x"))
    assert federated.metadata.name == federated_name("a", "x-pods")
    assert subject_of(federated.metadata, {}, types).config.name == "pods"
    unowned = msgspec.structs.replace(federated.metadata, owner_references=())
    assert subject_of(unowned, {}, types).reason is Refused.TEMPLATE


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(
    template=st.fixed_dictionaries(
        {},
        optional={
            "apiVersion": json,
            "kind": json,
            "metadata": json
            | st.fixed_dictionaries({}, optional=dict.fromkeys(["name", "namespace", "labels", "generation"], json)),
        },
    )
)
def test_whatever_a_template_is_it_is_judged_and_never_carried_elsewhere(template):
    federated = msgspec.convert(federated_object(deployment(), None, TYPE_CONFIGS["deployments.apps"]), FederatedObject)
    odd = msgspec.structs.replace(federated, spec=msgspec.structs.replace(federated.spec, template=template))
    assert judged(odd) is not None
