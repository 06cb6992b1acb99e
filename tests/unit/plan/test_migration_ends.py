"""Auto migration comes to rest: pods that fit nowhere are not carried in circles."""

import datetime
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.fleet.pods.replicasets import Pods
from argosy.fleet.snapshot import Fleet
from argosy.plan.failover.auto_migration import estimate, relevant, text_of
from argosy.plan.failover.full_clusters import observed, shape_of
from argosy.plan.scheduling.schedule import schedule
from argosy.plan.scheduling.unit import AutoMigrationInfo, request_of_template
from tests.unit.plan.scheduling import cluster, template, unit

NOW = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
MINUTE = datetime.timedelta(minutes=1)
LONG_AGO = "2026-01-01T00:00:00Z"
ONE_CORE = template(resources={"requests": {"cpu": "1"}})
WITHOUT_REQUESTS = template()


class Member(NamedTuple):
    #: How many pods find a node here, and how many more the sum over the nodes promises.
    slots: int
    promised: int = 0


class Run:
    """Workloads in members with so many slots, one round after another: pods, estimates, decisions."""

    def __init__(self, members, workloads, pod=ONE_CORE):
        self.members = members
        self.units = [msgspec.structs.replace(each, auto_migration=True) for each in workloads]
        self.infos = [AutoMigrationInfo() for _ in workloads]
        self.read = ["" for _ in workloads]
        self.pod = pod
        #: Pods that found a node stay on it.
        self.running = [dict.fromkeys(members, 0) for _ in workloads]
        for at in range(len(workloads)):
            self._place(at)

    def placed(self, at):
        return {name: number or 0 for name, number in self.units[at].current.items()}

    def fleet(self):
        cores = 1 if request_of_template(self.pod).milli_cpu else 0
        made = []
        for name, (slots, promised) in self.members.items():
            asked = sum(self.placed(at).get(name, 0) for at in range(len(self.units)))
            made.append(cluster(name, cpu=str(slots + promised), free=str(slots + promised - cores * asked)))
        return Fleet.of(made)

    def round(self):
        """Whether anything changed."""
        self._schedule_pods()
        changed = False
        for at in range(len(self.units)):
            stored, fleet = self.infos[at], self.fleet()
            info = observed(self._seen(at), stored, fleet.member, self.pod)
            self.infos[at] = info
            read = relevant(text_of(info), self.units[at].replicas_strategy)
            moved = read != self.read[at] and self._place(at)
            changed = changed or info != stored or moved
            self.read[at] = read
        return changed

    def rest(self, rounds):
        for number in range(rounds):
            if not self.round():
                return number
        raise AssertionError(f"still moving: {[self.placed(at) for at in range(len(self.units))]} {self.infos}")

    def found_nodes(self):
        self._schedule_pods()
        return sum(sum(each.values()) for each in self.running)

    def _place(self, at):
        before = self.units[at].current
        asked = msgspec.structs.replace(self.units[at], migration_info=self.infos[at])
        self.units[at] = msgspec.structs.replace(asked, current=schedule(asked, self.fleet()).placements)
        return self.units[at].current != before

    def _schedule_pods(self):
        for name, (slots, _) in self.members.items():
            for at, running in enumerate(self.running):
                running[name] = min(running[name], self.placed(at).get(name, 0))
            for at, running in enumerate(self.running):
                left = slots - sum(each[name] for each in self.running)
                running[name] += max(min(self.placed(at).get(name, 0) - running[name], left), 0)

    def _seen(self, at):
        seen = {}
        for name, wanted in self.placed(at).items():
            runs = self.running[at][name]
            pods = Pods(wanted, runs, {str(number): LONG_AGO for number in range(wanted - runs)})
            seen[name] = estimate(wanted, wanted, runs, pods, NOW, MINUTE)
        return seen


def policies(replicas):
    return st.builds(
        lambda **fields: unit(replicas, **fields),
        name=st.sampled_from(("web", "api", "db")),
        replicas_strategy=st.sampled_from(("Spread", "Webster", "Binpack", "Aggregated")),
        avoid_disruption=st.booleans(),
        keep_unschedulable=st.booleans(),
        weights=st.sampled_from(({}, {"a": 1, "b": 1, "c": 1, "d": 1}, {"a": 5, "b": 1, "c": 1, "d": 1})),
        pod_request=st.just(request_of_template(ONE_CORE)),
    )


