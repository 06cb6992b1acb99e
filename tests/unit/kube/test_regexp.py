import random
import re
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.kube.regexp import SMALL, PatternError, compile_pattern
from tests.harness.growth import assert_linear

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
        (r"^\p{Greek}+\z", ["αβ"], ["ab"]),
        (r"^\Q\C\E$", [r"\C"], ["a"]),
        (r"^\\C$", [r"\C"], ["a"]),
        ("^.$", ["é", "日"], ["\n", ""]),
        ("(?s)^.$", ["\n"], []),
        ("^(?P<n>a)(?<m>b)$", ["ab"], ["a"]),
        ("^[\\p{L}_-]{1,63}$", ["ä-ö"], ["", "a" * 64]),
    ],
)
def test_go_syntax(pattern, yes, no):
    matches = compile_pattern(pattern).matches
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
        ("((a{100}){100}){100}", "error parsing regexp: invalid repeat count: `{100}`"),
        ("(((){1000}){1000}){1000}", "error parsing regexp: invalid repeat count: `{1000}`"),
        ("a{2,1}", "error parsing regexp: invalid repeat count: `{2,1}`"),
        ("(?<=a)b", "error parsing regexp: invalid named capture: `(?<=a)b`"),
        ("a(?<!<b>)c", "error parsing regexp: invalid named capture: `(?<!<b>`"),
        ("(?P<a b>c)", "error parsing regexp: invalid named capture: `(?P<a b>`"),
        ("(?P=n)", "error parsing regexp: invalid or unsupported Perl syntax: `(?P`"),
        (r"\C", r"error parsing regexp: invalid escape sequence: `\C`"),
        (r"a\\\C", r"error parsing regexp: invalid escape sequence: `\C`"),
        (r"\Z", r"error parsing regexp: invalid escape sequence: `\Z`"),
        (r"\p{Foo}", r"error parsing regexp: invalid character class range: `\p{Foo}`"),
        ("[[:foo:]]", "error parsing regexp: invalid character class range: `[:foo:]`"),
        (r"[a-\d]", r"error parsing regexp: invalid escape sequence: `\d`"),
        ("a\\", "error parsing regexp: trailing backslash at end of expression: ``"),
    ],
)
def test_what_go_refuses_is_refused(pattern, error):
    with pytest.raises(PatternError) as caught:
        compile_pattern(pattern)
    assert str(caught.value) == error


@pytest.mark.parametrize("pattern", ["^(a+)+$", "(x+x+)+y", "^[ab]*a[ab]{900}c$", "a[ab]{200}c", "(a?){100}a{100}!"])
def test_a_hostile_pattern_takes_linear_time(pattern):
    matches = compile_pattern(pattern).matches
    text = "".join(random.Random(1).choices("ab", k=40_000))
    assert_linear(lambda size: matches(text[:size]), lambda size: size, 2_000)


def test_a_pattern_of_many_states_on_a_long_text():
    matches = compile_pattern("^[ab]*a[ab]{900}c$").matches
    text = "".join(random.Random(1).choices("ab", k=8_000))
    start = time.thread_time()
    assert not matches(text)
    assert time.thread_time() - start < 2  # 0.2 s; it was 12 s


def test_others_run_while_a_long_match_runs():
    matches = compile_pattern("^[ab]*a[ab]{900}c$").matches
    text = "".join(random.Random(1).choices("ab", k=60_000))
    matching = threading.Thread(target=matches, args=(text,))
    matching.start()
    turns = 0
    while matching.is_alive():
        time.sleep(0.001)
        turns += 1
    assert turns > 20


def test_what_go_takes_and_would_be_too_large_is_refused():
    with pytest.raises(PatternError, match="expression too large"):
        compile_pattern(r"\p{L}{1000}")
    with pytest.raises(PatternError, match="expression too large"):
        compile_pattern("a" * 40_000)


def test_what_is_kept_many_times_can_be_bounded_more_tightly():
    large = ".{900}" * 9
    compile_pattern(large)
    with pytest.raises(PatternError, match="expression too large"):
        compile_pattern(large, SMALL)


@given(
    st.lists(st.sampled_from(["a", "b", "[ab]", "(a|bb)", "a*", "(ab)+", "b?", "a{1,2}", ".", "^", "$"]), max_size=6),
    st.text("ab", max_size=8),
)
def test_agrees_with_python_on_shared_syntax(parts, text):
    pattern = "".join(parts)
    assert compile_pattern(pattern).matches(text) == bool(re.search(pattern.replace("$", r"\Z"), text))
