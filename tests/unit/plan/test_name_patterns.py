"""Expressions of users: the same answers as Python's engine gives, without its worst case."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.kube.regexp import PatternError
from argosy.plan.copies.name_patterns import name_pattern


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
    assert name_pattern(expression).matches(text) is found


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
    with pytest.raises(PatternError):
        name_pattern(expression)


@pytest.mark.parametrize("expression", ["(a+)+$", "^(a|a)*$", ".*.*.*.*.*.*x", "([a-z]+)*!"])
def test_hostile_expressions_answer_at_once(expression):
    assert not name_pattern(expression).matches("a" * 250 + "-")


def test_repetitions_of_repetitions_count_together_as_in_go():
    """Whatever is repeated, and be it nothing."""
    assert name_pattern("((){1000}){1}").matches("x")
    with pytest.raises(PatternError, match="invalid repeat count"):
        name_pattern("(((){1000}){1000}){1000}")


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (r"\pL", r"invalid escape sequence: `\p`"),
        (r"[a\x41]", r"invalid escape sequence: `\x`"),
        (r"\Qa\E", r"invalid escape sequence: `\Q`"),
        (r"[\D]", r"a negated class inside a class is not supported: `[\D]`"),
        ("a(?i:b)", "flags and look-around are not supported: `a(?i:b)`"),
        ("[^[:digit:]]", "named character classes are not supported: `[^[:digit:]]`"),
        ("(", "error parsing regexp: missing closing ): `(`"),
        ("a{1001}", "error parsing regexp: invalid repeat count: `{1001}`"),
    ],
)
def test_errors_say_what_is_wrong_in_gos_words(expression, message):
    with pytest.raises(PatternError) as caught:
        name_pattern(expression)
    assert str(caught.value) == message


@pytest.mark.parametrize("expression", [r"\(?a", "[(?i)]", r"[\[:]", r"[]\]]", r"\[[:]", "[[]", "(?:(?<n>a))"])
def test_what_only_looks_unsupported_is_not(expression):
    name_pattern(expression)


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
    assert name_pattern(expression).matches(text) == (re.search(expression, text) is not None)