members = st.dictionaries(
    st.sampled_from("abcd"), st.builds(Member, st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=4
)


@given(members, st.integers(1, 14).flatmap(policies), st.sampled_from((ONE_CORE, WITHOUT_REQUESTS)))
@settings(max_examples=150, deadline=None)
def test_one_workload_comes_to_rest(places, workload, pod):
    Run(places, [workload], pod).rest(2 * len(places) + 3)


@given(members, st.lists(st.integers(1, 8).flatmap(policies), min_size=2, max_size=3))
@settings(max_examples=100, deadline=None)
def test_workloads_that_take_room_from_one_another_come_to_rest(places, workloads):
    Run(places, workloads).rest(100)


@given(members, members, st.integers(1, 14).flatmap(policies))
@settings(max_examples=100, deadline=None)
def test_after_every_change_it_comes_to_rest_again(places, growth, workload):
    run = Run(places, [workload])
    run.rest(2 * len(places) + 3)
    for name, (more, promised) in growth.items():
        if name in run.members:
            slots, so_far = run.members[name]
            run.members[name] = Member(slots + more, so_far + promised)
    run.rest(3 * len(places) + 5)


@given(members, st.integers(1, 14))
@settings(max_examples=100, deadline=None)
def test_at_rest_all_run_that_can(places, replicas):
    run = Run(places, [unit(replicas, weights=dict.fromkeys(places, 1), pod_request=request_of_template(ONE_CORE))])
    run.rest(2 * len(places) + 3)
    assert run.found_nodes() == min(replicas, sum(slots for slots, _ in places.values()))


@pytest.mark.parametrize("pod", [ONE_CORE, WITHOUT_REQUESTS])
def test_what_fits_into_no_cluster_stays_where_it_is_told_to_wait(pod):
    """Each seems to have room as soon as the pods have left it."""
    run = Run({"a": Member(0, 4), "b": Member(0, 4)}, [unit(2, weights={"a": 1, "b": 1})], pod)
    run.rest(5)
    assert run.infos[0].estimated_capacity == {"a": 0, "b": 0}
    assert sum(run.placed(0).values()) == 2


def test_more_room_than_was_tried_is_tried():
    run = Run({"a": Member(0, 4), "b": Member(0, 4)}, [unit(2, weights={"a": 1, "b": 1})])
    run.rest(5)
    run.members["b"] = Member(2, 4)
    run.rest(5)
    assert run.placed(0) == {"b": 2}
    assert run.found_nodes() == 2


def test_pods_of_another_shape_are_tried_anew():
    run = Run({"a": Member(0, 4), "b": Member(0, 4)}, [unit(2, weights={"a": 1, "b": 1})])
    run.rest(5)
    assert run.infos[0].tried.keys() == {"a", "b"}
    smaller = template(resources={"requests": {"cpu": "500m"}})
    nothing_seen = observed({}, run.infos[0], run.fleet().member, smaller)
    assert nothing_seen == AutoMigrationInfo()
    assert observed({}, run.infos[0], run.fleet().member, None) == msgspec.structs.replace(
        run.infos[0], scheduled_replicas={}
    ), "not knowing changes nothing"


def test_the_shape_is_what_decides_where_a_pod_fits():
    image, selector = template(image="nginx:2"), template()
    selector["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "nvme"}
    port = template(ports=[{"containerPort": 80, "hostPort": 80}])
    assert shape_of(image) == shape_of(template()) == shape_of(template(9))
    assert len({shape_of(each) for each in (template(), ONE_CORE, selector, port)}) == 4


def test_what_was_tried_is_stored_with_the_estimates():
    run = Run({"a": Member(1, 4), "b": Member(3)}, [unit(4, weights={"a": 1, "b": 1})])
    run.rest(5)
    info = run.infos[0]
    assert info.estimated_capacity == {"a": 1}
    assert info.tried == {"a": {"cpu": 5000}}
    assert '"tried":{"a":{"cpu":5000}}' in text_of(info)
    assert relevant(text_of(info), "Spread") == relevant('{"estimatedCapacity":{"a":1}}', "Spread")
