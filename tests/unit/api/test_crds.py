"""The CustomResourceDefinitions: names, scopes, columns, defaults and limits that users and tools rely on."""

import msgspec
import pytest

from argosy.api import crds, keys, resources, typeconfigs
from argosy.api.crds.upgrade import REVISION
from argosy.api.typeconfigs import FederatedTypeConfig

CRDS = {manifest["spec"]["names"]["kind"]: manifest for manifest in crds.manifests()}


def schema(kind, *path):
    node = CRDS[kind]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for name in path:
        node = node["properties"][name]
    return node


@pytest.mark.parametrize(
    ("kind", "plural", "short", "scope", "status"),
    [
        ("FederatedCluster", "federatedclusters", "fcluster", "Cluster", True),
        ("PropagationPolicy", "propagationpolicies", "pp", "Namespaced", True),
        ("ClusterPropagationPolicy", "clusterpropagationpolicies", "cpp", "Cluster", True),
        ("OverridePolicy", "overridepolicies", "op", "Namespaced", True),
        ("ClusterOverridePolicy", "clusteroverridepolicies", "cop", "Cluster", True),
        ("FederatedObject", "federatedobjects", "fo", "Namespaced", True),
        ("ClusterFederatedObject", "clusterfederatedobjects", "cfo", "Cluster", True),
        ("FederatedTypeConfig", "federatedtypeconfigs", "ftc", "Cluster", True),
        ("CollectedStatus", "collectedstatuses", "cs", "Namespaced", False),
        ("ClusterCollectedStatus", "clustercollectedstatuses", "ccs", "Cluster", False),
        ("PropagatedVersion", "propagatedversions", None, "Namespaced", True),
        ("ClusterPropagatedVersion", "clusterpropagatedversions", None, "Cluster", True),
        ("SchedulingProfile", "schedulingprofiles", "sp", "Cluster", False),
        (
            "SchedulerPluginWebhookConfiguration",
            "schedulerpluginwebhookconfigurations",
            None,
            "Cluster",
            False,
        ),
    ],
)
def test_each_kind_has_the_names_of_the_api(kind, plural, short, scope, status):
    manifest = CRDS[kind]
    spec = manifest["spec"]
    assert manifest["metadata"]["name"] == f"{plural}.core.kubeadmiral.io"
    assert manifest["metadata"]["annotations"] == {
        "kubeadmiral.io/no-federated-resource": "true",
        "argosy.io/revision": str(REVISION),
    }
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    assert spec["names"] == ({**names, "shortNames": [short]} if short else names)
    assert (spec["group"], spec["scope"]) == ("core.kubeadmiral.io", scope)
    [version] = spec["versions"]
    assert (version["name"], version["served"], version["storage"]) == ("v1alpha1", True, True)
    assert ("status" in version.get("subresources", {})) is status


def test_there_are_fourteen_kinds_and_each_can_be_addressed():
    assert len(CRDS) == 14
    addressed = {value.kind: value for value in vars(resources).values() if isinstance(value, resources.Resource)}
    assert {
        (kind, each["spec"]["names"]["plural"], each["spec"]["scope"] == "Namespaced") for kind, each in CRDS.items()
    } == {(kind, value.plural, value.namespaced) for kind, value in addressed.items()}


def test_clusters_show_what_kubeadmiral_shows_and_the_version_and_when_they_were_heard_of():
    columns = CRDS["FederatedCluster"]["spec"]["versions"][0]["additionalPrinterColumns"]
    assert columns == [
        {"name": "ready", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"},
        {"name": "joined", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Joined')].status"},
        {"name": "version", "type": "string", "jsonPath": ".status.kubernetesVersion"},
        {"name": "heard", "type": "date", "jsonPath": ".status.lastHeardTime"},
        {"name": "responding", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Responding')].status"},
        {"name": "age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]


@pytest.mark.parametrize("kind", ["PropagationPolicy", "ClusterPropagationPolicy"])
def test_a_policy_is_defaulted_as_the_api_says(kind):
    assert schema(kind, "metadata", "name")["maxLength"] == 63
    spec = schema(kind, "spec")
    assert spec["required"] == ["schedulingMode"]
    properties = spec["properties"]
    assert properties["schedulingMode"]["enum"] == ["Duplicate", "Divide"]
    assert properties["replicasStrategy"]["default"] == "Spread"
    assert properties["reschedulePolicy"]["default"] == {"rescheduleWhen": {"policyContentChanged": True}}
    when = schema(kind, "spec", "reschedulePolicy", "rescheduleWhen")
    assert "default" not in when
    assert {name: field["default"] for name, field in when["properties"].items()} == {
        "policyContentChanged": True,
        "clusterJoined": False,
        "clusterLabelsChanged": False,
        "clusterAPIResourcesChanged": False,
    }
    assert schema(kind, "spec", "reschedulePolicy", "replicaRescheduling")["default"] == {}
    assert schema(kind, "spec", "autoMigration", "when")["default"] == {"podUnschedulableFor": "1m"}
    assert properties["stickyCluster"]["type"] == "boolean"


def undescribed(node, path):
    if node.get("type") == "object" and "properties" in node:
        for name, child in node["properties"].items():
            yield from undescribed(child, f"{path}.{name}")
    if node.get("type") == "array":
        yield from undescribed(node["items"], f"{path}[]")
    leaf_of_list = path.endswith("[]") and "properties" not in node
    if "description" not in node and not leaf_of_list and ".metadata" not in path:
        yield path


@pytest.mark.parametrize("kind", sorted(CRDS))
def test_explain_teaches_every_field(kind):
    node = schema(kind)
    assert [path for path in undescribed(node, kind) if ".value[]" not in path] == []


def test_stock_type_configs_have_the_names_object_names_are_made_of():
    configs = {m["metadata"]["name"]: msgspec.convert(m, FederatedTypeConfig) for m in typeconfigs.manifests()}
    assert len(configs) == 35
    deployments = configs["deployments.apps"]
    assert deployments.resource.path("default", "web") == "/apis/apps/v1/namespaces/default/deployments/web"
    assert deployments.spec.path_definition.replicas_spec == "spec.replicas"
    assert deployments.spec.auto_migration.enabled
    assert deployments.spec.controllers == ((keys.GLOBAL_SCHEDULER,), (keys.OVERRIDE_CONTROLLER,))
    assert configs["statefulsets.apps"].spec.path_definition.replicas_spec == "spec.replicas"
    assert configs["jobs.batch"].spec.path_definition.replicas_spec == "spec.parallelism"
    assert configs["namespaces"].spec.controllers[0] == (keys.NSAUTOPROP_CONTROLLER,)
    assert not configs["namespaces"].spec.status_aggregation.enabled
    assert configs["endpointslices.discovery.k8s.io"].spec.controllers == ()
    for name, config in configs.items():
        group = config.spec.source_type.group
        suffix = f".{group}" if group and name != "storageclasses" else ""
        assert name == config.spec.source_type.plural_name + suffix
