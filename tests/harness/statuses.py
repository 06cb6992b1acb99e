"""Objects of every kind whose status is merged: a source, what two members report of it, and the one status of both.

The members' statuses are as real members write them, and so is the merged one: an API server stores it as it is.
"""

from typing import Any, NamedTuple

from argosy.kube import mergepatch
from argosy.kube.client import Client, Patch
from argosy.kube.resource import Resource
from argosy.plan.fields import equal
from argosy.plan.kinds.observation import Aggregation, Observation
from argosy.plan.kinds.registry import kind_of

__all__ = ["EARLY", "KINDS", "LATE", "Merged", "accepted_and_stable"]

Object = dict[str, Any]

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"
_LABELS = {"app": "x"}
_POD = {"containers": [{"name": "main", "image": "nginx:1"}]}
_TEMPLATE = {"metadata": {"labels": _LABELS}, "spec": _POD}
_WORKLOAD = {"selector": {"matchLabels": _LABELS}, "template": _TEMPLATE}
_STORAGE = {"storage": "1Gi"}


class Merged(NamedTuple):
    resource: Resource
    spec: Object
    #: Of the members m1 and m2, both of which have observed the newest generation, 1.
    reported: tuple[Object, Object]
    merged: Object

    def source(self, namespace: str | None = "default", name: str = "x") -> Object:
        metadata = {"name": name, **({"namespace": namespace} if self.resource.namespaced else {})}
        return {
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "metadata": metadata,
            "spec": self.spec,
        }


def _condition(type: str, status: str, reason: str = "", message: str = "", **more: Any) -> Object:
    told = {"reason": reason, "message": message}
    texts = {key: text for key, text in told.items() if text}
    return {"type": type, "status": status, **texts, **more}


def _terminated(name: str, code: int) -> Object:
    state = {"terminated": {"exitCode": code, "startedAt": EARLY, "finishedAt": LATE, "reason": "Completed"}}
    image = {"image": "nginx:1", "imageID": "nginx@sha256:1"}
    return {"name": name, "ready": False, "restartCount": 0, "state": state, "lastState": {}, **image}


def _job(name: str) -> Object:
    return {"kind": "Job", "apiVersion": "batch/v1", "namespace": "default", "name": name, "uid": f"uid-of-{name}"}


def _budget(allowed: int, healthy: int) -> Object:
    return {
        "observedGeneration": 1,
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": 1,
        "expectedPods": healthy,
        "conditions": [
            _condition(
                "DisruptionAllowed",
                "True" if allowed else "False",
                "SufficientPods" if allowed else "InsufficientPods",
                lastTransitionTime=EARLY,
                observedGeneration=1,
            )
            | {"message": ""}
        ],
    }


def _cpu(utilization: int, value: str) -> Object:
    current = {"averageUtilization": utilization, "averageValue": value}
    return {"type": "Resource", "resource": {"name": "cpu", "current": current}}


def _scaled(current: int, desired: int, time: str, metric: Object) -> Object:
    return {
        "observedGeneration": 1,
        "lastScaleTime": time,
        "currentReplicas": current,
        "desiredReplicas": desired,
        "currentMetrics": [metric],
        "conditions": [
            _condition("AbleToScale", "True", "ReadyForNewScale", "recommended size matches", lastTransitionTime=time),
            _condition(
                "ScalingLimited", "True" if desired == 1 else "False", "DesiredWithinRange", lastTransitionTime=time
            ),
        ],
    }


def _balanced(*points: Object) -> Object:
    return {"loadBalancer": {"ingress": list(points)} if points else {}}


