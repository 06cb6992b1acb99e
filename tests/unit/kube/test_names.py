from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.kube import names
from argosy.kube.hashing import ALPHABET

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
    "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
NAME_PART = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.mark.parametrize(
    ("rule", "value", "messages"),
    [
        (names.dns_subdomain, "a.b-c.9", []),
        (names.dns_subdomain, "A", [SUBDOMAIN]),
        (names.dns_subdomain, "a\n", [SUBDOMAIN]),
        (names.dns_subdomain, "a" * 254, ["must be no more than 253 characters"]),
        (names.dns_label, "a-b", []),
        (names.dns_label, "a.b", ["must not contain dots"]),
        (names.dns_label, "-a", [LABEL]),
        (names.dns_label, "a" * 64, ["must be no more than 63 characters"]),
        (names.dns1035_label, "a1", []),
        (names.qualified_name, "example.com/My.name_1", []),
        (names.qualified_name, "/a", ["prefix part must be non-empty"]),
        (names.qualified_name, "", ["name part must be non-empty", NAME_PART]),
        (names.qualified_name, "a" * 64, ["name part must be no more than 63 bytes"]),
        (names.qualified_name, "A/b", [f"prefix part {SUBDOMAIN}"]),
        (names.label_value, "", []),
        (names.label_value, "x" * 64, ["must be no more than 63 bytes"]),
        (names.path_segment_name, "system:node", []),
        (names.path_segment_name, "..", ["may not be '..'"]),
        (names.path_segment_name, "a/%", ["may not contain '/'", "may not contain '%'"]),
        (names.port_name, "http-2", []),
        (names.port_name, "80", ["must contain at least one letter (a-z)"]),
        (names.port_name, "-a--b", ["must not contain consecutive hyphens", "must not begin or end with a hyphen"]),
        (names.port_name, "a" * 16, ["must be no more than 15 characters"]),
        (names.env_var_name, "1 odd-name", []),
        (names.env_var_name, "", ["environment variable name must be non-empty"]),
        (
            names.env_var_name,
            "a=b",
            ["a valid environment variable name must consist only of printable ASCII characters other than '='"],
        ),
        (names.config_map_key, "a.b_c", []),
        (names.config_map_key, "..a", ["must not start with '..'"]),
        (names.config_map_key, "..", ["must not be '..'"]),
        (names.percent, "50%", []),
        (names.is_ip, "10.0.0.1", []),
        (names.is_ip, "010.0.0.1", []),
        (names.is_ip, "::ffff:1.2.3.4", []),
        (names.is_ip, "10.0.0", ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]),
        (names.is_ip, "fe80::1%eth0", ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]),
        (names.is_cidr, "10.0.0.5/8", []),
        (names.is_cidr, "10.0.0.0/33", ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]),
        (names.is_cidr, "10.0.0.0", ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]),
    ],
)
def test_rules_answer_in_kube_apiservers_words(
    rule: Callable[[str], list[str]], value: str, messages: list[str]
) -> None:
    assert rule(value) == messages


@pytest.mark.parametrize(
    ("rule", "value", "start"),
    [
        (names.dns1035_label, "1a", "a DNS-1035 label must consist of"),
        (names.wildcard_dns_subdomain, "a.b", "a wildcard DNS-1123 subdomain must start with '*.'"),
        (names.qualified_name, "a/b/c", "a valid label key must consist of"),
        (names.label_value, "a b", "a valid label must be an empty string"),
        (names.c_identifier, "1a", "a valid C identifier must start"),
        (names.config_map_key, "a b", "a valid config key must consist of"),
        (names.http_header_name, "a b", "a valid HTTP header must consist of"),
        (names.percent, "50", "a valid percent string must be"),
        (names.http_path, "a b", "Invalid path (regex used for validation is"),
    ],
)
def test_other_refusals(rule: Callable[[str], list[str]], value: str, start: str) -> None:
    (message,) = rule(value)
    assert message.startswith(start)


def test_port_numbers() -> None:
    assert names.port_number(1) == names.port_number(65535) == []
    assert names.port_number(0) == names.port_number(65536) == ["must be between 1 and 65535, inclusive"]


@given(st.from_regex("[a-z]{0,80}-", fullmatch=True))
def test_generated_names_fit_and_begin_with_the_prefix(prefix: str) -> None:
    name = names.generate(prefix)
    assert len(name) == min(len(prefix), 58) + 5
    assert name.startswith(prefix[:58])
    assert set(name[-5:]) <= set(ALPHABET)


def test_generated_names_differ() -> None:
    assert len({names.generate("web-") for _ in range(200)}) > 190
