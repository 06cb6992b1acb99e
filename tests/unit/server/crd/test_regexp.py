import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.server.crd.regexp import PatternError, compile_pattern

NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("^[a-z]+$", ["abc"], ["", "A", "abc\n"]),
        ("b", ["abc"], ["ac"]),
        (NAME, ["a", "a-b.c"], ["-a", "a.", "a..b"]),
        (r"^\d{2,3}$", ["12", "123"], ["1", "1234", "١٢"]),
        ("(?i)^ab$", ["AB", "aB"], ["abc"]),
        ("(?m)^b$", ["a\nb\nc"], ["ab"]),
        (r"\bfoo\b", ["a foo b", "foo"], ["foob"]),
        (r"^[^/]*$", ["", "a b"], ["a/b"]),
        ("^(?:a|bc)*$", ["", "abca"], ["b"]),
        ("^[[:alpha:]]-$", ["x-"], ["1-"]),
        (r"^\x{41}\p{L}\Q.*\E$", ["Aé.*"], ["Ab.x"]),
        ("a{,2}", ["a{,2}"], ["aa"]),
        (r"^[\w.-]+$", ["a_b.c-d"], ["a b"]),
        ("^a??b$", ["b", "ab"], ["aab"]),
        ("", ["", "x"], []),
    ],
)
def test_go_syntax(pattern, yes, no):
    matches = compile_pattern(pattern)
    assert [t for t in yes if not matches(t)] == []
    assert [t for t in no if matches(t)] == []


@pytest.mark.parametrize(
    ("pattern", "error"),
    [
        ("(?=a)", "error parsing regexp: invalid or unsupported Perl syntax: `(?=`"),
        (r"(a)\1", "error parsing regexp: invalid escape sequence: `\\1`"),
        ("a**", "error parsing regexp: invalid nested repetition operator: `**`"),
        ("(", "error parsing regexp: missing closing ): `(`"),
        (")", "error parsing regexp: unexpected ): `)`"),
        ("[a", "error parsing regexp: missing closing ]: `[a`"),
        ("[b-a]", "error parsing regexp: invalid character class range: `b-a`"),
        ("a{2000}", "error parsing regexp: invalid repeat count: `{2000}`"),
        ("*", "error parsing regexp: missing argument to repetition operator: `*`"),
        ("((a{100}){100}){100}", "expression too large"),
        ("(((){1000}){1000}){1000}", "expression too large"),
    ],
)
def test_what_go_refuses_is_refused(pattern, error):
    with pytest.raises(PatternError) as caught:
        compile_pattern(pattern)
    assert str(caught.value) == error


def test_a_hostile_pattern_takes_linear_time():
    matches = compile_pattern("^(a+)+$")
    start = time.perf_counter()
    assert not matches("a" * 20_000 + "!")
    assert time.perf_counter() - start < 1


@given(
    st.lists(st.sampled_from(["a", "b", "[ab]", "(a|bb)", "a*", "(ab)+", "b?", "a{1,2}", ".", "^", "$"]), max_size=6),
    st.text("ab", max_size=8),
)
def test_agrees_with_python_on_shared_syntax(parts, text):
    pattern = "".join(parts)
    assert compile_pattern(pattern)(text) == bool(re.search(pattern.replace("$", r"\Z"), text))
