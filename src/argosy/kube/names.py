"""Names: what may be called what, with the messages kube-apiserver gives for the rest.

Every rule returns a list of messages, empty when the value is fine; the caller knows the field. `generate` makes the
random tail of a generateName.
"""

import ipaddress
import re
import secrets
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from argosy.kube.hashing import ALPHABET

__all__ = [
    "RULES",
    "c_identifier",
    "config_map_key",
    "dns1035_label",
    "dns_label",
    "dns_subdomain",
    "env_var_name",
    "generate",
    "http_header_name",
    "http_path",
    "is_cidr",
    "is_ip",
    "label_value",
    "path_segment_name",
    "path_segment_prefix",
    "percent",
    "port_name",
    "port_number",
    "qualified_name",
    "wildcard_dns_subdomain",
]

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_WILDCARD = rf"\*\.{_SUBDOMAIN}"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_QUALIFIED})?"
_C_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_HEADER = "[-A-Za-z0-9]+"
_PERCENT = "[0-9]+%"
_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"

_NAME_PART = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_RANDOM_LENGTH: Final = 5
_MAX_GENERATED: Final = 63

_is_label = re.compile(_LABEL).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_is_label_1035 = re.compile(_LABEL_1035).fullmatch
_is_wildcard = re.compile(_WILDCARD).fullmatch
_is_qualified = re.compile(_QUALIFIED).fullmatch
_is_label_value = re.compile(_LABEL_VALUE).fullmatch
_is_c_identifier = re.compile(_C_IDENTIFIER).fullmatch
_is_config_key = re.compile(_CONFIG_KEY).fullmatch
_is_header = re.compile(_HEADER).fullmatch
_is_percent = re.compile(_PERCENT).fullmatch
_is_http_path = re.compile(_HTTP_PATH).fullmatch
_is_printable = re.compile("[ -<>-~]*").fullmatch


def dns_label(value: str) -> list[str]:
    """RFC 1123 label: namespaces, containers, ports' services."""
    found = _too_long(value, 63)
    if _is_label(value):
        return found
    if _is_subdomain(value):
        return [*found, "must not contain dots"]
    text = (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
        "and must start and end with an alphanumeric character"
    )
    return [*found, _regex(text, _LABEL, "my-name", "123-abc")]


def dns_subdomain(value: str) -> list[str]:
    """RFC 1123 subdomain: the name of most objects."""
    found = _too_long(value, 253)
    if _is_subdomain(value):
        return found
    text = (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
        "and must start and end with an alphanumeric character"
    )
    return [*found, _regex(text, _SUBDOMAIN, "example.com")]


def dns1035_label(value: str) -> list[str]:
    """RFC 1035 label, which may not start with a digit: services before 1.34, CRD kinds."""
    found = _too_long(value, 63)
    if _is_label_1035(value):
        return found
    text = (
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
        "character, and end with an alphanumeric character"
    )
    return [*found, _regex(text, _LABEL_1035, "my-name", "abc-123")]


def wildcard_dns_subdomain(value: str) -> list[str]:
    """`*.` and a subdomain: ingress hosts."""
    found = _too_long(value, 253)
    if _is_wildcard(value):
        return found
    text = (
        "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
        "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character"
    )
    return [*found, _regex(text, _WILDCARD, "*.example.com")]


def qualified_name(value: str) -> list[str]:
    """Keys of labels and annotations, names of resources: an optional subdomain and slash, then a name."""
    # Only what could be valid is remembered: a cache of strings from outside must stay small.
    return list(_remembered(value) if len(value) <= 317 else _qualified(value))


def _qualified(value: str) -> tuple[str, ...]:
    name_part = _regex(_NAME_PART, _QUALIFIED, "MyName", "my.name", "123-abc")
    parts = value.split("/")
    if len(parts) > 2:
        return (
            f"a valid label key {name_part} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
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
    if not _is_qualified(name):
        found.append(f"name part {name_part}")
    return tuple(found)


_remembered = lru_cache(maxsize=4096)(_qualified)


def _label_prefix(value: str) -> list[str]:
    """Subdomain rule as label keys apply it: the length is spoken of in bytes."""
    return [message.replace("253 characters", "253 bytes") for message in dns_subdomain(value)]


def label_value(value: str) -> list[str]:
    found = [] if _bytes(value) <= 63 else ["must be no more than 63 bytes"]
    if _is_label_value(value):
        return found
    text = (
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
        "and must start and end with an alphanumeric character"
    )
    return [*found, _regex(text, _LABEL_VALUE, "MyValue", "my_value", "12345")]


def path_segment_name(value: str) -> list[str]:
    """Anything that survives as one segment of a URL: RBAC names, among others."""
    if value in (".", ".."):
        return [f"may not be '{value}'"]
    return path_segment_prefix(value)


def path_segment_prefix(value: str) -> list[str]:
    return [f"may not contain '{part}'" for part in ("/", "%") if part in value]


def c_identifier(value: str) -> list[str]:
    if _is_c_identifier(value):
        return []
    text = (
        "a valid C identifier must start with alphabetic character or '_', "
        "followed by a string of alphanumeric characters or '_'"
    )
    return [_regex(text, _C_IDENTIFIER, "my_name", "MY_NAME", "MyName")]


def env_var_name(value: str) -> list[str]:
    """Names of environment variables, by the relaxed rule in force since 1.34."""
    if not value:
        return ["environment variable name must be non-empty"]
    if _is_printable(value):
        return []
    return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]


def config_map_key(value: str) -> list[str]:
    """Keys of ConfigMaps and Secrets; they become file names."""
    found = _too_long(value, 253)
    if not _is_config_key(value):
        text = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        return [*found, _regex(text, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name")]
    if value in (".", ".."):
        return [*found, f"must not be '{value}'"]
    return [*found, "must not start with '..'"] if value.startswith("..") else found


def http_header_name(value: str) -> list[str]:
    if _is_header(value):
        return []
    return [_regex("a valid HTTP header must consist of alphanumeric characters or '-'", _HEADER, "X-Header-Name")]


def http_path(value: str) -> list[str]:
    return [] if _is_http_path(value) else [_regex("Invalid path", _HTTP_PATH)]


def percent(value: str) -> list[str]:
    if _is_percent(value):
        return []
    return [_regex("a valid percent string must be a numeric string followed by an ending '%'", _PERCENT, "1%", "93%")]


def port_name(value: str) -> list[str]:
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


def port_number(value: int) -> list[str]:
    return [] if 1 <= value <= 65535 else ["must be between 1 and 65535, inclusive"]


def is_ip(value: str) -> list[str]:
    try:
        _address(value)
    except ValueError:
        return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    return []


def is_cidr(value: str) -> list[str]:
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
    "subdomain": dns_subdomain,
    "label": dns_label,
    "label1035": dns1035_label,
    "path": path_segment_name,
}


def generate(prefix: str) -> str:
    """A name from a generateName: the prefix, cut so that all fits into 63 characters, and five random ones."""
    tail = "".join(secrets.choice(ALPHABET) for _ in range(_RANDOM_LENGTH))
    return prefix[: _MAX_GENERATED - _RANDOM_LENGTH] + tail


def _bytes(value: str) -> int:
    return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))


def _too_long(value: str, maximum: int) -> list[str]:
    return [] if _bytes(value) <= maximum else [f"must be no more than {maximum} characters"]


def _regex(text: str, pattern: str, *examples: str) -> str:
    if not examples:
        return f"{text} (regex used for validation is '{pattern}')"
    quoted = " or ".join(f"'{example}', " for example in examples)
    return f"{text} (e.g. {quoted}regex used for validation is '{pattern}')"
