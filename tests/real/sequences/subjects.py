# ruff: noqa: E501 (tables: one line a field)
"""Subjects: the kinds that sequences are about, an object of each, and the changes that are tried on it, good and bad.

A change is a path and the values that are tried there. Parts of a path are keys and items of lists (`{"name": "a"}`).
"""

from typing import Any

import msgspec

from tests.real.sequences.steps import ABSENT, Path

__all__ = ["COMMON", "DEFINITIONS", "SUBJECTS", "Subject", "collection"]

Tried = tuple[Path, list[Any]]
_A = {"name": "a"}
_TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a", "image": "x:1"}]}}
_SELECTOR = {"matchLabels": {"app": "a"}}
_GROUP = "sequences.example.com"
_RESOURCES = [{"requests": {"cpu": "100m"}}, {"limits": {"cpu": "1", "memory": "1Gi"}}, {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}, {"requests": {"cpu": "-1"}}, {"requests": {"cpu": 0.5, "memory": "1.5Gi"}}, {"limits": {"fish": "1"}}, {"requests": {"cpu": "x"}}]  # fmt: skip


class Subject(msgspec.Struct, frozen=True):
    api: str
    plural: str
    kind: str
    content: dict[str, Any]
    changes: list[Tried]
    namespaced: bool = True
    status: list[Tried] = []
    strategic: bool = True
    scale: bool = False
    fields: list[str] = []

    @property
    def api_version(self) -> str:
        return self.api.removeprefix("/apis/").removeprefix("/api/")


def collection(subject: Subject, namespace: str) -> str:
    return (
        f"{subject.api}/namespaces/{namespace}/{subject.plural}"
        if subject.namespaced
        else f"{subject.api}/{subject.plural}"
    )


