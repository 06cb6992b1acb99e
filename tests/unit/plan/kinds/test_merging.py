"""One status of many, kind by kind: what two members report, and what the source shows."""

import copy
import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.api.conditions import MEMBERS_UNREACHABLE
from argosy.kube.conditions import find
from argosy.plan.fields import Json
from argosy.plan.kinds.lack import About, Lack
from argosy.plan.kinds.observation import Aggregation, Observation
from argosy.plan.kinds.registry import kind_of
from argosy.plan.status.aggregate import source_status
from tests.harness.statuses import EARLY, KINDS, LATE
from tests.unit.plan.worlds import World

#: Time, position and texts of conditions aside.
NAMES = sorted(KINDS)


def source_of(kind: str, status: Json | None = None) -> Json:
    source = KINDS[kind].source()
    source["metadata"]["generation"] = 1
    return {**source, "status": {"qosClass": "BestEffort"} if kind == "Pod" and status is None else status or {}}


def observed(cluster: str, status: Json | None, generation: int = 1, **more: Any) -> Observation:
    obj = None if status is None else {"metadata": {"generation": generation}, "status": status}
    written = generation if status is None or "observedGeneration" in status else 0
    return Observation(cluster, obj, last_written_generation=written, **more)


def both(kind: str, **of_second: Any) -> list[Observation]:
    first, second = KINDS[kind].reported
    return [observed("m1", first), msgspec.structs.replace(observed("m2", second), **of_second)]


def merged(
    source: Json,
    observations: list[Observation],
    now: str = LATE,
    lacking: tuple[Lack, ...] = (),
    up_to_date: bool = True,
) -> Json | None:
    aggregation = Aggregation(source, observations, up_to_date, now, lacking=lacking)
    return kind_of(source).aggregate(aggregation)


def without_probes(status: Json) -> Json:
    """As it is sent at first: the API server adds the times that nobody sets."""
    conditions = [{k: v for k, v in each.items() if k != "lastProbeTime"} for each in status.get("conditions", ())]
    return {**status, "conditions": conditions} if conditions else status


def with_texts(status: Json) -> Json:
    conditions = [{"reason": "", "message": "", **each} for each in status.get("conditions", ())]
    return {**status, "conditions": conditions} if conditions else status


@pytest.mark.parametrize("kind", NAMES)
def test_two_members_make_one_status(kind: str) -> None:
    assert merged(source_of(kind), both(kind)) == with_texts(without_probes(KINDS[kind].merged))


@pytest.mark.parametrize("kind", NAMES)
def test_what_is_stored_is_not_written_again(kind: str) -> None:
    stored = KINDS[kind].merged
    assert merged(source_of(kind, stored), both(kind), "2027-01-01T00:00:00Z") == stored


@pytest.mark.parametrize("kind", NAMES)
def test_nothing_is_changed_that_it_was_given(kind: str) -> None:
    source, observations = source_of(kind), both(kind)
    before = copy.deepcopy((source, observations))
    merged(source, observations)
    assert (source, observations) == before


@pytest.mark.parametrize("kind", NAMES)
def test_a_member_without_a_status_takes_nothing_away(kind: str) -> None:
    silent = merged(source_of(kind), [*both(kind), Observation("m3", {"metadata": {}})])
    alone = merged(source_of(kind), both(kind))
    assert silent is not None
    assert alone is not None
    apart = ("conditions", "observedGeneration", "phase", "message", "lastSuccessfulTime")
    assert {k: v for k, v in silent.items() if k not in apart} == {k: v for k, v in alone.items() if k not in apart}
    assert merged(source_of(kind, {}), [observed("m1", None)]) is None


@pytest.mark.parametrize("kind", NAMES)
def test_an_unreachable_member_keeps_its_last_known_counts_and_is_marked_where_there_is_room(kind: str) -> None:
    cut = merged(source_of(kind), both(kind, reachable=False))
    assert cut is not None
    mark = find(cut.get("conditions"), MEMBERS_UNREACHABLE)
    assert (mark is not None) == kind_of(source_of(kind)).has_conditions
    assert mark is None or mark["message"] == "counts of clusters [m2] are the last known ones"
    counts = {key: value for key, value in cut.items() if key != "conditions"}
    assert counts == {key: value for key, value in KINDS[kind].merged.items() if key != "conditions"}


@pytest.mark.parametrize("kind", NAMES)
def test_where_nothing_is_known_of_a_member_the_status_stays(kind: str) -> None:
    stored = KINDS[kind].merged
    unknown = Observation("m2", None, reachable=False, known=False)
    status = merged(source_of(kind, stored), [both(kind)[0], unknown])
    assert status is not None
    kept = [each for each in status.get("conditions", ()) if each["type"] != MEMBERS_UNREACHABLE]
    assert {**status, "conditions": kept} == {"conditions": [], **stored}
    assert merged(source_of(kind, status), [both(kind)[0], unknown], "2027-01-01T00:00:00Z") == status


OBSERVING = [kind for kind in NAMES if "observedGeneration" in KINDS[kind].merged]


@pytest.mark.parametrize("kind", OBSERVING)
def test_the_generation_is_raised_when_all_have_caught_up(kind: str) -> None:
    source = source_of(kind, {"observedGeneration": 1})
    source["metadata"]["generation"] = 2
    behind = merged(source, both(kind), up_to_date=False)
    assert behind is not None
    assert behind["observedGeneration"] == 1
    behind = merged(source, both(kind, last_written_generation=5))
    assert behind is not None
    assert behind["observedGeneration"] == 1
    caught_up = merged(source, both(kind))
    assert caught_up is not None
    assert caught_up["observedGeneration"] == 2


