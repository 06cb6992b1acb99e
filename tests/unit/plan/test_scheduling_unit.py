"""The scheduling unit: what a policy says, and what an object's annotations may replace."""

import msgspec
import pytest

from argosy.api import keys
from argosy.api.federated import FederatedObject
from argosy.api.policies import ClusterSelectorTerm, Toleration
from argosy.plan.scheduling.unit import (
    Affinity,
    ResourceRequest,
    UnitError,
    current_placement,
    request_of_template,
    unit_of,
)
from tests.unit.plan.scheduling import policy, template, type_config

PLACEMENT = [
    {"cluster": "a", "preferences": {"minReplicas": 1, "maxReplicas": 5, "weight": 2, "priority": 7}},
    {"cluster": "b"},
]


def build(by=None, annotations=None, body=None, current=None, config=None):
    return unit_of(body or template(3), annotations or {}, current or {}, by or policy(), config or type_config())


def test_a_unit_has_the_identity_of_its_template():
    unit = build()
    assert (unit.group, unit.version, unit.kind, unit.resource) == ("apps", "v1", "Deployment", "deployments")
    assert unit.key == "default/web"
    assert unit.labels == {"app": "web"}
    assert unit.desired_replicas == 3


def test_preferences_come_from_the_placement_list():
    unit = build(policy(placement=PLACEMENT))
    assert unit.cluster_names == {"a", "b"}
    assert (unit.min_replicas, unit.max_replicas, unit.weights, unit.priorities) == (
        {"a": 1},
        {"a": 5},
        {"a": 2},
        {"a": 7},
    )


def test_divide_without_a_replica_path_duplicates():
    unit = build(config=type_config(""))
    assert (unit.mode, unit.desired_replicas) == ("Duplicate", None)


def test_divide_without_a_number_is_an_error():
    with pytest.raises(UnitError, match=r"spec\.replicas"):
        build(body=template(None))


def test_duplicate_needs_no_number():
    assert build(policy(schedulingMode="Duplicate"), body=template(None)).desired_replicas is None


ANNOTATIONS = [
    (keys.SCHEDULING_MODE, "Duplicate", "mode", "Duplicate"),
    (keys.STICKY_CLUSTER, "true", "sticky", True),
    (keys.MAX_CLUSTERS, "2", "max_clusters", 2),
    (keys.CLUSTER_SELECTOR, '{"zone":"x"}', "cluster_selector", {"zone": "x"}),
    (keys.TOLERATIONS, '[{"key":"k","operator":"Exists"}]', "tolerations", (Toleration(key="k", operator="Exists"),)),
    (keys.PLACEMENTS, '[{"cluster":"c","preferences":{"weight":9}}]', "weights", {"c": 9}),
    (
        keys.AFFINITY,
        '{"clusterAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"clusterSelectorTerms":[{}]}}}',
        "affinity",
        Affinity(required=(ClusterSelectorTerm(),)),
    ),
]
IDS = [key for key, *_ in ANNOTATIONS]


@pytest.mark.parametrize(("key", "text", "field", "value"), ANNOTATIONS, ids=IDS)
def test_an_annotation_replaces_the_policy_field(key, text, field, value):
    unit = build(policy(placement=PLACEMENT, maxClusters=9), {key: text})
    assert getattr(unit, field) == value
    assert unit.ignored == {}


@pytest.mark.parametrize(("key", "text", "field", "value"), ANNOTATIONS, ids=IDS)
def test_a_policy_owner_can_refuse_annotations(key, text, field, value):
    refusing = policy(annotations={keys.REFUSE_OBJECT_OVERRIDES: "true"}, placement=PLACEMENT, maxClusters=9)
    unit = build(refusing, {key: text})
    assert getattr(unit, field) == getattr(build(refusing), field) != value
    assert "refuses" in unit.ignored[key]