#: Tried on every kind.
COMMON: list[Tried] = [
    (("metadata", "labels", "color"), ["red", "blue", "green", "", "no spaces", "-bad", ABSENT, None, 5]),
    (("metadata", "labels", "bad key"), ["x"]),
    (("metadata", "labels"), [{"color": "red"}, {}, None, "x"]),
    (("metadata", "annotations", "note"), ["one", "two", "", ABSENT, "x" * 300]),
    (("metadata", "annotations", "Bad Key/with/slashes"), ["x"]),
    (("metadata", "finalizers"), [["example.com/hold"], ["example.com/hold", "example.com/two"], ["unqualified"], ["Bad_Name/x"], [], ABSENT, ["example.com/hold", "example.com/hold"], "x"]),
    (("metadata", "ownerReferences"), [[{"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}], [{"apiVersion": "", "kind": "X", "name": "x", "uid": "1"}], []]),
    (("metadata", "generateName"), ["other-"]),
    (("metadata", "generation"), [77, -1]),
    (("metadata", "creationTimestamp"), ["2020-01-01T00:00:00Z", None, "nonsense"]),
    (("metadata", "deletionTimestamp"), ["2020-01-01T00:00:00Z"]),
    (("metadata", "uid"), ["11111111-2222-4333-8444-555555555555", ""]),
    (("metadata", "resourceVersion"), ["0", "", "abc", ABSENT]),
    (("metadata", "selfLink"), ["/x"]),
    (("metadata", "namespace"), ["elsewhere", "", ABSENT]),
    (("metadata", "name"), ["Bad_Name", "", "x" * 260, "other-{id}"]),
    (("metadata", "unknown"), [1]),
    (("unknown",), ["x", {"a": 1}]),
    (("kind",), ["Nonsense", "", ABSENT, "ConfigMap"]),
    (("apiVersion",), ["v2", "nonsense.example.com/v1", "", ABSENT, "v1"]),
    (("status",), [{}, None, "x"]),
    (("metadata",), [None, "x"]),
]  # fmt: skip

_POD_SPEC: list[Tried] = [
    (("containers", _A, "image"), ["y:2", "", " z", ABSENT]),
    (("containers", _A, "imagePullPolicy"), ["Always", "Never", "Sometimes"]),
    (("containers", _A, "resources"), _RESOURCES),
    (("containers", _A, "command"), [["sh", "-c", "sleep 1"], [], "sh"]),
    (("containers", _A, "env"), [[{"name": "A", "value": "1"}], [{"name": "A"}, {"name": "A", "value": "2"}], [{"name": "", "value": "x"}], [{"name": "A", "value": 5}], [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}], [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "spec.nothing"}}}], [{"name": "=", "value": "x"}]]),
    (("containers", _A, "ports"), [[{"containerPort": 80}], [{"containerPort": 80, "name": "web"}, {"containerPort": 81, "name": "web"}], [{"containerPort": 0}], [{"containerPort": 70000, "protocol": "XTP"}], [{"name": "UPPER", "containerPort": 80}], [{"containerPort": "80"}]]),
    (("containers", _A, "livenessProbe"), [{"httpGet": {"path": "/", "port": 80}}, {"tcpSocket": {"port": "web"}}, {}, {"exec": {"command": ["x"]}, "periodSeconds": -1}, {"exec": {"command": ["x"]}, "successThreshold": 2}, {"grpc": {"port": 5}}]),
    (("containers", _A, "securityContext"), [{"runAsUser": -1}, {"allowPrivilegeEscalation": False, "capabilities": {"add": ["CAP_SYS_ADMIN"]}}, {"capabilities": {"add": ["NET_ADMIN"]}}, {"readOnlyRootFilesystem": True, "runAsNonRoot": True}]),
    (("containers", _A, "volumeMounts"), [[{"name": "v", "mountPath": "/v"}], [{"name": "none", "mountPath": "/v"}], [{"name": "v", "mountPath": ""}]]),
    (("containers", _A, "lifecycle"), [{"preStop": {"exec": {"command": ["x"]}}}, {"preStop": {}}, {"postStart": {"sleep": {"seconds": 5}}}]),
    (("containers", {"name": "b"}, "image"), ["y:2", ""]),
    (("containers",), [[], None, [{"name": "a", "image": "x"}, {"name": "a", "image": "y"}], [{"image": "x"}], [{"name": "Bad_", "image": "x"}], {}]),
    (("initContainers",), [[{"name": "i", "image": "x"}], [{"name": "a", "image": "x"}], [{"name": "i", "image": "x", "restartPolicy": "Always"}], [{"name": "i", "image": "x", "livenessProbe": {"tcpSocket": {"port": 5}}}]]),
    (("volumes",), [[{"name": "v", "emptyDir": {}}], [{"name": "v", "configMap": {"name": "c"}}], [{"name": "v"}], [{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}], [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}], [{"name": "v", "secret": {"secretName": "s", "defaultMode": 511}}], [{"name": "v", "secret": {"secretName": "s", "defaultMode": 5000}}], [{"name": "v", "projected": {"sources": [{"configMap": {"name": "c"}}]}}]]),
    (("restartPolicy",), ["Always", "OnFailure", "Never", "Sometimes"]),
    (("terminationGracePeriodSeconds",), [0, 5, -1, "x"]),
    (("nodeSelector",), [{"disk": "ssd"}, {"bad key": "x"}]),
    (("tolerations",), [[{"key": "k", "operator": "Exists"}], [{"key": "k", "operator": "Exists", "value": "v"}], [{"operator": "Equal"}], [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}], [{"key": "k", "operator": "Exists", "effect": "Nowhere"}]]),
    (("affinity",), [{"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}]}}}, {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}, {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 0, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}}]}}]),
    (("topologySpreadConstraints",), [[{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"a": "b"}}}], [{"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "Maybe"}]]),
    (("securityContext",), [{"runAsUser": 5, "fsGroup": 7}, {"runAsUser": -5}, {"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}]}, {"sysctls": [{"name": "BAD", "value": "1"}]}, {"seccompProfile": {"type": "RuntimeDefault"}}, {"seccompProfile": {"type": "Localhost"}}]),
    (("hostNetwork",), [True, False, "x"]),
    (("dnsPolicy",), ["ClusterFirst", "Default", "None", "Other"]),
    (("dnsConfig",), [{"nameservers": ["1.2.3.4"]}, {"nameservers": ["x"]}, {"searches": ["a.b"], "options": [{"name": "ndots", "value": "2"}]}]),
    (("hostAliases",), [[{"ip": "1.2.3.4", "hostnames": ["a"]}], [{"ip": "x", "hostnames": ["A_"]}]]),
    (("activeDeadlineSeconds",), [10, 0, -5]),
    (("hostname",), ["web", "Bad_"]),
    (("subdomain",), ["sub", "Bad_"]),
    (("priorityClassName",), ["system-node-critical", "absent"]),
    (("schedulerName",), ["other", ""]),
    (("nodeName",), ["n1", "Bad_"]),
    (("readinessGates",), [[{"conditionType": "x.y/z"}], [{"conditionType": "bad type"}]]),
    (("overhead",), [{"cpu": "1"}]),
    (("enableServiceLinks",), [False]),
    (("shareProcessNamespace",), [True]),
    (("unknown",), ["x"]),
]  # fmt: skip


def _under(prefix: tuple[str, ...], tried: list[Tried]) -> list[Tried]:
    return [((*prefix, *path), values) for path, values in tried]


_TEMPLATE_CHANGES = [
    *_under(("spec", "template", "spec"), _POD_SPEC),
    (("spec", "template", "metadata", "labels"), [{"app": "a"}, {"app": "b"}, {"app": "a", "x": "y"}, {}, None]),
    (("spec", "template", "metadata", "annotations"), [{"a": "b"}, {"bad key": "x"}]),
    (("spec", "template", "metadata", "name"), ["x"]),
    (("spec", "template"), [ABSENT, None]),
    (("spec", "selector"), [{"matchLabels": {"app": "a"}}, {"matchLabels": {"app": "b"}}, {}, None, {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}]}, {"matchExpressions": [{"key": "app", "operator": "In"}]}]),
    (("spec",), [ABSENT, None, {}]),
]  # fmt: skip
_REPLICAS: list[Tried] = [(("spec", "replicas"), [0, 1, 3, -1, None, "3", 2.5, ABSENT, 99999999999])]
_CONDITIONS: list[Tried] = [
    (("status", "conditions"), [[{"type": "Available", "status": "True", "reason": "R", "message": "m"}], [{"type": "", "status": ""}], [{"type": "X", "status": "Maybe", "lastTransitionTime": "2020-01-01T00:00:00Z"}], []]),
]  # fmt: skip
_COUNTS: list[Tried] = [
    (("status", "replicas"), [0, 1, 5, -1, "x"]),
    (("status", "readyReplicas"), [0, 1, 9, -1]),
    (("status", "availableReplicas"), [0, 1, 9, -1]),
    (("status", "observedGeneration"), [1, 2, -1]),
    (("status", "unknown"), [1]),
]

_SHIP = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 100},
                "flag": {"type": "string", "enum": ["red", "green"], "default": "green"},
                "code": {"type": "string", "pattern": "^[A-Z]{3}$"},
                "motto": {"type": "string", "nullable": True, "minLength": 2, "maxLength": 10},
                "weight": {"type": "number", "multipleOf": 0.5},
                "port": {"x-kubernetes-int-or-string": True},
                "born": {"type": "string", "format": "date-time"},
                "sails": {"type": "integer", "format": "int32", "default": 1},
                "crew": {
                    "type": "array",
                    "maxItems": 3,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": {"type": "string"}, "rank": {"type": "string", "default": "sailor"}},
                    },
                },
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "notes": {"type": "object", "additionalProperties": {"type": "string"}},
                "hull": {
                    "type": "object",
                    "default": {},
                    "properties": {"paint": {"type": "string", "default": "tar"}},
                },
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "sails": {"type": "integer", "minimum": 0},
                "phase": {"type": "string", "enum": ["Afloat", "Sunk"]},
                "selector": {"type": "string"},
                "log": {"type": "object", "properties": {"kept": {"type": "boolean", "default": True}}},
            },
        },
    },
}
_BERTH = {
    "type": "object",
    "properties": {
        "length": {"type": "integer", "default": 10},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "guest": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
        "choice": {
            "type": "object",
            "properties": {"left": {"type": "string"}, "right": {"type": "string"}},
            "oneOf": [{"required": ["left"]}, {"required": ["right"]}],
        },
    },
}


