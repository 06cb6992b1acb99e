"""ComputePower: cores of different generations differ in speed. Count cores by their power, and keep a service on similar ones.

Power is declared per cluster (`fleet.declared`). Weights that follow capacity may count effective cores, and a running
service prefers clusters whose cores have about the same power as those it runs on.
"""

import numpy as np

from argosy.fleet.declared import POWER_OF_REFERENCE
from argosy.fleet.snapshot import Column, Fleet
from argosy.plan.scheduling.framework import MAX_SCORE, Score
from argosy.plan.scheduling.unit import Unit

#: The largest number of millicores counted, so that a product with the power fits 64 bits.
_MOST_MILLI = 2**42


def counts_power(unit: Unit) -> bool:
    """Whether the policy counts cores by their power."""
    rule = unit.rules.compute_power
    return rule is not None and rule.normalize_capacity


def effective(unit: Unit, fleet: Fleet, milli: Column) -> Column:
    """Millicores of all clusters, in cores of the fleet's reference if the policy asks for that."""
    if not counts_power(unit):
        return milli
    cores: Column = np.clip(milli, -_MOST_MILLI, _MOST_MILLI) * fleet.power // POWER_OF_REFERENCE
    return cores


def score(unit: Unit, fleet: Fleet) -> Column:
    """How near a cluster's power is to the mean of the unit's clusters: the smaller in per cent of the larger."""
    rule = unit.rules.compute_power
    if rule is None or not rule.prefer_consistent:
        return fleet.zeros
    running = fleet.rows_of(unit.current)
    power = fleet.power
    if not len(running) or (power == power[0]).all():
        return fleet.zeros
    # Placed without a number, or with 0: the object is there all the same.
    replicas = np.maximum(fleet.column({name: number or 1 for name, number in unit.current.items()})[running], 1)
    replicas = np.minimum(replicas, _MOST_MILLI // len(running))
    mean = int((power[running] * replicas).sum() // replicas.sum())
    nearness: Column = MAX_SCORE * np.minimum(power, mean) // np.maximum(power, mean)
    return nearness


SCORE = Score("ComputePower", score)
