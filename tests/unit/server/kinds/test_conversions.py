"""Kinds that are stored in another version than they are asked for in: autoscalers in v1, events of events.k8s.io."""

import copy
from typing import Any

import orjson

from argosy.server.kinds import builtin_kinds, events
from argosy.server.kinds.autoscaling import hpa_v1

Object = dict[str, Any]
KINDS = {(kind.api_version, kind.kind): kind for kind in builtin_kinds()}
METRICS = "autoscaling.alpha.kubernetes.io/metrics"
BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"
CONDITIONS = "autoscaling.alpha.kubernetes.io/conditions"


def autoscaler(metrics: list[Object], **spec: Any) -> Object:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 3, "metrics": metrics, **spec},
    }


def target(**values: Any) -> Object:
    return {"target": values}


SOURCES = [
    {"type": "Pods", "pods": {"metric": {"name": "qps"}, **target(type="AverageValue", averageValue="10")}},
    {
        "type": "Object",
        "object": {
            "describedObject": {"kind": "Service", "name": "s", "apiVersion": "v1"},
            "metric": {"name": "qps", "selector": {"matchLabels": {"a": "b"}}},
            **target(type="Value", value="5"),
        },
    },
    {"type": "External", "external": {"metric": {"name": "q"}, **target(type="AverageValue", averageValue="2")}},
    {"type": "Resource", "resource": {"name": "memory", **target(type="AverageValue", averageValue="1Gi")}},
    {
        "type": "ContainerResource",
        "containerResource": {
            "name": "cpu",
            "container": "c",
            **target(type="Utilization", averageUtilization=60),
        },
    },
]


def test_v1_shows_the_cpu_target_and_keeps_everything_else_in_annotations() -> None:
    scaling = {"policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}], "selectPolicy": "Max"}
    obj = autoscaler([*SOURCES, hpa_v1.cpu_metric(50)], behavior={"scaleUp": scaling})
    obj["status"] = {
        "desiredReplicas": 2,
        "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 30}}}],
        "conditions": [{"type": "AbleToScale", "status": "True"}],
    }
    shown = copy.deepcopy(obj)
    hpa_v1.from_v2(shown)
    assert shown["apiVersion"] == "autoscaling/v1"
    assert shown["spec"].keys() == {"scaleTargetRef", "minReplicas", "maxReplicas", "targetCPUUtilizationPercentage"}
    assert shown["spec"]["targetCPUUtilizationPercentage"] == 50
    assert shown["status"] == {"desiredReplicas": 2, "currentReplicas": 0, "currentCPUUtilizationPercentage": 30}
    annotations = shown["metadata"]["annotations"]
    assert orjson.loads(annotations[METRICS])[0] == {
        "type": "Pods",
        "pods": {"metricName": "qps", "targetAverageValue": "10"},
    }
    assert orjson.loads(annotations[BEHAVIOR])["ScaleUp"]["Policies"] == [
        {"Type": "Pods", "Value": 4, "PeriodSeconds": 15}
    ]
    assert orjson.loads(annotations[CONDITIONS]) == obj["status"]["conditions"]

    hpa_v1.to_v2(shown)
    assert shown == obj


def test_what_cannot_be_read_in_an_annotation_counts_as_nothing() -> None:
    obj = autoscaler([])
    obj["metadata"]["annotations"] = {METRICS: "{nonsense", BEHAVIOR: "[]", CONDITIONS: '"x"', "mine": "kept"}
    obj["status"] = {}
    hpa_v1.to_v2(obj)
    assert obj["spec"]["metrics"] == [hpa_v1.cpu_metric(80)]
    assert obj["metadata"]["annotations"] == {"mine": "kept"}


def test_a_write_in_v1_leaves_the_metrics_it_cannot_show_as_they_were() -> None:
    kind = KINDS["autoscaling/v1", "HorizontalPodAutoscaler"]
    stored = autoscaler([*SOURCES, hpa_v1.cpu_metric(50)])
    stored["status"] = {"currentMetrics": None, "desiredReplicas": 0}
    read = copy.deepcopy(stored)
    assert kind.from_storage is not None
    assert kind.to_storage is not None
    kind.from_storage(read)
    written = copy.deepcopy(read)
    written["spec"]["maxReplicas"] = 9
    kind.strategy.decode(written)
    kind.strategy.default(written)
    kind.strategy.prepare_update(written, read)
    assert kind.strategy.validate_update(written, read) == []
    kind.to_storage(written)
    assert written["spec"] == stored["spec"] | {"maxReplicas": 9}


def test_events_of_both_groups_are_the_same_objects() -> None:
    kind = KINDS["events.k8s.io/v1", "Event"]
    assert kind.storage_key == KINDS["v1", "Event"].storage_key
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "regarding": {"kind": "Pod", "name": "p"},
        "note": "started",
        "reason": "Started",
        "reportingController": "a.io/b",
        "reportingInstance": "b-0",
        "deprecatedCount": 2,
    }
    stored = copy.deepcopy(event)
    events.to_core(stored)
    assert stored["apiVersion"] == "v1"
    assert stored["involvedObject"] == event["regarding"]
    assert (stored["message"], stored["reportingComponent"], stored["count"]) == ("started", "a.io/b", 2)
    events.from_core(stored)
    assert stored == event


def test_events_are_selected_by_what_they_regard() -> None:
    selectable = KINDS["events.k8s.io/v1", "Event"].strategy.selectable
    event = {"regarding": {"kind": "Pod", "name": "p"}, "reason": "Started", "reportingController": "c"}
    assert {
        field: selectable[field](event) for field in ("regarding.name", "reason", "reportingController", "type")
    } == {
        "regarding.name": "p",
        "reason": "Started",
        "reportingController": "c",
        "type": "",
    }
