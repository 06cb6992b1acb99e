"""Profiles: what a SchedulingProfile makes of the plugins there are, and what it tells its author."""

import numpy as np
import pytest

from argosy.api.profiles import SchedulingProfile
from argosy.fleet.snapshot import Fleet
from argosy.kube.objects import Metadata, decode, encode
from argosy.plan.plugins import DEFAULT_PROFILE, IN_TREE
from argosy.plan.scheduling.framework import Division, Filter, FrameworkError, Profile, Remote, Replicas, Score, Select
from argosy.plan.scheduling.profile import Registry, RemotePlugin, content_of, merge_profile, unused
from argosy.plan.scheduling.schedule import schedule
from argosy.plan.scheduling.unit import Unit
from argosy.plugins import cluster


def profile(config=(), **plugins):
    body = {"metadata": {"name": "p"}, "spec": {"plugins": plugins, "pluginConfig": list(config)}}
    return decode(encode(body), SchedulingProfile)


def named(*names, **fields):
    return {"enabled": [{"name": name, **fields} for name in names]}


def filter_of(name, limit=0):
    def configure(arguments):
        if not isinstance(arguments, dict) or not isinstance(arguments.get("limit"), int):
            raise ValueError("limit must be a whole number")
        return filter_of("another", arguments["limit"])

    return Filter(name, lambda unit, fleet: np.arange(len(fleet)) < limit, lambda *_: f"beyond {limit}", configure)


def score_of(name, value=10):
    return Score(
        name,
        lambda unit, fleet: np.full(len(fleet), value),
        configure=lambda arguments: score_of(name, arguments),
    )


def equal_parts(name="Equal"):
    def divide(unit, fleet, rows):
        return Division(np.full(len(rows), unit.desired_replicas // len(rows)), np.zeros(len(rows), dtype=np.int64))

    return Replicas(name, divide)


REGISTRY = IN_TREE.with_plugins(
    [filter_of("Some"), score_of("Ten"), Select("All", lambda unit, fleet, ranked: ranked), equal_parts()],
    "package 1.0",
)


def merged(wanted, registry=REGISTRY):
    return merge_profile(DEFAULT_PROFILE, registry, wanted.spec)


@pytest.mark.parametrize(
    ("stated", "weight"),
    [({}, 1), ({"weight": 3}, 3), ({"wait": 4}, 4), ({"wait": 4, "weight": 2}, 2), ({"wait": 0}, 1)],
)
def test_a_score_counts_with_its_weight_in_either_spelling(stated, weight):
    scores = merged(profile(score=named("Ten", **stated))).scores
    assert scores[-1].weight == weight
    fleet = Fleet.of([cluster("m1"), cluster("m2")])
    only = Profile(scores=scores[-1:])
    assert schedule(Unit(), fleet, only).scores == {"m1": 10 * weight, "m2": 10 * weight}


def test_a_webhook_counts_with_its_weight():
    registry = REGISTRY.with_remotes([RemotePlugin("hook", ("score",))])
    assert merged(profile(score=named("hook", weight=5)), registry).scores[-1] == Remote("hook", "score", 5)


@pytest.mark.parametrize("weight", [-1, 10**10])
def test_a_weight_that_cannot_be_counted_with_is_refused(weight):
    with pytest.raises(FrameworkError, match="the weight of plugin 'Ten' must be from 1 to"):
        merged(profile(score=named("Ten", weight=weight)))


def test_arguments_reach_the_plugin_and_its_name_and_weight_stay():
    wanted = profile(
        [{"name": "Some", "args": {"limit": 1}}, {"name": "Ten", "args": 30}],
        filter=named("Some"),
        score=named("Ten", weight=2),
    )
    plugins = merged(wanted)
    assert plugins.filters[-1].name == "Some"
    assert (plugins.scores[-1].name, plugins.scores[-1].weight) == ("Ten", 2)
    decision = schedule(
        Unit(group="apps", version="v1", kind="Deployment"), Fleet.of([cluster("m1"), cluster("m2")]), plugins
    )
    assert decision.rejected == {"m2": ("Some", "beyond 1")}
    assert dict(decision.scored.by_plugin)["Ten"].tolist() == [60]
    assert unused(plugins, wanted.spec) == []


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ([{"name": "Some", "args": {"limit": "x"}}], "pluginConfig of 'Some': limit must be a whole number"),
        ([{"name": "Some"}], "pluginConfig of 'Some': limit must be a whole number"),
        ([{"name": "Some", "args": {"limit": 1}}] * 2, "pluginConfig has arguments for 'Some' twice"),
    ],
)
def test_wrong_arguments_are_told(config, message):
    with pytest.raises(FrameworkError, match=message):
        merged(profile(config, filter=named("Some")))


