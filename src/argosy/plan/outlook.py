"""Outlook: how the clusters look to an object before its replicas are divided: who is refused and why, scores, the order.

It is the same for all objects that ask the same of clusters and run in the same ones of those that treat who is there
otherwise (`Fleet.particular`), so it is kept with the fleet: of a thousand objects of one policy most find theirs ready. So
are the parts of a decision's record that follow from it alone. What the filters say does not change with what is available,
and holds for longer.
"""

from collections.abc import Generator
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np

from argosy.fleet.snapshot import Column, Fleet
from argosy.plan.columns import Packing
from argosy.plan.framework import (
    Ask,
    Filtered,
    FrameworkError,
    Profile,
    Ranked,
    Reply,
    Scored,
    run_filters,
    run_scores,
    run_selects,
)
from argosy.plan.unit import Unit

__all__ = ["Outlook", "Summary", "look", "unasked"]

NOBODY_TO_ASK = "there is nobody to ask {phase} plugin {plugin!r}"

#: Reasons come from plugins of any origin; what is said of them stays short.
_REASONS_KEPT = 32
_LONGEST_REASON = 160
_OTHER_REASON = "another reason"
_LARGEST_SCORE = 2**38

T = TypeVar("T")


class Outlook(msgspec.Struct, frozen=True, eq=False):
    """As far as it came: without a feasible cluster there are no scores. Does not know the fleet that keeps it."""

    sifted: "Sifted"
    scored: Scored | None = None
    #: Who was chosen, best first.
    ranked: Ranked | None = None
    _summary: list["Summary"] = msgspec.field(default_factory=list)

    @property
    def filtered(self) -> Filtered:
        return self.sifted.filtered

    def summary(self, fleet: Fleet) -> "Summary":
        """What a record says of it, worked out when it is first asked for."""
        if not self._summary:
            self._summary.append(_summary(self, fleet))
        return self._summary[0]


class Refusals(NamedTuple):
    """Filter and reason, each once, and which of them (from 1) excluded a cluster; 0 where none did."""

    texts: tuple[tuple[str, str], ...]
    codes: Column
    packing: Packing


class Sifted(msgspec.Struct, frozen=True, eq=False):
    """What the filters said, and of whom it was asked."""

    unit: Unit
    filtered: Filtered
    _refusals: list[Refusals] = msgspec.field(default_factory=list)

    def refusals(self, fleet: Fleet) -> Refusals:
        """Why, worked out when it is first asked for."""
        if not self._refusals:
            self._refusals.append(_refusals(self, fleet))
        return self._refusals[0]


def _refusals(sifted: Sifted, fleet: Fleet) -> Refusals:
    refused = np.zeros(len(fleet), dtype=np.int64)
    codes: dict[tuple[str, str], int] = {}
    for position in sifted.filtered.refused_by():
        plugin = sifted.filtered.plugins[position].name
        rows, reasons = sifted.filtered.reasons(sifted.unit, fleet, position)
        of_text = []
        for text in reasons.texts:
            kept = text[:_LONGEST_REASON] if len(codes) < _REASONS_KEPT else _OTHER_REASON
            of_text.append(codes.setdefault((plugin, kept), len(codes) + 1))
        refused[rows] = of_text[0] if len(of_text) == 1 else np.array(of_text, dtype=np.int64)[reasons.codes]
    return Refusals(tuple(codes), refused, Packing().add(refused))


class Summary(msgspec.Struct, frozen=True, eq=False):
    """What a decision's record says of its outlook."""

    #: Filter and reason, each once, and which of them (from 1) excluded a cluster; 0 where none did.
    refusals: tuple[tuple[str, str], ...]
    refused: Column
    #: Whether the selection is the best clusters in the order of their scores, and so need not be written down.
    follows_scores: bool
    #: Refusals and scores.
    packing: Packing


def _summary(outlook: Outlook, fleet: Fleet) -> Summary:
    refusals = outlook.sifted.refusals(fleet)
    scores = () if outlook.scored is None else (column for _, column in outlook.scored.by_plugin)
    follows = _follows_scores(outlook, len(fleet))
    return Summary(refusals.texts, refusals.codes, follows, refusals.packing.add(*scores))


def _follows_scores(outlook: Outlook, clusters: int) -> bool:
    if outlook.ranked is None or outlook.scored is None or not len(outlook.ranked.rows):
        return True
    rows, scores = outlook.scored.ranked
    if int(np.abs(scores).max()) > _LARGEST_SCORE:
        return False
    # One number a cluster that grows from the best to the worst.
    place = np.zeros(clusters, dtype=np.int64)
    place[rows] = rows - (scores << 24)
    chosen = place[outlook.ranked.rows]
    if not (chosen[1:] > chosen[:-1]).all():
        return False
    return len(chosen) == len(rows) or int((place[rows] <= chosen[-1]).sum()) == len(chosen)


def look(unit: Unit, fleet: Fleet, profile: Profile) -> Generator[Ask, Reply, Outlook]:
    """Filter, score and select. Raises FrameworkError."""
    question = unit.question if profile.shared_as else None
    if question is None:
        sifted = yield from _sifted(unit, fleet, profile)
        return (yield from _looked(sifted, unit, fleet, profile))
    key = (profile.shared_as, question, fleet.mask_of(unit.current)[fleet.particular].tobytes())
    sifted = fleet.remembered(("sifted", key), lambda: unasked(_sifted(unit, fleet, profile)), "facts")
    return fleet.remembered(("outlook", key), lambda: unasked(_looked(sifted, unit, fleet, profile)), "outlooks")


def _sifted(unit: Unit, fleet: Fleet, profile: Profile) -> Generator[Ask, Reply, Sifted]:
    return Sifted(unit, (yield from run_filters(profile.filters, unit, fleet)))


def _looked(sifted: Sifted, unit: Unit, fleet: Fleet, profile: Profile) -> Generator[Ask, Reply, Outlook]:
    feasible = sifted.filtered.feasible
    if not feasible.any():
        return Outlook(sifted)
    scored = yield from run_scores(profile.scores, unit, fleet, feasible)
    ranked = yield from run_selects(profile.selects, unit, fleet, scored.ranked)
    return Outlook(sifted, scored, ranked)


def unasked(steps: Generator[Ask, Reply, T]) -> T:
    """Runs to the end what may ask, where there is nobody to ask."""
    try:
        ask = next(steps)
        while True:
            ask = steps.throw(FrameworkError(NOBODY_TO_ASK.format(phase=ask.plugin.phase, plugin=ask.plugin.name)))
    except StopIteration as done:
        result: T = done.value
        return result
