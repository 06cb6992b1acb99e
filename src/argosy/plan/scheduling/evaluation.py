"""Evaluation of the clusters for an object, before its replicas are divided: refusals with reasons, scores, the order.

Evaluations are cached with the fleet and shared: of a thousand objects of one policy most find theirs ready. Two objects
share one if they ask the same of clusters (`Unit.question`) and run in the same `Fleet.tainted_or_unready` clusters, or, if
they stay put, in the same clusters. The parts of a decision's record that follow from an evaluation alone are cached with it.
The filters' results do not depend on available resources, and so are cached for longer.
"""

from collections.abc import Generator
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np

from argosy.fleet.snapshot import Column, Fleet
from argosy.plan.explain.packing import Packing
from argosy.plan.scheduling.framework import (
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
from argosy.plan.scheduling.unit import Unit

__all__ = ["Evaluation", "Summary", "evaluate", "without_remote_plugins"]

NOBODY_TO_ASK = "{phase} plugin {plugin!r} cannot be asked here"

#: Reasons come from any plugin; the record keeps few and short ones.
_REASONS_KEPT = 32
_LONGEST_REASON = 160
_OTHER_REASON = "another reason"
_LARGEST_SCORE = 2**38

T = TypeVar("T")


class Evaluation(msgspec.Struct, frozen=True, eq=False):
    """Without a feasible cluster there are no scores. Holds no reference to the fleet that caches it."""

    filter_run: "FilterRun"
    scored: Scored | None = None
    #: The selected clusters, best first.
    ranked: Ranked | None = None
    _summary: list["Summary"] = msgspec.field(default_factory=list)

    @property
    def filtered(self) -> Filtered:
        return self.filter_run.filtered

    def summary(self, fleet: Fleet) -> "Summary":
        """The part of the record that follows from it, computed on first use."""
        if not self._summary:
            self._summary.append(_summary(self, fleet))
        return self._summary[0]


class Refusals(NamedTuple):
    """Filter and reason, each once, and which of them (from 1) excluded a cluster; 0 if none did."""

    texts: tuple[tuple[str, str], ...]
    codes: Column
    packing: Packing


class FilterRun(msgspec.Struct, frozen=True, eq=False):
    """The filters' results, and the unit they are for."""

    unit: Unit
    filtered: Filtered
    _refusals: list[Refusals] = msgspec.field(default_factory=list)

    def refusals(self, fleet: Fleet) -> Refusals:
        """The reasons, computed on first use."""
        if not self._refusals:
            self._refusals.append(_refusals(self, fleet))
        return self._refusals[0]


def _refusals(filter_run: FilterRun, fleet: Fleet) -> Refusals:
    refused = np.zeros(len(fleet), dtype=np.int64)
    codes: dict[tuple[str, str], int] = {}
    for position in filter_run.filtered.refused_by():
        plugin = filter_run.filtered.plugins[position].name
        rows, reasons = filter_run.filtered.reasons(filter_run.unit, fleet, position)
        of_text = []
        for text in reasons.texts:
            kept = text[:_LONGEST_REASON] if len(codes) < _REASONS_KEPT else _OTHER_REASON
            of_text.append(codes.setdefault((plugin, kept), len(codes) + 1))
        refused[rows] = of_text[0] if len(of_text) == 1 else np.array(of_text, dtype=np.int64)[reasons.codes]
    return Refusals(tuple(codes), refused, Packing().add(refused))


class Summary(msgspec.Struct, frozen=True, eq=False):
    """The part of a decision's record that follows from its evaluation."""

    #: Filter and reason, each once, and which of them (from 1) excluded a cluster; 0 if none did.
    refusals: tuple[tuple[str, str], ...]
    refused: Column
    #: Whether the selected clusters are the best ones in the order of their scores, and so need not be recorded.
    follows_scores: bool
    #: Refusals and scores.
    packing: Packing


def _summary(evaluation: Evaluation, fleet: Fleet) -> Summary:
    refusals = evaluation.filter_run.refusals(fleet)
    scores = () if evaluation.scored is None else (column for _, column in evaluation.scored.by_plugin)
    follows = _follows_scores(evaluation, len(fleet))
    return Summary(refusals.texts, refusals.codes, follows, refusals.packing.add(*scores))


def _follows_scores(evaluation: Evaluation, clusters: int) -> bool:
    if evaluation.ranked is None or evaluation.scored is None or not len(evaluation.ranked.rows):
        return True
    rows, scores = evaluation.scored.ranked
    if int(np.abs(scores).max()) > _LARGEST_SCORE:
        return False
    # One number per cluster that grows from the best to the worst.
    place = np.zeros(clusters, dtype=np.int64)
    place[rows] = rows - (scores << 24)
    chosen = place[evaluation.ranked.rows]
    if not (chosen[1:] > chosen[:-1]).all():
        return False
    return len(chosen) == len(rows) or int((place[rows] <= chosen[-1]).sum()) == len(chosen)


def evaluate(unit: Unit, fleet: Fleet, profile: Profile) -> Generator[Ask, Reply, Evaluation]:
    """Filter, score and select. Raises FrameworkError."""
    question = unit.question if profile.shared_as else None
    if question is None:
        filter_run = yield from _filter_run(unit, fleet, profile)
        return (yield from _scored(filter_run, unit, fleet, profile))
    key = (profile.shared_as, question, fleet.mask_of(unit.current)[fleet.tainted_or_unready].tobytes())
    filter_run = fleet.remembered(
        ("filter_run", key), lambda: without_remote_plugins(_filter_run(unit, fleet, profile)), "facts"
    )
    selected_from = fleet.mask_of(unit.current).tobytes() if unit.stays_put else b""
    return fleet.remembered(
        ("evaluation", key, selected_from),
        lambda: without_remote_plugins(_scored(filter_run, unit, fleet, profile)),
        "evaluations",
    )


def _filter_run(unit: Unit, fleet: Fleet, profile: Profile) -> Generator[Ask, Reply, FilterRun]:
    return FilterRun(unit, (yield from run_filters(profile.filters, unit, fleet)))


def _scored(filter_run: FilterRun, unit: Unit, fleet: Fleet, profile: Profile) -> Generator[Ask, Reply, Evaluation]:
    feasible = filter_run.filtered.feasible
    if not feasible.any():
        return Evaluation(filter_run)
    scored = yield from run_scores(profile.scores, unit, fleet, feasible)
    ranked = yield from run_selects(profile.selects, unit, fleet, scored.ranked)
    return Evaluation(filter_run, scored, ranked)


def without_remote_plugins(steps: Generator[Ask, Reply, T]) -> T:
    """Runs a decision without remote plugins: each question to one fails."""
    try:
        ask = next(steps)
        while True:
            ask = steps.throw(FrameworkError(NOBODY_TO_ASK.format(phase=ask.plugin.phase, plugin=ask.plugin.name)))
    except StopIteration as done:
        result: T = done.value
        return result
