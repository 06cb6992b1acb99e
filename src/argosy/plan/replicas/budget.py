"""Budget: how a PodDisruptionBudget with absolute numbers is divided with the workloads whose pods it protects.

What is divided is the number of pods that may be away at once. In all clusters together it is never more than the budget allows
for all pods together, whatever is evicted where. Every cluster that runs pods may lose one at a time if there are enough for
that; where there are not, the clusters with the most pods come first, and in the others no pod may be evicted: drains wait there.

Percentages are not divided: each cluster applies them to its own pods.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

__all__ = ["MAX_UNAVAILABLE", "MIN_AVAILABLE", "Budget", "Pods", "budget_of", "disruptions"]

MIN_AVAILABLE: Final = "minAvailable"
MAX_UNAVAILABLE: Final = "maxUnavailable"


class Pods(msgspec.Struct, frozen=True):
    """The pods of one workload: in each cluster, and whether these are parts of one number or a copy each."""

    clusters: Mapping[str, int]
    divided: bool

    @property
    def together(self) -> int:
        """As the owner of the workload counts them."""
        return sum(self.clusters.values()) if self.divided else max(self.clusters.values(), default=0)


class Budget(msgspec.Struct, frozen=True):
    field: str
    #: The number in each cluster that runs pods.
    shares: dict[str, int]
    #: How many pods may be away at once, in all clusters together and in each.
    together: int
    disruptions: dict[str, int]

    @property
    def blocked(self) -> list[str]:
        """Clusters that run pods, of which none may be evicted although the budget as a whole allows some."""
        return [name for name, number in self.disruptions.items() if not number] if self.together else []


def budget_of(field: str, number: int, workloads: Sequence[Pods]) -> Budget | None:
    """None where every cluster is to get the budget as it is: no workload is divided, or none has pods."""
    if not any(each.divided for each in workloads):
        return None
    pods: dict[str, int] = {}
    for each in workloads:
        for name, count in each.clusters.items():
            pods[name] = pods.get(name, 0) + count
    pods = {name: count for name, count in sorted(pods.items()) if count}
    if not pods:
        return None
    together = sum(each.together for each in workloads)
    allowed = number if field == MAX_UNAVAILABLE else max(together - number, 0)
    allowed = min(allowed, together)
    away = disruptions(allowed, pods)
    # What the budget asks for and nobody has counts in every cluster: pods that come for a while may not be evicted, either.
    lacking = max(number - together, 0)
    shares = away if field == MAX_UNAVAILABLE else {name: pods[name] - away[name] + lacking for name in pods}
    return Budget(field, shares, allowed, away)


def disruptions(allowed: int, pods: Mapping[str, int]) -> dict[str, int]:
    """`allowed` disruptions, given to clusters with these numbers of pods: in proportion, one for each if possible, and never
    more than it has pods."""
    given = dict.fromkeys(pods, 0)
    first = sorted(pods, key=lambda name: (-pods[name], name))[: max(allowed, 0)]
    given.update(dict.fromkeys(first, 1))
    left = min(allowed, sum(pods.values())) - len(first)
    if left <= 0:
        return given
    # Each has one: the others go by what is left of the pods, rounded down, and the rest to the largest remainders.
    rest = {name: count - 1 for name, count in pods.items()}
    total = sum(rest.values())
    exact = {name: divmod(left * count, total) for name, count in rest.items()}
    for name, (whole, _) in exact.items():
        given[name] += whole
    left -= sum(whole for whole, _ in exact.values())
    for name in sorted(exact, key=lambda name: (-exact[name][1], name))[:left]:
        given[name] += 1
    return given
