"""Rows here are kube-apiserver 1.36's for the same objects."""

import copy

import orjson
import pytest

from argosy.kube.errors import ApiError, BadRequest
from argosy.server.printers import builtin_printer
from argosy.server.printers.base import human_duration
from argosy.server.printers.tables import TableRequest, as_partial, as_partial_list, as_table, wants_table
from argosy.server.registry import Kind, Strategy

NOW = 1767225600.0  # 2026-01-01T00:00:00Z
META = {"name": "x", "creationTimestamp": "2025-12-31T23:55:50Z"}
TEMPLATE = {"spec": {"containers": [{"name": "a", "image": "nginx"}, {"name": "b", "image": "redis:7"}]}}


def cells(group, kind, obj):
    return builtin_printer(group, kind).cells({"metadata": META, **obj}, NOW)


def pod(spec=None, status=None, **meta):
    return {
        "metadata": {**META, **meta},
        "spec": {"containers": [{"name": "a"}], **(spec or {})},
        "status": {"phase": "Running", **(status or {})},
    }


def container(state, **more):
    return {"name": "a", "ready": False, "restartCount": 0, "state": state, **more}


RUNNING = container({"running": {}}, ready=True)
READY = [{"type": "Ready", "status": "True"}]
RESTARTED = {"restartCount": 3, "lastState": {"terminated": {"finishedAt": "2025-12-31T23:00:00Z"}}}
SIDECAR = {"name": "s", "restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("obj", "shown"),
    [
        (pod(status={"containerStatuses": [RUNNING]}), ["1/1", "Running", "0"]),
        (pod(status={"phase": "Pending"}), ["0/1", "Pending", "0"]),
        (pod(status={"reason": "Evicted", "phase": "Failed"}), ["0/1", "Evicted", "0"]),
        (pod(status={"containerStatuses": [{**RUNNING, **RESTARTED}]}), ["1/1", "Running", "3 (60m ago)"]),
        (pod(status={"containerStatuses": [container({"waiting": {"reason": "CrashLoopBackOff"}})]}),
         ["0/1", "CrashLoopBackOff", "0"]),
        (pod(status={"containerStatuses": [container({"terminated": {"exitCode": 3}})]}), ["0/1", "ExitCode:3", "0"]),
        (pod(status={"containerStatuses": [container({"terminated": {"exitCode": 137, "signal": 9}})]}),
         ["0/1", "Signal:9", "0"]),
        (pod(status={"containerStatuses": [container({"terminated": {"reason": "Completed"}}), RUNNING],
                     "conditions": READY}), ["1/1", "Running", "0"]),
        (pod(status={"containerStatuses": [container({"terminated": {"reason": "Completed"}}), RUNNING]}),
         ["1/1", "NotReady", "0"]),
        (pod(deletionTimestamp="2025-12-31T23:59:00Z", status={"containerStatuses": [RUNNING]}),
         ["1/1", "Terminating", "0"]),
        (pod(deletionTimestamp="2025-12-31T23:59:00Z", status={"reason": "NodeLost"}), ["0/1", "Unknown", "0"]),
        (pod(status={"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}),
         ["0/1", "SchedulingGated", "0"]),
        (pod(spec={"initContainers": [{"name": "i"}, {"name": "j"}]},
             status={"phase": "Pending", "initContainerStatuses": [
                 {"name": "i", "state": {"terminated": {"exitCode": 0}}}, {"name": "j", "state": {}}]}),
         ["0/1", "Init:1/2", "0"]),
        (pod(spec={"initContainers": [{"name": "i"}]},
             status={"phase": "Pending", "initContainerStatuses": [
                 {"name": "i", "state": {"waiting": {"reason": "CrashLoopBackOff"}}, **RESTARTED}]}),
         ["0/1", "Init:CrashLoopBackOff", "3 (60m ago)"]),
        (pod(spec={"initContainers": [SIDECAR]},
             status={"initContainerStatuses": [
                 {"name": "s", "started": True, "ready": True, "state": {"running": {}}}],
                 "containerStatuses": [RUNNING]}),
         ["2/2", "Running", "0"]),
    ],
)  # fmt: skip
def test_a_pods_status_says_what_matters_first(obj, shown):
    assert builtin_printer("", "Pod").cells(obj, NOW)[1:4] == shown


def test_a_finished_pods_row_is_marked():
    row = builtin_printer("", "Pod")
    assert row.conditions is not None
    assert row.conditions(pod(status={"phase": "Succeeded"}))[0]["reason"] == "Succeeded"
    assert row.conditions(pod()) == []


@pytest.mark.parametrize(
    ("group", "kind", "obj", "shown"),
    [
        ("apps", "Deployment",
         {"spec": {"replicas": 3, "template": TEMPLATE,
                   "selector": {"matchLabels": {"b": "c", "a": "x"},
                                "matchExpressions": [{"key": "z", "operator": "DoesNotExist"}]}},
          "status": {"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 1}},
         ["x", "2/3", 3, 1, "4m10s", "a,b", "nginx,redis:7", "a=x,b=c,!z"]),
        ("apps", "DaemonSet", {"spec": {"template": TEMPLATE, "selector": {}}, "status": {"numberReady": 2}},
         ["x", 0, 0, 2, 0, 0, "<none>", "4m10s", "a,b", "nginx,redis:7", "<none>"]),
        ("apps", "StatefulSet", {"spec": {"replicas": 2, "template": TEMPLATE}}, ["x", "0/2", "4m10s", "a,b", "nginx,redis:7"]),
        ("batch", "Job", {"spec": {"parallelism": 3, "template": TEMPLATE, "selector": {}},
                          "status": {"startTime": "2025-12-31T23:00:00Z"}},
         ["x", "Running", "0/1 of 3", "60m", "4m10s", "a,b", "nginx,redis:7", "<none>"]),
        ("batch", "CronJob", {"spec": {"schedule": "@daily", "suspend": False, "jobTemplate": {}}},
         ["x", "@daily", "<none>", "False", 0, "<none>", "4m10s", "", "", "<none>"]),
        ("", "Service", {"spec": {"type": "LoadBalancer", "clusterIPs": ["10.0.0.1"], "selector": {"a": "b"},
                                  "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}]}},
         ["x", "LoadBalancer", "10.0.0.1", "<pending>", "80:30080/TCP", "4m10s", "a=b"]),
        ("", "Node", {"metadata": {**META, "labels": {"node-role.kubernetes.io/worker": ""}},
                      "spec": {"unschedulable": True},
                      "status": {"conditions": READY, "nodeInfo": {"kubeletVersion": "v1.36.0"}}},
         ["x", "Ready,SchedulingDisabled", "worker", "4m10s", "v1.36.0", "<none>", "<none>", "<unknown>", "<unknown>",
          "<unknown>"]),
        ("", "Endpoints", {"subsets": [{"addresses": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}],
                                        "ports": [{"port": 80}, {"port": 81}]}]},
         ["x", "10.0.0.1:80,[fd00::1]:80,10.0.0.1:81 + 1 more...", "4m10s"]),
        ("", "PersistentVolume", {"spec": {"capacity": {"storage": "1024Mi"}, "accessModes": ["ReadWriteMany"],
                                           "claimRef": {"namespace": "n", "name": "c"}}, "status": {"phase": "Bound"}},
         ["x", "1Gi", "RWX", "", "Bound", "n/c", "", "<unset>", "", "4m10s", "<unset>"]),
        ("autoscaling", "HorizontalPodAutoscaler",
         {"spec": {"maxReplicas": 5, "scaleTargetRef": {"kind": "Deployment", "name": "web"}, "metrics": [
             {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 60}}},
             {"type": "Resource", "resource": {"name": "memory", "target": {"averageValue": "100Mi"}}},
             {"type": "Pods", "pods": {"target": {"averageValue": "5"}}}]}},
         ["x", "Deployment/web", "cpu: <unknown>/60%, memory: <unknown>/100Mi + 1 more...", "<unset>", 5, 0, "4m10s"]),
        ("networking.k8s.io", "Ingress",
         {"spec": {"rules": [{"host": h} for h in "abcd"], "tls": [{}]},
          "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}},
         ["x", "<none>", "a,b,c + 1 more...", "1.2.3.4", "80, 443", "4m10s"]),
        ("rbac.authorization.k8s.io", "RoleBinding",
         {"roleRef": {"kind": "Role", "name": "r"}, "subjects": [
             {"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}]},
         ["x", "Role/r", "4m10s", "u", "", "n/s"]),
        ("", "ConfigMap", {"data": {"a": ""}, "binaryData": {"b": ""}}, ["x", 2, "4m10s"]),
        ("rbac.authorization.k8s.io", "Role", {}, ["x", "2025-12-31T23:55:50Z"]),
    ],
)  # fmt: skip
def test_kinds_show_kubectls_columns(group, kind, obj, shown):
    assert cells(group, kind, obj) == shown
    assert len(builtin_printer(group, kind).columns) == len(shown)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "<invalid>"), (-1, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (125, "2m5s"), (600, "10m"), (10799, "179m"),
     (10800, "3h"), (10860, "3h1m"), (28800, "8h"), (172799, "47h"), (172800, "2d"), (180000, "2d2h"), (691200, "8d"),
     (86400 * 730, "2y"), (86400 * 731, "2y1d"), (86400 * 365 * 9, "9y")],
)  # fmt: skip
def test_ages_get_coarser_with_time(seconds, text):
    assert human_duration(seconds) == text


CONFIG_MAPS = Kind("", "v1", "ConfigMap", "configmaps", "configmap", True, Strategy())
TABLE = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        (TABLE, TableRequest("Table")),
        ("application/json", None),
        ("", None),
        ("application/json,application/json;as=Table;v=v1;g=meta.k8s.io", None),
        ("application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,"
         "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
         TableRequest("PartialObjectMetadata")),
        ("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", TableRequest("PartialObjectMetadataList")),
        ("application/json;as=Foo;v=v1;g=meta.k8s.io,application/json", None),
        ("application/json;q=0.5,application/json;as=Table;v=v1;g=meta.k8s.io", TableRequest("Table")),
    ],
)  # fmt: skip
def test_the_shape_asked_for_is_read_from_accept(accept, wanted):
    assert wants_table(accept) == wanted


def test_a_shape_nobody_knows_is_not_acceptable():
    with pytest.raises(ApiError) as caught:
        wants_table("application/json;as=Foo;v=v1;g=meta.k8s.io")
    assert caught.value.code == 406


def test_a_table_has_columns_rows_and_the_objects_as_asked():
    obj = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {**META, "resourceVersion": "7"}, "data": {"a": "b"}}
    item = orjson.dumps(obj)
    table = orjson.loads(as_table(CONFIG_MAPS, [item], list_metadata={"resourceVersion": "9"}))
    assert (table["kind"], table["apiVersion"], table["metadata"]) == (
        "Table",
        "meta.k8s.io/v1",
        {"resourceVersion": "9"},
    )
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert table["rows"][0]["cells"][:2] == ["x", 1]
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
    assert table["rows"][0]["object"] == partial
    whole = orjson.loads(as_table(CONFIG_MAPS, [copy.deepcopy(obj)], list_metadata={}, include_object="Object"))
    assert whole["rows"][0]["object"] == obj
    none = orjson.loads(as_table(CONFIG_MAPS, [item], list_metadata={}, include_object="None", is_watch=True))
    assert (none["rows"][0]["object"], none["columnDefinitions"]) == (None, None)
    with pytest.raises(BadRequest, match="must be 'Metadata', 'Object', 'None', or empty"):
        as_table(CONFIG_MAPS, [item], list_metadata={}, include_object="Bogus")


def test_partial_objects_carry_metadata_alone():
    item = orjson.dumps({"kind": "ConfigMap", "metadata": META, "data": {"a": "b"}})
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": META}
    assert orjson.loads(as_partial(item)) == partial
    assert orjson.loads(as_partial_list([item, item], list_metadata={"resourceVersion": "9"})) == {
        "kind": "PartialObjectMetadataList",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "9"},
        "items": [partial, partial],
    }