def _definition(plural: str, kind: str, scope: str, version: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{_GROUP}"},
        "spec": {
            "group": _GROUP,
            "names": {"plural": plural, "kind": kind},
            "scope": scope,
            "versions": [{"name": "v1", "served": True, "storage": True, **version}],
        },
    }


DEFINITIONS = [
    _definition(
        "ships",
        "Ship",
        "Namespaced",
        {
            "schema": {"openAPIV3Schema": _SHIP},
            "subresources": {
                "status": {},
                "scale": {
                    "specReplicasPath": ".spec.sails",
                    "statusReplicasPath": ".status.sails",
                    "labelSelectorPath": ".status.selector",
                },
            },
            "selectableFields": [{"jsonPath": ".spec.flag"}],
        },
    ),
    _definition("berths", "Berth", "Cluster", {"schema": {"openAPIV3Schema": _BERTH}}),
]

_CUSTOM = [
    Subject(f"/apis/{_GROUP}/v1", "ships", "Ship", {"spec": {"size": 5}}, [
        (("spec", "size"), [1, 100, 0, 101, "5", 5.0, 2.5, None, ABSENT]),
        (("spec", "flag"), ["red", "green", "blue", None, ABSENT, 5]),
        (("spec", "code"), ["ABC", "abc", ""]),
        (("spec", "motto"), [None, "ahoy", "x", "much too long"]),
        (("spec", "weight"), [1, 1.5, 0.3, "x", 1e300]),
        (("spec", "port"), [80, "web", 1.5, True]),
        (("spec", "born"), ["2020-01-01T00:00:00Z", "yesterday"]),
        (("spec", "sails"), [3, -1, 99999999999, ABSENT]),
        (("spec", "crew"), [[{"name": "a"}], [{"name": "a", "rank": "captain"}, {"name": "b"}], [{"name": "a"}, {"name": "a"}], [{"rank": "x"}], [{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "d"}], None, {}]),
        (("spec", "tags"), [["a", "b"], ["a", "a"], [], [5]]),
        (("spec", "free"), [{"x": {"y": [1, None, {"z": 1}]}}, {}, []]),
        (("spec", "notes"), [{"a": "b"}, {"a": 5}, {"a": None}]),
        (("spec", "hull"), [{}, {"paint": "red"}, {"paint": None}, {"rust": 1}, None]),
        (("spec", "unknown"), [1]),
        (("spec",), [ABSENT, None, {}]),
    ], status=[
        (("status", "sails"), [0, 3, -1, "x"]),
        (("status", "phase"), ["Afloat", "Sunk", "Flying"]),
        (("status", "selector"), ["a=b", 5]),
        (("status", "log"), [{}, {"kept": False}, {"kept": "x"}]),
        (("status", "unknown"), [1]),
    ], strategic=False, scale=True, fields=["spec.flag"]),
    Subject(f"/apis/{_GROUP}/v1", "berths", "Berth", {"length": 5}, [
        (("length",), [1, 1.0, "x", None, ABSENT]),
        (("status",), [{"a": {"b": 1}}, {}, ABSENT]),
        (("guest",), [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}, {"kind": "X"}, {"apiVersion": "v1", "kind": "bad kind", "metadata": {"name": "B_"}}, {"apiVersion": "v1", "kind": "X", "metadata": {"labels": {"a": 5}}}]),
        (("choice",), [{"left": "x"}, {"left": "x", "right": "y"}, {}]),
    ], namespaced=False, strategic=False),
]  # fmt: skip

