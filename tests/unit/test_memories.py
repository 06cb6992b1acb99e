"""Caches of what others send are bounded in bytes, not only in number: a thousand of the longest would be gigabytes."""

import tracemalloc
from collections.abc import Callable

import pytest

from argosy.api.policies import ClusterSelectorRequirement, ClusterSelectorTerm
from argosy.plan.copies.name_patterns import name_pattern
from argosy.plan.scheduling import selection
from argosy.server.http.accept import media_types
from argosy.server.kinds.pods.podspec import default_pod_spec, validate_pod_spec

ROUNDS = 200
MOST_KEPT = 500_000


def accept(number: int) -> None:
    assert len(media_types(f"application/x{number}," + "a/b," * 500)) == 501


def pod_spec(number: int) -> None:
    env = [{"name": "A", "value": f"{number}" + "x" * 10_000}]
    spec = {"containers": [{"name": "main", "image": "nginx", "env": env}]}
    default_pod_spec(spec)
    assert not validate_pod_spec(spec, "spec")


def cluster_selector(number: int) -> None:
    values = tuple(f"region-{number}-{each}" for each in range(400))
    requirement = ClusterSelectorRequirement(key="region", operator="NotIn", values=values)
    assert selection.expressions_match(ClusterSelectorTerm(match_expressions=(requirement,)), {"region": "x"})


def name_expression(number: int) -> None:
    assert name_pattern(f"{number}|[{'a-c' * 2000}]").matches("b")


@pytest.mark.parametrize("use", [accept, pod_spec, cluster_selector, name_expression])
def test_what_is_long_is_not_kept(use: Callable[[int], None]) -> None:
    use(-1)
    tracemalloc.start()
    try:
        for number in range(ROUNDS):
            use(number)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < MOST_KEPT
