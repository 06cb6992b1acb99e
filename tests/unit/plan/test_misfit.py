"""What is wrong with a member's copy, whatever it is."""

from typing import Any

import msgspec
import pytest

from argosy.api.typeconfigs import FederatedTypeConfig, manifests
from argosy.plan.status.misfit import misfit, overlarge

CONFIGS = {each["metadata"]["name"]: msgspec.convert(each, FederatedTypeConfig) for each in manifests()}
DEPLOYMENTS = CONFIGS["deployments.apps"]


def nested(levels: int, inner: Any = 1) -> Any:
    for _ in range(levels):
        inner = {"a": inner}
    return inner


@pytest.mark.parametrize(
    ("copy", "why"),
    [
        ({"status": {"replicas": 3}}, ""),
        (
            {"status": {"replicas": "three"}},
            "json: cannot unmarshal string into Go struct field DeploymentStatus.status",
        ),
        ({"status": {"other": [1, {"x": 2**60}]}}, ".status.other.1.x: number out of range"),
        ({"status": {"other": float("inf")}}, ".status.other: number out of range"),
        (nested(190), ""),
        (nested(250), "nested deeper than 200 levels"),
        (nested(5000), "nested deeper than 200 levels"),
        ({"status": {"conditions": [nested(100_000)]}}, "nested deeper than 200 levels"),
    ],
)
def test_what_is_wrong_is_told_in_a_line(copy: Any, why: str) -> None:
    found = misfit(DEPLOYMENTS, copy)
    assert found.startswith(why)
    assert bool(found) == bool(why)


def test_a_copy_is_looked_at_and_not_changed() -> None:
    copy = {"status": {"replicas": None, "unheard-of": 1}}
    misfit(DEPLOYMENTS, copy)
    assert copy == {"status": {"replicas": None, "unheard-of": 1}}


def of_size(kilobytes: int) -> Any:
    return {"x": "y" * (kilobytes * 1024)}


@pytest.mark.parametrize(
    ("copies", "found"),
    [
        ({"m1": of_size(3000), "m2": of_size(1)}, ["m1"]),
        ({"m1": of_size(3000), "m2": of_size(300), "m3": of_size(1)}, ["m1"]),
        ({"m1": of_size(2000), "m2": of_size(1), "m3": of_size(7000)}, ["m3", "m1"]),
        ({f"m{number}": of_size(200) for number in range(20)}, []),
        ({"m1": of_size(900)}, []),
        ({"m1": nested(5000), "m2": of_size(1)}, ["m1"]),
    ],
)
def test_of_copies_that_are_too_large_together_the_largest_are_done_without(copies: Any, found: list[str]) -> None:
    assert list(overlarge(copies)) == found
