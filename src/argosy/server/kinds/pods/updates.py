"""Updates of existing pods: a few fields of the spec may change, and the status within limits."""

import copy
from typing import Any

from argosy.server.fielderrors import FieldError, forbidden, invalid, required
from argosy.server.kinds.pods.annotations import MIRROR, validate_annotation_changes
from argosy.server.kinds.pods.containers import image_without_spaces
from argosy.server.kinds.pods.qos import qos_class
from argosy.server.kinds.pods.scheduling import validate_tolerations
from argosy.server.kinds.shared.meta_rules import (
    MAX_INT32,
    differences,
    dns_subdomain,
    dual_stack,
    inclusive_range,
    ip,
    qualified_name,
    same,
)

__all__ = [
    "validate_ephemeral_containers_update",
    "validate_pod_status",
    "validate_pod_update",
    "validate_resize",
]

Object = dict[str, Any]

_UPDATABLE = ",".join(
    (
        "`spec.containers[*].image`",
        "`spec.initContainers[*].image`",
        "`spec.activeDeadlineSeconds`",
        "`spec.tolerations` (only additions to existing tolerations)",
        "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
    )
)
_SYSTEM_CONDITIONS = ("PodScheduled", "Ready", "Initialized")
_TERMS = "requiredDuringSchedulingIgnoredDuringExecution"


def validate_pod_update(new: Object, old: Object) -> list[FieldError]:
    """Updates of the main resource, besides the rules for every pod."""
    errors = _annotations(new, old)
    spec, before = new["spec"], old["spec"]
    for name in ("containers", "initContainers"):
        wrong = _container_lists(spec.get(name) or [], before.get(name) or [], f"spec.{name}")
        errors += wrong
        if len(spec.get(name) or ()) != len(before.get(name) or ()):
            return errors
    wrong = _deadline(spec, before)
    errors += wrong
    if wrong and spec.get("activeDeadlineSeconds") is not None:
        return errors
    errors += _tolerations(spec, before) + _gates(spec, before)
    munged = _with_updatable_fields_of(spec, before)
    if before.get("schedulingGates"):
        errors += _gated_placement(munged, before)
    if not same(munged, before):
        detail = f"pod updates may not change fields other than {_UPDATABLE}\n{differences(munged, before)}"
        errors.append(forbidden("spec", detail))
    return errors


def _annotations(new: Object, old: Object) -> list[FieldError]:
    given, before = new["metadata"].get("annotations") or {}, old["metadata"].get("annotations") or {}
    return validate_annotation_changes(given, before, "metadata.annotations")


def _container_lists(new: list[Object], old: list[Object], path: str) -> list[FieldError]:
    if len(new) != len(old):
        return [forbidden(path, "pod updates may not add or remove containers")]
    errors = []
    for i, container in enumerate(new):
        if not container.get("image"):
            errors.append(required(f"{path}[{i}].image"))
        errors += image_without_spaces(container, f"{path}[{i}]")
    return errors


def _deadline(spec: Object, before: Object) -> list[FieldError]:
    new, old = spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    path = "spec.activeDeadlineSeconds"
    if new is None:
        detail = "must not update from a positive integer to nil value"
        return [] if old is None else [invalid(path, None, detail)]
    errors = inclusive_range(new, path, 0, MAX_INT32)
    if not errors and old is not None and new > old:
        errors.append(invalid(path, new, "must be less than or equal to previous value"))
    return errors


def _tolerations(spec: Object, before: Object) -> list[FieldError]:
    new = spec.get("tolerations") or []
    lasting = [_without_seconds(toleration) for toleration in new]
    if any(_without_seconds(old) not in lasting for old in before.get("tolerations") or ()):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        return [forbidden("spec.tolerations", detail)]
    return validate_tolerations(new, "spec.tolerations")


def _without_seconds(toleration: Object) -> Object:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds" and value != ""}


def _gates(spec: Object, before: Object) -> list[FieldError]:
    known = {gate.get("name") for gate in before.get("schedulingGates") or ()}
    return [
        forbidden(
            f"spec.schedulingGates[{i}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name', '')}'",
        )
        for i, gate in enumerate(spec.get("schedulingGates") or ())
        if gate.get("name") not in known
    ]


