"""Security contexts of pods and containers, and which fields are not allowed for which operating system."""

import re
from collections.abc import Iterator
from typing import Any

import orjson

from argosy.server.fielderrors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from argosy.server.kinds.pods.paths import descending
from argosy.server.kinds.shared.meta_rules import MAX_INT32, inclusive_range

__all__ = ["containers_with_path", "validate_os", "validate_pod_security", "validate_security_context"]

Object = dict[str, Any]
#: Kubernetes' internal name -> the field, and what stands for its absence.
_Parts = dict[str, tuple[str, str | None]]

_SYSCTL = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_PROFILES = ["Localhost", "RuntimeDefault", "Unconfined"]
_MAX_PROFILE_PATH = 4095
_MAX_CREDENTIAL_SPEC = 64 * 1024
_WINDOWS_FORBIDS_IN_POD = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
)
_WINDOWS_FORBIDS_IN_SPEC = ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace")
_WINDOWS_FORBIDS_IN_CONTAINER = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)


_PROFILE: _Parts = {"Type": ("type", ""), "LocalhostProfile": ("localhostProfile", None)}
_LABELS: _Parts = {"User": ("user", ""), "Role": ("role", ""), "Type": ("type", ""), "Level": ("level", "")}
_WINDOWS: _Parts = {
    "GMSACredentialSpecName": ("gmsaCredentialSpecName", None),
    "GMSACredentialSpec": ("gmsaCredentialSpec", None),
    "RunAsUserName": ("runAsUserName", None),
    "HostProcess": ("hostProcess", None),
}
#: Kubernetes' internal name -> the field, and what it consists of.
_INTERNAL: dict[str, tuple[str, _Parts]] = {
    "Capabilities": ("capabilities", {"Add": ("add", None), "Drop": ("drop", None)}),
    "Privileged": ("privileged", {}),
    "SELinuxOptions": ("seLinuxOptions", _LABELS),
    "WindowsOptions": ("windowsOptions", _WINDOWS),
    "RunAsUser": ("runAsUser", {}),
    "RunAsGroup": ("runAsGroup", {}),
    "RunAsNonRoot": ("runAsNonRoot", {}),
    "ReadOnlyRootFilesystem": ("readOnlyRootFilesystem", {}),
    "AllowPrivilegeEscalation": ("allowPrivilegeEscalation", {}),
    "ProcMount": ("procMount", {}),
    "SeccompProfile": ("seccompProfile", _PROFILE),
    "AppArmorProfile": ("appArmorProfile", _PROFILE),
}


def containers_with_path(spec: Object, path: str) -> Iterator[tuple[Object, str]]:
    for name in ("initContainers", "containers", "ephemeralContainers"):
        for i, container in enumerate(spec.get(name) or ()):
            yield container, f"{path}.{name}[{i}]"


