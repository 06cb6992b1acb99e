"""Nodes. New ones get no taint: a node life-cycle controller would have to add and remove it."""

import ipaddress
from typing import Any

import orjson

from argosy.kube import names
from argosy.kube.schema import Schemas
from argosy.server.fielderrors import FieldError, duplicate, forbidden, invalid, not_supported, required, shown
from argosy.server.kinds.core.resource_lists import canonical_resources, validate_quantity
from argosy.server.kinds.pods.scheduling import TAINT_EFFECTS
from argosy.server.kinds.shared.builtin import BuiltinStrategy, declare
from argosy.server.kinds.shared.defaults import fill_condition_times
from argosy.server.kinds.shared.meta_rules import cidr, dual_stack, label_name
from argosy.server.registry import Kind, Object

__all__ = ["NodeStrategy", "kinds", "validate_taints"]

_TAINTS_ANNOTATION = "scheduler.alpha.kubernetes.io/taints"
_NODE_INFO = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)


def kinds(schemas: Schemas) -> list[Kind]:
    return [
        declare(
            schemas,
            NodeStrategy,
            "",
            "v1",
            "Node",
            "nodes",
            namespaced=False,
            short_names=("no",),
            subresources=frozenset({"proxy", "status"}),
        )
    ]


class NodeStrategy(BuiltinStrategy):
    generation = False
    selectable = {  # noqa: RUF012
        "spec.unschedulable": lambda obj: str(bool((obj.get("spec") or {}).get("unschedulable"))).lower()
    }

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if spec.get("unschedulable") is False:
            del spec["unschedulable"]
        _default_cidrs(spec)
        status = obj.setdefault("status", {})
        canonical_resources(status.get("capacity"))
        canonical_resources(status.get("allocatable"))
        if "allocatable" not in status and "capacity" in status:
            status["allocatable"] = dict(status["capacity"])
        fill_condition_times(obj, "lastHeartbeatTime", "lastTransitionTime")
        # Kubernetes always writes these, and typed clients rely on them.
        status.setdefault("daemonEndpoints", {}).setdefault("kubeletEndpoint", {"Port": 0})
        info = status.setdefault("nodeInfo", {})
        for name in _NODE_INFO:
            info.setdefault(name, "")

    def prepare_create(self, obj: Object) -> None:
        # Nodes register themselves, so a new one comes with its status.
        obj["spec"].pop("configSource", None)

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        errors = _annotations(obj["metadata"].get("annotations") or {})
        errors += validate_taints(spec.get("taints") or [], "metadata.taints")
        errors += _resources(obj["status"])
        return errors + _pod_cidrs(spec.get("podCIDRs") or [])

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        spec, before = new["spec"], old.get("spec") or {}
        errors = self.validate(new)
        if before.get("podCIDRs") and before["podCIDRs"] != spec.get("podCIDRs"):
            detail = 'node updates may not change podCIDR except from "" to valid'
            errors.append(forbidden("spec.podCIDRs", detail))
        if before.get("providerID") and before["providerID"] != spec.get("providerID"):
            detail = 'node updates may not change providerID except from "" to valid'
            errors.append(forbidden("spec.providerID", detail))
        if spec.get("externalID", "") != before.get("externalID", ""):
            errors.append(forbidden("spec.externalID", "may not be updated"))
        return errors

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        errors = _resources(new["status"])
        seen: set[str] = set()
        for i, address in enumerate(new["status"].get("addresses") or ()):
            key = shown(address)
            if key in seen:
                shown_address = {"Type": address.get("type", ""), "Address": address.get("address", "")}
                errors.append(duplicate(f"status.addresses[{i}]", _in_order(shown_address)))
            seen.add(key)
        return errors

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        if not obj["spec"].get("externalID"):
            return []
        return ["spec.externalID: this field is deprecated, and is unused by Kubernetes"]


def _default_cidrs(spec: dict[str, Any]) -> None:
    """podCIDR is the first of podCIDRs; if only one is given, it sets the other."""
    one, several = spec.get("podCIDR"), spec.get("podCIDRs")
    if one and (not several or several[0] != one):
        spec["podCIDRs"] = [one]
    elif several and not one:
        spec["podCIDR"] = several[0]


def validate_taints(taints: list[Object], path: str) -> list[FieldError]:
    errors = []
    seen: set[tuple[str, str]] = set()
    for i, taint in enumerate(taints):
        at, key, effect = f"{path}[{i}]", taint.get("key", ""), taint.get("effect", "")
        errors += label_name(key, f"{at}.key")
        wrong = names.label_value_errors(taint.get("value", ""))
        if wrong:
            errors.append(invalid(f"{at}.value", taint["value"], ";".join(wrong)))
        if not effect:
            errors.append(required(f"{at}.effect"))
        elif effect not in TAINT_EFFECTS:
            errors.append(not_supported(f"{at}.effect", effect, TAINT_EFFECTS))
        if (key, effect) in seen:
            detail = "taints must be unique by key and effect pair"
            shown_taint = {
                "Key": key,
                "Value": taint.get("value", ""),
                "Effect": effect,
                "TimeAdded": taint.get("timeAdded"),
            }
            errors.append(FieldError("FieldValueDuplicate", at, _in_order(shown_taint), detail))
        seen.add((key, effect))
    return errors


def _in_order(internal: Object) -> orjson.Fragment:
    """As messages show a value: by the names of Kubernetes' internal type, in its order."""
    return orjson.Fragment(orjson.dumps(internal))


def _annotations(annotations: dict[str, str]) -> list[FieldError]:
    text = annotations.get(_TAINTS_ANNOTATION)
    if not text:
        return []
    path = "metadata.annotations"
    try:
        taints = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return [invalid(path, _TAINTS_ANNOTATION, str(error))]
    if not isinstance(taints, list) or not all(_is_taint(taint) for taint in taints):
        return [invalid(path, _TAINTS_ANNOTATION, "must be a list of taints")]
    return validate_taints(taints, f"{path}.{_TAINTS_ANNOTATION}")


def _is_taint(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(key, ""), str) for key in ("key", "value", "effect"))


def _resources(status: Object) -> list[FieldError]:
    errors = []
    for side in ("capacity", "allocatable"):
        for name, value in (status.get(side) or {}).items():
            errors += validate_quantity(name, value, f"status.{side}.{name}")
    return errors


def _pod_cidrs(cidrs: list[str]) -> list[FieldError]:
    errors = []
    for i, value in enumerate(cidrs):
        errors += cidr(value, f"spec.podCIDRs[{i}]")
    if len(cidrs) > 1 and not dual_stack(cidrs, ipaddress.ip_network):
        detail = "may specify no more than one CIDR for each IP family"
        errors.append(invalid("spec.podCIDRs", cidrs, detail))
    return errors
