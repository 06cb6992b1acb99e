"""Schemas of what administrators configure: type configs, scheduling profiles, webhook plugins."""

from typing import Any

from argosy.api import keys
from argosy.api.crds.schema import anything, api_resource, array, boolean, crd, integer, obj, string

__all__ = ["manifests"]

_PATHS = {"type": "string"}
_STATUS_RULES = obj(
    "How the members' statuses are merged and when a copy is finished, where the defaults are not enough.",
    {
        "merge": obj(
            "How statuses are merged. Paths begin at the status.",
            {
                "sums": array("Paths of numbers that are added up.", _PATHS),
                "highest": array("Paths of numbers or times of which the highest counts.", _PATHS),
                "lowest": array("Paths of numbers or times of which the lowest counts.", _PATHS),
                "anyTrue": array("Paths of booleans that are true if they are true in any member.", _PATHS),
                "worst": array(
                    "Texts such as a phase, of which the worst counts.",
                    obj(
                        "One text.",
                        {
                            "field": string("Path of the text."),
                            "order": array("All texts it can be, the worst first.", _PATHS),
                            "with": array("Paths of what comes from the same member, such as a message.", _PATHS),
                        },
                        ("field", "order"),
                    ),
                ),
                "revisions": array(
                    "The two fields with the names of the revision that ran before and of the newest.",
                    _PATHS,
                    maxItems=2,
                ),
                "omitted": array("Paths of what is not shown.", _PATHS),
                "conditions": boolean("Whether it has conditions with types.", default=True),
                "badNews": array("Types of conditions that are bad news if they are true.", _PATHS),
            },
        ),
        "health": obj(
            "When a copy is finished: all of this must hold.",
            {
                "observesGeneration": boolean("Its controller always reports status.observedGeneration."),
                "suspended": string("Path of the boolean that says that nothing is to be done."),
                "counts": array(
                    "Numbers of replicas that are to be reached.",
                    obj(
                        "One number.",
                        {
                            "path": string("Path of the number."),
                            "what": string("What the replicas are: ready, available, updated."),
                            "of": array("Paths of the wanted number, the first that is there.", _PATHS),
                            "surplus": boolean("The number is not to be exceeded, instead."),
                        },
                        ("path",),
                    ),
                ),
                "phases": array(
                    "Texts such as a phase.",
                    obj(
                        "One text.",
                        {
                            "path": string("Path of the text."),
                            "oneOf": array("What it is to be.", _PATHS),
                            "message": string("Path of the reason, if it is another one."),
                            "optional": boolean("Whether it may be absent."),
                        },
                        ("path", "oneOf"),
                    ),
                ),
                "conditions": array(
                    "Conditions.",
                    obj(
                        "One condition.",
                        {
                            "type": string("Type of the condition."),
                            "status": string("What its status is to be.", default="True"),
                            "optional": boolean("Whether it may be absent."),
                        },
                        ("type",),
                    ),
                ),
            },
        ),
    },
)

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
                "statusRules": _STATUS_RULES,
                "retainedFields": array(
                    "Dotted paths of fields that members own: a copy that has one keeps it. [*] means each item of a list whose"
                    " items have names.",
                    {"type": "string"},
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
