"""Schema of FederatedCluster."""

from typing import Any

from argosy.api import keys
from argosy.api.crds.schema import (
    AGE,
    api_resource,
    array,
    boolean,
    column,
    crd,
    integer,
    obj,
    quantities,
    string,
    time,
)

__all__ = ["manifests"]

_TAINT = obj(
    "A taint keeps objects off the cluster unless they tolerate it.",
    {
        "key": string("Name of the taint."),
        "value": string("Value of the taint, compared with tolerations."),
        "effect": string(
            "NoSchedule keeps new objects away, PreferNoSchedule makes the cluster a later choice, "
            "NoExecute also moves objects away that are already there."
        ),
        "timeAdded": time("When the taint was added."),
    },
    ("key", "effect"),
)

_SPEC = obj(
    "How to reach the member cluster, and its scheduling taints.",
    {
        "apiEndpoint": string("Address of the member's API server: host, host:port, or a URL."),
        "insecure": boolean("Do not verify the member's server certificate; no CA data is needed then."),
        "useServiceAccount": boolean(
            "When joining, make a service account in the member and use its token from then on, "
            "instead of the credentials in the secret."
        ),
        "secretRef": obj(
            "The secret, in the namespace kube-admiral-system, that holds the credentials.",
            {"name": string("Name of the secret.")},
            ("name",),
        ),
        "taints": array("Taints of the cluster.", _TAINT),
    },
    ("apiEndpoint", "secretRef"),
)

_CONDITION = obj(
    "One aspect of the cluster's state.",
    {
        "type": string("Joined, Ready or Offline."),
        "status": string("True, False or Unknown."),
        "lastProbeTime": time("When this was last checked."),
        "lastTransitionTime": time("When the status last changed."),
        "reason": string("One word telling why."),
        "message": string("A sentence telling why."),
    },
    ("type", "status", "lastProbeTime", "lastTransitionTime", "reason", "message"),
)

_STATUS = obj(
    "What the federation knows of the cluster.",
    {
        "conditions": array(
            "Joined, Ready and Offline.",
            _CONDITION,
            **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        ),
        "resources": obj(
            "Resources of the schedulable nodes, added up.",
            {
                "schedulableNodes": integer("How many nodes take new pods."),
                "allocatable": quantities("What these nodes offer."),
                "available": quantities("What of it is not requested by pods; may be negative."),
            },
        ),
        "apiResourceTypes": array(
            "API resources the member serves.",
            api_resource("One API resource."),
        ),
        "joinPerformed": boolean("Joining has changed something in the member, so leaving must clean up."),
        "kubernetesVersion": string("The version of Kubernetes that the member runs."),
        "lastHeardTime": time("When the member last answered a probe."),
    },
)


def manifests() -> list[dict[str, Any]]:
    return [
        crd(
            "FederatedCluster",
            "federatedclusters",
            obj("A member cluster of the federation.", {"spec": _SPEC, "status": _STATUS}),
            scope=keys.CLUSTER,
            short="fcluster",
            status=True,
            columns=(
                column("ready", ".status.conditions[?(@.type=='Ready')].status"),
                column("joined", ".status.conditions[?(@.type=='Joined')].status"),
                column("version", ".status.kubernetesVersion"),
                column("heard", ".status.lastHeardTime", "date"),
                column("responding", ".status.conditions[?(@.type=='Responding')].status"),
                AGE,
            ),
        )
    ]
