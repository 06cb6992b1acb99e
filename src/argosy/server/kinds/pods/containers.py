"""Containers of a pod spec: regular, init and ephemeral ones, their ports, mounts and restart rules.

Environment, probes, resources and security contexts have modules of their own.
"""

from collections.abc import Mapping
from typing import Any

from argosy.kube import names
from argosy.server.fielderrors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
    too_many,
)
from argosy.server.kinds.core.resource_lists import validate_requirements
from argosy.server.kinds.pods.env import validate_env, validate_env_from
from argosy.server.kinds.pods.paths import descending, no_backsteps
from argosy.server.kinds.pods.probes import validate_lifecycle, validate_probes
from argosy.server.kinds.pods.security import validate_security_context
from argosy.server.kinds.shared.meta_rules import dns_label, messages, one_of, port_number

__all__ = ["PROTOCOLS", "image_without_spaces", "validate_containers"]

Object = dict[str, Any]

PROTOCOLS = ("SCTP", "TCP", "UDP")
_RESTART_POLICIES = ["Always", "Never", "OnFailure"]
_RULE_ACTIONS = ["Restart", "RestartAllContainers"]
_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_NOT_FOR_EPHEMERAL = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)


def validate_containers(spec: Object, path: str, volumes: Mapping[str, Object]) -> list[FieldError]:
    """All containers of a spec; `volumes` are its valid volumes by name."""
    containers = spec.get("containers") or []
    if not containers:
        return [required(f"{path}.containers")]
    errors = []
    seen: set[str] = set()
    for i, container in enumerate(containers):
        at = f"{path}.containers[{i}]"
        errors += _common(container, at, spec, volumes)
        errors += _name_once(container.get("name", ""), at, seen)
        if container.get("lifecycle") is not None:
            errors += validate_lifecycle(container["lifecycle"], f"{at}.lifecycle", spec)
        errors += validate_probes(container, at) + _restart(container, at)
    errors += _host_ports(containers, f"{path}.containers")
    errors += _init_containers(spec, path, volumes, seen)
    return errors + _ephemeral_containers(spec, path, volumes)


def _init_containers(spec: Object, path: str, volumes: Mapping[str, Object], seen: set[str]) -> list[FieldError]:
    errors = []
    for i, container in enumerate(spec.get("initContainers") or ()):
        at = f"{path}.initContainers[{i}]"
        errors += _common(container, at, spec, volumes) + _restart(container, at)
        errors += _name_once(container.get("name", ""), at, seen)
        errors += _host_ports([container], f"{path}.initContainers")
        if container.get("restartPolicy") == "Always":
            if container.get("lifecycle") is not None:
                errors += validate_lifecycle(container["lifecycle"], f"{at}.lifecycle", spec)
            errors += validate_probes(container, at)
            continue
        errors += [
            forbidden(f"{at}.{name}", "may not be set for init containers without restartPolicy=Always")
            for name in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
            if container.get(name) is not None
        ]
        for j, policy in enumerate(container.get("resizePolicy") or ()):
            if policy.get("restartPolicy") == "RestartContainer":
                detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
                errors.append(invalid(f"{at}.resizePolicy[{j}].restartPolicy", policy["restartPolicy"], detail))
    return errors


def _ephemeral_containers(spec: Object, path: str, volumes: Mapping[str, Object]) -> list[FieldError]:
    regular = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    others = {container.get("name") for container in regular}
    seen = {name for name in others if name}
    errors = []
    for i, container in enumerate(spec.get("ephemeralContainers") or ()):
        at = f"{path}.ephemeralContainers[{i}]"
        errors += _common(container, at, spec, volumes) + image_without_spaces(container, at)
        errors += _name_once(container.get("name", ""), at, seen)
        target = container.get("targetContainerName")
        if target and target not in others:
            errors.append(not_found(f"{at}.targetContainerName", target))
        detail = "cannot be set for an Ephemeral Container"
        errors += [forbidden(f"{at}.{name}", detail) for name in _NOT_FOR_EPHEMERAL if container.get(name)]
        for j, mount in enumerate(container.get("volumeMounts") or ()):
            errors += [
                forbidden(f"{at}.volumeMounts[{j}].{name}", detail)
                for name in ("subPath", "subPathExpr")
                if mount.get(name)
            ]
    return errors


def image_without_spaces(container: Object, path: str) -> list[FieldError]:
    """Pods refuse an image with white space around it; templates have always accepted it."""
    image = container.get("image") or ""
    if image == image.strip():
        return []
    return [invalid(f"{path}.image", image, "must not have leading or trailing whitespace")]


