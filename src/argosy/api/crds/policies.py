"""Schemas of the propagation and override policies; each pair of scopes shares one schema."""

from typing import Any

from argosy.api import keys
from argosy.api.crds.rules import rules
from argosy.api.crds.schema import AGE, anything, array, boolean, column, crd, integer, mapping, obj, string
from argosy.api.crds.selectors import selectors

__all__ = ["manifests"]

_REQUIREMENT = obj(
    "One condition on a label or field.",
    {
        "key": string("Label key, or field name (only metadata.name)."),
        "operator": string("How key and values compare.", enum=["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]),
        "values": array("Values to compare with; Gt and Lt take one integer.", {"type": "string"}),
    },
    ("key", "operator", "values"),
)
_TERM = obj(
    "A term matches where all its conditions do; an empty term matches nothing.",
    {
        "matchExpressions": array("Conditions on the cluster's labels.", _REQUIREMENT),
        "matchFields": array("Conditions on the cluster's fields.", _REQUIREMENT),
    },
)
_TERMS = array("Clusters to choose from: those that match at least one term. Empty means all.", _TERM)
_SELECTOR = mapping("Labels a cluster must have. Empty means any cluster.")
_TOLERATIONS = array(
    "Taints of clusters that are no obstacle.",
    obj(
        "A toleration matches taints by key, value and effect.",
        {
            "key": string("Key of the taint; empty with operator Exists matches all."),
            "operator": string("Exists or Equal; Equal if absent."),
            "value": string("Value to be equal to."),
            "effect": string("Effect that is tolerated; all if absent."),
            "tolerationSeconds": integer("Accepted for compatibility; has no effect on clusters."),
        },
    ),
)
_PLACEMENT = array(
    "Clusters that may be chosen, with wishes for each. Empty means all clusters.",
    obj(
        "A cluster and the wishes for it.",
        {
            "cluster": string("Name of the cluster."),
            "preferences": obj(
                "Wishes for this cluster.",
                {
                    "minReplicas": integer("Least number of replicas in Divide mode.", minimum=0),
                    "maxReplicas": integer(
                        "Greatest number of replicas in Divide mode; unbounded if absent.", minimum=0
                    ),
                    "weight": integer(
                        "Share of the replicas, in proportion to the other clusters' weights. "
                        "Where no cluster has one, weights follow free capacity.",
                        minimum=0,
                    ),
                    "priority": integer("Clusters with a greater number are chosen first.", minimum=0),
                },
            ),
        },
        ("cluster",),
    ),
)
_AUTO_MIGRATION = obj(
    "Move replicas away from clusters that cannot run them. Off if absent.",
    {
        "when": obj(
            "What counts as not being able to run a replica.",
            {"podUnschedulableFor": string("How long a pod may stay unschedulable, such as 1m30s.")},
            minProperties=1,
            default={"podUnschedulableFor": "1m"},
        ),
        "keepUnschedulableReplicas": boolean(
            "Keep the stuck replicas where they are, in addition to those started elsewhere."
        ),
    },
)
_RESCHEDULE = obj(
    "When objects that are already placed are scheduled again.",
    {
        "disableRescheduling": boolean("Never choose other clusters once the object is placed."),
        "rescheduleWhen": obj(
            "Events that cause scheduling again.",
            {
                "policyContentChanged": boolean("The policy's content changes.", default=True),
                "clusterJoined": boolean("A cluster joins.", default=False),
                "clusterLabelsChanged": boolean("Labels of a cluster change.", default=False),
                "clusterAPIResourcesChanged": boolean("The API resources of a cluster change.", default=False),
            },
        ),
        "replicaRescheduling": obj(
            "How replicas are divided again.",
            {
                "avoidDisruption": boolean(
                    "Scaling only starts or only stops replicas; running ones are not moved.", default=True
                )
            },
            default={},
        ),
    },
    default={"rescheduleWhen": {"policyContentChanged": True}},
)
_PROPAGATION_FIELDS = {
    "schedulingMode": string(
        "Duplicate puts the whole object in every chosen cluster; Divide shares its replicas among them.",
        enum=[keys.DUPLICATE, keys.DIVIDE],
    ),
    "schedulingProfile": string("Name of the SchedulingProfile to use; the built-in one if empty."),
    "replicasStrategy": string(
        "How Divide shares replicas: Spread by weights, Binpack by filling one cluster after another, Aggregated in as few "
        "clusters as have room, Webster by weights with every cluster nearest to its share.",
        enum=[keys.AGGREGATED, keys.BINPACK, keys.SPREAD, keys.WEBSTER],
        default=keys.SPREAD,
    ),
    "clusterSelector": _SELECTOR,
    "clusterAffinity": _TERMS,
    "tolerations": _TOLERATIONS,
    "maxClusters": integer("Choose at most this many clusters; unbounded if absent."),
    "placement": _PLACEMENT,
    "disableFollowerScheduling": boolean(
        "Do not place what the object depends on, such as its ConfigMaps and Secrets, together with it."
    ),
    "autoMigration": _AUTO_MIGRATION,
    "reschedulePolicy": _RESCHEDULE,
    "stickyCluster": boolean("Older way to say reschedulePolicy.disableRescheduling."),
    "removalProtection": string(
        "Confirm: no copy is removed because the policy or the fleet changed, before `argosy confirm`; Limits, if absent: only"
        " what is too much at once is held.",
        enum=["Limits", "Confirm"],
    ),
    "driftCorrection": string(
        "What happens to fields of copies that others change in members. Repair, if absent: they are set back; Report: they stay"
        " and are shown.",
        enum=[keys.REPAIR, keys.REPORT],
    ),
    **rules(_TERM),
}

_OPERATOR = "What to do with the value; overwrite if absent."


def _container_list(what: str) -> dict[str, Any]:
    return array(
        f"Changes to the {what} of containers.",
        obj(
            f"One change of a container's {what}.",
            {
                "containerName": string("Name of the container or init container."),
                "operator": string(_OPERATOR, enum=["append", "overwrite", "delete"]),
                "value": array("Items to add, set or remove.", {"type": "string"}),
            },
            ("containerName", "value"),
        ),
    )


def _metadata_map(what: str) -> dict[str, Any]:
    return array(
        f"Changes to {what}.",
        obj(
            f"One change of {what}.",
            {
                "operator": string(_OPERATOR, enum=["addIfAbsent", "overwrite", "delete"]),
                "value": mapping("Keys and values."),
            },
            ("value",),
        ),
    )


_OVERRIDERS = obj(
    "The changes, made in this order: image, command, args, envs, annotations, labels, jsonpatch.",
    {
        "image": array(
            "Changes to container images.",
            obj(
                "One change of images.",
                {
                    "containerNames": array("Containers to change; all if empty.", {"type": "string"}),
                    "imagePath": string(
                        "Path of one image in the object, starting with a slash, instead of containers.",
                        pattern="^(/.*)?$",
                    ),
                    "operations": array(
                        "Changes to parts of the image's name.",
                        obj(
                            "One change.",
                            {
                                "imageComponent": string(
                                    "The part to change.", enum=["Registry", "Repository", "Tag", "Digest"]
                                ),
                                "operator": string(_OPERATOR, enum=["addIfAbsent", "overwrite", "delete"]),
                                "value": string("The new value."),
                            },
                            ("imageComponent",),
                        ),
                    ),
                },
                ("operations",),
            ),
        ),
        "command": _container_list("command"),
        "args": _container_list("args"),
        "envs": array(
            "Changes to environment variables.",
            obj(
                "One change of a container's environment.",
                {
                    "containerName": string("Name of the container or init container."),
                    "operator": string(_OPERATOR, enum=["addIfAbsent", "overwrite", "delete"]),
                    "value": array(
                        "Environment variables, as in a container.",
                        {
                            "type": "object",
                            "properties": {"name": {"type": "string"}},
                            "required": ["name"],
                            "x-kubernetes-preserve-unknown-fields": True,
                        },
                    ),
                },
                ("containerName", "value"),
            ),
        ),
        "annotations": _metadata_map("annotations"),
        "labels": _metadata_map("labels"),
        "jsonpatch": array(
            "Operations of a JSON patch (RFC 6902).",
            obj(
                "One operation.",
                {
                    "operator": string("add, remove, replace, move, copy or test; replace if empty."),
                    "path": string("JSON pointer (RFC 6901) to the field."),
                    "value": anything("The value, any JSON."),
                },
                ("path",),
            ),
        ),
    },
)
_OVERRIDE_SPEC = obj(
    "How objects that name this policy differ from cluster to cluster.",
    {
        "overrideRules": array(
            "Rules, applied one after another.",
            obj(
                "Changes, and the clusters they are for.",
                {
                    "targetClusters": obj(
                        "The clusters this rule is for; all of the criteria must match. All clusters if absent.",
                        {
                            "clusters": array("Names of clusters. Empty means any.", {"type": "string"}),
                            "clusterSelector": _SELECTOR,
                            "clusterAffinity": _TERMS,
                        },
                    ),
                    "overriders": _OVERRIDERS,
                },
            ),
        )
    },
)

#: A policy that names neither clusters nor labels means all clusters.
_PROPAGATION_COLUMNS = (
    column("mode", ".spec.schedulingMode"),
    column("clusters", ".spec.placement"),
    column("selector", ".spec.clusterSelector"),
    AGE,
)

_STATUS = obj(
    "How much the policy is used.",
    {
        "refCount": integer("Number of objects that name this policy.", minimum=0),
        "typedRefCount": array(
            "The same by type.",
            obj(
                "Count of one type.",
                {
                    "group": string("API group."),
                    "resource": string("Resource name."),
                    "count": integer("Number of objects.", minimum=0),
                },
                ("resource", "count"),
            ),
        ),
    },
)


def _propagation(*, cluster_wide: bool) -> dict[str, Any]:
    label = keys.CLUSTER_PROPAGATION_POLICY_LABEL if cluster_wide else keys.PROPAGATION_POLICY_LABEL
    spec = obj(
        "Which clusters run the objects that this policy is for, and with how many replicas.",
        {**_PROPAGATION_FIELDS, **selectors(cluster_wide=cluster_wide)},
        ("schedulingMode",),
    )
    text = f"Decides which clusters run an object. Objects name it by the label {label}, or it selects them."
    return obj(text, {"spec": spec, "status": _STATUS}, ("spec",))


def manifests() -> list[dict[str, Any]]:
    override = obj(
        "Changes an object for some clusters. Objects name it by the label kubeadmiral.io/override-policy-name or "
        "kubeadmiral.io/cluster-override-policy-name.",
        {"spec": _OVERRIDE_SPEC, "status": _STATUS},
        ("spec",),
    )
    # Policies are named in label values, which hold 63 characters; override policies have no such limit in the API.
    return [
        crd(
            "PropagationPolicy",
            "propagationpolicies",
            _propagation(cluster_wide=False),
            scope=keys.NAMESPACED,
            short="pp",
            status=True,
            columns=_PROPAGATION_COLUMNS,
            name_limit=63,
        ),
        crd(
            "ClusterPropagationPolicy",
            "clusterpropagationpolicies",
            _propagation(cluster_wide=True),
            scope=keys.CLUSTER,
            short="cpp",
            status=True,
            columns=_PROPAGATION_COLUMNS,
            name_limit=63,
        ),
        crd("OverridePolicy", "overridepolicies", override, scope=keys.NAMESPACED, short="op", status=True),
        crd("ClusterOverridePolicy", "clusteroverridepolicies", override, scope=keys.CLUSTER, short="cop", status=True),
    ]
