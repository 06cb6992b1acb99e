"""Caveats: fields, labels and annotations that are accepted and do not do what they say. Whoever writes one is warned.

One table for both API servers: `manifests` makes an admission policy that warns and never refuses, for kube-apiserver, and
`told` evaluates the same rows on Argosy's own. A field that gets its effect loses its row here. Only what an object says by
itself is in the table; what depends on other objects is `plan.status.shortfalls`.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from argosy.api import keys, resources, rights
from argosy.api.predicates import (
    All,
    Below,
    Has,
    Is,
    Lacks,
    Like,
    Not,
    Other,
    Predicate,
    Unlike,
    annotation,
    at,
    cel,
    holds,
    label,
    literal,
)
from argosy.api.predicates import Any as Either
from argosy.api.typeconfigs import FIELD_PATH, FederatedTypeConfig
from argosy.kube.resource import Resource

__all__ = ["CHECKED", "GROUPS", "NAME", "TABLE", "Caveat", "is_warned", "manifests", "told"]

NAME: Final = "argosy-caveats"


class Caveat(msgspec.Struct, frozen=True):
    """One row: what is told to whoever writes an object of these kinds for which the predicate holds."""

    when: Predicate
    text: str
    #: None: every kind that may be federated.
    of: tuple[Resource, ...] | None = None


_PROPAGATION: Final = (resources.PROPAGATION_POLICIES, resources.CLUSTER_PROPAGATION_POLICIES)
_OVERRIDE: Final = (resources.OVERRIDE_POLICIES, resources.CLUSTER_OVERRIDE_POLICIES)
_TYPES: Final = (resources.FEDERATED_TYPE_CONFIGS,)
_CLUSTERS: Final = (resources.FEDERATED_CLUSTERS,)
_WEBHOOKS: Final = (resources.SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS,)
_AUTOSCALERS: Final = (Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),)
_JOBS: Final = (Resource("batch", "v1", "jobs", "Job"),)
_MCS: Final = "multicluster.x-k8s.io"
_SERVICES: Final = (
    Resource(_MCS, "v1alpha1", "serviceexports", "ServiceExport"),
    Resource(_MCS, "v1alpha1", "serviceimports", "ServiceImport"),
)

_SPAN: Final = "([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|ms|s|m|h)"
_DURATION: Final = f"[+-]?(0|({_SPAN})+)"
_AMOUNT: Final = "[+]?([0-9]+([.][0-9]*)?|[.][0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?"
_KATALYST: Final = r' *\[ *("node[.]katalyst[.]kubewharf[.]io" *)?\] *'
_PLACING: Final = (keys.GLOBAL_SCHEDULER, keys.NSAUTOPROP_CONTROLLER)
_WITHOUT_PODS: Final = (
    "ConfigMap",
    "Secret",
    "Service",
    "ServiceAccount",
    "Ingress",
    "PersistentVolumeClaim",
    "Role",
    "RoleBinding",
)
_STEPS: Final = at("spec.controllers[][]")
_DUPLICATES: Final = Is(at("spec.schedulingMode"), (keys.DUPLICATE,))
_STAYS: Final = Either(
    (Is(at("spec.reschedulePolicy.disableRescheduling"), (True,)), Is(at("spec.stickyCluster"), (True,)))
)
_NAMES_A_POLICY: Final = Either(
    (Has(label(keys.PROPAGATION_POLICY_LABEL)), Has(label(keys.CLUSTER_PROPAGATION_POLICY_LABEL)))
)
_NAMESPACED: Final = Has(("metadata", "namespace"))
#: Annotations of sources with only these values; every other one is taken for none at all.
_CHOICES: Final = {
    keys.RETAIN_REPLICAS: ("true", "false"),
    keys.DRY_RUN: ("true", "false"),
    keys.NO_AUTO_PROPAGATION: ("true", "false"),
    keys.STICKY_CLUSTER: ("true", "false"),
    keys.PAUSED: ("true", "false"),
    keys.NO_SELECTION: ("true", "false"),
    keys.CONFLICT_RESOLUTION: (keys.ADOPT,),
    keys.ORPHAN: (keys.ORPHAN_ALL, keys.ORPHAN_ADOPTED),
    keys.SCHEDULING_MODE: (keys.DUPLICATE, keys.DIVIDE),
}
#: Annotations of sources whose values the table checks.
CHECKED: Final = frozenset({*_CHOICES, keys.MAX_CLUSTERS})
#: Annotations of sources that replace fields of their policy.
_REPLACING: Final = (
    keys.SCHEDULING_MODE,
    keys.STICKY_CLUSTER,
    keys.CLUSTER_SELECTOR,
    keys.AFFINITY,
    keys.TOLERATIONS,
    keys.PLACEMENTS,
    keys.MAX_CLUSTERS,
)


def _in_divide_mode(field: str, when: Predicate | None = None) -> Caveat:
    text = f"spec.{field} has an effect in Divide mode alone, and schedulingMode is Duplicate"
    return Caveat(All((_DUPLICATES, when or Has(at(f"spec.{field}")))), text, _PROPAGATION)


def _although_it_stays(field: str) -> Caveat:
    path = f"spec.reschedulePolicy.rescheduleWhen.{field}"
    text = f"{path} has no effect: disableRescheduling keeps the clusters that were chosen"
    return Caveat(All((_STAYS, Is(at(path), (True,)))), text, _PROPAGATION)


def _amount(key: str, otherwise: str) -> Caveat:
    when = Either((Unlike(annotation(key), _AMOUNT), Unlike(label(key), _AMOUNT)))
    return Caveat(when, f"{key} has no effect: it is no number such as 1.5, so {otherwise}", _CLUSTERS)


def _period(key: str, pattern: str) -> Caveat:
    text = f"annotation {key} has no effect: it is no duration such as 5m, so the controllers' own setting counts"
    return Caveat(Unlike(annotation(key), pattern), text, _CLUSTERS)


TABLE: Final[tuple[Caveat, ...]] = (
    # Propagation policies.
    Caveat(
        Has(at("spec.tolerations[].tolerationSeconds")),
        "spec.tolerations[].tolerationSeconds has no effect: what is tolerated is tolerated for ever",
        _PROPAGATION,
    ),
    _in_divide_mode("placement[].preferences.minReplicas"),
    _in_divide_mode("placement[].preferences.maxReplicas"),
    _in_divide_mode("placement[].preferences.weight"),
    _in_divide_mode("replicasStrategy", Other(at("spec.replicasStrategy"), (keys.SPREAD,))),
    _in_divide_mode("limitReplicasToAvailable", Is(at("spec.limitReplicasToAvailable"), (True,))),
    _in_divide_mode("autoMigration"),
    Caveat(
        Unlike(at("spec.autoMigration.when.podUnschedulableFor"), _DURATION),
        "spec.autoMigration has no effect: podUnschedulableFor is no duration such as 1m30s",
        _PROPAGATION,
    ),
    _although_it_stays("clusterJoined"),
    _although_it_stays("clusterLabelsChanged"),
    _although_it_stays("clusterAPIResourcesChanged"),
    Caveat(
        Below(at("spec.maxClusters"), 1), "spec.maxClusters is less than 1: no cluster is ever chosen", _PROPAGATION
    ),
    Caveat(
        Unlike(annotation(keys.FAILBACK_REPLICAS), "0*[1-9][0-9]*"),
        f"annotation {keys.FAILBACK_REPLICAS} has no effect: it is no whole number of 1 or more",
        _PROPAGATION,
    ),
    Caveat(
        Other(annotation(keys.REFUSE_OBJECT_OVERRIDES), ("true", "false")),
        f"annotation {keys.REFUSE_OBJECT_OVERRIDES} has no effect: it is not true",
        _PROPAGATION,
    ),
    # Override policies.
    Caveat(
        Lacks(at("spec.overrideRules[]"), "overriders"),
        "spec.overrideRules[] has a rule without overriders, which changes nothing",
        _OVERRIDE,
    ),
    # Type configs.
    Caveat(Has(at("spec.pathDefinition.labelSelector")), "spec.pathDefinition.labelSelector has no effect", _TYPES),
    Caveat(
        All((Not(Is(_STEPS, _PLACING)), Not(Other(_STEPS, keys.OWN_STEPS)))),
        "spec.controllers lists no controller that places objects: objects of this kind go nowhere",
        _TYPES,
    ),
    Caveat(
        All((Is(at("spec.autoMigration.enabled"), (True,)), Other(at("spec.sourceType.kind"), ("Deployment",)))),
        "spec.autoMigration has no effect: only Deployments are migrated",
        _TYPES,
    ),
    Caveat(
        Other(at("spec.sourceType.scope"), (keys.NAMESPACED, keys.CLUSTER)),
        "spec.sourceType.scope is neither Namespaced nor Cluster, and taken for Cluster",
        _TYPES,
    ),
    Caveat(
        Unlike(at("spec.retainedFields[]"), FIELD_PATH),
        "spec.retainedFields has a path that is malformed and has no effect; one such as spec.foo or spec.items[*].foo is meant",
        _TYPES,
    ),
    Caveat(
        Like(at("spec.retainedFields[]"), r"[.]?(apiVersion|kind|metadata)([.\[].*)?"),
        "spec.retainedFields has no effect on apiVersion, kind and metadata: labels and annotations of members are kept anyway",
        _TYPES,
    ),
    # Clusters.
    Caveat(
        Other(at("spec.taints[].effect"), ("NoSchedule", "PreferNoSchedule", "NoExecute")),
        "spec.taints[].effect has no effect unless it is NoSchedule, PreferNoSchedule or NoExecute",
        _CLUSTERS,
    ),
    Caveat(
        Other(annotation(keys.MEMBER_ACCESS), (keys.FULL,)),
        f"annotation {keys.MEMBER_ACCESS} has no effect: its only value is {keys.FULL}",
        _CLUSTERS,
    ),
    Caveat(
        Unlike(annotation(keys.CLUSTER_RESOURCE_PLUGINS), _KATALYST),
        f"annotation {keys.CLUSTER_RESOURCE_PLUGINS} names a plugin that does not exist, or is no JSON list of names",
        _CLUSTERS,
    ),
    Caveat(
        Other(annotation(keys.PAUSED), ("true", "false")),
        f"annotation {keys.PAUSED} has no effect: its value is none of true, false",
        _CLUSTERS,
    ),
    _period(keys.FAILOVER_AFTER, f"{keys.NEVER}|{_DURATION}"),
    _period(keys.FAILBACK_AFTER, _DURATION),
    _amount(keys.COMPUTE_POWER, "its cores count as those of the reference"),
    _amount(keys.PRICE_PER_CORE_HOUR, "the cluster has no price"),
    # Webhook plugins.
    Caveat(
        All(tuple(Not(Other(at(f"spec.{each}Path"), ("",))) for each in ("filter", "score", "select"))),
        "spec has neither filterPath, scorePath nor selectPath: the plugin serves nothing",
        _WEBHOOKS,
    ),
    # Objects to be federated.
    *(
        Caveat(
            Other(annotation(key), values), f"annotation {key} has no effect: its value is none of {', '.join(values)}"
        )
        for key, values in _CHOICES.items()
    ),
    Caveat(
        Unlike(annotation(keys.MAX_CLUSTERS), "[0-9]+"),
        f"annotation {keys.MAX_CLUSTERS} has no effect: it is no whole number",
    ),
    Caveat(
        All((Either(tuple(Has(annotation(key)) for key in _REPLACING)), Not(_NAMES_A_POLICY))),
        f"annotations that replace fields of a policy ({', '.join(key.removeprefix(keys.PREFIX) for key in _REPLACING)}) have"
        " no effect unless a policy selects the object: it names no policy",
    ),
    Caveat(
        All((Has(annotation(keys.CLUSTERS_TO_ADOPT)), Not(Is(annotation(keys.CONFLICT_RESOLUTION), (keys.ADOPT,))))),
        f"annotation {keys.CLUSTERS_TO_ADOPT} has no effect without {keys.CONFLICT_RESOLUTION}={keys.ADOPT}",
    ),
    Caveat(
        All((Is(annotation(keys.CONFLICT_RESOLUTION), (keys.ADOPT,)), Not(Has(annotation(keys.CLUSTERS_TO_ADOPT))))),
        f"annotation {keys.CONFLICT_RESOLUTION} has no effect without {keys.CLUSTERS_TO_ADOPT}, which names the clusters",
    ),
    Caveat(
        All((Has(annotation(keys.NO_AUTO_PROPAGATION)), Other(at("kind"), ("Namespace",)))),
        f"annotation {keys.NO_AUTO_PROPAGATION} has an effect on namespaces alone",
    ),
    Caveat(
        All((Has(annotation(keys.FOLLOWERS)), Is(at("kind"), _WITHOUT_PODS))),
        f"annotation {keys.FOLLOWERS} has no effect: only what runs pods may list followers",
    ),
    Caveat(Has(annotation(keys.FOLLOWS_OBJECT)), f"annotation {keys.FOLLOWS_OBJECT} has no effect"),
    Caveat(
        All((_NAMES_A_POLICY, Other(annotation(keys.NO_FEDERATED_RESOURCE), ("",)))),
        f"a policy is named, but nothing is propagated: the annotation {keys.NO_FEDERATED_RESOURCE} says so",
    ),
    Caveat(
        All((_NAMES_A_POLICY, Is(("metadata", "namespace"), (keys.SYSTEM_NAMESPACE,)))),
        f"a policy is named, but nothing in the namespace {keys.SYSTEM_NAMESPACE} is propagated",
    ),
    *(
        Caveat(
            All((Has(label(key)), Not(_NAMESPACED))),
            f"label {key} has no effect: an object without a namespace may only name a cluster-scoped policy",
        )
        for key in (keys.PROPAGATION_POLICY_LABEL, keys.OVERRIDE_POLICY_LABEL)
    ),
    Caveat(
        All(
            (
                _NAMESPACED,
                Has(label(keys.PROPAGATION_POLICY_LABEL)),
                Has(label(keys.CLUSTER_PROPAGATION_POLICY_LABEL)),
            )
        ),
        f"label {keys.CLUSTER_PROPAGATION_POLICY_LABEL} has no effect: the object also names a policy of its namespace",
    ),
    Caveat(
        Is(label(keys.HPA_MODE_LABEL), (keys.CENTRALIZED,)),
        f"label {keys.HPA_MODE_LABEL}={keys.CENTRALIZED} is not served yet: the autoscaler is held",
        _AUTOSCALERS,
    ),
    Caveat(
        All((_NAMES_A_POLICY, Has(at("spec.ttlSecondsAfterFinished")))),
        "spec.ttlSecondsAfterFinished has no effect: a Job that has finished stays until somebody deletes it",
        _JOBS,
    ),
    Caveat(
        Has(at("kind")),
        "services are not exported between clusters yet: this goes to members as any other object, and nothing comes of it",
        _SERVICES,
    ),
)


#: The API groups with kinds of their own in the table. Objects of others are only told of if they have our keys.
GROUPS: Final = frozenset(each.group for row in TABLE for each in row.of or ())


def told(resource: Resource, obj: dict[str, Any]) -> list[str]:
    """What is said of an object of this kind; `obj` has its kind."""
    return [row.text for row in TABLE if _concerns(row, resource) and holds(row.when, obj)]


def _concerns(row: Caveat, resource: Resource) -> bool:
    if row.of is None:
        return resource.group != keys.GROUP
    return any((each.group, each.plural) == (resource.group, resource.plural) for each in row.of)


def is_warned(user: str, groups: Sequence[str], controllers: Sequence[rights.Subject]) -> bool:
    """Whether somebody who writes an object is told: the controllers and Kubernetes itself only carry on what others wrote."""
    users, known = rights.identities(controllers)
    return user not in users and known.isdisjoint(groups) and not user.startswith(_KUBERNETES)


_KUBERNETES: Final = ("system:serviceaccount:kube-system:", "system:kube-")


# The same in CEL.


def manifests(configs: Iterable[FederatedTypeConfig], subjects: Sequence[rights.Subject]) -> list[dict[str, Any]]:
    """The policy and its binding; `configs` say what is federated, `subjects` are those of the controllers' roles."""
    metadata = {"name": NAME, "annotations": {keys.NO_FEDERATED_RESOURCE: "true"}}
    users, groups = rights.identities(subjects)
    unwarned = [f"request.userInfo.username == {literal(user)}" for user in sorted(users)]
    unwarned += [f"{literal(group)} in request.userInfo.groups" for group in sorted(groups)]
    unwarned += [f"request.userInfo.username.startsWith({literal(prefix)})" for prefix in _KUBERNETES]
    return [
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": metadata,
            "spec": {
                # A warning that cannot be made refuses nothing.
                "failurePolicy": "Ignore",
                "matchConstraints": {"resourceRules": _rules(configs)},
                "matchConditions": [{"name": "by-a-user", "expression": f"!({' || '.join(unwarned)})"}],
                "variables": [
                    {"name": "resource", "expression": "request.resource.resource + '.' + request.resource.group"}
                ],
                "validations": [{"expression": _expression(row), "message": row.text} for row in TABLE],
            },
        },
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": metadata,
            "spec": {"policyName": NAME, "validationActions": ["Warn"]},
        },
    ]


def _rules(configs: Iterable[FederatedTypeConfig]) -> list[dict[str, Any]]:
    found: dict[str, set[str]] = {}
    for resource in (each for row in TABLE for each in row.of or ()):
        found.setdefault(resource.group, set()).add(resource.plural)
    for config in configs:
        found.setdefault(config.resource.group, set()).add(config.resource.plural)
    return [
        {
            "apiGroups": [group],
            "apiVersions": ["*"],
            "operations": ["CREATE", "UPDATE"],
            "resources": sorted(found[group]),
        }
        for group in sorted(found)
    ]


def _expression(row: Caveat) -> str:
    """It holds for whoever is not warned."""
    if row.of is None:
        concerned = f"request.resource.group != {literal(keys.GROUP)}"
    else:
        names = ", ".join(literal(f"{each.plural}.{each.group}") for each in row.of)
        concerned = f"variables.resource in [{names}]"
    return f"!({concerned} && {cel(row.when)})"
