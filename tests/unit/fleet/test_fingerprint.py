"""Fingerprints: what changed since, told from a few hundred bytes."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.fleet.fingerprint import FleetChange
from argosy.fleet.snapshot import Fleet
from tests.unit.plan.scheduling import cluster, fleet, taint

LARGE = [cluster(f"member-{number:03}", labels={"n": str(number)}) for number in range(500)]


def since(before: Fleet, after: Fleet) -> FleetChange:
    return after.hashes.since(before.hashes.fingerprint)


def test_the_same_fleet_has_not_changed():
    assert since(fleet("a", "b"), fleet("b", "a")) == FleetChange()


def test_each_facet_is_told_apart():
    before = fleet("a", "b")
    assert since(before, fleet(cluster("a", labels={"x": "y"}), "b")) == FleetChange(labels=True)
    assert since(before, fleet(cluster("a", taints=[taint("x")]), "b")) == FleetChange(taints=True)
    assert since(before, fleet(cluster("a", apis=[]), "b")) == FleetChange(apis=True)


def test_a_new_cluster_is_no_change_of_the_known_ones():
    assert since(fleet("a", "b"), fleet("a", "b", "c")) == FleetChange(joined=True)


def test_a_cluster_that_left_changes_every_facet():
    assert since(fleet("a", "b"), fleet("a")) == FleetChange(labels=True, taints=True, apis=True)
    assert since(fleet("a", "b"), fleet("a", "c")) == FleetChange(labels=True, taints=True, apis=True)


def test_swapped_labels_are_a_change():
    before = fleet(cluster("a", labels={"x": "1"}), cluster("b", labels={"x": "2"}))
    after = fleet(cluster("a", labels={"x": "2"}), cluster("b", labels={"x": "1"}))
    assert since(before, after) == FleetChange(labels=True)


def test_the_first_cluster_is_one_that_joined():
    assert since(fleet(), fleet("a")) == FleetChange(joined=True)


def test_500_clusters_need_less_than_a_kilobyte():
    assert len(msgspec.json.encode(Fleet.of(LARGE).hashes.fingerprint)) < 700


def test_a_join_into_a_large_fleet_is_told_apart_whoever_joins():
    """A hundred different newcomers: some are false hits of the filter, none may look like a change."""
    before = Fleet.of(LARGE)
    changes = {since(before, before.with_cluster(cluster(f"new-{number}"))) for number in range(100)}
    assert changes == {FleetChange(joined=True)}


def test_a_broken_fingerprint_counts_as_changed():
    stored = fleet("a").hashes.fingerprint
    for seen, names in (("%%", stored.names), ("", stored.names), (stored.seen, "zz")):
        broken = msgspec.structs.replace(stored, seen=seen, names=names)
        assert fleet("a").hashes.since(broken).taints


names = st.sets(st.text("abcdefgh", min_size=1, max_size=4), max_size=12)


@given(names, names, st.sets(st.integers(0, 11)))
@settings(max_examples=150, deadline=None)
def test_no_change_of_a_known_cluster_is_missed(then, now, relabelled):
    """A change may be seen where there is none; one that is there is always seen."""
    before = fleet(*then)
    after = fleet(
        *(cluster(name, labels={"new": "yes"} if at in relabelled else {}) for at, name in enumerate(sorted(now)))
    )
    found = since(before, after)
    changed = {name for at, name in enumerate(sorted(now)) if at in relabelled and name in then}
    if changed or then - now:
        assert found.labels
    if then - now:
        assert found.taints
        assert found.apis
    if then < now and not changed and not found.labels:
        assert found.joined
