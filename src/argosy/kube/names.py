"""Names: Kubernetes' rules for names, with kube-apiserver's messages.

Every rule returns a list of messages, empty if the value is valid; the caller knows the field. `generate` makes the random
suffix of a generateName.
"""

import ipaddress
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from argosy.kube import chance
from argosy.kube.hashing import ALPHABET

__all__ = [
    "RULES",
    "c_identifier_errors",
    "cidr_errors",
    "config_map_key_errors",
    "dns1035_label_errors",
    "dns_label_errors",
    "dns_subdomain_errors",
    "env_var_name_errors",
    "generate",
    "http_header_name_errors",
    "http_path_errors",
    "ip_errors",
    "label_value_errors",
    "path_segment_name_errors",
    "path_segment_prefix_errors",
    "percent_errors",
    "port_name_errors",
    "port_number_errors",
    "qualified_name_errors",
    "wildcard_dns_subdomain_errors",
]

_RANDOM_LENGTH: Final = 5
_MAX_GENERATED: Final = 63


class _Form:
    """A regular expression for a whole value, and the message for values that do not match."""

    def __init__(self, pattern: str, text: str, *examples: str) -> None:
        self.pattern = pattern
        self.matches = re.compile(pattern).fullmatch
        shown = " or ".join(f"'{example}', " for example in examples)
        self.message = f"{text} ({'e.g. ' if shown else ''}{shown}regex used for validation is '{pattern}')"

    def errors(self, value: str) -> list[str]:
        return [] if self.matches(value) else [self.message]


_ENDS: Final = "must start and end with an alphanumeric character"
_LABEL: Final = _Form(
    "[a-z0-9]([-a-z0-9]*[a-z0-9])?",
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and {_ENDS}",
    "my-name",
    "123-abc",
)
_SUBDOMAIN: Final = _Form(
    rf"{_LABEL.pattern}(\.{_LABEL.pattern})*",
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and {_ENDS}",
    "example.com",
)
_LABEL_1035: Final = _Form(
    "[a-z]([-a-z0-9]*[a-z0-9])?",
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character",
    "my-name",
    "abc-123",
)
_WILDCARD: Final = _Form(
    rf"\*\.{_SUBDOMAIN.pattern}",
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
    "*.example.com",
)
_QUALIFIED: Final = _Form(
    "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]",
    f"must consist of alphanumeric characters, '-', '_' or '.', and {_ENDS}",
    "MyName",
    "my.name",
    "123-abc",
)
_LABEL_VALUE: Final = _Form(
    f"({_QUALIFIED.pattern})?",
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and {_ENDS}",
    "MyValue",
    "my_value",
    "12345",
)
_C_IDENTIFIER: Final = _Form(
    "[A-Za-z_][A-Za-z0-9_]*",
    "a valid C identifier must start with alphabetic character or '_', "
    "followed by a string of alphanumeric characters or '_'",
    "my_name",
    "MY_NAME",
    "MyName",
)
_CONFIG_KEY: Final = _Form(
    "[-._a-zA-Z0-9]+",
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    "key.name",
    "KEY_NAME",
    "key-name",
)
_HEADER: Final = _Form(
    "[-A-Za-z0-9]+", "a valid HTTP header must consist of alphanumeric characters or '-'", "X-Header-Name"
)
_PERCENT: Final = _Form(
    "[0-9]+%", "a valid percent string must be a numeric string followed by an ending '%'", "1%", "93%"
)
_HTTP_PATH: Final = _Form(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", "Invalid path")
_is_printable = re.compile("[ -<>-~]*").fullmatch


def dns_label_errors(value: str) -> list[str]:
    """RFC 1123 label: namespaces, containers, ports' services."""
    errors = _LABEL.errors(value)
    return _too_long(value, 63) + (["must not contain dots"] if errors and _SUBDOMAIN.matches(value) else errors)


def dns_subdomain_errors(value: str) -> list[str]:
    """RFC 1123 subdomain: the name of most objects."""
    return _too_long(value, 253) + _SUBDOMAIN.errors(value)


def dns1035_label_errors(value: str) -> list[str]:
    """RFC 1035 label, which may not start with a digit: services before 1.34, CRD kinds."""
    return _too_long(value, 63) + _LABEL_1035.errors(value)


def wildcard_dns_subdomain_errors(value: str) -> list[str]:
    """`*.` and a subdomain: ingress hosts."""
    return _too_long(value, 253) + _WILDCARD.errors(value)


def qualified_name_errors(value: str) -> list[str]:
    """Keys of labels and annotations, names of resources: an optional subdomain and slash, then a name."""
    # Only values that could be valid are cached: a cache of external strings must stay small.
    return list(_remembered(value) if len(value) <= 317 else _qualified(value))


def _qualified(value: str) -> tuple[str, ...]:
    parts = value.split("/")
    if len(parts) > 2:
        return (
            f"a valid label key {_QUALIFIED.message} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
        )
    found: list[str] = []
    name = parts[-1]
    if len(parts) == 2:
        if not parts[0]:
            found.append("prefix part must be non-empty")
        else:
            found += [f"prefix part {message}" for message in _label_prefix(parts[0])]
    if not name:
        found.append("name part must be non-empty")
    elif _bytes(name) > 63:
        found.append("name part must be no more than 63 bytes")
    return (*found, *(f"name part {message}" for message in _QUALIFIED.errors(name)))


_remembered = lru_cache(maxsize=4096)(_qualified)


def _label_prefix(value: str) -> list[str]:
    """The subdomain rule for label keys: the length message counts bytes."""
    return [message.replace("253 characters", "253 bytes") for message in dns_subdomain_errors(value)]


def label_value_errors(value: str) -> list[str]:
    return ([] if _bytes(value) <= 63 else ["must be no more than 63 bytes"]) + _LABEL_VALUE.errors(value)


def path_segment_name_errors(value: str) -> list[str]:
    """Anything that is valid as one segment of a URL path: RBAC names, among others."""
    if value in (".", ".."):
        return [f"may not be '{value}'"]
    return path_segment_prefix_errors(value)


def path_segment_prefix_errors(value: str) -> list[str]:
    return [f"may not contain '{part}'" for part in ("/", "%") if part in value]


def c_identifier_errors(value: str) -> list[str]:
    return _C_IDENTIFIER.errors(value)


def env_var_name_errors(value: str) -> list[str]:
    """Names of environment variables, by the relaxed rule in force since 1.34."""
    if not value:
        return ["environment variable name must be non-empty"]
    if _is_printable(value):
        return []
    return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]


