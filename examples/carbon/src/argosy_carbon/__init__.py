"""Scheduling by carbon intensity: prefer clusters whose power is clean, and leave out those whose power is not.

Clusters state it in a label, in grams of CO₂ a kilowatt-hour. A cluster without a readable label counts as dirty: not to know is
no merit, and no reason to be refused either.
"""

from typing import Any

import numpy as np

from argosy.plugins import Column, Filter, Fleet, Mask, Score, Unit, share_of_best

LABEL = "example.com/gco2-per-kwh"
#: What coal makes.
DIRTY = 1000
REASON = "cluster(s) make more than {limit} g of CO2 a kWh"


def intensity(fleet: Fleet, unknown: int) -> Column:
    """Grams a kilowatt-hour of every cluster, in the order of `fleet.names`."""
    label = fleet.labelled(LABEL)
    # Few clusters have a value of their own: each distinct one is read once. A cluster without the label has code -1, and so
    # the last of them.
    grams = [int(value) if value.isascii() and value.isdigit() else unknown for value in label.values]
    return np.array([*grams, unknown], dtype=np.int64)[label.codes]


def score(unit: Unit, fleet: Fleet) -> Column:
    """How much cleaner than the dirtiest."""
    grams = np.minimum(intensity(fleet, DIRTY), DIRTY)
    return DIRTY - grams


def limited_to(limit: int) -> Filter:
    def feasible(unit: Unit, fleet: Fleet) -> Mask:
        return intensity(fleet, unknown=0) <= limit

    return Filter(
        "CarbonLimit", feasible, reason=lambda unit, fleet, row: REASON.format(limit=limit), configure=configured
    )


def configured(arguments: Any) -> Filter:
    """The filter with the arguments that a profile's pluginConfig has for it; a ValueError is told to its author."""
    limit = arguments.get("limit") if isinstance(arguments, dict) else None
    if not isinstance(limit, int) or limit < 0:
        raise ValueError("args.limit must be a whole number of grams, 0 or more")
    return limited_to(limit)


PLUGINS = [Score("CarbonIntensity", score, share_of_best), limited_to(DIRTY)]
