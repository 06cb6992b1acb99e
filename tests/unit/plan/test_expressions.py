"""Expressions of users: the same answers as Python's engine gives, without its worst case."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.plan.scheduling.expressions import ExpressionError, parse


@pytest.mark.parametrize(
    ("expression", "text", "found"),
    [
        ("", "anything", True),
        ("^prod-", "prod-1", True),
        ("^prod-", "a-prod-1", False),
        ("prod", "a-prod-1", True),
        ("^(eu|us)-[a-z]+-[0-9]{1,2}$", "eu-west-12", True),
        ("^(eu|us)-[a-z]+-[0-9]{1,2}$", "eu-west-123", False),
        (r"\d\.\w", "1.a", True),
        (r"\d\.\w", "1xa", False),
        ("a{,2}", "a{,2}", True),
        ("^[^-]*$", "a-b", False),
        ("^[a-c-]+$", "a-c", True),
        ("[]x]", "]", True),
        (r"\bweb\b", "my-web-1", True),
        (r"\bweb\b", "webs", False),
        ("(?P<zone>a+)b", "xaab", True),
        ("a$", "a\n", False),
        (".", "\n", False),
    ],
)
def test_what_matches(expression, text, found):
    assert parse(expression).search(text) is found


@pytest.mark.parametrize(
    "expression",
    [
        "*",
        "a**",
        "(",
        ")",
        "a)",
        "[",
        "[a",
        "[b-a]",
        "\\",
        r"\q",
        "(?i)a",
        "(?=a)",
        "[[:alpha:]]",
        "a{9999}",
        "a{3,2}",
        "(((a{1000}){1000}){1000})",
        "(" * 200 + ")" * 200,
        "(?P<x",
    ],
)
def test_what_is_wrong_or_unsupported_is_an_error(expression):
    with pytest.raises(ExpressionError):
        parse(expression)


@pytest.mark.parametrize("expression", ["(a+)+$", "^(a|a)*$", ".*.*.*.*.*.*x", "([a-z]+)*!"])
def test_hostile_expressions_answer_at_once(expression):
    assert not parse(expression).search("a" * 250 + "-")


def test_much_of_nothing_is_nothing():
    assert parse("(((){1000}){1000}){1000}").search("x")


ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "^", "$", r"\b", "-"])
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds("{}{}".format, inner, inner),
        st.builds("(?:{}|{})".format, inner, inner),
        st.builds("(?:{}){}".format, inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,}"])),
    ),
    max_leaves=6,
)


@given(expression=EXPRESSIONS, text=st.text(alphabet="ab-", max_size=8))
def test_it_answers_as_pythons_engine(expression, text):
    assert parse(expression).search(text) == (re.search(expression, text) is not None)