_APPS = ("apps", "v1")
KINDS: dict[str, Merged] = {
    "StatefulSet": Merged(
        Resource(*_APPS, "statefulsets", "StatefulSet"),
        {"replicas": 5, "serviceName": "x", **_WORKLOAD},
        (
            {
                "observedGeneration": 1,
                "replicas": 3,
                "readyReplicas": 3,
                "currentReplicas": 3,
                "updatedReplicas": 3,
                "availableReplicas": 3,
                "currentRevision": "x-2",
                "updateRevision": "x-2",
                "collisionCount": 0,
            },
            {
                "observedGeneration": 1,
                "replicas": 2,
                "readyReplicas": 1,
                "currentReplicas": 1,
                "updatedReplicas": 1,
                "availableReplicas": 1,
                "currentRevision": "x-1",
                "updateRevision": "x-2",
                "collisionCount": 0,
            },
        ),
        {
            "observedGeneration": 1,
            "replicas": 5,
            "readyReplicas": 4,
            "currentReplicas": 4,
            "updatedReplicas": 4,
            "availableReplicas": 4,
            "currentRevision": "x-1",
            "updateRevision": "x-2",
        },
    ),
    "DaemonSet": Merged(
        Resource(*_APPS, "daemonsets", "DaemonSet"),
        _WORKLOAD,
        (
            {
                "observedGeneration": 1,
                "currentNumberScheduled": 2,
                "numberMisscheduled": 0,
                "desiredNumberScheduled": 2,
                "numberReady": 2,
                "updatedNumberScheduled": 2,
                "numberAvailable": 2,
            },
            {
                "observedGeneration": 1,
                "currentNumberScheduled": 3,
                "numberMisscheduled": 0,
                "desiredNumberScheduled": 4,
                "numberReady": 1,
                "updatedNumberScheduled": 3,
                "numberAvailable": 1,
                "numberUnavailable": 3,
            },
        ),
        {
            "observedGeneration": 1,
            "currentNumberScheduled": 5,
            "numberMisscheduled": 0,
            "desiredNumberScheduled": 6,
            "numberReady": 3,
            "updatedNumberScheduled": 5,
            "numberAvailable": 3,
            "numberUnavailable": 3,
        },
    ),
    "ReplicaSet": Merged(
        Resource(*_APPS, "replicasets", "ReplicaSet"),
        {"replicas": 3, **_WORKLOAD},
        (
            {
                "observedGeneration": 1,
                "replicas": 2,
                "fullyLabeledReplicas": 2,
                "readyReplicas": 2,
                "availableReplicas": 2,
            },
            {
                "observedGeneration": 1,
                "replicas": 0,
                "conditions": [
                    _condition("ReplicaFailure", "True", "FailedCreate", "exceeded quota", lastTransitionTime=EARLY)
                ],
            },
        ),
        {
            "observedGeneration": 1,
            "replicas": 2,
            "fullyLabeledReplicas": 2,
            "readyReplicas": 2,
            "availableReplicas": 2,
            "conditions": [
                _condition("ReplicaFailure", "True", "FailedCreate", "m2: exceeded quota", lastTransitionTime=LATE)
            ],
        },
    ),
    "ReplicationController": Merged(
        Resource("", "v1", "replicationcontrollers", "ReplicationController"),
        {"replicas": 3, "selector": _LABELS, "template": _TEMPLATE},
        (
            {"observedGeneration": 1, "replicas": 1, "fullyLabeledReplicas": 1},
            {"observedGeneration": 1, "replicas": 2, "fullyLabeledReplicas": 2, "readyReplicas": 1},
        ),
        {"observedGeneration": 1, "replicas": 3, "fullyLabeledReplicas": 3, "readyReplicas": 1},
    ),
    "CronJob": Merged(
        Resource("batch", "v1", "cronjobs", "CronJob"),
        {
            "schedule": "0 * * * *",
            "jobTemplate": {"spec": {"template": {"spec": {**_POD, "restartPolicy": "Never"}}}},
        },
        (
            {"active": [_job("x-2"), _job("x-1")], "lastScheduleTime": LATE, "lastSuccessfulTime": EARLY},
            {"active": [_job("x-3")], "lastScheduleTime": EARLY, "lastSuccessfulTime": LATE},
        ),
        {
            "active": [_job("x-1"), _job("x-2"), _job("x-3")],
            "lastScheduleTime": LATE,
            "lastSuccessfulTime": EARLY,
        },
    ),
    "Pod": Merged(
        Resource("", "v1", "pods", "Pod"),
        {**_POD, "restartPolicy": "Never"},
        (
            {
                "phase": "Succeeded",
                "startTime": LATE,
                "qosClass": "BestEffort",
                "podIP": "10.0.0.1",
                "conditions": [
                    _condition("Ready", "False", "PodCompleted", lastProbeTime=None, lastTransitionTime=EARLY)
                ],
                "containerStatuses": [_terminated("main", 0)],
            },
            {
                "phase": "Running",
                "startTime": EARLY,
                "qosClass": "BestEffort",
                "podIP": "10.0.0.1",
                "conditions": [_condition("Ready", "True", lastProbeTime=None, lastTransitionTime=EARLY)],
                "containerStatuses": [_terminated("main", 1)],
            },
        ),
        {
            "phase": "Running",
            "message": "Pod running in clusters [m2], and succeeded in clusters [m1]",
            "startTime": EARLY,
            "qosClass": "BestEffort",
            "conditions": [
                _condition("Ready", "False", "PodCompleted", "m1", lastProbeTime=None, lastTransitionTime=LATE)
            ],
            "containerStatuses": [_terminated("main (m1)", 0), _terminated("main (m2)", 1)],
        },
    ),
    "Service": Merged(
        Resource("", "v1", "services", "Service"),
        {"type": "LoadBalancer", "selector": _LABELS, "ports": [{"port": 80}]},
        (
            _balanced({"ip": "192.0.2.7", "ipMode": "VIP"}, {"ip": "192.0.2.3", "ipMode": "VIP"}),
            _balanced({"ip": "192.0.2.3", "ipMode": "VIP"}, {"hostname": "lb.example.com"}),
        ),
        _balanced(
            {"ip": "192.0.2.3", "ipMode": "VIP"}, {"ip": "192.0.2.7", "ipMode": "VIP"}, {"hostname": "lb.example.com"}
        ),
    ),
    "Ingress": Merged(
        Resource("networking.k8s.io", "v1", "ingresses", "Ingress"),
        {"defaultBackend": {"service": {"name": "x", "port": {"number": 80}}}},
        (_balanced({"ip": "192.0.2.7"}), _balanced({"hostname": "b.example.com"}, {"hostname": "a.example.com"})),
        _balanced({"ip": "192.0.2.7"}, {"hostname": "a.example.com"}, {"hostname": "b.example.com"}),
    ),
    "PersistentVolume": Merged(
        Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False),
        {"capacity": _STORAGE, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}},
        (
            {"phase": "Bound", "lastPhaseTransitionTime": EARLY},
            {"phase": "Failed", "reason": "NoDisk", "message": "it is gone", "lastPhaseTransitionTime": LATE},
        ),
        {"phase": "Failed", "reason": "NoDisk", "message": "m2: it is gone"},
    ),
    "PersistentVolumeClaim": Merged(
        Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
        {"accessModes": ["ReadWriteOnce"], "resources": {"requests": _STORAGE}},
        (
            {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": _STORAGE},
            {"phase": "Pending"},
        ),
        {"phase": "Pending"},
    ),
    "HorizontalPodAutoscaler": Merged(
        Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
        {"maxReplicas": 9, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}},
        (_scaled(3, 3, LATE, _cpu(50, "500m")), _scaled(1, 1, EARLY, _cpu(90, "900m"))),
        {
            "observedGeneration": 1,
            "lastScaleTime": LATE,
            "currentReplicas": 4,
            "desiredReplicas": 4,
            "currentMetrics": [
                {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 60}}}
            ],
            "conditions": [
                _condition(
                    "AbleToScale", "True", "ReadyForNewScale", "recommended size matches", lastTransitionTime=LATE
                ),
                _condition("ScalingLimited", "True", "DesiredWithinRange", "m2", lastTransitionTime=LATE),
            ],
        },
    ),
    "PodDisruptionBudget": Merged(
        Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
        {"minAvailable": 1, "selector": {"matchLabels": _LABELS}},
        (_budget(2, 3), _budget(0, 1)),
        {
            "observedGeneration": 1,
            "disruptionsAllowed": 2,
            "currentHealthy": 4,
            "desiredHealthy": 2,
            "expectedPods": 4,
            "conditions": [
                _condition("DisruptionAllowed", "False", "InsufficientPods", "m2", lastTransitionTime=LATE),
            ],
        },
    ),
}


