"""Locality: prefer clusters near a place, given by labels from the nearest (its zone, say) to the farthest (its continent)."""

import numpy as np

from argosy.fleet.snapshot import Column, Fleet
from argosy.plan.scheduling.framework import MAX_SCORE, Score
from argosy.plan.scheduling.unit import Unit


def score(unit: Unit, fleet: Fleet) -> Column:
    """100 for the nearest, evenly less for each step away, 0 if no label matches."""
    rule = unit.rules.locality
    if rule is None:
        return fleet.zeros
    scores = np.zeros(len(fleet), dtype=np.int64)
    steps = len(rule.near)
    for away, term in enumerate(rule.near):
        values, codes = fleet.labelled(term.topology_key)
        if term.value in values:
            there = codes == values.index(term.value)
            scores = np.maximum(scores, np.where(there, MAX_SCORE * (steps - away) // steps, 0))
    return scores


SCORE = Score("Locality", score)
