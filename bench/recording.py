"""A recorded watch of many Pods, for clients to be measured on: made once, the same bytes every time, kept in a cache folder.

The file is the body of a watch's answer as kube-apiserver sends it, chunk by chunk, one event in each; beside it lies where
in the file each Pod is, so that lists are cut from the same bytes. Serving it is `bench.replay`'s.
"""

import array
import hashlib
import os
import uuid
from pathlib import Path
from typing import Any

import orjson

#: Goes into the file's name: another form of Pod is another recording.
FORM = 1
FIRST_VERSION = 100_000
_APPS = ("checkout", "catalog", "payments", "search", "sessions", "mail", "ledger", "pricing")


class Recording:
    """Where a recording is, how many Pods it has, and where in the file they are (start and end, alternating)."""

    def __init__(self, events: Path, offsets: Path):
        self.events = events
        self.offsets = offsets
        self.positions = array.array("q", offsets.read_bytes())

    @property
    def count(self) -> int:
        return len(self.positions) // 2

    @property
    def mean_size(self) -> float:
        starts, ends = self.positions[::2], self.positions[1::2]
        return (sum(ends) - sum(starts)) / self.count


def recording(count: int, folder: Path) -> Recording:
    """The recording of so many Pods; made now if the folder does not have it."""
    folder.mkdir(parents=True, exist_ok=True)
    events, offsets = folder / f"pods-{FORM}-{count}.watch", folder / f"pods-{FORM}-{count}.offsets"
    if not offsets.exists():
        _make(count, events, offsets)
    return Recording(events, offsets)


def _make(count: int, events: Path, offsets: Path) -> None:
    positions = array.array("q")
    unfinished = events.with_suffix(f".{os.getpid()}")
    at = 0
    with unfinished.open("wb") as file:
        for number in range(count):
            head, body = b'{"type":"ADDED","object":', orjson.dumps(pod(number))
            line = head + body + b"}\n"
            size = f"{len(line):x}\r\n".encode()
            file.write(size + line + b"\r\n")
            start = at + len(size) + len(head)
            positions.extend((start, start + len(body)))
            at += len(size) + len(line) + 2
    unfinished.rename(events)
    # Last: a recording without it is not one yet.
    offsets.write_bytes(positions.tobytes())


def pod(number: int) -> dict[str, Any]:
    """A running Pod of a Deployment as clusters hold it: two containers, a token volume, conditions, managed fields."""
    app = _APPS[number % len(_APPS)]
    team = f"team-{number % 40:02}"
    digest = hashlib.sha256(str(number // 10).encode()).hexdigest()
    suffix = hashlib.sha256(str(number).encode()).hexdigest()
    owner = f"{app}-{digest[:10]}"
    name = f"{owner}-{suffix[:5]}-{number}"
    started = f"2026-10-{1 + number % 28:02}T{number % 24:02}:{number % 60:02}:07Z"
    labels = {
        "app.kubernetes.io/name": app,
        "app.kubernetes.io/part-of": "shop",
        "app.kubernetes.io/version": f"3.{number % 17}.1",
        "pod-template-hash": digest[:10],
        "team": team,
    }
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "generateName": f"{owner}-",
            "namespace": team,
            "uid": _uid(suffix),
            "resourceVersion": str(FIRST_VERSION + number),
            "generation": 1,
            "creationTimestamp": started,
            "labels": labels,
            "annotations": {
                "prometheus.io/port": "9102",
                "checksum/config": digest,
            },
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": owner,
                    "uid": _uid(digest),
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "managedFields": _managed_fields(labels, started),
        },
        "spec": {
            "volumes": [
                {"name": "config", "configMap": {"name": f"{app}-config", "defaultMode": 420}},
                {"name": f"kube-api-access-{suffix[:5]}", "projected": {"sources": _TOKEN_SOURCES, "defaultMode": 420}},
            ],
            "containers": [_container(app, digest, suffix), _SIDECAR],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": app,
            "serviceAccount": app,
            "nodeName": f"node-{number % 500:03}.example.net",
            "securityContext": {"runAsNonRoot": True, "runAsUser": 10001, "fsGroup": 10001},
            "schedulerName": "default-scheduler",
            "tolerations": _TOLERATIONS,
            "priority": 0,
            "enableServiceLinks": True,
        },
        "status": _status(app, digest, suffix, number, started),
    }


def _uid(digest: str) -> str:
    return str(uuid.UUID(digest[:32]))


def _container(app: str, digest: str, suffix: str) -> dict[str, Any]:
    return {
        "name": app,
        "image": f"registry.example.net/shop/{app}@sha256:{digest}",
        "ports": [
            {"name": "http", "containerPort": 8080, "protocol": "TCP"},
        ],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
        ],
        "resources": {"limits": {"memory": "512Mi"}, "requests": {"cpu": "250m", "memory": "256Mi"}},
        "volumeMounts": [
            {"name": "config", "readOnly": True, "mountPath": "/etc/app"},
            _token_mount(suffix),
        ],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }


def _token_mount(suffix: str) -> dict[str, Any]:
    path = "/var/run/secrets/kubernetes.io/serviceaccount"
    return {"name": f"kube-api-access-{suffix[:5]}", "readOnly": True, "mountPath": path}


def _status(app: str, digest: str, suffix: str, number: int, started: str) -> dict[str, Any]:
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    return {
        "phase": "Running",
        "conditions": [
            {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": started} for kind in kinds
        ],
        "hostIP": f"192.0.2.{number % 250}",
        "podIP": f"198.18.{number // 250 % 250}.{number % 250}",
        "podIPs": [{"ip": f"198.18.{number // 250 % 250}.{number % 250}"}],
        "startTime": started,
        "containerStatuses": [
            {
                "name": name,
                "state": {"running": {"startedAt": started}},
                "lastState": {},
                "ready": True,
                "restartCount": 0,
                "image": f"registry.example.net/shop/{name}:{digest[:7]}",
                "imageID": f"registry.example.net/shop/{name}@sha256:{digest}",
                "containerID": f"containerd://{suffix}",
                "started": True,
            }
            for name in (app, _SIDECAR["name"])
        ],
        "qosClass": "Burstable",
    }


def _managed_fields(labels: dict[str, str], started: str) -> list[dict[str, Any]]:
    def entry(manager: str, fields: dict[str, Any], **more: str) -> dict[str, Any]:
        return {
            "manager": manager,
            "operation": "Update",
            "apiVersion": "v1",
            "time": started,
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
            **more,
        }

    created = {
        "f:metadata": {
            "f:generateName": {},
            "f:labels": {".": {}, **{f"f:{key}": {} for key in labels}},
            "f:ownerReferences": {".": {}},
        },
        "f:spec": {
            "f:containers": {'k:{"name":"main"}': {".": {}, "f:image": {}, "f:name": {}, "f:ports": {}}},
            "f:restartPolicy": {},
            "f:securityContext": {},
            "f:volumes": {".": {}},
        },
    }
    ran = {"f:status": {"f:conditions": {}, "f:containerStatuses": {}, "f:phase": {}, "f:podIP": {}, "f:startTime": {}}}
    return [entry("kube-controller-manager", created), entry("kubelet", ran, subresource="status")]


_SIDECAR: dict[str, Any] = {
    "name": "proxy",
    "image": "registry.example.net/mesh/proxy:1.31.2",
    "resources": {"limits": {"cpu": "1", "memory": "128Mi"}, "requests": {"cpu": "10m", "memory": "64Mi"}},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "IfNotPresent",
}
_TOKEN_SOURCES = [
    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
]
_TOLERATIONS = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("not-ready", "unreachable")
]
