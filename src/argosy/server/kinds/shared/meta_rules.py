"""Small rules many kinds share: names, labels, selectors, numbers, ports, addresses, immutability.

Each takes a value and its path and returns field errors in kube-apiserver's words; none is specific to a kind. The server core
validates object metadata (metadata.name, labels, owner references), not this module.
"""

import ipaddress
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any

from argosy.kube import names
from argosy.server.fielderrors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    shown,
    too_long,
)

__all__ = [
    "NOT_AN_OPERATOR",
    "annotations",
    "cidr",
    "differences",
    "dns_label",
    "dns_subdomain",
    "dual_stack",
    "immutable",
    "inclusive_range",
    "ip",
    "label_name",
    "label_selector",
    "labels",
    "messages",
    "nonnegative",
    "one_of",
    "port_num_or_name",
    "port_number",
    "positive",
    "qualified_name",
    "same",
    "segments",
    "selector_values",
]

MAX_ANNOTATIONS_BYTES = 256 * 1024
MAX_INT32 = 2**31 - 1
IMMUTABLE = "field is immutable"


def messages(value: Any, path: str, found: Collection[str]) -> list[FieldError]:
    """One Invalid per message about a value."""
    if not found:
        return []
    return [invalid(path, value, message) for message in found]


def dns_label(value: str, path: str) -> list[FieldError]:
    return messages(value, path, names.dns_label_errors(value))


def dns_subdomain(value: str, path: str) -> list[FieldError]:
    return messages(value, path, names.dns_subdomain_errors(value))


def segments(reference: Mapping[str, Any], path: str, fields: Iterable[str]) -> list[FieldError]:
    """Required parts of a reference, each valid as a segment of a URL path."""
    errors = []
    for field in fields:
        value = reference.get(field) or ""
        if not value:
            errors.append(required(f"{path}.{field}"))
        else:
            errors += messages(value, f"{path}.{field}", names.path_segment_name_errors(value))
    return errors


def qualified_name(value: str, path: str) -> list[FieldError]:
    return messages(value, path, names.qualified_name_errors(value))


#: Label keys are qualified names; the name says which rule is meant.
label_name = qualified_name


def labels(value: Mapping[str, str] | None, path: str) -> list[FieldError]:
    """A map used as labels or as an equality selector."""
    errors = []
    for key, text in (value or {}).items():
        errors += messages(key, path, names.qualified_name_errors(key))
        errors += messages(text, path, names.label_value_errors(text))
    return errors


def annotations(value: Mapping[str, str] | None, path: str) -> list[FieldError]:
    errors = []
    size = 0
    for key, text in (value or {}).items():
        errors += messages(key, path, names.qualified_name_errors(key.lower()))
        size += len(key.encode()) + len(text.encode())
    if size > MAX_ANNOTATIONS_BYTES:
        errors.append(too_long(path, MAX_ANNOTATIONS_BYTES))
    return errors


#: Of a requirement on labels, those of nodes included.
NOT_AN_OPERATOR = "not a valid selector operator"


def label_selector(selector: Mapping[str, Any] | None, path: str) -> list[FieldError]:
    """A LabelSelector object."""
    if not selector:
        return []
    errors = labels(selector.get("matchLabels"), f"{path}.matchLabels")
    for i, requirement in enumerate(selector.get("matchExpressions") or ()):
        errors += _selector_requirement(requirement, f"{path}.matchExpressions[{i}]")
    return errors


def selector_values(requirement: Mapping[str, Any], path: str) -> list[FieldError]:
    """Whether a requirement's operator is one of label selectors, and has the values it needs."""
    operator, values = requirement.get("operator", ""), requirement.get("values") or []
    if operator in ("In", "NotIn"):
        wanted = "must be specified when `operator` is 'In' or 'NotIn'"
        return [] if values else [required(f"{path}.values", wanted)]
    if operator in ("Exists", "DoesNotExist"):
        unwanted = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        return [forbidden(f"{path}.values", unwanted)] if values else []
    return [invalid(f"{path}.operator", operator, NOT_AN_OPERATOR)]


def _selector_requirement(requirement: Mapping[str, Any], path: str) -> list[FieldError]:
    errors = selector_values(requirement, path)
    values = requirement.get("values") or []
    errors += label_name(requirement.get("key", ""), f"{path}.key")
    for i, value in enumerate(values):
        errors += messages(value, f"{path}.values[{i}]", names.label_value_errors(value))
    return errors


