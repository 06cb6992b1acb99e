"""What a member's copy lacks, kind by kind."""

import pytest

from argosy.api.typeconfigs import PathDefinition
from argosy.plan.fields import Json
from argosy.plan.kinds.generic import unfinished
from argosy.plan.kinds.registry import kind_of

COMPLETE = [{"type": "Complete", "status": "True"}]
FAILED = [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]
CLASH = [{"type": "NamesAccepted", "status": "False", "message": "the name is taken"}]
ROLLED = {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3}
DAEMONS = {"observedGeneration": 2, "desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 2}
ON_DELETE = {"updateStrategy": {"type": "OnDelete"}}
PULLING = [{"state": {"waiting": {"reason": "ErrImagePull"}}}]


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "status", "told"),
    [
        ("apps/v1", "StatefulSet", {"replicas": 3}, ROLLED, []),
        ("apps/v1", "StatefulSet", {"replicas": 3}, {}, ["its newest change is not observed yet"]),
        (
            "apps/v1",
            "StatefulSet",
            {"replicas": 3},
            {**ROLLED, "updatedReplicas": 1, "availableReplicas": 2},
            ["1 of 3 replicas are updated", "2 of 3 replicas are available"],
        ),
        ("apps/v1", "StatefulSet", {"replicas": 2}, ROLLED, ["1 replicas too many are still running"]),
        # Three of a partition of two: only the last pod is to be updated.
        (
            "apps/v1",
            "StatefulSet",
            {"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}},
            {**ROLLED, "updatedReplicas": 1},
            [],
        ),
        (
            "apps/v1",
            "StatefulSet",
            {"replicas": 3, **ON_DELETE},
            {**ROLLED, "updatedReplicas": 1},
            ["1 of 3 replicas are updated: with OnDelete, the other pods have to be deleted"],
        ),
        ("apps/v1", "DaemonSet", {}, DAEMONS, []),
        ("apps/v1", "DaemonSet", {}, {**DAEMONS, "observedGeneration": 1}, ["its newest change is not observed yet"]),
        (
            "apps/v1",
            "DaemonSet",
            {},
            {**DAEMONS, "updatedNumberScheduled": 1, "numberAvailable": 0},
            ["1 of 2 nodes are updated", "0 of 2 nodes have an available pod"],
        ),
        ("batch/v1", "Job", {"completions": 2}, {"succeeded": 2, "conditions": COMPLETE}, []),
        ("batch/v1", "Job", {"completions": 2}, {"succeeded": 1}, ["1 of 2 completions are done"]),
        ("batch/v1", "Job", {"parallelism": 2}, {"succeeded": 1}, ["the Job is not complete"]),
        ("batch/v1", "Job", {"completions": 2, "suspend": True}, {}, ["the Job is suspended"]),
        ("batch/v1", "Job", {"completions": 2}, {"conditions": FAILED}, ["the Job failed: BackoffLimitExceeded"]),
        ("v1", "Pod", {}, {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}, []),
        ("v1", "Pod", {}, {"phase": "Succeeded"}, []),
        ("v1", "Pod", {}, {"phase": "Running"}, ["the Pod is not ready: Running"]),
        (
            "v1",
            "Pod",
            {},
            {"phase": "Pending", "containerStatuses": PULLING},
            ["the Pod is not ready: ErrImagePull"],
        ),
        ("v1", "Pod", {}, {"phase": "Failed", "reason": "Evicted"}, ["the Pod failed: Evicted"]),
        ("v1", "Service", {"type": "ClusterIP"}, {}, []),
        ("v1", "Service", {"type": "LoadBalancer"}, {"loadBalancer": {}}, ["its load balancer has no address yet"]),
        ("v1", "Service", {"type": "LoadBalancer"}, {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}, []),
        ("v1", "PersistentVolumeClaim", {}, {"phase": "Pending"}, []),
        ("v1", "PersistentVolumeClaim", {}, {"phase": "Lost"}, ["its volume is lost"]),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", {}, {}, ["its kind is not served yet"]),
        (
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            {},
            {"conditions": CLASH},
            ["its kind is not served yet: the name is taken"],
        ),
        (
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            {},
            {"conditions": [{"type": "Established", "status": "True"}]},
            [],
        ),
    ],
)
def test_what_a_copy_lacks(api_version: str, kind: str, spec: Json, status: Json, told: list[str]) -> None:
    desired = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}
    look = kind_of(desired).unfinished
    assert look is not None
    assert look(desired, {"metadata": {"generation": 2}, "status": status}) == told


PATHS = PathDefinition(replicas_spec="spec.size", ready_replicas_status="status.up")


@pytest.mark.parametrize(
    ("paths", "spec", "status", "told"),
    [
        (PathDefinition(), {}, {}, []),
        (PathDefinition(), {"replicas": 2}, {}, []),
        (PathDefinition(), {"replicas": 2}, {"replicas": 2, "readyReplicas": 1}, ["1 of 2 replicas are ready"]),
        (PathDefinition(), {"replicas": 2}, {"replicas": 2}, ["0 of 2 replicas are ready"]),
        (PathDefinition(), {}, {"observedGeneration": 1}, ["its newest change is not observed yet"]),
        (PathDefinition(), {}, {"observedGeneration": 2}, []),
        (
            PathDefinition(),
            {},
            {"conditions": [{"type": "Ready", "status": "False", "reason": "NoDatabase"}]},
            ["it is not ready: NoDatabase"],
        ),
        (PathDefinition(), {}, {"conditions": [{"type": "Ready", "status": "True"}]}, []),
        (PATHS, {"size": 3}, {"up": 2}, ["2 of 3 replicas are ready"]),
        (PATHS, {"size": 3}, {}, ["0 of 3 replicas are ready"]),
        (PATHS, {"size": 3}, {"up": 3}, []),
    ],
)
def test_what_a_copy_of_any_kind_lacks(paths: PathDefinition, spec: Json, status: Json, told: list[str]) -> None:
    assert unfinished(paths, {"spec": spec}, {"metadata": {"generation": 2}, "status": status}) == told
