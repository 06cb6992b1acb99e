"""What a member serves, as it is shown."""

from argosy.api.types import APIResource
from argosy.fleet.apis import lasting, ordered


def api(kind: str, group: str = "example.com") -> APIResource:
    return APIResource(group=group, version="v1", kind=kind, plural_name=f"{kind.lower()}s", scope="Namespaced")


A, B, C = api("A"), api("B"), api("C")


def test_what_is_new_is_shown_at_once_and_what_one_look_missed_stays() -> None:
    shown, missing = lasting((A, B), (B, C), {}, now=100.0, threshold=60.0)
    assert shown == (A, B, C)
    assert missing == {A: 100.0}


def test_what_is_missing_for_long_goes() -> None:
    assert lasting((A, B), (B,), {A: 100.0}, now=159.0, threshold=60.0) == ((A, B), {A: 100.0})
    assert lasting((A, B), (B,), {A: 100.0}, now=160.0, threshold=60.0) == ((B,), {})


def test_what_comes_back_begins_anew() -> None:
    _, missing = lasting((A, B), (A, B), {A: 100.0}, now=150.0, threshold=60.0)
    assert missing == {}
    assert lasting((A, B), (B,), missing, now=170.0, threshold=60.0) == ((A, B), {A: 170.0})


def test_nothing_is_missing_twice() -> None:
    shown, missing = lasting((A,), (), {}, now=0.0, threshold=60.0)
    assert lasting(shown, (), missing, now=10.0, threshold=60.0) == ((A,), {A: 0.0})


def test_the_order_is_always_the_same() -> None:
    assert ordered([C, A, api("A", "apps"), B]) == (api("A", "apps"), A, B, C)