def _with_updatable_fields_of(spec: Object, before: Object) -> Object:
    """The new spec with all mutable fields set back: any remaining difference is not allowed."""
    munged = copy.deepcopy(spec)
    for name in ("containers", "initContainers"):
        for container, old in zip(munged.get(name) or (), before.get(name) or (), strict=True):
            container["image"] = old.get("image", "")
    for name in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        _set_back(munged, before, name)
    if (before.get("terminationGracePeriodSeconds") or 0) < 0 and munged.get("terminationGracePeriodSeconds") == 1:
        _set_back(munged, before, "terminationGracePeriodSeconds")
    return munged


def _set_back(munged: Object, before: Object, name: str) -> None:
    munged.pop(name, None)
    if name in before:
        munged[name] = before[name]


def _gated_placement(munged: Object, before: Object) -> list[FieldError]:
    """A pod that is still gated may be restricted further; sets the fields back in `munged`."""
    errors = []
    selector, old_selector = munged.get("nodeSelector") or {}, before.get("nodeSelector") or {}
    if any(selector.get(key) != value for key, value in old_selector.items()):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        errors.append(invalid("spec.nodeSelector", selector, detail))
    _set_back(munged, before, "nodeSelector")
    affinity, old_affinity = munged.get("affinity") or {}, before.get("affinity") or {}
    errors += _gated_affinity(affinity.get("nodeAffinity"), old_affinity.get("nodeAffinity"))
    kept = {key: value for key, value in affinity.items() if key != "nodeAffinity"}
    if "nodeAffinity" in old_affinity:
        kept["nodeAffinity"] = old_affinity["nodeAffinity"]
    munged["affinity"] = kept
    return errors


