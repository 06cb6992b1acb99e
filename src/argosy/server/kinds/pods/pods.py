"""Pods, their bindings, and pod templates as objects.

A pod is admitted as by a cluster's default admission plugins: tolerations for nodes that are unreachable for a while, priority
0, the service account `default`. Two things differ on purpose, since this server has no kubelet to mount a token: no token
volume is added, and the service account need not exist. Other priority classes than the two built-in ones are looked up where
the store is available (`apply_priority_class`).
"""

from typing import Any

from argosy.kube import names
from argosy.kube.schema import Schemas
from argosy.kube.timestamps import now
from argosy.server.fielderrors import FieldError, forbidden, not_supported, required
from argosy.server.kinds.pods.annotations import validate_profiles_match
from argosy.server.kinds.pods.podspec import (
    default_pod,
    default_pod_spec,
    default_pod_template,
    validate_pod_template,
    validate_whole_pod,
)
from argosy.server.kinds.pods.qos import qos_class
from argosy.server.kinds.pods.updates import (
    validate_ephemeral_containers_update,
    validate_pod_status,
    validate_pod_update,
    validate_resize,
)
from argosy.server.kinds.pods.warnings import pod_warnings, template_warnings
from argosy.server.kinds.shared.builtin import BuiltinStrategy, StatuslessStrategy, VirtualStrategy, declare
from argosy.server.kinds.shared.defaults import fill_condition_times
from argosy.server.registry import Kind, Object, Strategy

__all__ = [
    "BindRefused",
    "EphemeralContainersStrategy",
    "PodStrategy",
    "ResizeStrategy",
    "apply_priority_class",
    "bind",
    "kinds",
    "missing_priority_class",
]

_TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATION_SECONDS = 300
_SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_GATED = {
    "type": "PodScheduled",
    "status": "False",
    "lastProbeTime": None,
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
_SUBRESOURCES = frozenset(
    {"attach", "binding", "ephemeralcontainers", "eviction", "exec", "log", "portforward", "proxy", "resize", "status"}
)


def kinds(schemas: Schemas) -> list[Kind]:
    return [
        declare(
            schemas,
            PodStrategy,
            "",
            "v1",
            "Pod",
            "pods",
            short_names=("po",),
            categories=("all",),
            subresources=_SUBRESOURCES,
        ),
        declare(schemas, BindingStrategy, "", "v1", "Binding", "bindings", verbs=frozenset({"create"})),
        declare(schemas, PodTemplateStrategy, "", "v1", "PodTemplate", "podtemplates"),
    ]


def _first_ip(pod: Object) -> str:
    ips = (pod.get("status") or {}).get("podIPs") or [{}]
    return str(ips[0].get("ip", ""))


class PodStrategy(BuiltinStrategy):
    validates_prefix = True
    selectable = {  # noqa: RUF012 - a mapping by contract, never changed
        "spec.nodeName": lambda pod: str(pod["spec"].get("nodeName", "")),
        "spec.restartPolicy": lambda pod: str(pod["spec"].get("restartPolicy", "")),
        "spec.schedulerName": lambda pod: str(pod["spec"].get("schedulerName", "")),
        "spec.serviceAccountName": lambda pod: str(pod["spec"].get("serviceAccountName", "")),
        "spec.hostNetwork": lambda pod: str(bool(pod["spec"].get("hostNetwork"))).lower(),
        "status.phase": lambda pod: str((pod.get("status") or {}).get("phase", "")),
        "status.podIP": _first_ip,
        "status.nominatedNodeName": lambda pod: str((pod.get("status") or {}).get("nominatedNodeName", "")),
    }

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        default_pod_spec(spec)
        default_pod(spec)
        _default_ips(obj.get("status") or {})
        _default_container_statuses(obj.get("status") or {})
        fill_condition_times(obj, "lastProbeTime", "lastTransitionTime")

    def prepare_create(self, obj: Object) -> None:
        spec = obj["spec"]
        _tolerate(spec)
        _prioritise(spec)
        if not spec.get("serviceAccountName"):
            spec["serviceAccountName"] = spec["serviceAccount"] = "default"
        _merge_label_keys(obj)
        obj["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}
        if spec.get("schedulingGates"):
            obj["status"]["conditions"] = [
                {**_GATED, "lastTransitionTime": obj["metadata"].get("creationTimestamp") or now()}
            ]

    def prepare_update(self, new: Object, old: Object) -> None:
        super().prepare_update(new, old)
        spec = new.setdefault("spec", {})
        _tolerate(spec)
        for name in ("priority", "preemptionPolicy"):
            if spec.get(name) is None and name in old["spec"]:
                spec[name] = old["spec"][name]

    def prepare_status(self, new: Object, old: Object) -> None:
        super().prepare_status(new, old)
        owners = old["metadata"].get("ownerReferences")
        new["metadata"].pop("ownerReferences", None)
        if owners:
            new["metadata"]["ownerReferences"] = owners
        status = new.setdefault("status", {})
        if not status.get("qosClass") and (old.get("status") or {}).get("qosClass"):
            status["qosClass"] = old["status"]["qosClass"]

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        errors = validate_whole_pod(obj)
        if spec.get("ephemeralContainers"):
            errors.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
        if spec.get("nodeName") and spec.get("schedulingGates"):
            errors.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
        return errors + validate_profiles_match(obj["metadata"].get("annotations") or {}, spec, "spec")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return validate_whole_pod(new) + validate_pod_update(new, old)

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        return validate_pod_status(new, old)

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        if old is not None:
            return []  # their writers are machines, and many
        wrong = names.dns_label_errors(obj["metadata"].get("name", ""))
        if not wrong:
            return pod_warnings(obj["spec"])
        text = "this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended"
        return [f"metadata.name: {text}: [{' '.join(wrong)}]", *pod_warnings(obj["spec"])]


class EphemeralContainersStrategy(PodStrategy):
    """Writes to pods/ephemeralcontainers: only that list changes."""

    def prepare_update(self, new: Object, old: Object) -> None:
        containers = (new.get("spec") or {}).get("ephemeralContainers")
        new["spec"] = {key: value for key, value in old["spec"].items() if key != "ephemeralContainers"}
        if containers:
            new["spec"]["ephemeralContainers"] = containers
        Strategy.prepare_update(self, new, old)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return validate_whole_pod(new) + validate_ephemeral_containers_update(new, old)


class ResizeStrategy(PodStrategy):
    """Writes to pods/resize: only resources and resize policies of existing containers change."""

    def prepare_update(self, new: Object, old: Object) -> None:
        spec = dict(old["spec"])
        for name in ("containers", "initContainers"):
            if name in spec:
                spec[name] = _with_resources((new.get("spec") or {}).get(name) or [], spec[name])
        new["spec"] = spec
        Strategy.prepare_update(self, new, old)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return validate_whole_pod(new) + validate_resize(new, old)


class BindingStrategy(VirtualStrategy):
    """A binding assigns a pod to a node; it is executed and not stored."""

    def validate(self, obj: Object) -> list[FieldError]:
        target = obj.get("target") or {}
        errors = []
        if target.get("kind") not in (None, "", "Node"):
            errors.append(not_supported("target.kind", target["kind"], ["Node", "<empty>"]))
        if not target.get("name"):
            errors.append(required("target.name"))
        return errors


class PodTemplateStrategy(StatuslessStrategy):
    generation = True

    def default(self, obj: Object) -> None:
        default_pod_template(obj.setdefault("template", {}))

    def validate(self, obj: Object) -> list[FieldError]:
        return validate_pod_template(obj["template"], "template")

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        return template_warnings(obj["template"], "template")


def _tolerate(spec: Object) -> None:
    """By default pods stay five minutes on a node that is not ready or unreachable."""
    present = spec.get("tolerations") or []
    missing = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATION_SECONDS}
        for key in _TOLERATED
        if not any(_covers(toleration, key) for toleration in present)
    ]
    if missing:
        spec["tolerations"] = [*present, *missing]


