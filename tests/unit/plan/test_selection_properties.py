"""What must hold of filtering, selection and division together, in any world."""

import msgspec
from hypothesis import given, settings

from argosy.fleet.snapshot import Fleet
from argosy.plan.scheduling.schedule import schedule
from argosy.plan.scheduling.staying import closed_to_more
from tests.unit.plan.any_worlds import worlds


def decided(world, **changes):
    wanted, members = world
    return schedule(msgspec.structs.replace(wanted, sticky=False, **changes), Fleet.of(members))


@given(worlds())
@settings(max_examples=100, deadline=None)
def test_every_cluster_is_either_refused_or_scored_and_only_those_scored_are_selected(world):
    decision = decided(world)
    assert decision.rejected.keys().isdisjoint(decision.scores)
    assert {*decision.rejected, *decision.scores} == (
        set(decision.fleet.names) if decision.scores else decision.rejected.keys()
    )
    assert set(decision.selected) <= decision.scores.keys()
    assert len(set(decision.selected)) == len(decision.selected)


@given(worlds())
@settings(max_examples=100, deadline=None)
def test_the_best_are_selected_and_no_more_than_allowed(world):
    decision = decided(world, priorities={})
    limit = world[0].max_clusters
    assert len(decision.selected) == min(len(decision.scores), len(decision.scores) if limit is None else limit)
    kept = decision.unit.current if decision.unit.stays_put else {}
    full = closed_to_more(decision.unit, decision.fleet) & (limit is not None)
    closed = set(decision.fleet.names_of(full.nonzero()[0]))

    def place(name):
        """Those that take no more come last among those that have it, and among equals."""
        score = -decision.scores[name]
        return name not in kept, *((name in closed, score) if kept else (score, name in closed)), name

    ranking = sorted(decision.scores, key=place)
    assert list(decision.selected) == ranking[: len(decision.selected)]


@given(worlds())
@settings(max_examples=100, deadline=None)
def test_replicas_go_to_selected_clusters_and_sum_to_what_is_wanted(world):
    wanted = world[0].desired_replicas or 7
    decision = decided(world, mode="Divide", desired_replicas=wanted)
    if decision.unschedulable or not decision.selected:
        return
    assert decision.placements.keys() <= set(decision.selected)
    assert all(number > 0 for number in decision.placements.values())
    assert sum(decision.placements.values()) - sum(decision.overflow.values()) + decision.shortfall == wanted
    bounded = (
        world[0].max_replicas or world[0].migration_info.estimated_capacity or any(m.spec.taints for m in world[1])
    )
    if not bounded and not world[0].weights:
        assert not decision.shortfall


@given(worlds())
@settings(max_examples=100, deadline=None)
def test_deciding_again_from_its_own_result_changes_nothing(world):
    first = decided(world, avoid_disruption=True, auto_migration=False)
    if first.unschedulable or first.shortfall:
        return
    again = decided(world, avoid_disruption=True, auto_migration=False, current=first.placements)
    assert again.placements == first.placements
