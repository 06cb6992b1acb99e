"""The plugins decide about clusters that exist in this file only."""

import pytest
from argosy_carbon import LABEL, PLUGINS

from argosy.plugins import PluginError, Unit, cluster, try_out

CLEAN, MIXED, DIRTY = (
    cluster(name, labels={LABEL: grams}) for name, grams in (("a", "30"), ("b", "400"), ("c", "900"))
)
SILENT = cluster("d")
WEB = Unit(group="apps", version="v1", kind="Deployment", name="web", max_clusters=1)


def test_clean_power_is_preferred():
    decision = try_out(WEB, [DIRTY, MIXED, CLEAN], *PLUGINS)
    assert decision.clusters == ("a",)


def test_a_cluster_that_does_not_say_comes_last_and_is_not_refused():
    decision = try_out(Unit(max_clusters=3), [SILENT, MIXED, CLEAN], *PLUGINS, alone=True)
    assert decision.selected[0] == "a"
    assert decision.scores == {"a": 100, "b": 61, "d": 0}


def test_clusters_above_the_limit_are_refused_with_a_reason():
    decision = try_out(WEB, [DIRTY, MIXED], *PLUGINS, arguments={"CarbonLimit": {"limit": 500}})
    assert decision.clusters == ("b",)
    assert decision.rejected == {"c": ("CarbonLimit", "cluster(s) make more than 500 g of CO2 a kWh")}


@pytest.mark.parametrize("arguments", [None, {}, {"limit": "500"}, {"limit": -1}])
def test_a_wrong_limit_is_told(arguments):
    with pytest.raises(PluginError, match=r"pluginConfig of 'CarbonLimit': args\.limit must be a whole number"):
        try_out(WEB, [CLEAN], *PLUGINS, arguments={"CarbonLimit": arguments})


def test_a_label_that_is_no_number_counts_as_none():
    odd = cluster("e", labels={LABEL: "clean!"})
    assert try_out(WEB, [odd, MIXED], *PLUGINS).clusters == ("b",)
