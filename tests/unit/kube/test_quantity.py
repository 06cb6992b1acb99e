from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.kube.quantity import BINARY_SI, ZERO, Quantity, QuantityError, parse


@pytest.mark.parametrize(
    ("text", "canonical", "value", "milli"),
    [
        ("1500m", "1500m", 2, 1500),
        ("0.5", "500m", 1, 500),
        ("1024Mi", "1Gi", 2**30, 2**30 * 1000),
        ("1e3", "1e3", 1000, 10**6),
        ("1E3", "1E3", 1000, 10**6),
        ("12e2", "1200", 1200, 1_200_000),
        ("1e-5", "10e-6", 1, 1),
        ("100000", "100k", 100_000, 10**8),
        ("0", "0", 0, 0),
        ("0Ki", "0", 0, 0),
        ("-", "0", 0, 0),
        ("1.5Gi", "1536Mi", 1610612736, 1610612736000),
        ("1.500", "1.500", 2, 1500),
        ("+5", "+5", 5, 5000),
        ("-1.5", "-1500m", -2, -1500),
        ("0.1n", "1n", 1, 1),
        ("0.5Ki", "512", 512, 512_000),
        ("0.0000000001Ki", "103n", 1, 1),
        ("1.1Ki", "1126400m", 1127, 1_126_400),
        ("8Ki", "8Ki", 8192, 8_192_000),
        ("1000Ki", "1000Ki", 1_024_000, 1_024_000_000),
        ("9Ei", "9223372036854775807", 2**63 - 1, (2**63 - 1) * 1000),
        ("5.", "5.", 5, 5000),
        (".5", "500m", 1, 500),
        ("00100m", "00100m", 1, 100),
        ("123456789012345678901234", "123456789012345678901234", 123456789012345678901234, 123456789012345678901234000),
    ],
)
def test_reads_and_writes_what_kubernetes_does(text: str, canonical: str, value: int, milli: int) -> None:
    quantity = parse(text)
    assert (quantity.canonical(), quantity.value(), quantity.milli()) == (canonical, value, milli)


def test_bare_numbers_are_quantities() -> None:
    assert [parse(2).canonical(), parse(0.5).canonical(), parse(1e30).canonical()] == ["2", "500m", "1e+30"]


@pytest.mark.parametrize("text", ["", "abc", "1.2.3", "1 ", "1Gi1x", "٣", "1" * 600])
def test_text_of_another_shape_is_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="quantities must match the regular expression"):
        parse(text)


@pytest.mark.parametrize("text", ["1kk", "1e", "1i", "1Gi1", "1mm"])
def test_unknown_suffix_is_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="unable to parse quantity's suffix"):
        parse(text)


def test_number_too_large_to_hold_is_refused_at_once() -> None:
    with pytest.raises(QuantityError):
        parse("1e999999999")


def test_booleans_are_no_quantities() -> None:
    with pytest.raises(QuantityError):
        parse(True)


def test_equality_and_hash_are_by_amount() -> None:
    assert parse("1") == parse("1000m") == Quantity.from_milli(1000)
    assert len({parse("1"), parse("1000m"), parse("1e0")}) == 1
    assert parse("1Gi") > parse("1G")
    assert not ZERO
    assert parse("1") != "1"


def test_sum_keeps_the_format_of_the_left_unless_that_is_zero() -> None:
    assert (parse("1Gi") + parse("1Gi")).canonical() == "2Gi"
    assert (ZERO + parse("512Mi")).canonical() == "512Mi"
    assert (parse("2") - parse("500m")).canonical() == "1500m"
    assert (parse("250m") * 4).canonical() == "1"
    assert Quantity.from_value(2048, BINARY_SI).canonical() == "2Ki"


SUFFIXES = {
    "": 1,
    "m": Fraction(1, 1000),
    "k": 10**3,
    "M": 10**6,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "e3": 1000,
    "u": Fraction(1, 10**6),
}
numbers = st.tuples(
    st.integers(-(10**9), 10**9), st.sampled_from(["", ".5", ".25", ".125", ".0"]), st.sampled_from(sorted(SUFFIXES))
)


def exact(number: tuple[int, str, str]) -> Fraction:
    whole, fraction, suffix = number
    return Fraction(f"{whole}{fraction}") * SUFFIXES[suffix]


@given(numbers)
def test_amount_is_exact_and_canonical_text_reads_back_the_same(number: tuple[int, str, str]) -> None:
    quantity = parse(f"{number[0]}{number[1]}{number[2]}")
    assert Fraction(quantity.nanos, 10**9) == exact(number)
    assert parse(quantity.canonical()) == quantity


@given(numbers, numbers)
def test_order_and_sum_are_those_of_the_amounts(a: tuple[int, str, str], b: tuple[int, str, str]) -> None:
    left, right = parse("".join(map(str, a))), parse("".join(map(str, b)))
    assert (left < right) == (exact(a) < exact(b))
    assert Fraction((left + right).nanos, 10**9) == exact(a) + exact(b)
    assert left + right - right == left


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse(text).canonical()
    except QuantityError:
        return


def test_all_four_comparisons():
    small, large = parse("100m"), parse("1")
    assert small < large
    assert small <= large
    assert large > small
    assert large >= small
    assert parse("1") <= parse("1000m")
    assert parse("1") >= parse("1000m")
