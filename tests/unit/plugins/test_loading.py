"""Plugins of packages: found by entry point, and none of them, however broken, costs more than itself."""

import types
from importlib.metadata import EntryPoint

import msgspec
import numpy as np
import pytest

from argosy.api.profiles import SchedulingProfile
from argosy.fleet.snapshot import Fleet
from argosy.kube.objects import decode, encode
from argosy.plan.plugins import DEFAULT_PROFILE, IN_TREE
from argosy.plan.scheduling.framework import FrameworkError
from argosy.plan.scheduling.schedule import profile_of, schedule
from argosy.plugins import (
    Always,
    Division,
    Filter,
    PluginError,
    Ranked,
    Reasons,
    Replicas,
    Score,
    Select,
    Unit,
    cluster,
    installed,
    try_out,
)

FLEET = Fleet.of([cluster("m1"), cluster("m2")])
WEB = Unit(group="apps", version="v1", kind="Deployment", name="web")
DIVIDED = Unit(group="apps", version="v1", kind="Deployment", name="web", mode="Divide", desired_replicas=4)


@pytest.fixture
def package(monkeypatch):
    """A module with these values, and entry points to them."""

    def make(**values):
        module = types.ModuleType("theirs")
        module.__dict__.update(values)
        monkeypatch.setitem(__import__("sys").modules, "theirs", module)
        return [EntryPoint(name, f"theirs:{name}", "argosy.plugins") for name in values]

    return make


def first(unit, fleet):
    return np.arange(len(fleet)) < 1


def profile(**plugins):
    body = {"metadata": {"name": "p"}, "spec": {"plugins": {k: {"enabled": [{"name": v}]} for k, v in plugins.items()}}}
    return decode(encode(body), SchedulingProfile)


class TestLoading:
    def test_a_plugin_or_a_list_of_them(self, package):
        mine = Filter("First", first, Always("not the first"))
        both = [Score("Ten", lambda unit, fleet: np.full(len(fleet), 10)), Select("All", lambda u, f, ranked: ranked)]
        registry = installed(package(mine=mine, both=both))
        plugins = profile_of(profile(filter="First", score="Ten", select="All"), registry)
        assert schedule(WEB, FLEET, plugins).rejected == {"m2": ("First", "not the first")}
        assert registry.contents == {"First": "theirs:mine", "Ten": "theirs:both", "All": "theirs:both"}

    @pytest.mark.parametrize(
        ("value", "why"),
        [
            (7, "a plugin or a list of plugins is needed, not int"),
            ([first], "a Filter, Score, Select or Replicas is needed, not function"),
            (Filter("", first, Always("")), "a plugin has no name"),
        ],
    )
    def test_what_is_no_plugin_is_told_to_who_names_it(self, package, value, why):
        good = Filter("First", first, Always("not the first"))
        registry = installed(package(broken=value, good=good))
        with pytest.raises(FrameworkError, match=f"'broken' cannot be used: theirs:broken cannot be loaded: .*{why}"):
            profile_of(profile(filter="broken"), registry)
        assert profile_of(profile(filter="First"), registry).filters[-1].name == "First"

    def test_a_package_that_cannot_be_imported_costs_nobody_else(self):
        registry = installed([EntryPoint("gone", "there_is_no_such_module:X", "argosy.plugins")])
        with pytest.raises(FrameworkError, match="ModuleNotFoundError"):
            profile_of(profile(filter="gone"), registry)
        assert profile_of(profile(), registry) == DEFAULT_PROFILE

    def test_without_packages_there_is_what_is_built_in(self):
        assert installed([]) == IN_TREE


def failing(*_):
    raise KeyError("oops")


def refusing(*_):
    raise PluginError("not on Mondays")