def _gated_affinity(new: Object | None, old: Object | None) -> list[FieldError]:
    old_terms = ((old or {}).get(_TERMS) or {}).get("nodeSelectorTerms") or []
    terms = ((new or {}).get(_TERMS) or {}).get("nodeSelectorTerms") or []
    path = f"spec.affinity.nodeAffinity.{_TERMS}.nodeSelectorTerms"
    if not old_terms:
        return []
    if len(terms) != len(old_terms):
        return [invalid(path, terms, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")]
    return [
        invalid(f"{path}[{i}]", term, "only additions are allowed (no mutations or deletions)")
        for i, (term, before) in enumerate(zip(terms, old_terms, strict=True))
        if not _only_adds(term, before)
    ]


def _only_adds(term: Object, before: Object) -> bool:
    fields = ("matchExpressions", "matchFields")
    # An empty term matches nothing; adding to it would widen it.
    if not any(before.get(name) for name in fields):
        return not any(term.get(name) for name in fields)
    return all((term.get(name) or [])[: len(before.get(name) or [])] == (before.get(name) or []) for name in fields)


def validate_ephemeral_containers_update(new: Object, old: Object) -> list[FieldError]:
    path = "spec.ephemeralContainers"
    if MIRROR in (old["metadata"].get("annotations") or {}):
        return [forbidden("", "static pods do not support ephemeral containers")]
    by_name = {container.get("name"): container for container in new["spec"].get("ephemeralContainers") or ()}
    errors = _annotations(new, old)
    for before in old["spec"].get("ephemeralContainers") or ():
        name = before.get("name", "")
        if name not in by_name:
            errors.append(forbidden(path, f'existing ephemeral containers "{name}" may not be removed\n'))
        elif not same(by_name[name], before):
            detail = f'existing ephemeral containers "{name}" may not be changed\n{differences(by_name[name], before)}'
            errors.append(forbidden(path, detail))
    return errors


def validate_resize(new: Object, old: Object) -> list[FieldError]:
    """Only cpu and memory of running containers may change, and not the quality of service class."""
    errors = []
    if qos_class(new["spec"]) != qos_class(old["spec"]):
        told = (new.get("status") or {}).get("qosClass", "")
        errors.append(invalid("spec", told, "Pod QOS Class may not change as a result of resizing"))
    for name in ("containers", "initContainers"):
        pairs = zip(new["spec"].get(name) or (), old["spec"].get(name) or (), strict=False)
        for i, (container, before) in enumerate(pairs):
            for side in ("limits", "requests"):
                wanted = (container.get("resources") or {}).get(side) or {}
                given = (before.get("resources") or {}).get(side) or {}
                if any(key not in wanted for key in given if key in ("cpu", "memory")):
                    at = f"spec.{name}[{i}].resources.{side}"
                    errors.append(forbidden(at, f"resource {side} cannot be removed"))
                fixed = {key: value for key, value in given.items() if key not in ("cpu", "memory")}
                if {key: value for key, value in wanted.items() if key not in ("cpu", "memory")} != fixed:
                    errors.append(forbidden("spec", "only cpu and memory resources are mutable"))
    return errors


def validate_pod_status(new: Object, old: Object) -> list[FieldError]:
    status, before = new.get("status") or {}, old.get("status") or {}
    errors = _annotations(new, old) + _conditions(status.get("conditions") or [], "status.conditions")
    nominated = status.get("nominatedNodeName") or ""
    if nominated and nominated != before.get("nominatedNodeName"):
        errors += dns_subdomain(nominated, "status.nominatedNodeName")
        if old["spec"].get("nodeName"):
            detail = "may not be set on pods that are already bound to a node"
            errors.append(forbidden("status.nominatedNodeName", detail))
    if status.get("observedGeneration", 0) < 0:
        detail = "must be a non-negative integer"
        errors.append(invalid("status.observedGeneration", status["observedGeneration"], detail))
    if status.get("qosClass") != before.get("qosClass"):
        errors.append(invalid("status.qosClass", status.get("qosClass", ""), "field is immutable"))
    errors += _states(status, before, "containerStatuses", old["spec"], "containers")
    errors += _states(status, before, "initContainerStatuses", old["spec"], "initContainers")
    errors += _addresses(status, before, "podIPs")
    if status.get("hostIPs") and status["hostIPs"][0].get("ip") != status.get("hostIP", ""):
        errors.append(invalid("status.hostIPs[0].ip", status["hostIPs"][0].get("ip"), "must be equal to `hostIP`"))
    return errors + _addresses(status, before, "hostIPs")


def _conditions(conditions: list[Object], path: str) -> list[FieldError]:
    errors = []
    for i, condition in enumerate(conditions):
        if condition.get("observedGeneration", 0) < 0:
            detail = "must be a non-negative integer"
            errors.append(invalid(f"{path}[{i}].observedGeneration", condition["observedGeneration"], detail))
        if condition.get("type") not in _SYSTEM_CONDITIONS:
            errors += qualified_name(condition.get("type", ""), f"{path}[{i}].Condition")
    return errors


def _states(status: Object, before: Object, name: str, spec: Object, list_name: str) -> list[FieldError]:
    """A terminated container stays terminated, unless its restart policy lets it start again."""
    containers = {container.get("name"): container for container in spec.get(list_name) or ()}
    now = {item.get("name"): item for item in status.get(name) or ()}
    errors = []
    for i, old in enumerate(before.get(name) or ()):
        ended = (old.get("state") or {}).get("terminated")
        current = now.get(old.get("name"))
        if ended is None or current is None or (current.get("state") or {}).get("terminated") is not None:
            continue
        container = containers.get(old.get("name"), {})
        if not _may_restart(container, spec, ended.get("exitCode", 0)):
            errors.append(forbidden(f"status.{name}[{i}].state", "may not be transitioned to non-terminated state"))
    return errors


def _may_restart(container: Object, spec: Object, code: int) -> bool:
    for rule in container.get("restartPolicyRules") or ():
        codes = rule.get("exitCodes") or {}
        listed = code in (codes.get("values") or ())
        if listed == (codes.get("operator") == "In"):
            return True
    policy = container.get("restartPolicy") or spec.get("restartPolicy")
    return policy == "Always" or (policy == "OnFailure" and code != 0)


def _addresses(status: Object, before: Object, name: str) -> list[FieldError]:
    known = {item.get("ip") for item in before.get(name) or ()}
    given = [item.get("ip", "") for item in status.get(name) or ()]
    errors = []
    for i, address in enumerate(given):
        errors += ip(address, f"status.{name}[{i}]", known=known)
    if len(given) > 1 and not dual_stack(given):
        detail = "may specify no more than one IP for each IP family"
        errors.append(invalid(f"status.{name}", status[name], detail))
    return errors
