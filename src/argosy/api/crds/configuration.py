"""Schemas of what administrators configure: type configs, scheduling profiles, webhook plugins."""

from typing import Any

from argosy.api import keys
from argosy.api.crds.schema import anything, api_resource, array, boolean, crd, integer, obj, string

__all__ = ["manifests"]

_TYPE_CONFIG = obj(
    "Makes a resource type one that is federated. Its name ends the names of the federated objects: "
    "the resource's plural name, with a dot and the group where there is one.",
    {
        "spec": obj(
            "The type, and how its objects are treated.",
            {
                "sourceType": api_resource("The resource type."),
                "controllers": array(
                    "Steps an object passes before it is carried to members, in order. "
                    "Controllers of one step may run in any order.",
                    array("One step.", {"type": "string"}),
                ),
                "pathDefinition": obj(
                    "Where well-known fields are, as dotted paths.",
                    {
                        "labelSelector": string("The label selector of pods."),
                        "replicasSpec": string("The wanted number of replicas; needed to divide replicas."),
                        "replicasStatus": string("The number of replicas there are."),
                        "availableReplicasStatus": string("The number of available replicas."),
                        "readyReplicasStatus": string("The number of ready replicas."),
                    },
                ),
                "statusCollection": obj(
                    "Fields to collect from members into a CollectedStatus.",
                    {
                        "enabled": boolean("Whether to collect."),
                        "fields": array("Dotted paths of the fields.", {"type": "string"}),
                    },
                    ("enabled",),
                ),
                "statusAggregation": obj(
                    "Fold the members' status into the user's object.",
                    {"enabled": boolean("Whether to do so.", default=True)},
                    ("enabled",),
                    default={"enabled": True},
                ),
                "autoMigration": obj(
                    "Whether replicas of this type may be moved from clusters that cannot run them.",
                    {"enabled": boolean("Whether they may.")},
                    ("enabled",),
                ),
                "followers": obj(
                    "What objects of this type need, and so what goes with them.",
                    {
                        "podSpecs": array("Dotted paths of pod specs.", {"type": "string"}),
                        "references": array(
                            "Names of objects in the same namespace.",
                            obj(
                                "One kind of object that is named.",
                                {
                                    "group": string("API group of the named object."),
                                    "kind": string("Kind of the named object."),
                                    "path": string("Dotted path of the name; [*] means each item of a list."),
                                },
                                ("kind", "path"),
                            ),
                        ),
                    },
                ),
            },
            ("sourceType",),
        )
    },
    ("spec",),
)

_PLUGIN = obj(
    "A plugin.",
    {
        "name": string("Name of a plugin: built in, of a Python package, or a SchedulerPluginWebhookConfiguration."),
        "type": string("Kind of plugin.", enum=["Webhook"]),
        "weight": integer("Weight of the plugin's score; 1 if it is 0 or absent.", minimum=0),
        "wait": integer("The same as weight, as KubeAdmiral spells it.", minimum=0),
    },
)
_REPLICAS_PLUGIN = obj(
    "A plugin.",
    {
        "name": string("Name of a plugin that divides replicas."),
        "strategy": string("The replicasStrategy it divides for; all of them if absent."),
    },
)


def _plugin_set(what: str, plugin: dict[str, Any] = _PLUGIN) -> dict[str, Any]:
    return obj(
        f"Plugins that {what}.",
        {
            "enabled": array("Plugins added after the built-in ones.", plugin),
            "disabled": array("Built-in plugins to leave out; the name * means all.", plugin),
        },
    )


_PROFILE = obj(
    "A set of scheduling plugins policies may name.",
    {
        "spec": obj(
            "The plugins.",
            {
                "plugins": obj(
                    "Changes to the built-in plugins.",
                    {
                        "filter": _plugin_set("say which clusters are possible"),
                        "score": _plugin_set("rate the possible clusters"),
                        "select": _plugin_set("choose among the rated clusters"),
                        "replicas": _plugin_set("divide replicas among the chosen clusters", _REPLICAS_PLUGIN),
                    },
                ),
                "pluginConfig": array(
                    "Arguments for plugins.",
                    obj(
                        "Arguments for one plugin.",
                        {"name": string("Name of the plugin."), "args": anything("Its arguments.")},
                        ("name",),
                    ),
                ),
            },
        )
    },
    ("spec",),
)

_WEBHOOK = obj(
    "A scheduling plugin served over HTTP.",
    {
        "spec": obj(
            "How to call it.",
            {
                "payloadVersions": array(
                    "Versions of the protocol it speaks, best first: v1alpha1, v1alpha1-batch.",
                    {"type": "string"},
                    minItems=1,
                ),
                "urlPrefix": string("URL the paths are added to."),
                "filterPath": string("Path that filters; not served if empty."),
                "scorePath": string("Path that scores; not served if empty."),
                "selectPath": string("Path that selects; not served if empty."),
                "httpTimeout": string("How long a call may take, such as 5s.", default="5s"),
                "tlsConfig": obj(
                    "TLS settings.",
                    {
                        "insecure": boolean("Do not verify the server certificate."),
                        "serverName": string("Name the server certificate must have."),
                        "certData": string("Client certificate, PEM.", format="byte"),
                        "keyData": string("Key of the client certificate, PEM.", format="byte"),
                        "caData": string("CA certificates, PEM.", format="byte"),
                    },
                ),
            },
            ("payloadVersions", "urlPrefix"),
        )
    },
    ("spec",),
)


def manifests() -> list[dict[str, Any]]:
    return [
        crd("FederatedTypeConfig", "federatedtypeconfigs", _TYPE_CONFIG, scope=keys.CLUSTER, short="ftc", status=True),
        crd("SchedulingProfile", "schedulingprofiles", _PROFILE, scope=keys.CLUSTER, short="sp"),
        crd(
            "SchedulerPluginWebhookConfiguration",
            "schedulerpluginwebhookconfigurations",
            _WEBHOOK,
            scope=keys.CLUSTER,
        ),
    ]
