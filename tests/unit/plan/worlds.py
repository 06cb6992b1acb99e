"""Small worlds for tests of the federation's decisions: a Deployment, a policy, members, and a store of one object."""

from typing import Any

import msgspec

from argosy.api import keys, typeconfigs
from argosy.api.clusters import FederatedCluster
from argosy.api.federated import FederatedObject
from argosy.api.policies import OverridePolicy, PropagationPolicy
from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.fleet.snapshot import Fleet
from argosy.kube import mergepatch
from argosy.plan.fields import Json
from argosy.plan.pipeline.inputs import PassInputs
from argosy.plan.pipeline.policy import PolicyRef
from argosy.plan.pipeline.run import Outcome, run_locally

TYPE_CONFIGS = {m["metadata"]["name"]: msgspec.convert(m, FederatedTypeConfig) for m in typeconfigs.manifests()}
DEPLOYMENTS = TYPE_CONFIGS["deployments.apps"]
NAMESPACES = TYPE_CONFIGS["namespaces"]

APIS = [
    {"group": "apps", "version": "v1", "kind": "Deployment", "pluralName": "deployments", "scope": "Namespaced"},
    {"version": "v1", "kind": "ConfigMap", "pluralName": "configmaps", "scope": "Namespaced"},
]


def deployment(**patch: Any) -> Json:
    """The Deployment default/web with 6 replicas that names the policy `all`; `patch` is merged into it."""
    base = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "web",
            "namespace": "default",
            "uid": "u-1",
            "resourceVersion": "7",
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": "web", keys.PROPAGATION_POLICY_LABEL: "all"},
            "managedFields": [{"manager": "kubectl"}],
        },
        "spec": {"replicas": 6, "template": {"spec": {"containers": [{"name": "web", "image": "nginx:1"}]}}},
        "status": {},
    }
    result: Json = mergepatch.apply(base, patch)
    return result


def policy(
    name: str = "all", namespace: str = "default", annotations: Json | None = None, **spec: Any
) -> PropagationPolicy:
    defaults = {
        "schedulingMode": "Divide",
        "reschedulePolicy": {
            "rescheduleWhen": {"policyContentChanged": True},
            "replicaRescheduling": {"avoidDisruption": True},
        },
    }
    metadata = {"name": name, "namespace": namespace, "annotations": annotations or {}}
    return msgspec.convert({"metadata": metadata, "spec": {**defaults, **spec}}, PropagationPolicy)


def override_policy(*rules: Json, name: str = "differ", namespace: str = "default") -> OverridePolicy:
    return msgspec.convert(
        {"metadata": {"name": name, "namespace": namespace}, "spec": {"overrideRules": list(rules)}}, OverridePolicy
    )


def cluster(
    name: str, *, ready: bool = True, labels: Json | None = None, taints: list[Json] | None = None
) -> FederatedCluster:
    conditions = [{"type": "Joined", "status": "True"}, {"type": "Ready", "status": "True" if ready else "Unknown"}]
    return msgspec.convert(
        {
            "metadata": {"name": name, "labels": labels or {}},
            "spec": {"apiEndpoint": "https://x", "secretRef": {"name": name}, "taints": taints or []},
            "status": {
                "conditions": conditions,
                "apiResourceTypes": APIS,
                "resources": {
                    "allocatable": {"cpu": "10", "memory": "10Gi"},
                    "available": {"cpu": "10", "memory": "10Gi"},
                },
            },
        },
        FederatedCluster,
    )


def fleet(*names: str) -> Fleet:
    return Fleet.of(cluster(name) for name in names or ("m1", "m2", "m3"))


def stored(outcome: Outcome, before: Json | None = None) -> Json:
    """What an API server makes of the outcome: uid, versions, generation."""
    obj = outcome.object
    assert obj is not None
    if before is None:
        return {**obj, "metadata": {**obj["metadata"], "uid": "f-1", "resourceVersion": "1", "generation": 1}}
    metadata = before["metadata"]
    bump = 0 if obj["spec"] == before["spec"] else 1
    versions = {
        "resourceVersion": str(int(metadata["resourceVersion"]) + 1),
        "generation": metadata["generation"] + bump,
    }
    return {**obj, "metadata": {**obj["metadata"], **versions}}


class World:
    """Runs passes and keeps the federated object between them, as the control plane does."""

    def __init__(self, **inputs: Any) -> None:
        self.source: Json = inputs.pop("source", deployment())
        self.type_config: FederatedTypeConfig = inputs.pop("type_config", DEPLOYMENTS)
        self.inputs: dict[str, Any] = {"fleet": fleet(), "policy": policy(), **inputs}
        self.object: Json | None = None

    def run(self, **changes: Any) -> Outcome:
        self.source = changes.pop("source", self.source)
        self.inputs |= changes
        given = PassInputs(source=self.source, existing=self.object, type_config=self.type_config, **self.inputs)
        outcome = run_locally(given)
        if outcome.object is not None:
            self.object = stored(outcome, self.object)
        return outcome

    @property
    def typed(self) -> FederatedObject:
        return msgspec.convert(self.object, FederatedObject)

    @property
    def annotations(self) -> dict[str, str]:
        return self.typed.metadata.annotations

    @property
    def replicas(self) -> dict[str, Any]:
        """Replica number by cluster as scheduled."""
        patches = self.typed.overrides_of(keys.GLOBAL_SCHEDULER)
        return {name: patches[name][0].value if name in patches else None for name in self.typed.placed}


def named(*policies: OverridePolicy) -> dict[PolicyRef, OverridePolicy]:
    return {PolicyRef(each.metadata.name, each.metadata.namespace): each for each in policies}
