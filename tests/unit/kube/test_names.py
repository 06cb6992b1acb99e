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
        (names.dns_subdomain_errors, "a.b-c.9", []),
        (names.dns_subdomain_errors, "A", [SUBDOMAIN]),
        (names.dns_subdomain_errors, "a\n", [SUBDOMAIN]),
        (names.dns_subdomain_errors, "a" * 254, ["must be no more than 253 characters"]),
        (names.dns_label_errors, "a-b", []),
        (names.dns_label_errors, "a.b", ["must not contain dots"]),
        (names.dns_label_errors, "-a", [LABEL]),
        (names.dns_label_errors, "a" * 64, ["must be no more than 63 characters"]),
        (names.dns1035_label_errors, "a1", []),
        (names.qualified_name_errors, "example.com/My.name_1", []),
        (names.qualified_name_errors, "/a", ["prefix part must be non-empty"]),
        (names.qualified_name_errors, "", ["name part must be non-empty", NAME_PART]),
        (names.qualified_name_errors, "a" * 64, ["name part must be no more than 63 bytes"]),
        (names.qualified_name_errors, "A/b", [f"prefix part {SUBDOMAIN}"]),
        (names.label_value_errors, "", []),
        (names.label_value_errors, "x" * 64, ["must be no more than 63 bytes"]),
        (names.path_segment_name_errors, "system:node", []),
        (names.path_segment_name_errors, "..", ["may not be '..'"]),
        (names.path_segment_name_errors, "a/%", ["may not contain '/'", "may not contain '%'"]),
        (names.port_name_errors, "http-2", []),
        (names.port_name_errors, "80", ["must contain at least one letter (a-z)"]),
        (
            names.port_name_errors,
            "-a--b",
            ["must not contain consecutive hyphens", "must not begin or end with a hyphen"],
        ),
        (names.port_name_errors, "a" * 16, ["must be no more than 15 characters"]),
        (names.env_var_name_errors, "1 odd-name", []),
        (names.env_var_name_errors, "", ["environment variable name must be non-empty"]),
        (
            names.env_var_name_errors,
            "a=b",
            ["a valid environment variable name must consist only of printable ASCII characters other than '='"],
        ),
        (names.config_map_key_errors, "a.b_c", []),
        (names.config_map_key_errors, "..a", ["must not start with '..'"]),
        (names.config_map_key_errors, "..", ["must not be '..'"]),
        (names.percent_errors, "50%", []),
        (names.ip_errors, "10.0.0.1", []),
        (names.ip_errors, "010.0.0.1", []),
        (names.ip_errors, "::ffff:1.2.3.4", []),
        (names.ip_errors, "10.0.0", ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]),
        (names.ip_errors, "fe80::1%eth0", ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]),
        (names.cidr_errors, "10.0.0.5/8", []),
        (names.cidr_errors, "10.0.0.0/33", ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]),
        (names.cidr_errors, "10.0.0.0", ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]),
    ],
)
def test_rules_answer_in_kube_apiservers_words(
    rule: Callable[[str], list[str]], value: str, messages: list[str]
) -> None:
    assert rule(value) == messages


@pytest.mark.parametrize(
    ("rule", "value", "start"),
    [
        (names.dns1035_label_errors, "1a", "a DNS-1035 label must consist of"),
        (names.wildcard_dns_subdomain_errors, "a.b", "a wildcard DNS-1123 subdomain must start with '*.'"),
        (names.qualified_name_errors, "a/b/c", "a valid label key must consist of"),
        (names.label_value_errors, "a b", "a valid label must be an empty string"),
        (names.c_identifier_errors, "1a", "a valid C identifier must start"),
        (names.config_map_key_errors, "a b", "a valid config key must consist of"),
        (names.http_header_name_errors, "a b", "a valid HTTP header must consist of"),
        (names.percent_errors, "50", "a valid percent string must be"),
        (names.http_path_errors, "a b", "Invalid path (regex used for validation is"),
    ],
)
def test_other_refusals(rule: Callable[[str], list[str]], value: str, start: str) -> None:
    (message,) = rule(value)
    assert message.startswith(start)


def test_port_numbers() -> None:
    assert names.port_number_errors(1) == names.port_number_errors(65535) == []
    assert names.port_number_errors(0) == names.port_number_errors(65536) == ["must be between 1 and 65535, inclusive"]


@given(st.from_regex("[a-z]{0,80}-", fullmatch=True))
def test_generated_names_fit_and_begin_with_the_prefix(prefix: str) -> None:
    name = names.generate(prefix)
    assert len(name) == min(len(prefix), 58) + 5
    assert name.startswith(prefix[:58])
    assert set(name[-5:]) <= set(ALPHABET)


def test_generated_names_differ() -> None:
    assert len({names.generate("web-") for _ in range(200)}) > 190
