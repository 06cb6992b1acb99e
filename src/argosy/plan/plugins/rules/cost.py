"""Cost: prefer clusters whose core-hours are cheap, and place nothing new above a price.

Prices are declared per cluster (`fleet.declared`). If the policy counts cores by their power, the price is that of an
effective core.
"""

import numpy as np

from argosy.fleet.declared import POWER_OF_REFERENCE
from argosy.fleet.snapshot import Column, Fleet, Mask
from argosy.plan.plugins.rules.compute_power import counts_power
from argosy.plan.scheduling.framework import MAX_SCORE, Always, Filter, Score
from argosy.plan.scheduling.unit import Unit

REASON = "cluster(s) were above the price limit, or declared no price"
REMEDY = (
    "a lower price in the cluster's annotation argosy.io/price-per-core-hour, or a higher limit in the policy's cost"
)
_NOT_DECLARED = -1


def feasible(unit: Unit, fleet: Fleet) -> Mask:
    """A rising price moves nothing that already runs in the cluster."""
    rule = unit.rules.cost
    if rule is None or rule.max_price is None:
        return fleet.everyone
    prices = _prices(unit, fleet)
    allowed: Mask = (prices != _NOT_DECLARED) & (prices <= rule.max_price)
    return allowed | fleet.mask_of(unit.current)


def score(unit: Unit, fleet: Fleet) -> Column:
    rule = unit.rules.cost
    if rule is None or not rule.prefer_lowest:
        return fleet.zeros
    return _prices(unit, fleet)


def normalize(prices: Column) -> Column:
    """The lowest price in per cent of the cluster's own; 0 if it declares none."""
    declared = prices[prices != _NOT_DECLARED]
    if not len(declared):
        return np.zeros(len(prices), dtype=np.int64)
    cheapest = int(declared.min())
    if cheapest == 0:
        return np.where(prices == 0, MAX_SCORE, 0)
    return np.where(prices == _NOT_DECLARED, 0, MAX_SCORE * cheapest // np.maximum(prices, 1))


def _prices(unit: Unit, fleet: Fleet) -> Column:
    if not counts_power(unit):
        return fleet.price
    effective = fleet.price * POWER_OF_REFERENCE // fleet.power
    return np.where(fleet.price == _NOT_DECLARED, _NOT_DECLARED, effective)


FILTER = Filter("Cost", feasible, Always(REASON), remedy=REMEDY, spares_running=True)
SCORE = Score("Cost", score, normalize)
