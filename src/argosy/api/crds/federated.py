"""Schemas of the objects the controllers keep: federated objects, propagated versions, collected status."""

from typing import Any

from argosy.api import keys
from argosy.api.crds.schema import AGE, anything, array, boolean, column, crd, integer, obj, string, time

__all__ = ["manifests"]

_SPEC = obj(
    "What is carried to the members, where to, and how it differs there.",
    {
        "template": {
            "type": "object",
            "description": "The object to carry to the member clusters.",
            "x-kubernetes-preserve-unknown-fields": True,
        },
        "placements": array(
            "Clusters the object belongs in, one entry for each controller that decided; their union counts.",
            obj(
                "The clusters one controller wants.",
                {
                    "controller": string("Name of the controller."),
                    "placement": array(
                        "The clusters.",
                        obj("One cluster.", {"cluster": string("Name of the cluster.")}, ("cluster",)),
                    ),
                },
                ("controller", "placement"),
            ),
        ),
        "overrides": array(
            "Changes for single clusters, one entry for each controller that decided.",
            obj(
                "The changes one controller wants.",
                {
                    "controller": string("Name of the controller."),
                    "clusters": array(
                        "Changes by cluster.",
                        obj(
                            "Changes for one cluster.",
                            {
                                "cluster": string("Name of the cluster."),
                                "patches": array(
                                    "Operations of a JSON patch.",
                                    obj(
                                        "One operation.",
                                        {
                                            "op": string("add, remove, replace, move, copy or test; replace if empty."),
                                            "path": string("JSON pointer to the field."),
                                            "value": anything("The value, any JSON."),
                                        },
                                        ("path",),
                                    ),
                                ),
                            },
                            ("cluster",),
                        ),
                    ),
                },
                ("controller", "clusters"),
            ),
        ),
        "follows": array(
            "Objects this one goes along with.",
            obj(
                "A leader.",
                {
                    "group": string("API group of the leader."),
                    "kind": string("Kind of the leader."),
                    "namespace": string("Namespace of the leader."),
                    "name": string("Name of the leader."),
                },
                ("kind", "name"),
            ),
        ),
    },
    ("template",),
)

_STATUS = obj(
    "How far the object got.",
    {
        "syncedGeneration": integer("The generation of this object that was last carried out."),
        "conditions": array(
            "Propagated tells whether every cluster has the wanted state; OverridesApplied is there, and False, where overrides "
            "cannot be applied; Drifted is there, and True, while copies have fields that others changed.",
            obj(
                "One condition.",
                {
                    "type": string("Propagated."),
                    "status": string("True, False or Unknown."),
                    "lastUpdateTime": time("When this was last written."),
                    "lastTransitionTime": time("When the status last changed."),
                    "reason": string("One word telling why."),
                    "message": string("A sentence telling why."),
                },
                ("type", "status"),
            ),
        ),
        "clusters": array(
            "State in each cluster.",
            obj(
                "State in one cluster.",
                {
                    "cluster": string("Name of the cluster."),
                    "status": string("OK, or what stands in the way."),
                    "lastObservedGeneration": integer(
                        "Generation of the member's object when last written or checked."
                    ),
                    "version": string("Version of the member's object after it was last written."),
                    "digest": string("Stands for what was last written."),
                    "uid": string("Uid of the member's object that was last written."),
                    "message": string("Why overrides could not be applied."),
                    "drift": array(
                        "What was changed in the member by others, the newest first.",
                        obj(
                            "One field.",
                            {
                                "path": string(
                                    "The field; empty: the object was deleted there; *: more than can be listed."
                                ),
                                "since": time("When it was noticed."),
                                "theirs": anything("The value it was given there; none if it was removed there."),
                                "ours": anything("The value that is wanted; none if it is to be absent."),
                                "left": boolean("Whether the copy still has their value."),
                            },
                            ("path", "since"),
                        ),
                    ),
                },
                ("cluster", "status"),
            ),
        ),
        "syncedClusters": string("In how many clusters the object is as wanted, of those it is or belongs in: 2/3."),
    },
)

_COLUMNS = (
    column("clusters", ".status.syncedClusters"),
    column("propagated", ".status.conditions[?(@.type=='Propagated')].status"),
    column("generation", ".metadata.generation", "integer"),
    column("synced", ".status.syncedGeneration", "integer"),
    AGE,
)

_VERSION_STATUS = obj(
    "Digests and versions of what was last written.",
    {
        "templateVersion": string("Digest of the template."),
        "overridesVersion": string("Digest of the overrides."),
        "clusterVersions": array(
            "Version of the object in each cluster after the last write.",
            obj(
                "Version in one cluster.",
                {
                    "clusterName": string("Name of the cluster."),
                    "version": string("gen: and the generation, or rv: and the resource version."),
                },
                ("clusterName", "version"),
            ),
        ),
    },
    ("templateVersion", "overridesVersion"),
)


def manifests() -> list[dict[str, Any]]:
    federated = obj(
        "One user's object on its way to the member clusters. Made and kept by the federation: "
        "change the user's object instead.",
        {"spec": _SPEC, "status": _STATUS},
        ("spec",),
    )
    version = obj("What was last written to the members, so that drift is noticed.", {"status": _VERSION_STATUS})
    collected = obj(
        "Fields of an object as they are in the member clusters.",
        {
            "clusters": array(
                "Fields by cluster.",
                obj(
                    "Fields from one cluster.",
                    {
                        "cluster": string("Name of the cluster."),
                        "collectedFields": {
                            "type": "object",
                            "description": "The fields the type config asks for.",
                            "x-kubernetes-preserve-unknown-fields": True,
                        },
                        "error": string("What could not be read, and why."),
                        "cause": obj(
                            "Why pods are not ready there: the reason of most of them.",
                            {
                                "reason": string("The reason, such as ImagePullBackOff or Unschedulable."),
                                "message": string("Details."),
                                "pods": integer("How many pods."),
                                "of": integer("Of how many that are to run there."),
                            },
                            ("reason",),
                        ),
                    },
                    ("cluster", "collectedFields"),
                ),
            ),
            "lastUpdateTime": time("When the fields last changed."),
        },
        ("clusters", "lastUpdateTime"),
    )
    return [
        crd(
            "FederatedObject",
            "federatedobjects",
            federated,
            scope=keys.NAMESPACED,
            short="fo",
            status=True,
            columns=_COLUMNS,
        ),
        crd(
            "ClusterFederatedObject",
            "clusterfederatedobjects",
            federated,
            scope=keys.CLUSTER,
            short="cfo",
            status=True,
            columns=_COLUMNS,
        ),
        crd("CollectedStatus", "collectedstatuses", collected, scope=keys.NAMESPACED, short="cs"),
        crd("ClusterCollectedStatus", "clustercollectedstatuses", collected, scope=keys.CLUSTER, short="ccs"),
        crd("PropagatedVersion", "propagatedversions", version, scope=keys.NAMESPACED, status=True),
        crd("ClusterPropagatedVersion", "clusterpropagatedversions", version, scope=keys.CLUSTER, status=True),
    ]
