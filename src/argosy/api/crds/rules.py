"""Schemas of the placement rules that a propagation policy has beyond KubeAdmiral's."""

from typing import Any

from argosy.api.crds.schema import array, boolean, integer, mapping, obj, string
from argosy.api.rules import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY

__all__ = ["rules"]

_KEY = "Key of a label of clusters; clusters with the same value are one domain."
_LABEL_SELECTOR = obj(
    "Labels of the workloads meant. An empty selector means all of them.",
    {
        "matchLabels": mapping("Labels they must have."),
        "matchExpressions": array(
            "Conditions on their labels.",
            obj(
                "One condition.",
                {
                    "key": string("Label key."),
                    "operator": string("How key and values compare.", enum=["In", "NotIn", "Exists", "DoesNotExist"]),
                    "values": array("Values to compare with.", {"type": "string"}),
                },
                ("key", "operator"),
            ),
        ),
    },
)
_WORKLOAD_TERM = obj(
    "Workloads that the federation has placed, by their labels.",
    {
        "labelSelector": _LABEL_SELECTOR,
        "namespaces": array("Their namespaces; the object's own if empty.", {"type": "string"}, maxItems=64),
        "topologyKey": string(f"{_KEY} If empty, every cluster is a domain of its own.", maxLength=317),
    },
    ("labelSelector",),
)
_SPREAD = array(
    "Spread over the values of cluster labels, such as regions and zones.",
    obj(
        "How an object is spread over one label's values, called domains.",
        {
            "topologyKey": string(_KEY, minLength=1, maxLength=317),
            "minDomains": integer("Use at least this many domains.", minimum=1),
            "maxDomains": integer("Use at most this many domains.", minimum=1),
            "maxSkew": integer(
                "By how much two of the domains in use may differ: in clusters in Duplicate mode, in replicas in "
                "Divide mode.",
                minimum=1,
            ),
            "whenUnsatisfiable": string(
                "DoNotSchedule keeps the placement as it is where the constraint cannot be held; ScheduleAnyway comes "
                "as near to it as it can.",
                enum=[DO_NOT_SCHEDULE, SCHEDULE_ANYWAY],
                default=DO_NOT_SCHEDULE,
            ),
        },
        ("topologyKey",),
    ),
    maxItems=8,
)


def _workload_affinity(what: str, effect: str) -> dict[str, Any]:
    return obj(
        f"{what} Looked at when the object is scheduled; what comes later moves nothing.",
        {
            "requiredDuringSchedulingIgnoredDuringExecution": array(
                f"Only clusters whose domain {effect}, for every term.", _WORKLOAD_TERM, maxItems=16
            ),
            "preferredDuringSchedulingIgnoredDuringExecution": array(
                f"Rather clusters whose domain {effect}.",
                _weighted("workloadAffinityTerm", _WORKLOAD_TERM),
                maxItems=16,
            ),
        },
    )


def _weighted(field: str, term: dict[str, Any]) -> dict[str, Any]:
    weight = integer("How much it counts, from 1 to 100.", minimum=1, maximum=100)
    return obj("A term, and how much it counts.", {"weight": weight, field: term}, ("weight", field))


def rules(selector_term: dict[str, Any]) -> dict[str, Any]:
    """The properties; `selector_term` is the schema of one cluster selector term."""
    return {
        "preferredClusterAffinity": array(
            "Clusters to prefer among those that may be chosen, by their labels.",
            _weighted("preference", selector_term),
            maxItems=64,
        ),
        "topologySpreadConstraints": _SPREAD,
        "workloadAffinity": _workload_affinity(
            "Place the object where certain other workloads are.", "runs such a workload"
        ),
        "workloadAntiAffinity": _workload_affinity(
            "Place the object where certain other workloads are not.", "runs no such workload"
        ),
        "computePower": obj(
            "Take the power of a cluster's cores into account, as its annotations declare it.",
            {
                "normalizeCapacity": boolean("Weights count a cluster's cores by their power.", default=True),
                "preferConsistent": boolean(
                    "Prefer clusters whose cores are about as powerful as those it runs on.", default=True
                ),
            },
        ),
        "cost": obj(
            "Take the price of a core-hour into account, as the annotations of clusters declare it.",
            {
                "preferLowest": boolean("Prefer cheap clusters.", default=True),
                "maxPricePerCoreHour": {
                    "anyOf": [{"type": "integer"}, {"type": "string"}],
                    "x-kubernetes-int-or-string": True,
                    "description": "Nothing new goes to clusters above this price or without one, such as 0.04.",
                },
            },
        ),
        "locality": obj(
            "Prefer clusters near a place.",
            {
                "near": array(
                    "Labels that tell nearness, from the nearest to the farthest: the first that matches counts.",
                    obj(
                        "A label's value.",
                        {
                            "topologyKey": string("Key of a label of clusters.", minLength=1, maxLength=317),
                            "value": string("Its value there."),
                        },
                        ("topologyKey", "value"),
                    ),
                    minItems=1,
                    maxItems=16,
                )
            },
            ("near",),
        ),
        "failureDomain": obj(
            "Keep away from domains in which many clusters are not ready.",
            {
                "topologyKey": string(_KEY, minLength=1, maxLength=317),
                "maxUnreadyPercent": integer(
                    "A domain is avoided when more than this share of its clusters are not ready.",
                    minimum=0,
                    maximum=99,
                    default=50,
                ),
                "whenExceeded": string(
                    "ScheduleAnyway prefers other domains; DoNotSchedule places nothing new there.",
                    enum=[SCHEDULE_ANYWAY, DO_NOT_SCHEDULE],
                    default=SCHEDULE_ANYWAY,
                ),
            },
            ("topologyKey",),
        ),
        "limitReplicasToAvailable": boolean(
            "A cluster is given no more new replicas than what they request is available there. The rest waits for room."
        ),
    }