async def accepted_and_stable(client: Client, kind: str, namespace: str) -> None:
    """An API server takes what is merged, of one member and of two, and it then differs in nothing from what is merged again."""
    case = KINDS[kind]
    name = f"{namespace}-x" if not case.resource.namespaced else "x"
    own = namespace if case.resource.namespaced else None
    await client.create(case.resource, case.source(namespace, name))
    first, second = case.reported
    nothing = {key: value for key, value in first.items() if key not in ("loadBalancer", "conditions", "disruptedPods")}
    for reported in (
        (first,),
        (first, second),
        (second,),
        (nothing | {"loadBalancer": {}} if "loadBalancer" in first else first,),
    ):
        merged = await _merged(client, case, name, own, reported)
        stored = await client.get(case.resource, name, own)
        patch = {"status": mergepatch.create(stored.get("status") or {}, merged)}
        after = await client.patch(case.resource, name, patch, own, kind=Patch.MERGE, subresource="status")
        again = await _merged(client, case, name, own, reported)
        assert equal(after["status"], again), f"stored {after['status']}, merged again {again}"
    await client.delete(case.resource, name, own)


async def _merged(
    client: Client, case: Merged, name: str, namespace: str | None, reported: tuple[Object, ...]
) -> Object:
    source = await client.get(case.resource, name, namespace)
    source |= {"apiVersion": case.resource.api_version, "kind": case.resource.kind}
    observations = [
        Observation(
            f"m{at}", {"metadata": {}, "status": each}, last_written_generation=each.get("observedGeneration", 0)
        )
        for at, each in enumerate(reported, 1)
    ]
    merged = kind_of(source).aggregate(Aggregation(source, observations, True, LATE))
    assert merged is not None
    return merged
