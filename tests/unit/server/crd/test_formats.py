"""Which values a format takes, as kube-apiserver 1.36 answers."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.server.crd.formats import FORMATS, string_format


@pytest.mark.parametrize(
    ("name", "yes", "no"),
    [
        ("byte", ["YQ=="], ["", "YQ", "a b"]),
        ("cidr", ["1.2.3.4/24", "::1/64"], ["1.2.3.4", "1.2.3.4/33", "fd00::/129"]),
        ("date", ["2026-01-01"], ["2026-13-01", "20260101", ""]),
        ("date-time", ["2026-01-01T00:00:00Z", "2026-01-01t00:00:00+01:00", "2026-01-01T00:00:00.123Z"],
         ["2026-01-01 00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:00:60Z", "2026-01-01T00:00:00"]),
        ("duration", ["1h30m", "1.5h", "0", "-1s", "3 weeks", "10sec", "1 h 2 m"], ["", "1", "abc", "1 month", "5 x"]),
        ("email", ["a@b", "A B <a@b.c>", '"a b"@c.d', "x@[1.2.3.4]"], ["a", "@b", "a@", "mailto:x@y", "a..b@c.d"]),
        ("hexcolor", ["#fff", "fff", "#A0B1C2"], ["#ffff", ""]),
        ("hostname", ["localhost", "example.com", "a-b", "exämple.com", "☃.net"],
         ["-a.com", "a-.com", "a_b.com", "foo.1", "a-b-c", "host.", "a..b", ""]),
        ("ipv4", ["1.2.3.4", "01.2.3.4", "::ffff:1.2.3.4"], ["1.2.3", "1.2.3.256", "::1"]),
        ("ipv6", ["::1", "::ffff:1.2.3.4"], ["1.2.3.4", "fe80::1%eth0", "1::2::3"]),
        ("isbn", ["0321751043", "978-0321751041", "080442957X"], ["032175104X", "1"]),
        ("k8s-short-name", ["a-b"], ["A", "a.b", "x" * 64]),
        ("k8s-long-name", ["a.b-c"], ["A.b", "x" * 254]),
        ("mac", ["00:11:22:33:44:55", "0011.2233.4455", "001122334455"], ["00:11:22:33:44", "0011:2233:4455"]),
        ("rgbcolor", ["rgb(1,2,3)"], ["rgb(256,2,3)"]),
        ("ssn", ["123-45-6789", "123 45 6789"], ["123456789"]),
        ("uri", ["http://a.b/c", "/a/b", "mailto:x@y"], ["a/b", "", "http://a b"]),
        ("uuid", ["550e8400-e29b-41d4-a716-446655440000"], ["550e8400"]),
        ("uuid4", ["550e8400-e29b-41d4-a716-446655440000"], ["550e8400-e29b-31d4-a716-446655440000"]),
        ("creditcard", ["4111-1111-1111-1111"], ["4111111111111112"]),
    ],
)  # fmt: skip
def test_formats(name, yes, no):
    check = string_format(name)
    assert check is not None
    assert [value for value in yes if not check(value)] == []
    assert [value for value in no if check(value)] == []


def test_an_unknown_format_checks_nothing():
    assert string_format("made-up") is None


@given(st.text(max_size=30))
def test_any_text_gets_an_answer(text):
    assert all(check(text) in (True, False) for check in FORMATS.values())


@pytest.mark.parametrize("text", ["1" * 30_000, "a." * 15_000, "-" * 30_000, "a@" * 15_000, "1h" * 15_000 + "!"])
def test_a_long_text_is_judged_in_no_time(text):
    start = time.perf_counter()
    for check in FORMATS.values():
        check(text)
    assert time.perf_counter() - start < 2