@pytest.mark.parametrize("key", IDS)
def test_a_broken_annotation_is_ignored_and_named(key):
    unit = build(policy(placement=PLACEMENT), {key: "{{"})
    assert list(unit.ignored) == [key]
    assert msgspec.structs.replace(unit, ignored={}, unreadable="") == build(policy(placement=PLACEMENT))


def test_a_negative_preference_leaves_the_policys_own_in_force():
    text = '[{"cluster":"c","preferences":{"weight":-1,"maxReplicas":4}}]'
    unit = build(policy(placement=PLACEMENT), {keys.PLACEMENTS: text})
    assert (unit.weights, unit.max_replicas, unit.cluster_names) == ({"a": 2}, {"c": 4}, {"c"})
    assert keys.PLACEMENTS in unit.ignored


def test_migration_info_counts_only_where_the_policy_migrates():
    annotations = {keys.AUTO_MIGRATION_INFO: '{"estimatedCapacity":{"a":1}}'}
    assert build(annotations=annotations).migration_info is None
    info = build(policy(autoMigration={"keepUnschedulableReplicas": True}), annotations)
    assert info.migration_info.estimated_capacity == {"a": 1}
    assert info.keep_unschedulable


def test_avoid_disruption_is_off_where_nothing_was_defaulted():
    assert build().avoid_disruption
    assert not build(policy(reschedulePolicy=None)).avoid_disruption


def federated(placements, overrides):
    spec = {"template": template(), "placements": placements, "overrides": overrides}
    return msgspec.convert({"metadata": {"name": "web"}, "spec": spec}, FederatedObject)


def test_the_current_placement_is_the_schedulers_own():
    replaced = {"op": "replace", "path": "/spec/replicas", "value": 4}
    found = current_placement(
        federated(
            [
                {"controller": keys.GLOBAL_SCHEDULER, "placement": [{"cluster": "b"}, {"cluster": "a"}]},
                {"controller": "other", "placement": [{"cluster": "x"}]},
            ],
            [{"controller": keys.GLOBAL_SCHEDULER, "clusters": [{"cluster": "a", "patches": [replaced]}]}],
        ),
        type_config(),
    )
    assert found == {"a": 4, "b": None}


def test_requests_are_read_where_the_kind_keeps_its_pod_spec():
    gpu = {"limits": {"nvidia.com/gpu": 2, "cpu": "500m"}}
    assert request_of_template(template(1, resources=gpu)) == ResourceRequest(500, 0, 0, {"nvidia.com/gpu": 2})
    cron = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "spec": {"jobTemplate": {"spec": template(1, resources={"requests": {"memory": "1Gi"}})["spec"]}},
    }
    assert request_of_template(cron).memory == 2**30
    assert (
        request_of_template({"apiVersion": "v1", "kind": "ConfigMap", "spec": {"containers": []}}) == ResourceRequest()
    )
    assert request_of_template({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": "?"}}) == ResourceRequest()


def test_only_gpus_of_the_request_take_part():
    unit = build(body=template(1, resources={"limits": {"nvidia.com/gpu": "1", "cpu": "4"}}))
    assert unit.request == ResourceRequest(scalars={"nvidia.com/gpu": 1})


@pytest.mark.parametrize("key", IDS)
def test_what_of_an_objects_wishes_cannot_be_read_is_told(key):
    assert build(policy(placement=PLACEMENT), {key: "{{"}).unreadable.startswith(f"annotation {key} cannot be read: ")
    refusing = policy(placement=PLACEMENT, annotations={keys.REFUSE_OBJECT_OVERRIDES: "true"})
    assert not build(refusing, {key: "{{"}).unreadable, "what does not count need not be read"


def test_an_affinity_that_cannot_be_read_is_told():
    terms = [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["east"]}]},
        {"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["large"]}]},
    ]
    found = build(policy(clusterAffinity=terms)).unreadable
    assert found.startswith("the cluster affinity cannot be read: Gt needs exactly one integer")
    assert not build(policy(clusterAffinity=terms[:1])).unreadable