def one_of(value: str, path: str, supported: Sequence[str]) -> list[FieldError]:
    """A required choice; the message lists the choices in the given order."""
    if not value:
        return [required(path)]
    return [] if value in supported else [not_supported(path, value, list(supported))]


def nonnegative(value: int, path: str) -> list[FieldError]:
    return [invalid(path, value, "must be greater than or equal to 0")] if value < 0 else []


def positive(value: int, path: str) -> list[FieldError]:
    return [invalid(path, value, "must be greater than zero")] if value <= 0 else []


def inclusive_range(value: int, path: str, low: int, high: int) -> list[FieldError]:
    if low <= value <= high:
        return []
    return [invalid(path, value, f"must be between {low} and {high}, inclusive")]


def port_number(value: int, path: str) -> list[FieldError]:
    return messages(value, path, names.port_number_errors(value))


def port_num_or_name(value: int | str, path: str) -> list[FieldError]:
    if isinstance(value, int):
        return port_number(value, path)
    return messages(value, path, names.port_name_errors(value))


def immutable(new: Any, old: Any, path: str) -> list[FieldError]:
    return [] if same(new, old) else [invalid(path, new, IMMUTABLE)]


def same(new: Any, old: Any) -> bool:
    """Equality in which an absent field, null, "" and an empty list or map are the same, as in Kubernetes."""
    return bool(new == old or _trimmed(new) == _trimmed(old))


def differences(new: Mapping[str, Any], old: Mapping[str, Any]) -> str:
    """The fields that differ, old value above new, for the message of a refused change."""
    changed = [name for name in sorted({*new, *old}) if not same(new.get(name), old.get(name))]
    pairs = ((f'- "{name}": {shown(old.get(name))}', f'+ "{name}": {shown(new.get(name))}') for name in changed)
    return "\n".join(line for pair in pairs for line in pair)


def _trimmed(value: Any) -> Any:
    if isinstance(value, dict):
        trimmed = {key: _trimmed(item) for key, item in value.items()}
        return {key: item for key, item in trimmed.items() if item is not None} or None
    if isinstance(value, list):
        return [_trimmed(item) for item in value] or None
    return None if value == "" else value


def ip(value: str, path: str, *, known: Collection[str] = ()) -> list[FieldError]:
    """An address; previous ones (`known`) are kept even if today's stricter rule would refuse them."""
    if value in known:
        return []
    wrong = names.ip_errors(value)
    if not wrong:
        wrong = _strict_address(value, "must not have leading 0s", "must not be an IPv4-mapped IPv6 address")
    return messages(value, path, wrong)


def cidr(value: str, path: str, *, known: Collection[str] = ()) -> list[FieldError]:
    if value in known:
        return []
    wrong = names.cidr_errors(value)
    if not wrong:
        address, _, length = value.partition("/")
        zeros, mapped = "must not have leading 0s in IP or prefix length", "must not have an IPv4-mapped IPv6 address"
        wrong = [zeros] if length != str(int(length)) else _strict_address(address, zeros, mapped)
        if not wrong and ipaddress.ip_interface(value).network.network_address != ipaddress.ip_address(address):
            wrong = ["must not have bits set beyond the prefix length"]
    return messages(value, path, wrong)


def _strict_address(value: str, zeros: str, mapped: str) -> list[str]:
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        return [zeros]
    return [mapped] if address.version == 6 and address.ipv4_mapped is not None else []


def dual_stack(values: Collection[str], parse: Callable[[str], Any] = ipaddress.ip_address) -> bool:
    """At most two addresses or networks, of different families."""
    try:
        families = [parse(value).version for value in values]
    except ValueError:
        return False
    return len(families) <= 2 and len(set(families)) == len(families)


def repeated(values: Iterable[Hashable]) -> list[bool]:
    """For each value whether it occurred before."""
    seen: set[Hashable] = set()
    found = []
    for value in values:
        found.append(value in seen)
        seen.add(value)
    return found


def unique(values: Iterable[str], path: str) -> list[FieldError]:
    """One Duplicate for every value that occurred before."""
    seen: set[str] = set()
    errors = []
    for i, value in enumerate(values):
        if value in seen:
            errors.append(duplicate(f"{path}[{i}]", value))
        seen.add(value)
    return errors
