"""Names made after sources."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.api.names import (
    derived_service_name,
    federated_name,
    imported_slice_name,
    limit,
    source_cluster_label_value,
)


@pytest.mark.parametrize(
    ("source", "type_config", "name"),
    [
        ("web", "deployments.apps", "web-deployments.apps"),
        ("Team_A:cfg", "configmaps", "team.a.cfg-configmaps-3665524254"),
        (
            "system::leader",
            "roles.rbac.authorization.k8s.io",
            "system.leader-roles.rbac.authorization.k8s.io-3096583869",
        ),
    ],
)
def test_names_follow_the_rule_to_the_byte(source, type_config, name):
    assert federated_name(source, type_config) == name


def test_other_names():
    assert imported_slice_name("m1", "web-x") == "imported-m1-web-x"
    assert derived_service_name("web") == "derived-web-services"
    assert source_cluster_label_value("m1") == "m1"
    assert len(source_cluster_label_value("m" * 64)) == 63


@given(source=st.text(min_size=1, max_size=300))
def test_a_name_is_legal_inside_and_never_too_long(source):
    name = federated_name(source, "configmaps")
    assert len(name) <= 253
    assert re.fullmatch(r"[a-z0-9.-]+", name)
    assert ".." not in name


@given(one=st.text(alphabet="aA_:.", min_size=1, max_size=6), other=st.text(alphabet="aA_:.", min_size=1, max_size=6))
def test_different_sources_get_different_names(one, other):
    assert (federated_name(one, "x") == federated_name(other, "x")) == (one == other)


@given(text=st.text(alphabet="abc", max_size=100), length=st.integers(20, 63))
def test_a_name_within_the_limit_is_left_alone(text, length):
    assert (limit(text, length) == text) == (len(text) <= length)
    assert len(limit(text, length)) <= length
