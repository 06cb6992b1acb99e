"""The table of what is accepted and has no effect, as Argosy's own API server evaluates it; `tests/real` has it in CEL."""

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.api import crds, keys, rights, typeconfigs
from argosy.api.admission import caveats
from argosy.api.admission.caveats import TABLE, told
from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.fleet.katalyst import PLUGIN
from argosy.kube import duration
from argosy.server.crd.validation import compile_schema
from tests.harness.caveats import EXAMPLES, PLAIN

SCHEMAS = {
    manifest["spec"]["names"]["kind"]: manifest["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for manifest in crds.manifests()
}
CONFIGS = [msgspec.convert(each, FederatedTypeConfig) for each in typeconfigs.manifests()]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.text)
def test_what_has_no_effect_is_told_once(example):
    [text] = told(example.resource, example.body)
    assert example.text in text


def test_every_row_has_an_example():
    found = {text for example in EXAMPLES for text in told(example.resource, example.body)}
    assert {row.text for row in TABLE} == found


@pytest.mark.parametrize("example", PLAIN, ids=lambda example: example.resource.kind)
def test_what_has_an_effect_is_told_by_nobody(example):
    assert told(example.resource, example.body) == []


@pytest.mark.parametrize("example", [*EXAMPLES, *PLAIN], ids=lambda example: example.text)
def test_the_examples_are_valid_objects(example):
    schema = SCHEMAS.get(example.resource.kind)
    if schema is not None:
        assert not compile_schema(schema)(example.body)


def test_texts_differ_and_are_short_enough_for_a_header():
    told_of = [(row.text, row.of) for row in TABLE]
    assert len(set(told_of)) == len(told_of)
    assert all(len(row.text) < 256 for row in TABLE)


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(example=st.sampled_from(EXAMPLES), value=anything)
def test_whatever_is_written_there_is_an_answer(example, value):
    for field in ("spec", "metadata"):
        body: dict[str, Any] = {**example.body, field: value}
        assert isinstance(told(example.resource, body), list)


@given(st.text("0123456789.smhun+- ", max_size=8))
def test_a_duration_is_what_the_controllers_take_for_one(text):
    try:
        duration.parse(text)
    except ValueError:
        assert re.fullmatch(caveats._DURATION, text) is None
    else:
        assert re.fullmatch(caveats._DURATION, text)


def test_the_plugin_is_the_one_there_is():
    assert re.fullmatch(caveats._KATALYST, f'["{PLUGIN}"]')


def test_the_controllers_and_kubernetes_are_not_warned():
    subjects = [rights.SERVICE_ACCOUNT, rights.user("jane"), {"kind": "Group", "name": "robots"}]
    assert caveats.is_warned("john", ("system:masters",), subjects)
    for user in (
        "jane",
        rights.username(rights.SERVICE_ACCOUNT),
        "system:serviceaccount:kube-system:namespace-controller",
    ):
        assert not caveats.is_warned(user, (), subjects), user
    assert not caveats.is_warned("john", ("robots",), subjects)


def test_the_policy_warns_and_refuses_nothing():
    policy, binding = caveats.manifests(CONFIGS, [rights.SERVICE_ACCOUNT])
    assert policy["spec"]["failurePolicy"] == "Ignore"
    assert binding["spec"]["validationActions"] == ["Warn"]
    assert [each["message"] for each in policy["spec"]["validations"]] == [row.text for row in TABLE]
    matched = {
        f"{plural}.{group}"
        for rule in policy["spec"]["matchConstraints"]["resourceRules"]
        for group in rule["apiGroups"]
        for plural in rule["resources"]
    }
    assert {"deployments.apps", "configmaps.", f"propagationpolicies.{keys.GROUP}"} <= matched
    assert not any("/" in name for name in matched)
