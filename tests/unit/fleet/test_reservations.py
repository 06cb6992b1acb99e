"""Reservations: placed minus observed, the same after every sequence of events as counted anew."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from argosy.fleet.reservations import Copy, Reservations, asked, outstanding
from argosy.plan.scheduling.schedule import schedule
from tests.unit.plan.scheduling import cluster, fleet, unit

CLUSTERS = ["a", "b", "c"]
WORKLOADS = ["x", "y"]
REQUESTS = [{"cpu": 500}, {"cpu": 250, "memory": 7}, {"cpu": 0, "nvidia.com/gpu": 1}, {}]

number = st.integers(0, 5)
copies = st.none() | st.builds(Copy, number, st.none() | number)
workload, name = st.sampled_from(WORKLOADS), st.sampled_from(CLUSTERS)
events = st.lists(
    st.one_of(
        st.tuples(st.just("place"), workload, st.sampled_from(REQUESTS), st.dictionaries(name, number)),
        st.tuples(st.just("see"), workload, name, copies),
        st.tuples(st.just("see together"), workload, st.dictionaries(name, copies)),
        st.tuples(st.just("lose workload"), workload),
        st.tuples(st.just("lose cluster"), name),
    ),
    max_size=20,
)


def recounted(placed, seen, apart_from=None, count_of=outstanding):
    """The definition: a walk over everything."""
    totals = {}
    for key, (request, numbers) in placed.items():
        for where, count in numbers.items():
            coming = 0 if key == apart_from else count_of(count, seen.get((key, where)))
            for resource, amount in request.items():
                if coming * amount:
                    column = totals.setdefault(resource, {})
                    column[where] = column.get(where, 0) + coming * amount
    return totals


@settings(max_examples=500)
@example(
    [
        ("see together", "x", {"a": Copy(0), "b": Copy(0)}),
        ("place", "x", {"cpu": 500}, {"a": 3}),
        ("place", "x", {"cpu": 500}, {"a": 0, "b": 1}),
    ]
)
@given(events)
def test_totals_are_what_a_slow_recount_says(sequence):
    reservations, placed, seen = Reservations(), {}, {}
    for kind, *event in sequence:
        match kind, event:
            case "place", (key, request, numbers):
                placed[key] = (request, numbers)
                reservations.place(key, request, numbers, lambda where, key=key: seen.get((key, where)))
            case "see", (key, where, copy):
                seen[key, where] = copy
                reservations.observe(key, where, copy)
            case "see together", (key, found):
                seen.update({(key, where): found.get(where) for where in CLUSTERS})
                reservations.observe_all(key, found.get)
            case "lose workload", (key,):
                placed.pop(key, None)
                reservations.drop(key)
            case "lose cluster", (where,):
                seen.update({(key, where): None for key in WORKLOADS})
                for key in WORKLOADS:
                    reservations.observe(key, where, None)
        assert reservations.totals == recounted(placed, seen)
        assert reservations.committed == recounted(placed, seen, count_of=asked)
        for key in WORKLOADS:
            others = reservations.without(key)
            nothing_left_out = {r: {w: n for w, n in column.items() if n} for r, column in others.items()}
            assert {r: column for r, column in nothing_left_out.items() if column} == recounted(placed, seen, key)


def test_a_copy_that_asks_for_fewer_is_not_waited_for():
    assert outstanding(5, Copy(1)) == 4
    assert outstanding(5, Copy(1, wanted=2)) == 1
    assert outstanding(5, Copy(2, wanted=2)) == 0
    assert outstanding(5, Copy(2, wanted=9)) == 3


def test_replicas_that_are_on_their_way_out_free_nothing():
    assert outstanding(2, Copy(5)) == 0


def test_nothing_is_said_of_a_cluster_nobody_sees():
    assert outstanding(5, None) == 0


def test_a_snapshot_with_reservations_has_less_available_and_the_same_allocatable():
    members = fleet(cluster("a", cpu="10"), cluster("b", cpu="10"), cluster("c", joined=False))
    reserved = members.with_reserved({"cpu": {"a": 4000, "gone": 1}, "nvidia.com/gpu": {"a": 1}})
    assert reserved.available("cpu").tolist()[:2] == [6000, 10000]
    assert reserved.joined_only().available("cpu").tolist() == [6000, 10000]
    assert reserved.allocatable("cpu").tolist() == members.allocatable("cpu").tolist()
    assert reserved.available("nvidia.com/gpu").tolist() == [0, 0, 0]
    assert members.available("cpu").tolist()[:2] == [10000, 10000]
    assert reserved.taints is members.taints
    assert reserved.discovered_only().hashes is members.discovered_only().hashes


def test_without_reservations_the_snapshot_is_the_same():
    members = fleet("a")
    assert members.with_reserved({}) is members


def test_a_burst_is_spread_although_no_figures_have_come_back():
    members = fleet(*(cluster(each, cpu="100", free="60" if each == "a" else "20") for each in CLUSTERS))
    reservations = Reservations()
    got = dict.fromkeys(CLUSTERS, 0)
    for count in range(10):
        key = f"w{count}"
        decided = schedule(unit(10, name=key), members.with_reserved(reservations.without(key))).placements
        reservations.place(key, {"cpu": 1000}, decided, lambda where: Copy(0))
        for where, replicas in decided.items():
            got[where] += replicas
    assert all(got[each] <= room + 5 for each, room in (("a", 60), ("b", 20), ("c", 20))), got


def test_a_cluster_with_stale_figures_is_weighed_by_what_it_holds():
    members = fleet(cluster("a", cpu="100", free="50"), cluster("b", cpu="100", free="50"), cluster("c", free="0"))
    assert members.with_stale("b", True).free("cpu").tolist()[1] == 100_000 * 50 // 110
    assert members.with_stale("b", True).available("cpu").tolist() == members.available("cpu").tolist()
    assert members.free("cpu") is members.available("cpu") or members.free("cpu").tolist() == [50000, 50000, 0]
    forgotten = members.with_stale("b", True).with_stale("b", False)
    assert forgotten.free("cpu").tolist() == [50000, 50000, 0]


def test_all_clusters_stale_are_weighed_by_what_they_hold():
    members = fleet(cluster("a", cpu="30", free="1"), cluster("b", cpu="10", free="10"))
    for each in "ab":
        members = members.with_stale(each, True)
    assert members.free("cpu").tolist() == [30000, 10000]
    assert schedule(unit(40), members).placements == {"a": 30, "b": 10}


def test_staleness_outlives_a_heartbeat():
    members = fleet("a").with_stale("a", True)
    assert members.with_cluster(cluster("a", free="1")).stale.tolist() == [True]


def test_what_a_decision_gives_up_is_held_by_the_larger_of_both():
    book = Reservations()
    book.place("web", {"cpu": 4000}, {"m1": 3, "m2": 1}, lambda cluster: Copy(0))
    assert book.held("api").at_least({"cpu": 1}, {"m1": 1}) == ({"cpu": 1}, {"m1": 1})
    assert book.held("web").at_least({"cpu": 1000, "memory": 1}, {"m1": 1, "m3": 2}) == (
        {"cpu": 4000, "memory": 1},
        {"m1": 3, "m2": 1, "m3": 2},
    )