def _common(container: Object, path: str, spec: Object, volumes: Mapping[str, Object]) -> list[FieldError]:
    name = container.get("name", "")
    errors = dns_label(name, f"{path}.name") if name else [required(f"{path}.name")]
    if not container.get("image"):
        errors.append(required(f"{path}.image"))
    policy = container.get("terminationMessagePolicy", "")
    errors += one_of(policy, f"{path}.terminationMessagePolicy", ("File", "FallbackToLogsOnError"))
    errors += _ports(container.get("ports") or [], f"{path}.ports")
    errors += validate_env(container.get("env") or [], f"{path}.env")
    errors += validate_env_from(container.get("envFrom") or [], f"{path}.envFrom")
    errors += _mounts(container, f"{path}.volumeMounts", volumes)
    errors += _devices(container, f"{path}.volumeDevices", volumes)
    errors += one_of(
        container.get("imagePullPolicy", ""), f"{path}.imagePullPolicy", ("Always", "IfNotPresent", "Never")
    )
    claims = {claim.get("name", "") for claim in spec.get("resourceClaims") or ()} - {""}
    errors += validate_requirements(container.get("resources") or {}, f"{path}.resources", claim_names=claims)
    errors += _resize(container.get("resizePolicy") or [], f"{path}.resizePolicy", spec.get("restartPolicy", ""))
    if container.get("securityContext") is not None:
        host_users = spec.get("hostUsers", True)
        errors += validate_security_context(
            container["securityContext"], f"{path}.securityContext", host_users=host_users
        )
    return errors


def _name_once(name: str, path: str, seen: set[str]) -> list[FieldError]:
    if name in seen:
        return [duplicate(f"{path}.name", name)]
    if name:
        seen.add(name)
    return []


def _ports(ports: list[Object], path: str) -> list[FieldError]:
    errors = []
    seen: set[str] = set()
    for i, port in enumerate(ports):
        at, name = f"{path}[{i}]", port.get("name", "")
        if name:
            wrong = messages(name, f"{at}.name", names.port_name_errors(name))
            errors += wrong or ([duplicate(f"{at}.name", name)] if name in seen else [])
            seen.add(name)
        if not port.get("containerPort"):
            errors.append(required(f"{at}.containerPort"))
        else:
            errors += port_number(port["containerPort"], f"{at}.containerPort")
        if port.get("hostPort"):
            errors += port_number(port["hostPort"], f"{at}.hostPort")
        errors += one_of(port.get("protocol", ""), f"{at}.protocol", PROTOCOLS)
    return errors


def _host_ports(containers: list[Object], path: str) -> list[FieldError]:
    errors = []
    seen: set[str] = set()
    for i, container in enumerate(containers):
        for j, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            key = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if key in seen:
                errors.append(duplicate(f"{path}[{i}].ports[{j}].hostPort", key))
            seen.add(key)
    return errors


def _mounts(container: Object, path: str, volumes: Mapping[str, Object]) -> list[FieldError]:
    errors = []
    devices = container.get("volumeDevices") or []
    # By name, as in Kubernetes: of several devices with one name only the last path counts.
    device_names = {device.get("name", ""): device.get("devicePath", "") for device in devices}
    device_paths = set(device_names.values())
    seen: set[str] = set()
    for i, mount in enumerate(container.get("volumeMounts") or ()):
        at, name, where = f"{path}[{i}]", mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            errors.append(required(f"{at}.name"))
        if name not in volumes:
            errors.append(not_found(f"{at}.name", name))
        if not where:
            errors.append(required(f"{at}.mountPath"))
        if where in seen:
            errors.append(invalid(f"{at}.mountPath", where, "must be unique"))
        seen.add(where)
        if name in device_names:
            errors.append(invalid(f"{at}.name", name, "must not already exist in volumeDevices"))
        if where in device_paths:
            errors.append(invalid(f"{at}.mountPath", where, "must not already exist as a path in volumeDevices"))
        errors += _mount_options(mount, at, path, container)
    return errors


