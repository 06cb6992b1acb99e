"""Annotations with a meaning for pods: mirror pods, deletion cost, tolerations, seccomp and AppArmor profiles."""

from typing import Any

import orjson

from argosy.server.fielderrors import FieldError, forbidden, invalid
from argosy.server.kinds.pods.paths import descending
from argosy.server.kinds.pods.scheduling import validate_tolerations
from argosy.server.kinds.pods.security import containers_with_path

__all__ = ["validate_annotation_changes", "validate_pod_annotations", "validate_profiles_match"]

Object = dict[str, Any]

MIRROR = "kubernetes.io/config.mirror"
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"


def validate_pod_annotations(annotations: dict[str, str], spec: Object, path: str) -> list[FieldError]:
    errors = []
    if MIRROR in annotations and not spec.get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        errors.append(invalid(f"{path}[{MIRROR}]", annotations[MIRROR], detail))
    if annotations.get(_TOLERATIONS):
        errors += _tolerations(annotations[_TOLERATIONS], path)
    cost = annotations.get(_DELETION_COST)
    if cost is not None and not _is_int32(cost):
        errors.append(invalid(f"{path}[{_DELETION_COST}]", cost, "must be a 32bit integer"))
    names = {container.get("name") for container, _ in containers_with_path(spec, "spec")}
    for key, value in annotations.items():
        if key == _SECCOMP_POD or key.startswith(_SECCOMP_CONTAINER):
            errors += _seccomp(value, f"{path}.{key}")
        elif key.startswith(_APP_ARMOR):
            container = key.removeprefix(_APP_ARMOR)
            if container not in names:
                errors.append(invalid(f"{path}[{key}]", container, "container not found"))
            if value not in ("", "runtime/default", "unconfined") and not value.startswith("localhost/"):
                errors.append(invalid(f"{path}[{key}]", value, f'invalid AppArmor profile name: "{value}"'))
    return errors


def _tolerations(text: str, path: str) -> list[FieldError]:
    try:
        tolerations = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return [invalid(path, _TOLERATIONS, str(error))]
    if not isinstance(tolerations, list) or not all(isinstance(item, dict) for item in tolerations):
        return [invalid(path, _TOLERATIONS, "must be a list of tolerations")]
    if not all(
        isinstance(item.get(key, ""), str) for item in tolerations for key in ("key", "operator", "value", "effect")
    ):
        return [invalid(path, _TOLERATIONS, "must be a list of tolerations")]
    return validate_tolerations(tolerations, f"{path}.{_TOLERATIONS}")


def _is_int32(text: str) -> bool:
    """As Go reads the cost: a plain decimal, no plus sign and no leading zeros."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or (len(digits) > 1 and digits[0] == "0"):
        return False
    return -(2**31) <= int(text) < 2**31 if len(digits) <= 10 else False


def _seccomp(value: str, path: str) -> list[FieldError]:
    if value in ("runtime/default", "docker/default", "unconfined"):
        return []
    if value.startswith("localhost/"):
        return descending(value.removeprefix("localhost/"), path)
    return [invalid(path, value, "must be a valid seccomp profile")]


def validate_profiles_match(annotations: dict[str, str], spec: Object, path: str) -> list[FieldError]:
    """If a profile is given by annotation and by field, both must agree."""
    pod = spec.get("securityContext") or {}
    errors = []
    if _SECCOMP_POD in annotations and pod.get("seccompProfile") is not None:
        at = f"{path}.securityContext.seccompProfile"
        errors += _match(annotations[_SECCOMP_POD], pod["seccompProfile"], at, "seccomp")
    windows = (spec.get("os") or {}).get("name") == "windows"
    for container, at in containers_with_path(spec, path):
        own, name = container.get("securityContext") or {}, container.get("name", "")
        seccomp = annotations.get(_SECCOMP_CONTAINER + name)
        if seccomp is not None and own.get("seccompProfile") is not None:
            errors += _match(seccomp, own["seccompProfile"], f"{at}.securityContext.seccompProfile", "seccomp")
        armor = annotations.get(_APP_ARMOR + name)
        profile = own.get("appArmorProfile") or pod.get("appArmorProfile")
        if armor is not None and profile is not None and not windows:
            errors += _match(armor, profile, f"{at}.securityContext.appArmorProfile", "apparmor")
    return errors


def _match(annotation: str, profile: Object, path: str, what: str) -> list[FieldError]:
    expected = {"Unconfined": ("unconfined",), "RuntimeDefault": ("runtime/default", "docker/default")}
    kind = profile.get("type", "")
    local = annotation.startswith("localhost/")
    if (kind in expected and annotation not in expected[kind]) or (kind == "Localhost" and not local):
        return [forbidden(f"{path}.type", f"{what} type in annotation and field must match")]
    if kind == "Localhost" and annotation.removeprefix("localhost/") != profile.get("localhostProfile"):
        return [forbidden(f"{path}.localhostProfile", f"{what} profile in annotation and field must match")]
    return []


def validate_annotation_changes(new: dict[str, str], old: dict[str, str], path: str) -> list[FieldError]:
    """AppArmor and mirror annotations are immutable."""
    errors = []
    for key in old:
        if new.get(key) == old[key]:
            continue
        if key.startswith(_APP_ARMOR):
            errors.append(forbidden(f"{path}[{key}]", "may not remove or update AppArmor annotations"))
        if key == MIRROR:
            errors.append(forbidden(f"{path}[{key}]", "may not remove or update mirror pod annotation"))
    for key in new.keys() - old.keys():
        if key.startswith(_APP_ARMOR):
            errors.append(forbidden(f"{path}[{key}]", "may not add AppArmor annotations"))
        if key == MIRROR:
            errors.append(forbidden(f"{path}[{key}]", "may not add mirror pod annotation"))
    return errors