def test_a_plugin_that_fails_on_its_arguments_or_becomes_another_kind_is_told():
    broken = Filter("Broken", lambda u, f: f.everyone, lambda *_: "", lambda arguments: arguments["missing"])
    turncoat = Filter("Turncoat", lambda u, f: f.everyone, lambda *_: "", lambda arguments: score_of("Turncoat"))
    registry = IN_TREE.with_plugins([broken, turncoat], "package 1.0")
    with pytest.raises(FrameworkError, match="pluginConfig of 'Broken': KeyError: 'missing'"):
        merged(profile([{"name": "Broken", "args": {}}], filter=named("Broken")), registry)
    with pytest.raises(FrameworkError, match="configure returned another type of plugin"):
        merged(profile([{"name": "Turncoat", "args": {}}], filter=named("Turncoat")), registry)


def test_arguments_nobody_takes_are_named_and_change_nothing():
    """KubeAdmiral ignores them all: a profile with such a list keeps working."""
    wanted = profile([{"name": "TaintToleration", "args": 1}, {"name": "Nobody"}, {"name": "Ten", "args": 1}])
    plugins = merged(wanted)
    assert plugins == DEFAULT_PROFILE
    assert unused(plugins, wanted.spec) == ["TaintToleration", "Nobody", "Ten"]


@pytest.mark.parametrize(
    ("plugins", "message"),
    [
        ({"filter": named("Nobody")}, "there is no filter plugin 'Nobody'"),
        ({"filter": named("Ten")}, r"'Ten' is not a filter plugin \(it is one for: score\)"),
        ({"select": named("Equal")}, r"'Equal' is not a select plugin \(it is one for: replicas\)"),
        ({"score": named("Ten", "Ten")}, "score plugin 'Ten' is enabled twice"),
        ({"filter": named("ClusterReady")}, "filter plugin 'ClusterReady' is enabled twice"),
        ({"filter": {"enabled": [{}]}}, "there is no filter plugin ''"),
    ],
)
def test_mistakes_are_told(plugins, message):
    with pytest.raises(FrameworkError, match=message):
        merged(profile(**plugins))


class TestReplicas:
    def test_a_plugin_divides_for_all_strategies_or_for_its_own(self):
        everywhere = merged(profile(replicas=named("Equal"))).replicas
        assert {plugin.name for plugin in everywhere.values()} == {"Equal"}
        assert everywhere.keys() == DEFAULT_PROFILE.replicas.keys()
        own = merged(profile(replicas=named("Equal", strategy="Binpack"))).replicas
        assert own == {**DEFAULT_PROFILE.replicas, "Binpack": REGISTRY.replicas["Equal"]}

    def test_the_division_is_its_own(self):
        unit = Unit(group="apps", version="v1", kind="Deployment", mode="Divide", desired_replicas=9, weights={"m1": 1})
        clusters = Fleet.of([cluster(name) for name in ("m1", "m2", "m3")])
        assert schedule(unit, clusters).placements == {"m1": 9}
        plugins = merged(profile(replicas=named("Equal")))
        assert schedule(unit, clusters, plugins).placements == {"m1": 3, "m2": 3, "m3": 3}

    def test_one_for_a_strategy_goes_before_one_for_all(self):
        registry = REGISTRY.with_plugins([equal_parts("Mine")], "mine 1")
        enabled = [{"name": "Mine", "strategy": "Spread"}, {"name": "Equal"}]
        replicas = merged(profile(replicas={"enabled": enabled}), registry).replicas
        assert replicas["Spread"].name == "Mine"
        assert replicas["Binpack"].name == "Equal"

    def test_two_for_one_strategy_are_refused(self):
        with pytest.raises(FrameworkError, match="'Equal' and 'ClusterCapacityWeight' both divide for all strategies"):
            merged(profile(replicas=named("Equal", "ClusterCapacityWeight")))

    def test_a_strategy_whose_planner_is_disabled_is_not_served(self):
        replicas = merged(profile(replicas={"disabled": [{"name": "ClusterCapacityWeight"}]})).replicas
        assert "Spread" not in replicas
        unit = Unit(group="apps", version="v1", kind="Deployment", mode="Divide", desired_replicas=1)
        decision = schedule(unit, Fleet.of([cluster("m1")]), Profile(replicas=replicas))
        assert decision.unschedulable
        assert decision.message == "there is no replicas plugin for strategy 'Spread'"

    def test_a_profile_that_says_nothing_changes_nothing(self):
        assert merged(profile()) == DEFAULT_PROFILE


