"""Resource lists: the allowed resource names in each place, amounts, and requests against limits.

Shared by containers, pods, quotas, limit ranges, nodes and volumes. `kube.quantity` parses quantities.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from argosy.kube import names, quantity
from argosy.kube.podresources import is_pod_level
from argosy.kube.quantity import Quantity, QuantityError, parse_or_zero
from argosy.server.fielderrors import FieldError, duplicate, forbidden, invalid, not_supported, required
from argosy.server.kinds.shared.meta_rules import dns_label, messages

__all__ = [
    "canonical_quantity",
    "canonical_resources",
    "container_resource_name",
    "is_extended",
    "is_huge_page",
    "is_overcommit_allowed",
    "quota_resource_name",
    "resource_name",
    "validate_quantity",
    "validate_requirements",
]

_NATIVE_PREFIX = "kubernetes.io/"
_REQUESTS_PREFIX = "requests."
_HUGE_PAGES = "hugepages-"

_CONTAINER = frozenset({"cpu", "memory", "ephemeral-storage"})
_COUNTED = frozenset(
    {
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)
STANDARD_QUOTA = (
    _CONTAINER
    | _COUNTED
    | {f"{side}.{name}" for side in ("requests", "limits") for name in _CONTAINER}
    | {"requests.storage"}
)
_STANDARD = STANDARD_QUOTA | {"storage"}


def canonical_quantity(value: Any) -> str:
    """A quantity as Kubernetes writes it, no finer than a thousandth; an unreadable one is left to validation."""
    try:
        parsed = quantity.parse(value)
    except QuantityError:
        return value if isinstance(value, str) else str(value)
    rounded = Quantity.from_milli(parsed.milli(), parsed.format)
    return str(parsed if rounded == parsed else rounded)


def canonical_resources(resources: dict[str, Any] | None) -> None:
    for name, value in (resources or {}).items():
        resources[name] = canonical_quantity(value)  # type: ignore[index]


def is_huge_page(name: str) -> bool:
    return name.startswith(_HUGE_PAGES)


def is_native(name: str) -> bool:
    return "/" not in name or _NATIVE_PREFIX in name


def is_extended(name: str) -> bool:
    if is_native(name) or name.startswith(_REQUESTS_PREFIX):
        return False
    return not names.qualified_name_errors(_REQUESTS_PREFIX + name)


def is_overcommit_allowed(name: str) -> bool:
    return is_native(name) and not is_huge_page(name)


def is_standard_quota(name: str) -> bool:
    return name in STANDARD_QUOTA or name.startswith((_HUGE_PAGES, _REQUESTS_PREFIX + _HUGE_PAGES))


def resource_name(name: str, path: str) -> list[FieldError]:
    if name in _STANDARD:
        return []
    errors = messages(name, path, names.qualified_name_errors(name))
    if errors:
        return errors
    if "/" not in name and not (name in _STANDARD or is_standard_quota(name)):
        return [invalid(path, name, "must be a standard resource type or fully qualified")]
    return []


def container_resource_name(name: str, path: str) -> list[FieldError]:
    if name in _CONTAINER:
        return []
    errors = resource_name(name, path)
    if "/" not in name:
        if name not in _CONTAINER and not is_huge_page(name):
            errors.append(invalid(path, name, "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        errors.append(invalid(path, name, "doesn't follow extended resource name standard"))
    return errors


def pod_resource_name(name: str, path: str) -> list[FieldError]:
    errors = resource_name(name, path)
    if not errors and not is_pod_level(name):
        errors.append(not_supported(path, name, ["cpu", "hugepages-", "memory"]))
    return errors


def quota_resource_name(name: str, path: str) -> list[FieldError]:
    errors = resource_name(name, path)
    if "/" not in name and not is_standard_quota(name):
        errors.append(invalid(path, name, "must be a standard resource for quota"))
    return errors


def validate_quantity(name: str, value: Any, path: str) -> list[FieldError]:
    """An amount of a named resource: not negative, and whole where the resource is counted."""
    try:
        parsed = quantity.parse(value)
    except QuantityError as error:
        return [invalid(path, value, str(error))]
    errors = []
    if parsed < quantity.ZERO:
        errors.append(invalid(path, str(parsed), "must be greater than or equal to 0"))
    if (name in _COUNTED or is_extended(name)) and parsed.milli() % 1000:
        errors.append(invalid(path, str(parsed), "must be an integer"))
    return errors


def validate_requirements(
    requirements: Mapping[str, Any],
    path: str,
    *,
    claim_names: Collection[str] = (),
    name_rule: Callable[[str, str], list[FieldError]] = container_resource_name,
) -> list[FieldError]:
    """Limits, requests and claims of a container or (with another `name_rule`) of a pod."""
    limits, requests = requirements.get("limits") or {}, requirements.get("requests") or {}
    errors = []
    for name, value in limits.items():
        at = f"{path}.limits[{name}]"
        errors += name_rule(name, at) + validate_quantity(name, value, at) + _huge_page(name, value, at)
    for name, value in requests.items():
        at = f"{path}.requests[{name}]"
        errors += name_rule(name, at) + validate_quantity(name, value, at)
        errors += _against_limit(name, value, limits, path)
        errors += _huge_page(name, value, at)
    used = {*limits, *requests}
    if any(map(is_huge_page, used)) and not used & {"cpu", "memory"}:
        errors.append(forbidden(path, "HugePages require cpu or memory"))
    return errors + _claims(requirements.get("claims") or [], f"{path}.claims", claim_names)


def _against_limit(name: str, value: Any, limits: Mapping[str, Any], path: str) -> list[FieldError]:
    if name not in limits:
        if is_overcommit_allowed(name):
            return []
        return [required(f"{path}.limits", "Limit must be set for non overcommitable resources")]
    requested, limit = parse_or_zero(value), parse_or_zero(limits[name])
    at = f"{path}.requests"
    if requested != limit and not is_overcommit_allowed(name):
        return [invalid(at, str(requested), f"must be equal to {name} limit of {limit}")]
    if requested > limit:
        return [invalid(at, str(requested), f"must be less than or equal to {name} limit of {limit}")]
    return []


def _huge_page(name: str, value: Any, path: str) -> list[FieldError]:
    if not is_huge_page(name):
        return []
    size, asked = parse_or_zero(name.removeprefix(_HUGE_PAGES)), parse_or_zero(value)
    if size.value() > 0 and size.milli() % 1000 == 0 and asked.value() % size.value() == 0:
        return []
    return [invalid(path, str(asked), f"{asked} is not positive integer multiple of {name}")]


def _claims(claims: list[dict[str, Any]], path: str, claim_names: Collection[str]) -> list[FieldError]:
    errors = []
    whole: set[str] = set()
    parts: set[tuple[str, str]] = set()
    for i, claim in enumerate(claims):
        at, name, request = f"{path}[{i}]", claim.get("name", ""), claim.get("request", "")
        if not name:
            errors.append(required(at))
            continue
        if request and name not in whole:
            errors += dns_label(request, f"{at}.request")
        if name in whole or (not request and any(known == name for known, _ in parts)):
            errors.append(duplicate(at, name))
        elif (name, request) in parts:
            errors.append(duplicate(at, f"{name}/{request}"))
        if request:
            parts.add((name, request))
        else:
            whole.add(name)
        if name not in claim_names:
            listed = f": {', '.join(sorted(claim_names))}" if claim_names else " which is empty"
            detail = f"must be one of the names in pod.spec.resourceClaims{listed}"
            errors.append(FieldError("FieldValueNotFound", at, name, detail))
    return errors
