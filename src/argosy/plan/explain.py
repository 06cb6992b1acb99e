"""Explain: a Decision in few words, for events, conditions and the command line.

The record groups clusters by what happened to them, so that it stays short however large the fleet is. Only says what the
Decision holds; it decides nothing.
"""

from collections import defaultdict

import msgspec

from argosy.plan.schedule import Decision

__all__ = ["Explanation", "Refusal", "explain", "lines", "placement_text"]

#: Names shown per reason; the count says how many there are.
_NAMES_SHOWN = 5


class Refusal(msgspec.Struct, frozen=True):
    """Clusters that were refused for one reason; the first few of them by name."""

    plugin: str
    reason: str
    count: int
    clusters: tuple[str, ...]


class Explanation(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a placement is what it is."""

    placements: dict[str, int | None]
    message: str = ""
    refused: tuple[Refusal, ...] = ()
    #: Clusters that passed the filters and were not chosen, with their scores.
    not_selected: dict[str, int] = {}
    #: Clusters that were chosen and got no replicas.
    without_replicas: tuple[str, ...] = ()
    overflow: dict[str, int] = {}
    shortfall: int = 0
    sticky: bool = False
    unschedulable: bool = False


def explain(decision: Decision) -> Explanation:
    by_reason: dict[tuple[str, str], list[str]] = defaultdict(list)
    for cluster, refusal in decision.rejected.items():
        by_reason[refusal].append(cluster)
    passed_over = sorted(
        decision.scores.keys() - set(decision.selected), key=lambda name: (-decision.scores[name], name)
    )
    return Explanation(
        placements=decision.placements,
        message=decision.message,
        refused=tuple(
            Refusal(plugin, reason, len(clusters), tuple(sorted(clusters)[:_NAMES_SHOWN]))
            for (plugin, reason), clusters in sorted(by_reason.items())
        ),
        not_selected={name: decision.scores[name] for name in passed_over[:_NAMES_SHOWN]},
        without_replicas=tuple(sorted(set(decision.selected) - decision.placements.keys()))[:_NAMES_SHOWN],
        overflow=decision.overflow,
        shortfall=decision.shortfall,
        sticky=decision.sticky,
        unschedulable=decision.unschedulable,
    )


def lines(explanation: Explanation) -> list[str]:
    """The explanation as sentences, the placement first."""
    told = [placement_text(explanation.placements)]
    if explanation.unschedulable:
        told.append(f"kept as it was: {explanation.message}")
    elif explanation.message:
        told.append(explanation.message)
    if explanation.sticky:
        told.append("clusters once chosen are kept (disableRescheduling)")
    for refusal in explanation.refused:
        more = ", …" if refusal.count > len(refusal.clusters) else ""
        told.append(
            f"{refusal.count} refused by {refusal.plugin}: {refusal.reason} ({', '.join(refusal.clusters)}{more})"
        )
    if explanation.not_selected:
        told.append(f"not selected: {_pairs(explanation.not_selected, 'score')}")
    if explanation.without_replicas:
        told.append(f"selected without replicas: {', '.join(explanation.without_replicas)}")
    if explanation.overflow:
        told.append(f"kept although they do not fit: {_pairs(explanation.overflow, 'replicas')}")
    if explanation.shortfall:
        told.append(f"{explanation.shortfall} replicas found no cluster: maximums or capacities are reached")
    return told


def placement_text(placements: dict[str, int | None]) -> str:
    """`m1: 3, m2: 2`, or the bare names where the object is duplicated."""
    if not placements:
        return "placed nowhere"
    return ", ".join(name if number is None else f"{name}: {number}" for name, number in sorted(placements.items()))


def _pairs(numbers: dict[str, int], unit: str) -> str:
    return ", ".join(f"{name} ({unit} {number})" for name, number in numbers.items())
