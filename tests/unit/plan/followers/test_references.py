"""What objects name, wherever they name it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.api.typeconfigs import FederatedTypeConfig, FollowerRules, NamedReference, SourceType, TypeConfigSpec
from argosy.kube.objects import Metadata
from argosy.kube.podreferences import pod_references, references_at
from argosy.plan.followers.needs import (
    NOTHING,
    Name,
    Need,
    about_of,
    is_about,
    needs_of,
    pod_labels_of,
    unreadable_followers,
)
from argosy.plan.kinds.about import PodSelector, Target
from argosy.plan.kinds.registry import kind_of
from tests.unit.plan.worlds import DEPLOYMENTS, deployment

FOLLOWERS = "kubeadmiral.io/followers"


def type_config(name, group, kind, **spec):
    source = SourceType("v1", kind, name.partition(".")[0], "Namespaced", group)
    return FederatedTypeConfig(Metadata(name=name), TypeConfigSpec(source, **spec))


def names(spec):
    return {(each.kind, each.name, each.optional) for each in pod_references(spec)}


@pytest.mark.parametrize("containers", ["containers", "initContainers", "ephemeralContainers"])
def test_containers_name_config_maps_and_secrets_in_their_environment(containers):
    container = {
        "envFrom": [{"configMapRef": {"name": "a"}}, {"secretRef": {"name": "b", "optional": True}}],
        "env": [
            {"name": "X", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k", "optional": True}}},
            {"name": "Y", "valueFrom": {"secretKeyRef": {"name": "d", "key": "k"}}},
            {"name": "Z", "value": "plain"},
        ],
    }
    assert names({containers: [container]}) == {
        ("ConfigMap", "a", False),
        ("Secret", "b", True),
        ("ConfigMap", "c", True),
        ("Secret", "d", False),
    }


def test_volumes_name_config_maps_secrets_and_claims():
    volumes = [
        {"configMap": {"name": "a", "optional": True}},
        {"secret": {"secretName": "b"}},
        {"persistentVolumeClaim": {"claimName": "c"}},
        {"projected": {"sources": [{"configMap": {"name": "d"}}, {"secret": {"name": "e", "optional": True}}]}},
        {"azureFile": {"secretName": "f"}},
        {"csi": {"driver": "x", "nodePublishSecretRef": {"name": "g"}}},
        {"emptyDir": {}},
        *({kind: {"secretRef": {"name": kind}}} for kind in ("cephfs", "cinder", "flexVolume", "iscsi", "rbd")),
        *({kind: {"secretRef": {"name": kind}}} for kind in ("scaleIO", "storageos")),
    ]
    assert names({"volumes": volumes}) == {
        ("ConfigMap", "a", True),
        ("Secret", "b", False),
        ("PersistentVolumeClaim", "c", False),
        ("ConfigMap", "d", False),
        ("Secret", "e", True),
        ("Secret", "f", False),
        ("Secret", "g", False),
        *(
            ("Secret", kind, False)
            for kind in ("cephfs", "cinder", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos")
        ),
    }


def test_a_pod_names_its_account_and_the_secrets_its_images_are_pulled_with():
    spec = {"serviceAccountName": "app", "imagePullSecrets": [{"name": "registry"}]}
    assert names(spec) == {("ServiceAccount", "app", False), ("Secret", "registry", True)}
    assert names({"serviceAccount": "old"}) == {("ServiceAccount", "old", False)}


def test_what_every_cluster_has_of_its_own_is_not_named():
    roots = {"projected": {"sources": [{"configMap": {"name": "kube-root-ca.crt"}}]}}
    assert names({"serviceAccountName": "default", "volumes": [roots]}) == set()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["containers", "env", "envFrom", "valueFrom", "volumes", "secret", "name", "projected", "sources"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_no_shape_is_too_odd(spec):
    assert all(each.name for each in pod_references(spec))
    list(references_at(spec, "containers[*].name", "", "Secret"))


def test_paths_enter_lists_where_they_say_so():
    obj = {"spec": {"logins": [{"secret": "a"}, {"secret": "b"}, {}], "one": {"secret": "c"}}}
    assert [each.name for each in references_at(obj, "spec.logins[*].secret", "", "Secret")] == ["a", "b"]
    assert [each.name for each in references_at(obj, "spec.one.secret", "", "Secret")] == ["c"]
    assert list(references_at(obj, "spec.logins.secret", "", "Secret")) == []


def test_an_ingress_names_services_secrets_and_other_backends():
    ingress = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "spec": {
            "defaultBackend": {"service": {"name": "front"}},
            "rules": [
                {"http": {"paths": [{"backend": {"service": {"name": "shop"}}}]}},
                {
                    "http": {
                        "paths": [{"backend": {"resource": {"apiGroup": "x.io", "kind": "Bucket", "name": "files"}}}]
                    }
                },
                {"host": "without.example.com"},
            ],
            "tls": [{"secretName": "certificate"}, {"hosts": ["a.example.com"]}],
        },
    }
    found = {(each.group, each.kind, each.name) for each in kind_of(ingress).references(ingress)}
    assert found == {
        ("", "Service", "front"),
        ("", "Service", "shop"),
        ("x.io", "Bucket", "files"),
        ("", "Secret", "certificate"),
    }


def test_an_account_names_the_secrets_images_are_pulled_with_and_not_its_tokens():
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "imagePullSecrets": [{"name": "a"}],
        "secrets": [{"name": "b"}],
    }
    assert [each.name for each in kind_of(account).references(account)] == ["a"]


# What a federated object needs.


def leader(*config_maps, overrides=(), **metadata):
    envs = [{"configMapRef": {"name": each}} for each in config_maps]
    made = deployment(metadata=metadata)
    made["spec"]["template"]["spec"] = {"containers": [{"name": "main", "image": "x", "envFrom": envs}]}
    return {"template": made, "overrides": list(overrides)}


def patched(cluster, *patches, controller="kubeadmiral.io/overridepolicy-controller"):
    return {"controller": controller, "clusters": [{"cluster": cluster, "patches": list(patches)}]}


def env_from(name):
    return {
        "op": "add",
        "path": "/spec/template/spec/containers/0/envFrom/-",
        "value": {"configMapRef": {"name": name}},
    }


def config_map(name):
    return Name("", "ConfigMap", name)


def test_what_the_template_names_is_needed_everywhere():
    assert needs_of(leader("a"), {}, DEPLOYMENTS).needed == {config_map("a"): Need()}


def test_what_a_clusters_patches_name_is_needed_there():
    spec = leader("a", overrides=[patched("m1", env_from("b")), patched("m2", env_from("b"), controller="x")])
    assert needs_of(spec, {}, DEPLOYMENTS).needed == {
        config_map("a"): Need(),
        config_map("b"): Need(frozenset({"m1", "m2"})),
    }


def test_what_patches_take_away_is_still_needed():
    """Pods of before may still run there."""
    gone = {"op": "replace", "path": "/spec/template/spec/containers/0/envFrom", "value": []}
    assert needs_of(leader("a", overrides=[patched("m1", gone)]), {}, DEPLOYMENTS).needed == {config_map("a"): Need()}


def test_a_division_of_replicas_names_nothing():
    share = {"op": "replace", "path": "/spec/nowhere/replicas", "value": 3}
    found = needs_of(leader("a", overrides=[patched("m1", share)]), {}, DEPLOYMENTS)
    assert (found.needed, found.unclear) == ({config_map("a"): Need()}, "")


def test_patches_that_cannot_be_applied_make_it_unclear_and_hide_nothing():
    broken = {"op": "remove", "path": "/spec/nowhere"}
    found = needs_of(leader("a", overrides=[patched("m1", broken)]), {}, DEPLOYMENTS)
    assert found.needed == {config_map("a"): Need()}
    assert found.unclear.startswith("overrides: ")


def test_the_annotation_lists_further_ones():
    listed = '[{"group":"","kind":"Service","name":"web","namespace":"ignored"},{"kind":"ConfigMap","name":"a"}]'
    found = needs_of(leader("a"), {FOLLOWERS: listed}, DEPLOYMENTS)
    assert found.needed == {config_map("a"): Need(), Name("", "Service", "web"): Need()}


RIGHTS = '[{"group":"rbac.authorization.k8s.io","kind":"RoleBinding","name":"edit"}]'


@pytest.mark.parametrize(
    "text", ["[", '{"kind":"Service"}', '[{"name":"web"}]', '[{"kind":"Service","name":""}]', "[1]", RIGHTS]
)
def test_an_annotation_that_cannot_be_read_is_told(text):
    found = needs_of(leader("a"), {FOLLOWERS: text}, DEPLOYMENTS)
    assert found.needed == {config_map("a"): Need()}
    assert found.unclear == unreadable_followers({FOLLOWERS: text})
    assert found.unclear.startswith(f"annotation {FOLLOWERS} is ignored")


def test_one_mention_that_is_not_optional_is_enough():
    spec = leader("a")
    container = spec["template"]["spec"]["template"]["spec"]["containers"][0]
    container["envFrom"].append({"configMapRef": {"name": "a", "optional": True}})
    container["envFrom"].append({"configMapRef": {"name": "b", "optional": True}})
    assert needs_of(spec, {}, DEPLOYMENTS).needed == {config_map("a"): Need(), config_map("b"): Need(required=False)}


def test_a_type_config_says_what_its_objects_need():
    rules = FollowerRules(
        pod_specs=("spec.runner.pod",), references=(NamedReference("Secret", "spec.logins[*].secret"),)
    )
    config = type_config("widgets.example.com", "example.com", "Widget", followers=rules)
    widget = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w"},
        "spec": {"runner": {"pod": {"serviceAccountName": "app"}}, "logins": [{"secret": "password"}]},
    }
    assert needs_of({"template": widget}, {}, config).needed == {
        Name("", "ServiceAccount", "app"): Need(),
        Name("", "Secret", "password"): Need(),
    }


# What an object is about.


def test_an_autoscaler_is_about_its_target():
    config = type_config("scalers.example.com", "example.com", "Scaler")
    config = FederatedTypeConfig(
        Metadata(name=config.name, annotations={"kubeadmiral.io/scale-target-ref-path": "spec.ref"}), config.spec
    )
    scaler = {"kind": "Scaler", "spec": {"ref": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}}
    assert is_about(config)
    assert about_of(scaler, config) == Target("apps", "Deployment", "web")
    assert about_of({"kind": "Scaler", "spec": {"ref": "web"}}, config) is None


def test_a_budget_is_about_pods_and_most_kinds_about_nothing():
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "spec": {"selector": {"matchLabels": {"a": "b"}}},
    }
    config = type_config("poddisruptionbudgets.policy", "policy", "PodDisruptionBudget")
    assert is_about(config)
    assert about_of(budget, config) == PodSelector({"matchLabels": {"a": "b"}})
    assert about_of({**budget, "spec": {}}, config) is None
    assert not is_about(DEPLOYMENTS)


def test_the_labels_of_pods_are_those_of_the_template():
    made = deployment()
    made["spec"]["template"]["metadata"] = {"labels": {"app": "web"}}
    assert pod_labels_of(made) == {"app": "web"}
    assert pod_labels_of({"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "b"}}}) == {"a": "b"}
    assert pod_labels_of({"apiVersion": "v1", "kind": "ConfigMap"}) is None


def test_rights_follow_nobody():
    backend = {"resource": {"apiGroup": "rbac.authorization.k8s.io", "kind": "RoleBinding", "name": "edit"}}
    ingress = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "spec": {"defaultBackend": backend}}
    assert (
        needs_of({"template": ingress}, {}, type_config("ingresses.networking.k8s.io", "networking.k8s.io", "Ingress"))
        is NOTHING
    )


def test_only_what_runs_pods_lists_followers():
    listed = '[{"kind":"Secret","name":"a"}]'
    template = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    assert needs_of({"template": template}, {FOLLOWERS: listed}, type_config("configmaps", "", "ConfigMap")) is NOTHING