def _mount_options(mount: Object, at: str, path: str, container: Object) -> list[FieldError]:
    """Kubernetes puts most of these at the list's own path, without the index."""
    errors = []
    sub_path, expression = mount.get("subPath"), mount.get("subPathExpr")
    if sub_path:
        errors += descending(sub_path, f"{path}.subPath")
    if expression:
        if sub_path:
            detail = "subPathExpr and subPath are mutually exclusive"
            errors.append(invalid(f"{at}.subPathExpr", expression, detail))
        errors += descending(expression, f"{path}.subPathExpr")
    propagation = mount.get("mountPropagation")
    if propagation is not None:
        if propagation not in _PROPAGATIONS:
            errors.append(not_supported(f"{path}.mountPropagation", propagation, list(_PROPAGATIONS)))
        privileged = (container.get("securityContext") or {}).get("privileged")
        if propagation == "Bidirectional" and not privileged:
            detail = "Bidirectional mount propagation is available only to privileged containers"
            errors.append(forbidden(f"{path}.mountPropagation", detail))
    recursive = mount.get("recursiveReadOnly")
    if recursive in ("Enabled", "IfPossible"):
        where = f"{path}.recursiveReadOnly"
        if not mount.get("readOnly"):
            errors.append(forbidden(where, "may only be specified when readOnly is true"))
        if propagation not in (None, "None"):
            errors.append(forbidden(where, "may only be specified when mountPropagation is None or not specified"))
    elif recursive not in (None, "Disabled"):
        choices = ["Disabled", "Enabled", "IfPossible"]
        errors.append(not_supported(f"{path}.recursiveReadOnly", recursive, choices))
    return errors


def _devices(container: Object, path: str, volumes: Mapping[str, Object]) -> list[FieldError]:
    errors = []
    mounts = container.get("volumeMounts") or []
    mount_names = {mount.get("name", ""): mount.get("mountPath", "") for mount in mounts}
    mount_paths = set(mount_names.values())
    seen_names: set[str] = set()
    seen_paths: set[str] = set()
    for i, device in enumerate(container.get("volumeDevices") or ()):
        at, name, where = f"{path}[{i}]", device.get("name", ""), device.get("devicePath", "")
        volume = volumes.get(name)
        if not name:
            errors.append(required(f"{at}.name"))
        if name in seen_names:
            errors.append(invalid(f"{at}.name", name, "must be unique"))
        if volume is None:
            errors.append(not_found(f"{at}.name", name))
        elif "persistentVolumeClaim" not in volume and "ephemeral" not in volume:
            detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            errors.append(invalid(f"{at}.name", name, detail))
        if not where:
            errors.append(required(f"{at}.devicePath"))
        if where in seen_paths:
            errors.append(invalid(f"{at}.devicePath", where, "must be unique"))
        if no_backsteps(where, at):
            errors.append(invalid(f"{at}.devicePath", where, "can not contain backsteps ('..')"))
        else:
            seen_paths.add(where)
        if name in mount_names:
            errors.append(invalid(f"{at}.name", name, "must not already exist in volumeMounts"))
        if where in mount_paths:
            errors.append(invalid(f"{at}.devicePath", where, "must not already exist as a path in volumeMounts"))
        if name:
            seen_names.add(name)
    return errors


def _resize(policies: list[Object], path: str, pod_policy: str) -> list[FieldError]:
    errors = []
    seen: set[str] = set()
    for i, policy in enumerate(policies):
        resource, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if resource in seen:
            errors.append(duplicate(f"{path}[{i}]", resource))
        seen.add(resource)
        errors += one_of(resource, path, ("cpu", "memory"))
        errors += one_of(restart, path, ("NotRequired", "RestartContainer"))
        if pod_policy == "Never" and restart != "NotRequired":
            errors.append(invalid(path, restart, "must be 'NotRequired' when pod `restartPolicy` is 'Never'"))
    return errors


def _restart(container: Object, path: str) -> list[FieldError]:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or []
    at = f"{path}.restartPolicy"
    errors = []
    if policy is None and rules:
        errors.append(required(at, "must specify restartPolicy when restart rules are used"))
    elif policy is not None and policy not in _RESTART_POLICIES:
        errors.append(not_supported(at, policy, _RESTART_POLICIES))
    if len(rules) > 20:
        errors.append(too_many(f"{path}.restartPolicyRules", len(rules), 20))
    for i, rule in enumerate(rules):
        errors += _restart_rule(rule, f"{path}.restartPolicyRules[{i}]")
    return errors


def _restart_rule(rule: Object, path: str) -> list[FieldError]:
    errors = []
    if rule.get("action", "") not in _RULE_ACTIONS:
        errors.append(not_supported(f"{path}.action", rule.get("action", ""), _RULE_ACTIONS))
    codes = rule.get("exitCodes")
    if codes is None:
        return [*errors, required(f"{path}.exitCodes", "must be specified")]
    if codes.get("operator", "") not in ("In", "NotIn"):
        errors.append(not_supported(f"{path}.exitCodes.operator", codes.get("operator", ""), ["In", "NotIn"]))
    if len(codes.get("values") or ()) > 255:
        errors.append(too_many(f"{path}.exitCodes.values", len(codes["values"]), 255))
    return errors