def validate_pod_security(spec: Object, path: str) -> list[FieldError]:
    """The pod's own security context and its host namespaces."""
    context = spec.get("securityContext") or {}
    at = f"{path}.securityContext"
    errors = _identifiers(context, at, ("fsGroup", "runAsUser", "runAsGroup"))
    for i, group in enumerate(context.get("supplementalGroups") or ()):
        errors += inclusive_range(group, f"{at}.supplementalGroups[{i}]", 0, MAX_INT32)
    if spec.get("hostPID") and spec.get("shareProcessNamespace"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.append(invalid(f"{at}.shareProcessNamespace", True, detail))
    errors += _sysctls(context.get("sysctls") or [], f"{at}.sysctls")
    errors += _choice(context, "fsGroupChangePolicy", at, ["Always", "OnRootMismatch"])
    errors += _profiles(context, at)
    errors += _choice(context, "supplementalGroupsPolicy", at, ["Merge", "Strict"])
    errors += _choice(context, "seLinuxChangePolicy", at, ["MountOption", "Recursive"])
    return errors + _host_users(spec, path) + _windows_host_process(spec, path)


def validate_security_context(context: Object, path: str, *, host_users: bool) -> list[FieldError]:
    """A container's security context."""
    errors = _identifiers(context, path, ("runAsUser", "runAsGroup"))
    mount = context.get("procMount")
    if mount is not None:
        errors += _choice(context, "procMount", path, ["Default", "Unmasked"])
        if host_users and mount == "Unmasked":
            errors.append(invalid(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`"))
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            errors.append(invalid(path, _internal(context), detail))
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            errors.append(invalid(path, _internal(context), detail))
    return errors + _profiles(context, path)


def _internal(context: Object) -> orjson.Fragment:
    """As messages show a container's context: by the names of Kubernetes' internal type, in its order."""
    shown: Object = {}
    for name, (field, parts) in _INTERNAL.items():
        value = context.get(field)
        if parts and value is not None:
            value = {inner: value.get(part, blank) for inner, (part, blank) in parts.items()}
        shown[name] = value
    return orjson.Fragment(orjson.dumps(shown))


def _identifiers(context: Object, path: str, fields: tuple[str, ...]) -> list[FieldError]:
    errors = []
    for name in fields:
        if context.get(name) is not None:
            errors += inclusive_range(context[name], f"{path}.{name}", 0, MAX_INT32)
    return errors


def _choice(context: Object, name: str, path: str, supported: list[str]) -> list[FieldError]:
    value = context.get(name)
    return [] if value is None or value in supported else [not_supported(f"{path}.{name}", value, supported)]


def _sysctls(sysctls: list[Object], path: str) -> list[FieldError]:
    errors = []
    seen: set[str] = set()
    for i, sysctl in enumerate(sysctls):
        at, name = f"{path}[{i}].name", sysctl.get("name", "")
        if not name:
            errors.append(required(at))
        elif len(name) > 253 or not re.match(_SYSCTL, name):
            errors.append(invalid(at, name, f"must have at most 253 characters and match regex {_SYSCTL}"))
        elif name in seen:
            errors.append(duplicate(at, name))
        seen.add(name)
    return errors


def _profiles(context: Object, path: str) -> list[FieldError]:
    errors = []
    if context.get("seccompProfile") is not None:
        errors += _seccomp(context["seccompProfile"], f"{path}.seccompProfile")
    if context.get("windowsOptions") is not None:
        errors += _windows_options(context["windowsOptions"], f"{path}.windowsOptions")
    if context.get("appArmorProfile") is not None:
        errors += _app_armor(context["appArmorProfile"], f"{path}.appArmorProfile")
    return errors


def _profile_type(profile: Object, path: str, what: str) -> list[FieldError]:
    kind = profile.get("type", "")
    if not kind:
        return [required(f"{path}.type", f"type is required when {what} is set")]
    return [] if kind in _PROFILES else [not_supported(f"{path}.type", kind, _PROFILES)]


def _seccomp(profile: Object, path: str) -> list[FieldError]:
    errors = _profile_type(profile, path, "seccompProfile")
    local, at = profile.get("localhostProfile"), f"{path}.localhostProfile"
    if profile.get("type") == "Localhost":
        if local is None:
            return [*errors, required(at, "must be set when seccomp type is Localhost")]
        return errors + descending(local, at)
    if local is not None:
        errors.append(invalid(at, profile, "can only be set when seccomp type is Localhost"))
    return errors


def _app_armor(profile: Object, path: str) -> list[FieldError]:
    errors = _profile_type(profile, path, "appArmorProfile")
    local, at = profile.get("localhostProfile"), f"{path}.localhostProfile"
    if profile.get("type") == "Localhost":
        if not local:
            errors.append(required(at, "must be set when AppArmor type is Localhost"))
        elif local != local.strip():
            errors.append(invalid(at, local, "must not be padded with whitespace"))
        if local and len(local.encode()) > _MAX_PROFILE_PATH:
            errors.append(too_long(at, _MAX_PROFILE_PATH))
    elif local is not None and not errors:
        errors.append(invalid(at, local, "can only be set when AppArmor type is Localhost"))
    return errors


def _windows_options(options: Object, path: str) -> list[FieldError]:
    errors = []
    name = options.get("gmsaCredentialSpecName")
    if name is not None and not name:
        errors.append(
            invalid(f"{path}.gmsaCredentialSpecName", name, "gmsaCredentialSpecName cannot be an empty string")
        )
    credential = options.get("gmsaCredentialSpec")
    if credential is not None:
        at = f"{path}.gmsaCredentialSpec"
        if not credential:
            errors.append(invalid(at, credential, "gmsaCredentialSpec cannot be an empty string"))
        elif len(credential) > _MAX_CREDENTIAL_SPEC:
            errors.append(invalid(at, credential, "gmsaCredentialSpec size must be under 64 KiB"))
    user = options.get("runAsUserName")
    if user is not None and not user:
        errors.append(invalid(f"{path}.runAsUserName", user, "runAsUserName cannot be an empty string"))
    elif user and re.search(r"[\x00-\x1f\x7f]", user):
        errors.append(invalid(f"{path}.runAsUserName", user, "runAsUserName cannot contain control characters"))
    elif user and user.count("\\") > 1:
        detail = "runAsUserName cannot contain more than one backslash"
        errors.append(invalid(f"{path}.runAsUserName", user, detail))
    return errors


def _host_users(spec: Object, path: str) -> list[FieldError]:
    """A user namespace of its own excludes most host namespaces; capitals as Kubernetes writes them."""
    if spec.get("hostUsers", True):
        return []
    asked = [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")]
    errors = [forbidden(f"{path}.{at}", "when `hostUsers` is false") for name, at in asked if spec.get(name)]
    for container, at in containers_with_path(spec, path):
        if container.get("volumeDevices"):
            errors.append(forbidden(f"{at}.volumeDevices", "when `hostUsers` is false"))
    return errors


def _host_process(context: Object | None) -> bool | None:
    options = (context or {}).get("windowsOptions") or {}
    value = options.get("hostProcess")
    return value if isinstance(value, bool) else None


def _windows_host_process(spec: Object, path: str) -> list[FieldError]:
    """HostProcess containers must be all or none of a pod's, and need the host network."""
    pod = _host_process(spec.get("securityContext"))
    errors = []
    on_host = []
    for container, at in containers_with_path(spec, path):
        own = _host_process(container.get("securityContext"))
        if pod is not None and own is not None and pod != own:
            detail = f"pod hostProcess value must be identical if both are specified, was {str(pod).lower()}"
            errors.append(invalid(f"{at}.securityContext.windowsOptions.hostProcess", own, detail))
        on_host.append(bool(pod if own is None else own))
    if any(on_host):
        if not all(on_host):
            detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
            errors.append(invalid(path, "", detail))
        if not spec.get("hostNetwork"):
            detail = "hostNetwork must be true if pod contains any hostProcess containers"
            errors.append(invalid(f"{path}.hostNetwork", False, detail))
    return errors


def validate_os(spec: Object, path: str) -> list[FieldError]:
    """Fields that a pod with this operating system may not set."""
    if spec.get("os") is None:
        return []
    system = spec["os"].get("name", "")
    if not system:
        return [required(f"{path}.os.name")]
    if system == "linux":
        return _not_on_linux(spec, path)
    if system == "windows":
        return _not_on_windows(spec, path)
    return [not_supported(f"{path}.os", system, ["linux", "windows"])]


def _not_on_linux(spec: Object, path: str) -> list[FieldError]:
    contexts = [(spec, path), *containers_with_path(spec, path)]
    return [
        forbidden(f"{at}.securityContext.windowsOptions", "windows options cannot be set for a linux pod")
        for holder, at in contexts
        if (holder.get("securityContext") or {}).get("windowsOptions") is not None
    ]


def _not_on_windows(spec: Object, path: str) -> list[FieldError]:
    detail = "cannot be set for a windows pod"
    context = spec.get("securityContext") or {}
    errors = [
        forbidden(f"{path}.securityContext.{name}", detail)
        for name in _WINDOWS_FORBIDS_IN_POD
        if context.get(name) is not None
    ]
    errors += [forbidden(f"{path}.{name}", detail) for name in _WINDOWS_FORBIDS_IN_SPEC if spec.get(name) is not None]
    for container, at in containers_with_path(spec, path):
        own = container.get("securityContext") or {}
        errors += [
            forbidden(f"{at}.securityContext.{name}", detail)
            for name in _WINDOWS_FORBIDS_IN_CONTAINER
            if own.get(name) is not None
        ]
    return errors
