"""What operators declare of clusters: power and price; what cannot be read changes nothing."""

import pytest

from argosy.api import keys
from argosy.fleet.declared import declared_power, declared_price
from argosy.kube.objects import Metadata
from tests.unit.plan.scheduling import cluster, fleet

POOLS = '{"old": {"cores": 300, "power": "0.8"}, "new": {"cores": "100", "power": 1.6}}'


@pytest.mark.parametrize(
    ("annotations", "power"),
    [
        ({}, 1000),
        ({keys.COMPUTE_POWER: "1.25"}, 1250),
        ({keys.COMPUTE_POWER: "800m"}, 800),
        ({keys.COMPUTE_POWER: "fast"}, 1000),
        ({keys.COMPUTE_POWER: "0"}, 1000),
        ({keys.COMPUTE_POWER: "-2"}, 1000),
        ({keys.COMPUTE_POWER: "1001"}, 1000),
        ({keys.COMPUTE_POWER_POOLS: POOLS}, 1000),
        ({keys.COMPUTE_POWER_POOLS: POOLS.replace("300", "100")}, 1200),
        ({keys.COMPUTE_POWER_POOLS: "{}"}, 1000),
        ({keys.COMPUTE_POWER_POOLS: "[1"}, 1000),
        ({keys.COMPUTE_POWER_POOLS: '{"a": {"cores": 0, "power": 2}}'}, 1000),
        ({keys.COMPUTE_POWER_POOLS: '{"a": {"cores": 1}}'}, 1000),
        ({keys.COMPUTE_POWER: "2", keys.COMPUTE_POWER_POOLS: POOLS}, 2000),
    ],
)
def test_power_is_declared_whole_or_by_pools(annotations, power):
    assert declared_power(Metadata(annotations=annotations)) == power


def test_a_label_will_do():
    assert declared_power(Metadata(labels={keys.COMPUTE_POWER: "1.5"})) == 1500
    assert declared_price(Metadata(labels={keys.PRICE_PER_CORE_HOUR: "0.04"})) == 40_000_000


@pytest.mark.parametrize(
    ("text", "price"), [("0.032", 32_000_000), ("0", 0), ("free", None), ("-1", None), ("1e30", None), (None, None)]
)
def test_a_price_is_a_decimal(text, price):
    annotations = {} if text is None else {keys.PRICE_PER_CORE_HOUR: text}
    assert declared_price(Metadata(annotations=annotations)) == price


def test_columns_follow_what_is_declared_and_are_shared_otherwise():
    before = fleet("a", cluster("b", annotations={keys.COMPUTE_POWER: "2", keys.PRICE_PER_CORE_HOUR: "0.5"}))
    assert (before.power.tolist(), before.price.tolist()) == ([1000, 2000], [-1, 500_000_000])
    after = before.with_cluster(cluster("a", annotations={keys.PRICE_PER_CORE_HOUR: "0.1"}))
    assert after.price.tolist() == [100_000_000, 500_000_000]
    assert after.power is before.power
