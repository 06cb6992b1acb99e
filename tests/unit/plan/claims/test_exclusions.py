"""What no selector carries to members, however wide it is."""

import pytest

from argosy.api import installation, keys
from argosy.plan.claims.claim import Selectors
from argosy.plan.claims.exclusions import WITH_ITS_KIND_ONLY
from tests.unit.plan.claims.claims import selecting, subject

RBAC = "rbac.authorization.k8s.io"
CRDS = "apiextensions.k8s.io"
OWNER = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "1", "controller": True}


def is_selected(of, namespace=""):
    named = {"apiVersion": f"{of.group}/v1" if of.group else "v1", "kind": of.kind, "name": of.metadata.name}
    return Selectors([selecting("all", {}, named, namespace=namespace)]).claim(of, {}) is not None


@pytest.mark.parametrize(
    "of",
    [
        subject(namespace=keys.SYSTEM_NAMESPACE),
        subject("PropagationPolicy", group=keys.GROUP),
        subject("FederatedTypeConfig", group=keys.GROUP, namespace=""),
        subject("Namespace", group="", namespace="", name="shop"),
        subject("ReplicaSet", ownerReferences=[OWNER]),
        subject(annotations={keys.NO_FEDERATED_RESOURCE: "true"}),
        subject(annotations={keys.NO_SELECTION: "true"}),
        subject("ServiceAccount", group="", name="default"),
        subject("ConfigMap", group="", name="kube-root-ca.crt"),
        subject("ConfigMap", group="", annotations={"control-plane.alpha.kubernetes.io/leader": "{}"}),
        subject("Service", group="", name="kubernetes", namespace="default"),
        subject("Secret", group="", annotations={"kubernetes.io/service-account.name": "web"}),
        subject("Secret", group="", name="sh.helm.release.v1.web.v1"),
        subject("ClusterRole", group=RBAC, namespace="", labels={"kubernetes.io/bootstrapping": "rbac-defaults"}),
        subject("CustomResourceDefinition", group=CRDS, name=f"federatedobjects.{keys.GROUP}", namespace=""),
        subject("PriorityClass", group="scheduling.k8s.io", name="system-node-critical", namespace=""),
    ],
    ids=lambda of: f"{of.kind} {of.metadata.name}",
)
def test_only_a_label_claims_what_belongs_to_a_control_plane_or_is_made_elsewhere(of):
    assert not is_selected(of)


@pytest.mark.parametrize(
    "of",
    [
        subject("ServiceAccount", group="", name="web"),
        subject("ConfigMap", group="", name="web"),
        subject("Secret", group=""),
        subject("Service", group="", name="kubernetes"),
        subject(ownerReferences=[{**OWNER, "controller": False}]),
        subject("ClusterRole", group=RBAC, namespace=""),
        subject("RoleBinding", group=RBAC),
        subject("CustomResourceDefinition", group=CRDS, name="prometheuses.monitoring.coreos.com", namespace=""),
        subject("PriorityClass", group="scheduling.k8s.io", name="high", namespace=""),
        subject("PersistentVolumeClaim", group=""),
    ],
    ids=lambda of: f"{of.kind} {of.metadata.name}",
)
def test_what_belongs_to_an_application_is_selected(of):
    assert is_selected(of)


def test_whoever_writes_policies_in_a_namespace_gives_no_rights_in_members():
    assert not is_selected(subject("RoleBinding", group=RBAC), namespace="shop")
    assert not is_selected(subject("Role", group=RBAC), namespace="shop")
    assert is_selected(subject("ServiceAccount", group=""), namespace="shop")


@pytest.mark.parametrize(
    "of",
    [
        subject(namespace="kube-system"),
        subject("RoleBinding", group=RBAC, namespace="kube-node-lease"),
        subject("ClusterRole", group=RBAC, name="system:aggregated-metrics-reader", namespace=""),
    ],
    ids=lambda of: f"{of.kind} {of.metadata.name}",
)
def test_what_looks_like_the_systems_own_is_selected_only_where_the_object_is_named(of):
    version = f"{of.group}/v1"
    wide = ({"apiVersion": version, "kind": of.kind}, {"apiVersion": "*", "kind": "*"}, {"name": of.metadata.name})
    assert not any(Selectors([selecting("all", {}, each)]).claim(of, {}) for each in wide)
    assert is_selected(of)


def test_a_policy_of_a_system_namespace_selects_there():
    assert is_selected(subject(namespace="kube-system"), namespace="kube-system")


@pytest.mark.parametrize(("group", "kind"), sorted(WITH_ITS_KIND_ONLY))
def test_some_kinds_are_selected_only_where_they_are_named(group, kind):
    of = subject(kind, group=group)
    assert Selectors([selecting("all", {}, {"apiVersion": "*", "kind": "*"})]).claim(of, {}) is None
    assert Selectors([selecting("all", {"name": "web"})]).claim(of, {}) is None
    assert Selectors([selecting("all", {"kind": kind})]).claim(of, {}) is not None


def test_nothing_that_argosy_installs_is_selected():
    made = installation.manifests()
    for manifest in (*made.definitions, *made.rights, *made.guard, *made.caveats, *made.type_configs):
        metadata = manifest["metadata"]
        group = manifest["apiVersion"].rpartition("/")[0]
        of = subject(manifest["kind"], group=group, **{"namespace": "", **metadata})
        assert not is_selected(of), metadata["name"]
