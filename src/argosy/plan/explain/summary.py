"""Explain: the account of a decision in few words, for events, conditions and the command line.

Clusters are grouped by outcome, so that the text stays short in a large fleet. `why` explains one cluster, and what would
have to change. The text says only what the account holds.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from argosy.plan.explain.record import Account
from argosy.plan.plugins import IN_TREE
from argosy.plan.scheduling.framework import Filter

__all__ = ["REMEDIES", "Why", "lines", "placement_text", "why"]

#: Names shown per reason; the count says how many there are.
_NAMES_SHOWN = 5

REMEDIES: Final[Mapping[str, str]] = MappingProxyType(
    {plugin.name: plugin.remedy for plugin in IN_TREE.filters.values() if isinstance(plugin, Filter) and plugin.remedy}
)
"""What would have to change for a cluster that a filter refused, by filter."""


class Why(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why an object is, or is not, in one cluster. Each entry of `change` alone could change that."""

    cluster: str
    placed: bool
    because: str
    #: None if it is not placed, or not divided.
    replicas: int | None = None
    change: tuple[str, ...] = ()
    #: The weighted score of each plugin; empty if the cluster was refused.
    scores: dict[str, int] = {}
    #: Its rank among the selected, from 1; 0 if it was not selected.
    rank: int = 0


def why(account: Account, cluster: str, remedies: Mapping[str, str] = REMEDIES) -> Why:
    if cluster in account.placements:
        return _why_there(account, cluster)
    if not account.named:
        because = (
            "clusters have left the federation since this decision, so its record can no longer be matched to names"
        )
        return Why(cluster, False, because, change=("the next scheduling of the object makes a new record",))
    for refusal in account.refused:
        if cluster in refusal.clusters:
            remedy = remedies.get(refusal.plugin) or f"the filter {refusal.plugin} must let the cluster pass"
            return Why(cluster, False, f"{refusal.plugin} refused it: {refusal.reason}", change=(remedy,))
    if account.sticky:
        because = "clusters once chosen are kept, and it is not one of them"
        return Why(cluster, False, because, change=("disableRescheduling off in the policy's reschedulePolicy",))
    if cluster in account.selected:
        return _why_without_replicas(account, cluster)
    if cluster in account.scores:
        return _why_not_selected(account, cluster)
    if account.unschedulable and not account.refused:
        return Why(cluster, False, f"no decision could be made: {account.message}")
    because = "it was not one of the clusters that were considered: it had not joined the federation"
    return Why(cluster, False, because, change=("once it has joined, the object must be scheduled again",))


def _why_there(account: Account, cluster: str) -> Why:
    replicas, scores = account.placements[cluster], account.scores.get(cluster, {})
    rank = account.selected.index(cluster) + 1 if cluster in account.selected else 0
    if account.unschedulable:
        return Why(cluster, True, f"it was there before and nothing better was found: {account.message}", replicas)
    if account.sticky:
        return Why(cluster, True, "it was there before, and clusters once chosen are kept", replicas, rank=rank)
    because = f"it passed all filters and was selected as number {rank} of {len(account.selected)}"
    if scores:
        because += f" with score {sum(scores.values())}"
    if cluster in account.overflow:
        because += f"; {account.overflow[cluster]} of its replicas are kept although they do not fit"
    return Why(cluster, True, because, replicas, scores=scores, rank=rank)


def _why_not_selected(account: Account, cluster: str) -> Why:
    scores = account.scores.get(cluster, {})
    own = sum(scores.values())
    if not account.selected:
        return Why(cluster, False, account.message or "no cluster was selected", scores=scores)
    last = account.selected[-1]
    bar = sum(account.scores.get(last, {}).values())
    because = f"it passed all filters with score {own}, but {len(account.selected)} others were preferred"
    better = sum(1 for other in account.scores.values() if sum(other.values()) > own)
    change = [f"a larger maxClusters in the policy: {better} clusters have a better score"]
    if own <= bar:
        change.append(f"a score above {bar}, which is what {last} was selected with")
    change.append("a higher priority for it in the policy's placement")
    return Why(cluster, False, because, change=tuple(change), scores=scores)


def _why_without_replicas(account: Account, cluster: str) -> Why:
    because = "it was selected, and the division of replicas left it without any"
    if account.steps:
        because += f" ({'; '.join(account.steps)})"
    change = (
        "a minReplicas or a higher weight for it in the policy's placement",
        "more replicas in total, or more free capacity there where weights follow capacity",
        "a maxReplicas, limited or estimated capacity above 0 where one holds it at 0",
    )
    rank = account.selected.index(cluster) + 1
    return Why(cluster, False, because, change=change, scores=account.scores.get(cluster, {}), rank=rank)


def lines(account: Account) -> list[str]:
    """The account as sentences, placement first."""
    told = [placement_text(account.placements)] if account.named else []
    if account.unschedulable:
        told.append(f"kept as it was: {account.message}")
    elif account.message:
        told.append(account.message)
    if account.sticky:
        told.append("clusters once chosen are kept (disableRescheduling)")
    for refusal in account.refused:
        shown = ", ".join(refusal.clusters[:_NAMES_SHOWN])
        more = ", …" if refusal.clusters and refusal.count > _NAMES_SHOWN else ""
        names = f" ({shown}{more})" if shown else ""
        told.append(f"{refusal.count} refused by {refusal.plugin}: {refusal.reason}{names}")
    totals = {name: sum(given.values()) for name, given in account.scores.items() if name not in account.selected}
    passed_over = sorted(totals, key=lambda name: (-totals[name], name))
    if passed_over:
        told.append(_some("not selected", [f"{name} (score {totals[name]})" for name in passed_over]))
    without = sorted(set(account.selected) - account.placements.keys())
    if without:
        told.append(_some("selected without replicas", without))
    told.extend(account.steps)
    if account.overflow:
        kept = [f"{name} (replicas {number})" for name, number in account.overflow.items()]
        told.append(_some("kept although they do not fit", kept))
    if account.shortfall > account.waiting:
        refused = account.shortfall - account.waiting
        told.append(f"{refused} replicas found no cluster: maximums or capacities are reached")
    return told


def placement_text(placements: Mapping[str, int | None]) -> str:
    """`m1: 3, m2: 2`, or only the names if the object is duplicated."""
    if not placements:
        return "placed nowhere"
    return ", ".join(name if number is None else f"{name}: {number}" for name, number in sorted(placements.items()))


def _some(what: str, items: list[str]) -> str:
    more = f", … ({len(items)} in all)" if len(items) > _NAMES_SHOWN else ""
    return f"{what}: {', '.join(items[:_NAMES_SHOWN])}{more}"