_CORE = [
    Subject("/api/v1", "configmaps", "ConfigMap", {"data": {"k": "v"}}, [
        (("data", "k"), ["w", "", 5, ABSENT, None]),
        (("data", "bad key"), ["x"]),
        (("binaryData", "b"), ["AAE=", "not base64!", ABSENT]),
        (("binaryData", "k"), ["AAE="]),
        (("immutable",), [True, False, "x"]),
        (("data",), [None, {}, "x"]),
    ]),
    Subject("/api/v1", "secrets", "Secret", {"type": "Opaque", "data": {"k": "dg=="}}, [
        (("data", "k"), ["dzE=", "not base64!", "", ABSENT]),
        (("stringData", "s"), ["text", ""]),
        (("type",), ["Opaque", "kubernetes.io/basic-auth", "kubernetes.io/tls", "other/type", "", ABSENT]),
        (("immutable",), [True, False]),
    ], fields=["type"]),
    Subject("/api/v1", "services", "Service", {"spec": {"selector": {"app": "a"}, "ports": [{"port": 80}]}}, [
        (("spec", "ports"), [[{"port": 80, "targetPort": "web"}], [{"port": 80}, {"port": 81}], [{"name": "a", "port": 80}, {"name": "b", "port": 81}], [{"port": 0}], [], [{"port": 80, "protocol": "XTP"}], [{"name": "a", "port": 80}, {"name": "a", "port": 81}], [{"name": "A_", "port": 80}], [{"port": 80, "targetPort": 0}], [{"port": 80, "appProtocol": "x y"}], None]),
        (("spec", "type"), ["ClusterIP", "NodePort", "LoadBalancer", "ExternalName", "Other"]),
        (("spec", "clusterIP"), ["None", "", "1.2.3.4", "x"]),
        (("spec", "externalName"), ["example.com", "Bad_", ABSENT]),
        (("spec", "selector"), [{"app": "b"}, {"bad key": "x"}, {}, None]),
        (("spec", "sessionAffinity"), ["ClientIP", "None", "Other"]),
        (("spec", "externalTrafficPolicy"), ["Local", "Cluster", "Other", ""]),
        (("spec", "internalTrafficPolicy"), ["Local", "Cluster", "Other"]),
        (("spec", "externalIPs"), [["1.2.3.4"], ["x"], ["127.0.0.1"]]),
        (("spec", "ipFamilyPolicy"), ["SingleStack", "PreferDualStack", "RequireDualStack", "x"]),
        (("spec", "loadBalancerSourceRanges"), [["10.0.0.0/8"], ["x"]]),
        (("spec", "publishNotReadyAddresses"), [True]),
        (("spec",), [ABSENT, None, {}]),
    ], status=[
        (("status", "loadBalancer"), [{"ingress": [{"ip": "1.2.3.4"}]}, {"ingress": [{"ip": "x"}]}, {"ingress": [{"hostname": "a.b"}]}, {}]),
        *_CONDITIONS,
    ], fields=["spec.type"]),
    Subject("/api/v1", "serviceaccounts", "ServiceAccount", {}, [
        (("secrets",), [[{"name": "s"}], []]),
        (("imagePullSecrets",), [[{"name": "s"}], [{}]]),
        (("automountServiceAccountToken",), [True, False, "x"]),
    ]),
    Subject("/api/v1", "pods", "Pod", {"spec": {"automountServiceAccountToken": False, "containers": [{"name": "a", "image": "x:1"}]}}, [
        *_under(("spec",), _POD_SPEC),
        (("spec",), [None, {}]),
    ], status=[
        (("status", "phase"), ["Running", "Succeeded", "Pending", "Other"]),
        (("status", "podIP"), ["10.1.2.3", "x"]),
        (("status", "conditions"), [[{"type": "Ready", "status": "True"}], [{"type": "Ready", "status": "Maybe"}], []]),
        (("status", "containerStatuses"), [[{"name": "a", "image": "x:1", "imageID": "", "ready": True, "restartCount": 0, "state": {"running": {}}}], [{"name": "a"}]]),
        (("status", "unknown"), [1]),
    ], fields=["status.phase", "spec.nodeName", "spec.restartPolicy"]),
    Subject("/api/v1", "limitranges", "LimitRange", {"spec": {"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}]}}, [
        (("spec", "limits"), [[], [{"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "1"}}], [{"type": "x y"}], None]),
    ]),
]  # fmt: skip

_WORKLOADS = [
    Subject("/apis/apps/v1", "deployments", "Deployment", {"spec": {"replicas": 1, "selector": _SELECTOR, "template": _TEMPLATE}}, [
        *_REPLICAS, *_TEMPLATE_CHANGES,
        (("spec", "strategy"), [{"type": "Recreate"}, {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "50%", "maxUnavailable": 0}}, {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}, {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}, {"type": "Other"}, {"rollingUpdate": {"maxSurge": "x"}}, {"rollingUpdate": {"maxSurge": -1}}, None]),
        (("spec", "minReadySeconds"), [0, 5, -1, 1000]),
        (("spec", "progressDeadlineSeconds"), [600, 5, 0]),
        (("spec", "revisionHistoryLimit"), [0, 3, -1]),
        (("spec", "paused"), [True, False]),
    ], status=[*_COUNTS, *_CONDITIONS, (("status", "updatedReplicas"), [1, -1]), (("status", "collisionCount"), [1, 0, -1])], scale=True),
    Subject("/apis/apps/v1", "replicasets", "ReplicaSet", {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}}, [
        *_REPLICAS, *_TEMPLATE_CHANGES, (("spec", "minReadySeconds"), [0, 5, -1]),
    ], status=[*_COUNTS, *_CONDITIONS], scale=True, fields=["status.replicas"]),
    Subject("/apis/apps/v1", "statefulsets", "StatefulSet", {"spec": {"serviceName": "s", "selector": _SELECTOR, "template": _TEMPLATE}}, [
        *_REPLICAS, *_TEMPLATE_CHANGES,
        (("spec", "podManagementPolicy"), ["Parallel", "OrderedReady", "Other"]),
        (("spec", "updateStrategy"), [{"type": "OnDelete"}, {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}, {"type": "RollingUpdate", "rollingUpdate": {"partition": -2}}, {"type": "Other"}]),
        (("spec", "serviceName"), ["other", "Bad_", ABSENT]),
        (("spec", "volumeClaimTemplates"), [[{"metadata": {"name": "d"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}], []]),
        (("spec", "ordinals"), [{"start": 2}, {"start": -2}]),
        (("spec", "minReadySeconds"), [0, 5, -1]),
    ], status=[*_COUNTS, *_CONDITIONS, (("status", "currentReplicas"), [1, -1])], scale=True),
    Subject("/apis/apps/v1", "daemonsets", "DaemonSet", {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}}, [
        *_TEMPLATE_CHANGES,
        (("spec", "updateStrategy"), [{"type": "OnDelete"}, {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}}, {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0}}, {"type": "Other"}]),
        (("spec", "minReadySeconds"), [0, 5, -1]),
    ], status=[(("status", "numberReady"), [1, -1]), (("status", "desiredNumberScheduled"), [1, -1]), *_CONDITIONS]),
    Subject("/apis/batch/v1", "jobs", "Job", {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "x:1"}]}}}}, [
        *_under(("spec", "template", "spec"), _POD_SPEC),
        (("spec", "parallelism"), [1, 3, -1, 0]),
        (("spec", "completions"), [1, 5, -1]),
        (("spec", "backoffLimit"), [0, 6, -1]),
        (("spec", "completionMode"), ["Indexed", "NonIndexed", "Other"]),
        (("spec", "suspend"), [True, False]),
        (("spec", "ttlSecondsAfterFinished"), [5, -5]),
        (("spec", "activeDeadlineSeconds"), [5, -5]),
        (("spec", "manualSelector"), [True]),
        (("spec", "selector"), [_SELECTOR]),
        (("spec", "podFailurePolicy"), [{"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}, {"rules": [{"action": "Other"}]}]),
    ], status=[(("status", "active"), [1, -1]), (("status", "succeeded"), [1, -1]), (("status", "startTime"), ["2020-01-01T00:00:00Z"]), *_CONDITIONS], fields=["status.successful"]),
    Subject("/apis/batch/v1", "cronjobs", "CronJob", {"spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "x:1"}]}}}}}}, [
        (("spec", "schedule"), ["@hourly", "5 4 * * 1-5", "nonsense", "", "TZ=UTC 5 4 * * *", "61 * * * *"]),
        (("spec", "timeZone"), ["Europe/Berlin", "Nowhere/At", "", "Local"]),
        (("spec", "suspend"), [True]),
        (("spec", "concurrencyPolicy"), ["Forbid", "Replace", "Other"]),
        (("spec", "startingDeadlineSeconds"), [5, -5]),
        (("spec", "successfulJobsHistoryLimit"), [0, -1]),
        (("spec", "jobTemplate", "spec", "parallelism"), [2, -1]),
        (("spec", "jobTemplate", "spec", "template", "spec", "restartPolicy"), ["OnFailure", "Always"]),
    ], status=[(("status", "lastScheduleTime"), ["2020-01-01T00:00:00Z", "x"])]),
]  # fmt: skip

_OTHERS = [
    Subject("/apis/rbac.authorization.k8s.io/v1", "roles", "Role", {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}, [
        (("rules",), [[], None, [{"apiGroups": [""], "resources": ["pods"]}], [{"nonResourceURLs": ["/x"], "verbs": ["get"]}], [{"apiGroups": ["apps"], "resources": ["*"], "verbs": ["*"]}], [{"verbs": ["get"], "resources": ["x"]}], "x"]),
    ]),
    Subject("/apis/rbac.authorization.k8s.io/v1", "rolebindings", "RoleBinding", {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "u"}]}, [
        (("roleRef", "name"), ["other", ""]),
        (("roleRef", "kind"), ["ClusterRole", "Other"]),
        (("subjects",), [[], [{"kind": "ServiceAccount", "name": "x"}], [{"kind": "ServiceAccount", "name": "x", "namespace": "y"}], [{"kind": "Other", "name": "x"}], [{"kind": "Group", "name": ""}]]),
    ]),
    Subject("/apis/rbac.authorization.k8s.io/v1", "clusterroles", "ClusterRole", {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}, [
        (("rules",), [[], None, [{"nonResourceURLs": ["/x"], "verbs": ["get"]}], [{"nonResourceURLs": ["/x"], "resources": ["y"], "apiGroups": [""], "verbs": ["get"]}]]),
        (("aggregationRule",), [{"clusterRoleSelectors": []}]),
    ], namespaced=False),
    Subject("/apis/networking.k8s.io/v1", "networkpolicies", "NetworkPolicy", {"spec": {"podSelector": {}}}, [
        (("spec", "policyTypes"), [["Ingress"], ["Ingress", "Egress"], ["Other"]]),
        (("spec", "ingress"), [[{}], [{"from": [{"podSelector": {"matchLabels": {"a": "b"}}}]}], [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}]}], [{"from": [{"ipBlock": {"cidr": "x"}}]}], [{"ports": [{"port": 80}, {"port": "web", "protocol": "UDP"}]}], [{"ports": [{"port": 0, "protocol": "X"}]}]]),
        (("spec", "egress"), [[{"to": [{}]}], [{"ports": [{"port": 80, "endPort": 70}]}]]),
        (("spec",), [ABSENT, {}]),
    ]),
    Subject("/apis/networking.k8s.io/v1", "ingresses", "Ingress", {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}}, [
        (("spec", "rules"), [[{"host": "a.example.com", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "s", "port": {"name": "web"}}}}]}}], [{"host": "Bad_"}], [{"host": "1.2.3.4"}], [{"http": {"paths": []}}], [{"http": {"paths": [{"path": "x", "pathType": "Other", "backend": {}}]}}]]),
        (("spec", "tls"), [[{"hosts": ["a.example.com"], "secretName": "s"}], [{"hosts": ["Bad_"], "secretName": "B_"}]]),
        (("spec", "ingressClassName"), ["nginx", "Bad_"]),
        (("spec", "defaultBackend"), [ABSENT, {"service": {"name": "s"}}, {"service": {"name": "s", "port": {"number": 80, "name": "x"}}}]),
    ], status=[(("status", "loadBalancer"), [{"ingress": [{"ip": "1.2.3.4"}]}, {"ingress": [{"ip": "x"}]}, {}])]),
    Subject("/apis/policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", {"spec": {"minAvailable": 1, "selector": _SELECTOR}}, [
        (("spec", "minAvailable"), [2, "50%", "150%", -1, ABSENT]),
        (("spec", "maxUnavailable"), [1, "x", "10%"]),
        (("spec", "selector"), [{}, {"matchLabels": {"bad key": "x"}}, None]),
        (("spec", "unhealthyPodEvictionPolicy"), ["AlwaysAllow", "IfHealthyBudget", "Other"]),
    ], status=[(("status", "disruptionsAllowed"), [1, -1]), (("status", "currentHealthy"), [1, -1])]),
    Subject("/apis/autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", {"spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}}, [
        (("spec", "maxReplicas"), [5, 0, -1]),
        (("spec", "minReplicas"), [1, 5, 0, ABSENT]),
        (("spec", "scaleTargetRef", "kind"), ["StatefulSet", ""]),
        (("spec", "metrics"), [[{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}], [{"type": "Resource"}], [{"type": "Other"}], []]),
        (("spec", "behavior"), [{"scaleDown": {"stabilizationWindowSeconds": 5}}, {"scaleUp": {"policies": [{"type": "Pods", "value": 0, "periodSeconds": 5}]}}]),
    ], status=[(("status", "desiredReplicas"), [1, -1]), (("status", "currentReplicas"), [1, -1])]),
    Subject("/apis/coordination.k8s.io/v1", "leases", "Lease", {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15}}, [
        (("spec", "leaseDurationSeconds"), [5, 0, -1, "x"]),
        (("spec", "holderIdentity"), ["you", "", None]),
        (("spec", "renewTime"), ["2020-01-01T00:00:00.000000Z", "2020-01-01T00:00:00Z", "x"]),
        (("spec", "leaseTransitions"), [1, -1]),
    ]),
    Subject("/apis/discovery.k8s.io/v1", "endpointslices", "EndpointSlice", {"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.2.3"]}], "ports": [{"name": "", "port": 80}]}, [
        (("addressType",), ["IPv6", "FQDN", "Other"]),
        (("endpoints",), [[], [{"addresses": ["x"]}], [{"addresses": []}], [{"addresses": ["10.1.2.4"], "conditions": {"ready": True}, "nodeName": "n"}], None]),
        (("ports",), [[{"port": 0}], [{"name": "a", "port": 5}, {"name": "a", "port": 6}], [], None]),
    ]),
    Subject("/apis/scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", {"value": 5}, [
        (("value",), [5, 7, 2000000001, "x"]),
        (("description",), ["x", 5]),
        (("preemptionPolicy",), ["Never", "PreemptLowerPriority", "Other"]),
    ], namespaced=False),
    Subject("/apis/storage.k8s.io/v1", "storageclasses", "StorageClass", {"provisioner": "example.com/p"}, [
        (("provisioner",), ["other.example.com/p", "", "Bad Name"]),
        (("reclaimPolicy",), ["Retain", "Delete", "Recycle", "Other"]),
        (("volumeBindingMode",), ["WaitForFirstConsumer", "Immediate", "Other"]),
        (("allowVolumeExpansion",), [True, False]),
        (("parameters",), [{"a": "b"}, {"": "x"}]),
    ], namespaced=False),
]  # fmt: skip

SUBJECTS: list[Subject] = [*_CUSTOM, *_CORE, *_WORKLOADS, *_OTHERS]
