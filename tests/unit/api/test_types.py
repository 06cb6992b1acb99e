"""The typed values: what is absent, unknown or null decodes as the API means it."""

import msgspec
import orjson

from argosy.api.federated import OverridePatch
from argosy.api.types import (
    FederatedCluster,
    FederatedObject,
    OverridePolicy,
    PropagationPolicy,
    SchedulingProfile,
)
from argosy.kube.objects import decode


def test_a_policy_as_a_server_stores_it():
    policy = decode(
        orjson.dumps(
            {
                "apiVersion": "core.kubeadmiral.io/v1alpha1",
                "kind": "PropagationPolicy",
                "metadata": {"name": "p", "namespace": "default"},
                "spec": {
                    "schedulingMode": "Divide",
                    "placement": [{"cluster": "m1", "preferences": {"weight": 3, "maxReplicas": 9}}, {"cluster": "m2"}],
                    "reschedulePolicy": {"rescheduleWhen": {"clusterAPIResourcesChanged": True}},
                    "fieldOfTomorrow": {"a": 1},
                },
            }
        ),
        PropagationPolicy,
    )
    assert policy.kind == "PropagationPolicy"
    assert policy.spec.placement[0].preferences.weight == 3
    assert policy.spec.placement[1].preferences.weight is None
    assert policy.spec.reschedule_policy.reschedule_when.cluster_api_resources_changed
    assert policy.spec.auto_migration is None
    assert not policy.spec.avoid_disruption
    assert not policy.spec.sticky


def test_sticky_is_said_in_two_ways():
    for spec in ({"stickyCluster": True}, {"reschedulePolicy": {"disableRescheduling": True}}):
        assert msgspec.convert({"metadata": {"name": "p"}, "spec": spec}, PropagationPolicy).spec.sticky


def test_a_policy_without_a_namespace_is_the_cluster_wide_kind():
    assert msgspec.convert({"metadata": {"name": "p"}}, PropagationPolicy).kind == "ClusterPropagationPolicy"
    assert msgspec.convert({"metadata": {"name": "p"}}, OverridePolicy).kind == "ClusterOverridePolicy"


def test_a_clusters_conditions_are_asked_by_type():
    raw = {
        "metadata": {"name": "m1", "deletionTimestamp": "2026-01-01T00:00:00Z"},
        "status": {
            "conditions": [
                {"type": "Joined", "status": "True"},
                {"type": "Ready", "status": "Unknown", "reason": "ClusterNotReachable", "message": "m"},
            ],
            "resources": {"allocatable": {"cpu": 4, "memory": "1Gi"}},
        },
    }
    cluster = decode(orjson.dumps(raw), FederatedCluster)
    assert (cluster.joined, cluster.ready, cluster.offline, cluster.terminating) == (True, False, False, True)
    assert cluster.condition("Ready").reason == "ClusterNotReachable"
    assert cluster.status.resources.allocatable == {"cpu": 4, "memory": "1Gi"}


def test_a_federated_object_knows_where_it_is_placed_and_by_whom():
    raw = {
        "metadata": {"name": "web-deployments.apps", "labels": None},
        "spec": {
            "template": {"kind": "Deployment", "spec": {"x": None}},
            "placements": [
                {"controller": "a", "placement": [{"cluster": "m2"}]},
                {"controller": "b", "placement": [{"cluster": "m2"}, {"cluster": "m1"}]},
            ],
            "overrides": [
                {"controller": "a", "clusters": [{"cluster": "m2", "patches": [{"path": "/x", "value": None}]}]}
            ],
        },
    }
    federated = decode(orjson.dumps(raw), FederatedObject)
    assert federated.placed == ("m1", "m2")
    assert federated.placement_of("a") == ("m2",)
    assert federated.placement_of("c") == ()
    assert federated.overrides_of("a") == {"m2": (OverridePatch("/x", value=None),)}
    assert federated.spec.template["spec"] == {"x": None}


def test_a_patch_without_a_value_stays_without_one():
    assert msgspec.json.encode(OverridePatch("/x")) == b'{"path":"/x"}'
    assert msgspec.json.encode(OverridePatch("/x", "remove", None)) == b'{"path":"/x","op":"remove","value":null}'


def test_a_profiles_weight_is_spelt_as_in_the_api():
    spec = {"plugins": {"score": {"enabled": [{"name": "X", "wait": 3}]}}}
    profile = msgspec.convert({"metadata": {"name": "p"}, "spec": spec}, SchedulingProfile)
    assert profile.spec.plugins.score.enabled[0].wait == 3
