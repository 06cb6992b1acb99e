"""Completions: how a Job's completions and parallelism are shared among clusters (NonIndexed).

A member's Job never allows its completions to change, so a cluster keeps its completions as long as it has the Job. The
completions of a cluster that goes can only be given to clusters that have none yet. Parallelism follows the planner, but
every cluster with completions gets some: otherwise it would never finish.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from argosy.fleet.snapshot import Column
from argosy.plan.replicas.webster import apportioned

__all__ = ["JobPart", "job_parts"]


class JobPart(NamedTuple):
    parallelism: int
    completions: int


def job_parts(
    completions: int,
    wanted: Mapping[str, int],
    held: Mapping[str, int],
    elsewhere: int = 0,
    open_to: Sequence[str] | None = None,
) -> dict[str, JobPart]:
    """The part of each cluster that gets one.

    `wanted` is the parallelism a planner gives to each cluster, `held` the completions of those that may keep theirs, and
    `elsewhere` the completions that are done, or still at work, in clusters that were left. Only clusters in `open_to` may be
    given completions, best first; None for all that are wanted.

    Completions add up to the total unless all clusters that may take some already have theirs. Parallelism does, too, unless
    there are more clusters at work than parallelism, or too few completions left to use it.
    """
    if sum(held.values()) > completions:
        held = {}
    parallelism = sum(wanted.values())
    shares = {name: number for name, number in held.items() if number > 0}
    lost = completions - sum(shares.values()) - elsewhere
    asked = {name: wanted.get(name, 0) for name in shares}
    if lost > 0:
        asked |= _newcomers(lost / completions, wanted, shares, open_to)
    newcomers = sorted(asked.keys() - shares.keys())
    if newcomers:
        weights = _column([asked[name] for name in newcomers])
        given = apportioned(lost, np.ones_like(weights), np.full_like(weights, lost), weights, _order(weights))
        shares |= {name: number for name, number in zip(newcomers, given.tolist(), strict=True) if number}
    names = sorted(shares)
    numbers = _parallelism(
        parallelism, _column([asked[name] for name in names]), _column([shares[name] for name in names])
    )
    return {name: JobPart(number, shares[name]) for name, number in zip(names, numbers, strict=True)}


def _newcomers(
    lost: float, wanted: Mapping[str, int], shares: Mapping[str, int], open_to: Sequence[str] | None
) -> dict[str, int]:
    """The clusters that take over what no cluster has, each with its parallelism; `lost` is that part of the whole.

    Those the planner wants. If it wants none, because those at work have all of the parallelism, then others that may be given
    some, but no more of them than there is parallelism for.
    """
    allowed = sorted(wanted) if open_to is None else open_to
    chosen = {name: wanted[name] for name in allowed if name not in shares and wanted.get(name, 0) > 0}
    parallelism = sum(wanted.values())
    if chosen or parallelism <= 0:
        return chosen
    others = [name for name in allowed if name not in shares][: max(parallelism - len(shares), 1)]
    return dict.fromkeys(others, max(round(parallelism * lost / len(others)), 1)) if others else {}


def _parallelism(total: int, wanted: Column, completions: Column) -> list[int]:
    if total <= 0:
        return [0] * len(wanted)
    at_least = np.maximum(wanted, 1)
    surplus = int(at_least.sum()) - total
    if surplus == 0:
        numbers = at_least
    elif surplus > 0:
        numbers = apportioned(max(total, len(wanted)), np.ones_like(wanted), at_least, at_least, _order(wanted))
    else:
        numbers = apportioned(total, at_least, np.maximum(at_least, completions), completions, _order(wanted))
    result: list[int] = numbers.tolist()
    return result


def _column(numbers: list[int]) -> Column:
    return np.array(numbers, dtype=np.int64)


def _order(column: Column) -> Column:
    return np.arange(len(column), dtype=np.int64)
