"""When a service account's token is renewed: read from the token, spread over the fleet, the same after a restart."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.fleet.tokens import Life, life_of, renewal_time


def token(**claims) -> bytes:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=")
    return b"e30." + body + b".c2ln"


def test_the_life_is_read_from_the_claims():
    assert life_of(token(iat=1000, exp=4600)) == Life(1000, 4600)
    assert life_of(token(nbf=1000, exp=4600)) == Life(1000, 4600)
    assert life_of(token(iat=1000, exp=4600) + b"\n") == Life(1000, 4600)


def test_a_legacy_token_tells_no_end():
    assert life_of(token(iss="kubernetes/serviceaccount", sub="system:serviceaccount:a:b")) is None


@pytest.mark.parametrize(
    "bad", [b"", b"opaque", b"a.b.c", b"..", b"a.!!!!.c", token(exp="soon"), b"e30.W10.c2ln", b"\xff.\xff.\xff"]
)
def test_what_is_no_token_tells_no_end(bad):
    assert life_of(bad) is None


def test_an_end_without_a_beginning_is_renewed_at_once():
    life = life_of(token(exp=4600))
    assert life is not None
    assert renewal_time(life, 80, "m1") == 4600


@given(st.binary(max_size=200))
def test_anything_can_be_asked(junk):
    life_of(junk)
    life_of(b"e30." + base64.urlsafe_b64encode(junk) + b".x")


@given(
    st.integers(0, 2**31),
    st.integers(600, 10**7),
    st.integers(0, 100),
    st.text("abcdefghijklmnop", min_size=1, max_size=8),
)
def test_renewal_is_near_its_share_of_the_life_and_before_its_end(issued, seconds, percent, name):
    life = Life(issued, issued + seconds)
    when = renewal_time(life, percent, name)
    assert when == renewal_time(life, percent, name)
    share = (when - issued) / seconds
    assert share <= 0.951
    assert abs(share - percent / 100) <= 0.06


def test_tokens_issued_at_once_are_not_renewed_at_once():
    life = Life(0, 10_000)
    times = sorted(renewal_time(life, 80, f"m{number}") for number in range(200))
    assert len(set(times)) == 200
    assert 7_600 <= times[0] < 7_800 < 8_200 < times[-1] <= 8_400