@given(st.sampled_from(NAMES), st.integers(1, 4), st.randoms(use_true_random=False))
def test_the_order_of_members_does_not_matter_and_the_same_again_is_the_same(
    kind: str, number: int, chance: random.Random
) -> None:
    world = World()
    world.run()
    statuses = [chance.choice(KINDS[kind].reported) for _ in range(number)]
    observations = [observed(f"m{at}", status) for at, status in enumerate(statuses)]
    first = source_status(source_of(kind), world.typed, observations, EARLY)
    chance.shuffle(observations)
    assert source_status(source_of(kind), world.typed, observations, EARLY) == first
    if first is not None:
        assert source_status(source_of(kind, first), world.typed, observations, LATE) is None


COUNTED = {
    "StatefulSet": ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"),
    "DaemonSet": ("desiredNumberScheduled", "numberReady", "updatedNumberScheduled", "numberAvailable"),
    "ReplicaSet": ("replicas", "readyReplicas", "availableReplicas"),
    "ReplicationController": ("replicas", "readyReplicas", "availableReplicas"),
    "HorizontalPodAutoscaler": ("currentReplicas", "desiredReplicas"),
    "PodDisruptionBudget": ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"),
}


@given(st.data(), st.sampled_from(sorted(COUNTED)))
def test_counts_are_the_sums(data: st.DataObject, kind: str) -> None:
    numbers = data.draw(st.lists(st.lists(st.integers(0, 9), min_size=5, max_size=5), min_size=1, max_size=5))
    statuses = [dict(zip(COUNTED[kind], each, strict=False)) for each in numbers]
    status = merged(source_of(kind), [observed(f"m{at}", each) for at, each in enumerate(statuses)])
    assert status is not None
    for field in COUNTED[kind]:
        assert status.get(field, 0) == sum(each[field] for each in statuses)


# StatefulSet: what `kubectl rollout status` and Argo CD's health check compare.


def rolled_out(source: Json, status: Json) -> bool:
    """The rule of both, for a rolling update without a partition."""
    replicas = source["spec"]["replicas"]
    return (
        status.get("observedGeneration", 0) >= source["metadata"]["generation"]
        and status.get("readyReplicas", 0) >= replicas
        and status.get("updatedReplicas", 0) >= replicas
        and status.get("updateRevision") == status.get("currentRevision")
    )


def stateful(replicas: int, updated: int, revision: str = "x-2", before: str = "x-1") -> Observation:
    counts = dict.fromkeys(("replicas", "readyReplicas", "availableReplicas"), replicas)
    current = revision if updated == replicas else before
    status = {
        "observedGeneration": 1,
        **counts,
        "updatedReplicas": updated,
        "currentRevision": current,
        "updateRevision": revision,
    }
    obj = {"metadata": {"generation": 1}, "spec": {"replicas": replicas}, "status": status}
    return Observation("m", obj, last_written_generation=1)


def named(*observations: Observation) -> list[Observation]:
    return [msgspec.structs.replace(each, cluster=f"m{at}") for at, each in enumerate(observations, 1)]


UNFINISHED = (Lack("m2: 1 of 2 replicas are updated", About.COMPLETION, "m2"),)


@pytest.mark.parametrize(
    ("observations", "lacking", "done"),
    [
        (named(stateful(3, 3), stateful(2, 2)), (), True),
        (named(stateful(3, 3), stateful(2, 1)), UNFINISHED, False),
        # Members name the same template differently if an override changes it.
        (named(stateful(3, 3, "x-2"), stateful(2, 2, "x-7")), (), True),
        (named(stateful(3, 3, "x-2"), stateful(2, 1, "x-7", "x-2")), UNFINISHED, False),
        # Each has all five.
        (named(stateful(5, 5), stateful(5, 5)), (), True),
        (named(stateful(5, 5), stateful(5, 0)), UNFINISHED, False),
        (named(stateful(5, 5, "x-2"), stateful(5, 5, "x-2", "x-2")), UNFINISHED, False),
    ],
)
def test_a_statefulset_is_rolled_out_when_it_is_in_all_members(
    observations: list[Observation], lacking: tuple[Lack, ...], done: bool
) -> None:
    source = source_of("StatefulSet")
    status = merged(source, observations, lacking=lacking)
    assert status is not None
    assert rolled_out(source, status) is done


def test_what_kubernetes_never_takes_back_is_kept() -> None:
    for kind in ("StatefulSet", "DaemonSet"):
        status = merged(source_of(kind, {"collisionCount": 2}), both(kind))
        assert status is not None
        assert status["collisionCount"] == 2


def test_addresses_are_only_those_of_a_load_balancer() -> None:
    source = source_of("Service")
    source["spec"] = {**source["spec"], "type": "ClusterIP"}
    assert merged(source, both("Service")) == {"loadBalancer": {}}


def test_a_phase_nobody_knows_is_shown() -> None:
    observations = [observed("m1", {"phase": "Bound"}), observed("m2", {"phase": "Melted"})]
    assert merged(source_of("PersistentVolume"), observations) == {"phase": "Melted"}


def test_a_generation_may_be_a_number_as_text_and_nothing_else() -> None:
    """Members are not trusted: who tells something else is found out by the error."""
    assert merged(source_of("DaemonSet"), [observed("m1", {"observedGeneration": "1"})]) is not None
    for wrong in ("seven", "-1", [1], 1.5):
        with pytest.raises(ValueError, match="no number"):
            merged(source_of("DaemonSet"), [observed("m1", {"observedGeneration": wrong})])