class TestNames:
    def test_a_webhook_named_like_a_plugin_breaks_the_profiles_that_name_it_and_no_others(self):
        registry = REGISTRY.with_remotes(
            [RemotePlugin("ClusterResourcesFit", ("filter",)), RemotePlugin("Ten", ("filter",))]
        )
        with pytest.raises(FrameworkError, match="'Ten' cannot be used: a webhook has the name of another plugin"):
            merged(profile(filter=named("Ten")), registry)
        with pytest.raises(FrameworkError, match="cannot be used"):
            merged(profile(score=named("Ten")), registry)
        assert merged(profile(filter=named("Some")), registry).filters[-1].name == "Some"
        assert merged(profile(), registry) == DEFAULT_PROFILE

    def test_a_package_cannot_take_a_name(self):
        registry = IN_TREE.with_plugins([score_of("ClusterAffinity")], "package 1.0")
        with pytest.raises(FrameworkError, match=r"package 1\.0 has a plugin whose name is taken"):
            merged(profile(score={**named("ClusterAffinity"), "disabled": [{"name": "*"}]}), registry)
        assert merged(profile(), registry) == DEFAULT_PROFILE

    def test_one_name_may_stand_for_plugins_of_several_points(self):
        registry = IN_TREE.with_plugins([filter_of("Weather"), score_of("Weather")], "package 1.0")
        plugins = merged(profile(filter=named("Weather"), score=named("Weather")), registry)
        assert (plugins.filters[-1].name, plugins.scores[-1].name) == ("Weather", "Weather")

    def test_two_plugins_of_one_package_that_are_the_same_are_refused(self):
        registry = IN_TREE.with_plugins([score_of("Ten"), score_of("Ten", 3)], "package 1.0")
        with pytest.raises(FrameworkError, match=r"package 1\.0 has two score plugins of that name"):
            merged(profile(score=named("Ten")), registry)


class TestContent:
    def test_it_changes_with_what_the_profile_says(self):
        contents = {
            content_of(each, REGISTRY)
            for each in (
                profile(),
                profile(score=named("Ten")),
                profile(score=named("Ten", weight=2)),
                profile([{"name": "Ten", "args": 1}], score=named("Ten")),
                profile([{"name": "Ten", "args": 2}], score=named("Ten")),
            )
        }
        assert len(contents) == 5

    def test_it_changes_with_what_is_behind_a_name_in_it(self):
        named_ten, other = profile(score=named("Ten")), profile(score=named("MyScore"))
        newer = IN_TREE.with_plugins([score_of("Ten")], "package 1.1")
        older = IN_TREE.with_plugins([score_of("Ten")], "package 1.0")
        assert content_of(named_ten, older) != content_of(named_ten, newer)
        assert content_of(other, older) == content_of(other, newer)

    def test_the_order_of_arguments_does_not_matter_and_neither_does_the_name_of_the_profile(self):
        one = profile([{"name": "Ten", "args": {"a": 1, "b": 2}}])
        two = profile([{"name": "Ten", "args": {"b": 2, "a": 1}}])
        assert content_of(one, REGISTRY) == content_of(two, REGISTRY)
        assert content_of(SchedulingProfile(Metadata(name="q"), one.spec), REGISTRY) == content_of(one, REGISTRY)


def test_an_empty_registry_knows_nobody():
    with pytest.raises(FrameworkError, match="there is no select plugin 'MaxCluster'"):
        merge_profile(Profile(), Registry(), profile(select=named("MaxCluster")).spec)