class TestGuard:
    @pytest.mark.parametrize(
        "plugin",
        [
            Filter("Theirs", failing, Always("")),
            Score("Theirs", failing),
            Score("Theirs", lambda unit, fleet: np.ones(len(fleet), dtype=np.int64), failing),
            Select("Theirs", failing),
            Replicas("Theirs", failing),
        ],
    )
    def test_what_it_raises_is_told_with_its_name_and_takes_nothing_away(self, plugin, caplog):
        unit = DIVIDED if isinstance(plugin, Replicas) else WEB
        placed = {"m1": 4} if isinstance(plugin, Replicas) else {"m1": None}
        unit = msgspec.structs.replace(unit, current=placed)
        for _ in range(3):
            decision = try_out(unit, FLEET, plugin)
        assert decision.unschedulable
        assert "plugin 'Theirs' failed: KeyError: 'oops'" in decision.message
        assert decision.placements == placed
        assert "Traceback" in caplog.text

    def test_an_object_that_waits_for_a_plugin_is_still_scaled_where_it_is(self):
        placed = msgspec.structs.replace(
            DIVIDED, current={"m1": 1, "m2": 1}, desired_replicas=6, weights={"m1": 2, "m2": 1}
        )
        decision = try_out(placed, FLEET, Score("Theirs", failing))
        assert decision.unschedulable
        assert decision.placements == {"m1": 4, "m2": 2}

    def test_what_it_says_itself_is_told_as_it_is(self, caplog):
        decision = try_out(WEB, FLEET, Score("Theirs", refusing))
        assert decision.message == "plugin 'Theirs': not on Mondays"
        assert caplog.text == ""

    @pytest.mark.parametrize(
        ("answer", "why"),
        [
            (np.ones(3, dtype=np.bool_), "returned bool of shape (3,)"),
            (np.ones(2), "it must return one bool a cluster, and returned float64"),
            (True, "returned bool of shape ()"),
            (None, "returned object of shape ()"),
            ([[True], [True, False]], "it must return one bool a cluster"),
        ],
    )
    def test_a_filter_must_answer_for_every_cluster(self, answer, why):
        decision = try_out(WEB, FLEET, Filter("Theirs", lambda unit, fleet: answer, Always("")))
        assert decision.unschedulable
        assert why in decision.message

    def test_lists_will_do(self):
        plugins = (
            Filter("Theirs", lambda unit, fleet: [True, False], Always("no")),
            Score("Theirs", lambda unit, fleet: [1, 2]),
        )
        decision = try_out(WEB, FLEET, *plugins)
        assert decision.clusters == ("m1",)

    @pytest.mark.parametrize(
        "answer", [np.ones(2), np.array([2**60, 1]), np.ones(1, dtype=np.int64), "high", [None, 1]]
    )
    def test_scores_are_whole_numbers_that_can_be_added_up(self, answer):
        decision = try_out(WEB, FLEET, Score("Theirs", lambda unit, fleet: answer))
        assert decision.unschedulable
        assert "plugin 'Theirs' failed" in decision.message

    @pytest.mark.parametrize(
        "answer",
        [
            lambda ranked: ranked.rows,
            lambda ranked: Ranked(np.array([0, 0]), np.array([1, 1])),
            lambda ranked: Ranked(np.array([7]), np.array([1])),
            lambda ranked: Ranked(ranked.rows, ranked.scores[:1]),
            lambda ranked: Ranked(None, None),
        ],
    )
    def test_a_selection_is_of_what_there_is(self, answer):
        decision = try_out(WEB, FLEET, Select("Theirs", lambda unit, fleet, ranked: answer(ranked)))
        assert decision.unschedulable
        assert "plugin 'Theirs' failed" in decision.message

    @pytest.mark.parametrize(
        "answer", [None, Division(np.array([1]), np.array([0])), Division(np.array([-1, 5]), np.array([0, 0]))]
    )
    def test_a_division_is_of_the_clusters_given_and_not_negative(self, answer):
        decision = try_out(DIVIDED, FLEET, Replicas("Theirs", lambda unit, fleet, rows: answer))
        assert decision.unschedulable
        assert "plugin 'Theirs' failed" in decision.message

    def test_a_division_of_ones_own(self):
        last = Replicas(
            "Last", lambda unit, fleet, rows: Division(np.array([0, unit.desired_replicas]), np.array([0, 0]))
        )
        assert try_out(DIVIDED, FLEET, last).placements == {"m2": 4}

    def test_failing_to_say_why_refuses_all_the_same(self):
        for plugin in (
            Filter("Theirs", first, failing),
            Filter("Theirs", first, Always("x"), reasons=failing),
            Filter("Theirs", first, Always("x"), reasons=lambda *_: None),
            Filter("Theirs", first, Always("x"), reasons=lambda unit, fleet, rows: Reasons(("a",), np.array([7]))),
        ):
            decision = try_out(WEB, FLEET, plugin)
            assert decision.clusters == ("m1",)
            assert decision.rejected["m2"][1].startswith("plugin 'Theirs' failed")

    def test_what_it_becomes_with_arguments_is_checked_as_well(self):
        plugin = Score("Theirs", lambda unit, fleet: fleet.zeros, configure=lambda arguments: Score("Theirs", failing))
        assert "KeyError" in try_out(WEB, FLEET, plugin, arguments={"Theirs": 1}).message
        none = Score("Theirs", lambda unit, fleet: fleet.zeros, configure=lambda arguments: None)
        with pytest.raises(PluginError, match="configure returned NoneType, which is no plugin"):
            try_out(WEB, FLEET, none, arguments={"Theirs": 1})