def _covers(toleration: Object, key: str) -> bool:
    return toleration.get("key", "") in ("", key) and toleration.get("effect", "") in ("", "NoExecute")


def _prioritise(spec: Object) -> None:
    name = spec.get("priorityClassName")
    if not name:
        spec.setdefault("priority", 0)
    elif name in _SYSTEM_PRIORITIES:
        spec["priority"] = _SYSTEM_PRIORITIES[name]
    elif spec.get("priority") is None:
        return
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")


def missing_priority_class(pod: Object) -> str | None:
    """Name of the PriorityClass to look up for a pod that is being created, if any."""
    name = pod["spec"].get("priorityClassName")
    return name if name and name not in _SYSTEM_PRIORITIES else None


def apply_priority_class(pod: Object, priority_class: Object) -> None:
    """Set the value and the policy of a pod's class."""
    spec = pod["spec"]
    spec["priorityClassName"] = priority_class["metadata"]["name"]
    spec["priority"] = priority_class.get("value", 0)
    spec["preemptionPolicy"] = priority_class.get("preemptionPolicy") or "PreemptLowerPriority"


def _default_ips(status: Object) -> None:
    """podIP and podIPs must agree; if they differ the older field wins, since old writers know only that one."""
    ip, ips = status.get("podIP"), status.get("podIPs")
    if ip and (not ips or ips[0].get("ip") != ip):
        status["podIPs"] = [{"ip": ip}]
    elif ips and not ip:
        status["podIP"] = ips[0].get("ip", "")


def _default_container_statuses(status: Object) -> None:
    """What Kubernetes writes for every container, known or not."""
    for name in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for container in status.get(name) or ():
            container.setdefault("state", {})
            container.setdefault("lastState", {})
            container.setdefault("ready", False)
            container.setdefault("restartCount", 0)
            container.setdefault("image", "")
            container.setdefault("imageID", "")


def _merge_label_keys(pod: Object) -> None:
    """Turn matchLabelKeys into requirements on this pod's own values."""
    labels = pod["metadata"].get("labels") or {}
    spec = pod["spec"]
    for constraint in spec.get("topologySpreadConstraints") or ():
        _require(constraint, labels)
    for side in ("podAffinity", "podAntiAffinity"):
        affinity = (spec.get("affinity") or {}).get(side) or {}
        for term in affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ():
            _require(term, labels)
        for weighted in affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            _require(weighted.get("podAffinityTerm") or {}, labels)


def _require(term: Object, labels: dict[str, str]) -> None:
    selector = term.get("labelSelector")
    if selector is None:
        return
    for name, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        for key in term.get(name) or ():
            if key in labels:
                requirement = {"key": key, "operator": operator, "values": [labels[key]]}
                selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), requirement]


def _with_resources(new: list[Object], old: list[Object]) -> list[Object]:
    """The old containers with the new resources; validation refuses changes in other lists of containers."""
    if [container.get("name") for container in new] != [container.get("name") for container in old]:
        return new
    kept = []
    for wanted, container in zip(new, old, strict=True):
        merged = {key: value for key, value in container.items() if key not in ("resources", "resizePolicy")}
        merged.update({key: wanted[key] for key in ("resources", "resizePolicy") if key in wanted})
        kept.append(merged)
    return kept


class BindRefused(ValueError):
    """The pod cannot be bound; the message is the one for the conflict."""


def bind(pod: Object, binding: Object, now: str) -> None:
    """Assign a pod to the node a binding names, in place."""
    name, spec, metadata = pod["metadata"]["name"], pod["spec"], pod["metadata"]
    if metadata.get("deletionTimestamp"):
        raise BindRefused(f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise BindRefused(f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise BindRefused(f"pod {name} has non-empty .spec.schedulingGates")
    spec["nodeName"] = binding["target"]["name"]
    given: dict[str, Any] = (binding.get("metadata") or {}).get("annotations") or {}
    if given:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **given}
    status = pod.setdefault("status", {})
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    others = [item for item in status.get("conditions") or () if item.get("type") != "PodScheduled"]
    status["conditions"] = [*others, scheduled]
    status.pop("nominatedNodeName", None)