def config_map_key_errors(value: str) -> list[str]:
    """Keys of ConfigMaps and Secrets; they become file names."""
    found = _too_long(value, 253)
    if not _CONFIG_KEY.matches(value):
        return [*found, _CONFIG_KEY.message]
    if value in (".", ".."):
        return [*found, f"must not be '{value}'"]
    return [*found, "must not start with '..'"] if value.startswith("..") else found


def http_header_name_errors(value: str) -> list[str]:
    return _HEADER.errors(value)


def http_path_errors(value: str) -> list[str]:
    return _HTTP_PATH.errors(value)


def percent_errors(value: str) -> list[str]:
    return _PERCENT.errors(value)


def port_name_errors(value: str) -> list[str]:
    """IANA service name: at most 15 characters, with a letter."""
    found = _too_long(value, 15)
    if not re.fullmatch("[-a-z0-9]+", value):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", value):
        found.append("must contain at least one letter (a-z)")
    if "--" in value:
        found.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return found


def port_number_errors(value: int) -> list[str]:
    return [] if 1 <= value <= 65535 else ["must be between 1 and 65535, inclusive"]


def ip_errors(value: str) -> list[str]:
    try:
        _address(value)
    except ValueError:
        return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    return []


def cidr_errors(value: str) -> list[str]:
    address, slash, length = value.partition("/")
    wrong = ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]
    if not slash or not re.fullmatch("[0-9]{1,3}", length):
        return wrong
    try:
        bits = _address(address).max_prefixlen
    except ValueError:
        return wrong
    return [] if int(length) <= bits else wrong


def _address(value: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """An address as the older fields accept it: leading zeros are read as decimal, a zone is not allowed."""
    if "%" in value or len(value) > 64:
        raise ValueError(value)
    if re.fullmatch(r"[0-9]+(\.[0-9]+){3}", value, re.ASCII):
        return ipaddress.IPv4Address(".".join(str(int(part)) for part in value.split(".")))
    return ipaddress.IPv6Address(value)


#: The rules by the names `Strategy.name_rule` uses.
RULES: Final[Mapping[str, Callable[[str], list[str]]]] = {
    "subdomain": dns_subdomain_errors,
    "label": dns_label_errors,
    "label1035": dns1035_label_errors,
    "path": path_segment_name_errors,
}


def generate(prefix: str) -> str:
    """A name from a generateName: the prefix, cut so that all fits into 63 characters, and five random ones."""
    return prefix[: _MAX_GENERATED - _RANDOM_LENGTH] + chance.text(ALPHABET, _RANDOM_LENGTH)


def _bytes(value: str) -> int:
    return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))


def _too_long(value: str, maximum: int) -> list[str]:
    return [] if _bytes(value) <= maximum else [f"must be no more than {maximum} characters"]
