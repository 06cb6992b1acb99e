"""Completions: how a Job's completions and parallelism are shared among clusters (NonIndexed).

A member's Job never allows its completions to change, so a cluster keeps its completions as long as it has the Job. The
completions of a cluster that goes can only be given to clusters that have none yet. Parallelism follows the planner, but
every cluster with completions gets some: otherwise it would never finish.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from argosy.fleet.snapshot import Column
from argosy.plan.replicas.webster import apportioned

__all__ = ["JobPart", "job_parts"]


class JobPart(NamedTuple):
    parallelism: int
    completions: int


def job_parts(completions: int, wanted: Mapping[str, int], held: Mapping[str, int]) -> dict[str, JobPart]:
    """The part of each cluster that gets one.

    `wanted` is the parallelism a planner gives to each cluster, `held` the completions of those that may keep theirs.
    Completions add up to the total unless all clusters already have theirs. Parallelism does, too, unless there are more
    clusters at work than parallelism, or too few completions left to use it.
    """
    if sum(held.values()) > completions:
        held = {}
    parallelism = sum(wanted.values())
    shares = {name: number for name, number in held.items() if number > 0}
    lost = completions - sum(shares.values())
    newcomers = sorted(name for name, number in wanted.items() if number > 0 and name not in shares)
    if lost > 0 and newcomers:
        weights = _column([wanted[name] for name in newcomers])
        given = apportioned(lost, np.ones_like(weights), np.full_like(weights, lost), weights, _order(weights))
        shares |= {name: number for name, number in zip(newcomers, given.tolist(), strict=True) if number}
    names = sorted(shares)
    numbers = _parallelism(
        parallelism, _column([wanted.get(name, 0) for name in names]), _column([shares[name] for name in names])
    )
    return {name: JobPart(number, shares[name]) for name, number in zip(names, numbers, strict=True)}


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
