"""StatefulSets and Jobs through the pipeline: what their copies get, and what stays with them as everything changes."""

import msgspec
import pytest

from argosy.api import keys
from argosy.api.conditions import EventReason
from argosy.api.types import FederatedTypeConfig
from argosy.plan.copies.placement import placed
from argosy.plan.pipeline.inputs import PassInputs
from argosy.plan.pipeline.run import run_locally
from argosy.plan.replicas.whole import ASK
from tests.unit.plan.scheduling import cluster, fleet, policy

NAMES = ("m1", "m2", "m3")


def kind_config(group, kind, plural, path, version="v1"):
    source = {"group": group, "version": version, "kind": kind, "pluralName": plural, "scope": "Namespaced"}
    spec = {
        "sourceType": source,
        "controllers": [[keys.GLOBAL_SCHEDULER]],
        "pathDefinition": {"replicasSpec": path} if path else {},
    }
    return msgspec.convert({"metadata": {"name": f"{plural}.{group}"}, "spec": spec}, FederatedTypeConfig)


STATEFUL_SETS = kind_config("apps", "StatefulSet", "statefulsets", "spec.replicas")
JOBS = kind_config("batch", "Job", "jobs", "spec.parallelism")


def members(*names, **changed):
    apis = [
        {"group": "apps", "version": "v1", "kind": "StatefulSet", "pluralName": "statefulsets", "scope": "Namespaced"},
        {"group": "batch", "version": "v1", "kind": "Job", "pluralName": "jobs", "scope": "Namespaced"},
    ]
    return fleet(*(cluster(name, apis=apis, **changed.get(name, {})) for name in names))


def source(kind, **spec):
    group = "apps" if kind == "StatefulSet" else "batch"
    return {
        "apiVersion": f"{group}/v1",
        "kind": kind,
        "metadata": {
            "name": "db",
            "namespace": "default",
            "uid": "u1",
            "labels": {keys.PROPAGATION_POLICY_LABEL: "web"},
            "generation": 1,
        },
        "spec": {"template": {"spec": {"containers": []}}, **spec},
    }


def stateful_set(replicas, **spec):
    return source("StatefulSet", replicas=replicas, **spec)


def job(parallelism, completions, **spec):
    numbers = {} if completions is None else {"completions": completions}
    return source("Job", parallelism=parallelism, **numbers, **spec)


def plan(obj, stored=None, fleet=None, config=None, **spec):
    """The outcome of one pass; what was stored before is what a pass before returned."""
    if config is None:
        config = STATEFUL_SETS if obj["kind"] == "StatefulSet" else JOBS
    given = policy(**{"placement": [{"cluster": name} for name in spec.pop("only", ())], **spec})
    clusters = fleet or members(*NAMES)
    return run_locally(PassInputs(source=obj, existing=stored, type_config=config, fleet=clusters, policy=given))


def patches(outcome):
    entries = [
        each for each in outcome.object["spec"].get("overrides", ()) if each["controller"] == keys.GLOBAL_SCHEDULER
    ]
    return {item["cluster"]: item["patches"] for entry in entries for item in entry["clusters"]}


def ordinals(outcome):
    """First and number of each cluster."""
    found = {}
    for name, stated in patches(outcome).items():
        by_path = {patch["path"]: patch["value"] for patch in stated}
        found[name] = (by_path["/spec/ordinals"]["start"], by_path["/spec/replicas"])
    return found


def parts(outcome):
    """Parallelism and completions of each cluster."""
    found = {}
    for name, stated in patches(outcome).items():
        by_path = {patch["path"]: patch["value"] for patch in stated}
        found[name] = (by_path["/spec/parallelism"], by_path.get("/spec/completions"))
    return found


def owners(outcome):
    return {at: name for name, (start, number) in ordinals(outcome).items() for at in range(start, start + number)}


# StatefulSets.


def test_a_stateful_set_is_divided_in_ranges_of_ordinals():
    outcome = plan(stateful_set(9))
    assert sorted(owners(outcome)) == list(range(9))
    assert set(ordinals(outcome)) == set(NAMES)
    assert {patch["op"] for stated in patches(outcome).values() for patch in stated} == {"replace", "add"}


def test_ordinals_begin_where_the_source_says():
    assert sorted(owners(plan(stateful_set(4, ordinals={"start": 5})))) == [5, 6, 7, 8]


@pytest.mark.parametrize("strategy", ["Spread", "Webster", "Aggregated", "Binpack"])
@pytest.mark.parametrize("rescheduling", [True, False])
def test_no_ordinal_changes_its_cluster_when_the_source_scales(strategy, rescheduling):
    chosen = {
        "replicasStrategy": strategy,
        "reschedulePolicy": {"replicaRescheduling": {"avoidDisruption": rescheduling}},
    }
    outcome = plan(stateful_set(9), **chosen)
    for replicas in (14, 5, 11, 2, 20):
        before = owners(outcome)
        outcome = plan(stateful_set(replicas), outcome.object, **chosen)
        now = owners(outcome)
        assert sorted(now) == list(range(replicas))
        assert all(now[at] == name for at, name in before.items() if at < replicas)


def test_a_pass_over_the_same_asks_for_no_write():
    outcome = plan(stateful_set(9))
    assert plan(stateful_set(9), outcome.object).object is None


def test_ordinals_of_a_cluster_that_left_are_taken_over_and_no_others_move():
    first = plan(stateful_set(9))
    left = owners(first)[4]
    staying = [name for name in NAMES if name != left]
    second = plan(stateful_set(9), first.object, members(*staying), reschedulePolicy={"rescheduleWhen": {}})
    before, now = owners(first), owners(second)
    assert sorted(now) == list(range(9))
    assert left not in now.values()
    assert all(now[at] == name for at, name in before.items() if name != left)


def test_a_policy_of_fewer_clusters_keeps_the_ordinals_of_those_that_may_run_them():
    """Selection goes by scores, which change; a cluster that may still run its ordinals keeps them."""
    first = plan(stateful_set(9))
    second = plan(stateful_set(12), first.object, maxClusters=1)
    before, now = owners(first), owners(second)
    assert all(now[at] == name for at, name in before.items())
    assert sorted(now) == list(range(12))


def test_a_migration_limit_moves_what_is_beyond_it():
    first = plan(stateful_set(9), only=["m1", "m2"])
    start, number = ordinals(first)["m1"]
    obj = stateful_set(9)
    obj["metadata"]["annotations"] = {
        keys.MIGRATION_CONFIGURATION: '{"replicasMigrations":[{"cluster":"m1","limitedCapacity":2}]}'
    }
    second = plan(obj, first.object, only=["m1", "m2"])
    assert number > 2
    assert ordinals(second)["m1"] == (start, 2)
    assert sorted(owners(second)) == list(range(9))


def test_ordinals_that_nobody_has_room_for_are_told():
    preferences = [{"cluster": name, "preferences": {"maxReplicas": 2, "weight": 1}} for name in NAMES]
    outcome = plan(stateful_set(9), placement=preferences)
    assert sorted(owners(outcome)) == list(range(6))
    assert "6–8" in outcome.held.message


def test_scaled_to_nothing_and_back_the_ranges_are_where_they_were():
    first = plan(stateful_set(9))
    nothing = plan(stateful_set(0), first.object)
    assert {number for _, number in ordinals(nothing).values()} == {0}
    assert set(ordinals(nothing)) == set(NAMES)
    assert owners(plan(stateful_set(9), nothing.object)) == owners(first)


def test_replicas_that_were_divided_without_ordinals_stay_so():
    """Renaming pods that run would cost them their volumes."""
    first = plan(stateful_set(9))
    stored = first.object
    for item in stored["spec"]["overrides"][0]["clusters"]:
        item["patches"] = [patch for patch in item["patches"] if patch["path"] != "/spec/ordinals"]
    second = plan(stateful_set(12), stored)
    assert all([patch["path"] for patch in stated] == ["/spec/replicas"] for stated in patches(second).values())
    assert sum(stated[0]["value"] for stated in patches(second).values()) == 12


def test_a_duplicated_stateful_set_has_all_ordinals_everywhere():
    config = kind_config("apps", "StatefulSet", "statefulsets", "")
    outcome = plan(stateful_set(9), config=config)
    assert patches(outcome) == {}
    assert len(outcome.object["spec"]["placements"][0]["placement"]) == 3


def test_the_decision_says_the_numbers_that_came_of_it():
    first = plan(stateful_set(9))
    second = plan(stateful_set(12), first.object)
    assert second.decision.placements == {name: number for name, (_, number) in ordinals(second).items()}


# Jobs.


def test_a_job_is_divided_with_its_completions():
    found = parts(plan(job(6, 60)))
    assert sum(parallelism for parallelism, _ in found.values()) == 6
    assert sum(completions for _, completions in found.values()) == 60
    assert all(completions == 10 * parallelism for parallelism, completions in found.values())


def test_completions_of_a_job_stay_when_its_parallelism_changes():
    first = plan(job(6, 60))
    second = plan(job(15, 60), first.object)
    assert {name: part[1] for name, part in parts(second).items()} == {
        name: part[1] for name, part in parts(first).items()
    }
    assert sum(parallelism for parallelism, _ in parts(second).values()) == 15
    paused = plan(job(0, 60), second.object)
    assert {name: part[1] for name, part in parts(paused).items()} == {
        name: part[1] for name, part in parts(first).items()
    }
    assert {parallelism for parallelism, _ in parts(paused).values()} == {0}


def test_completions_of_a_cluster_that_left_go_to_one_that_has_none():
    first = plan(job(6, 60))
    second = plan(job(6, 60), first.object, members("m1", "m2", "m4"), reschedulePolicy={"rescheduleWhen": {}})
    before, now = parts(first), parts(second)
    assert now["m4"][1] == before["m3"][1]
    assert {name: now[name][1] for name in ("m1", "m2")} == {name: before[name][1] for name in ("m1", "m2")}


def test_completions_that_nobody_can_take_over_are_told():
    first = plan(job(6, 60))
    lost = parts(first)["m3"][1]
    second = plan(job(6, 60), first.object, members("m1", "m2"), reschedulePolicy={"rescheduleWhen": {}})
    assert f"{lost} of 60 completions" in second.held.message


def test_a_job_without_completions_divides_its_parallelism_alone():
    found = parts(plan(job(6, None)))
    assert sum(parallelism for parallelism, _ in found.values()) == 6
    assert {completions for _, completions in found.values()} == {None}


def test_an_indexed_job_is_duplicated_and_says_why():
    outcome = plan(job(6, 60, completionMode="Indexed"))
    assert outcome.held is None
    assert patches(outcome) == {}
    assert placed(outcome.object["spec"]) == list(NAMES)
    [note] = [each.message for each in outcome.notes if each.reason == EventReason.WITHOUT_EFFECT]
    assert "every cluster gets all of them: a Job with completionMode Indexed cannot be divided" in note


# What was whole stays whole until somebody asks.


def whole(obj):
    """As it was placed when nothing said where its kind has its replicas."""
    made = obj["kind"] == "StatefulSet"
    pathless = kind_config(*(("apps", "StatefulSet", "statefulsets", "") if made else ("batch", "Job", "jobs", "")))
    outcome = plan(obj, config=pathless)
    assert patches(outcome) == {}
    return outcome.object


def with_record_of_before(stored):
    """As an earlier version left it: its record has no mode."""
    annotations = dict(stored["metadata"]["annotations"])
    record = msgspec.json.decode(annotations[keys.SCHEDULING_TRIGGERS])
    del record["mode"]
    annotations[keys.SCHEDULING_TRIGGERS] = msgspec.json.encode(record).decode()
    return {**stored, "metadata": {**stored["metadata"], "annotations": annotations}}


@pytest.mark.parametrize("before", [lambda stored: stored, with_record_of_before])
def test_a_stateful_set_that_was_duplicated_is_not_torn_apart_by_a_path_of_replicas(before):
    stored = before(whole(stateful_set(4)))
    first = plan(stateful_set(4), stored)
    assert patches(first) == {}
    told = [each.message for each in first.notes if each.reason == EventReason.WITHOUT_EFFECT]
    assert bool(told) == (before is with_record_of_before)  # else it was told when it was placed
    second = plan(stateful_set(4), first.object)
    assert second.object is None
    # Nor by anything that happens later: it is scaled, its policy changes, a cluster comes.
    later = plan(stateful_set(7), first.object, members(*NAMES, "m4"), maxClusters=9)
    assert patches(later) == {}
    assert placed(later.object["spec"]) == [*NAMES, "m4"]


def asking(obj, mode=keys.DIVIDE):
    return {**obj, "metadata": {**obj["metadata"], "annotations": {keys.SCHEDULING_MODE: mode}}}


def test_it_is_divided_when_its_owner_says_so():
    stored = plan(stateful_set(4), with_record_of_before(whole(stateful_set(4)))).object
    divided = plan(asking(stateful_set(4)), stored)
    assert sorted(ordinals(divided).values()) == [(0, 2), (2, 2)]
    again = plan(asking(stateful_set(4)), divided.object)
    assert again.object is None


def test_it_is_divided_when_its_policy_comes_to_divide():
    stored = plan(stateful_set(4), schedulingMode=keys.DUPLICATE).object
    assert sorted(ordinals(plan(stateful_set(4), stored)).values()) == [(0, 2), (2, 2)]


def test_another_policy_that_comes_to_select_it_does_not_divide_it():
    stored = plan(stateful_set(4), name="everything", schedulingMode=keys.DUPLICATE).object
    taken = plan(stateful_set(4), stored)
    assert patches(taken) == {}
    assert any(ASK in each.message for each in taken.notes)
    assert plan(stateful_set(4), taken.object).object is None
    assert sorted(ordinals(plan(asking(stateful_set(4)), stored)).values()) == [(0, 2), (2, 2)]
    duplicated = plan(stateful_set(4), taken.object, schedulingMode=keys.DUPLICATE).object
    assert sorted(ordinals(plan(stateful_set(4), duplicated)).values()) == [(0, 2), (2, 2)]


def test_a_job_that_was_given_out_whole_is_never_divided():
    stored = whole(job(6, 60))
    assert patches(plan(job(6, 60), stored)) == {}
    assert patches(plan(asking(job(6, 60)), plan(job(6, 60), stored).object)) == {}
    assert patches(plan(asking(job(6, 60)), plan(job(6, 60), schedulingMode=keys.DUPLICATE).object)) == {}


def test_what_found_no_cluster_stays_told_until_something_changes():
    preferences = [{"cluster": name, "preferences": {"maxReplicas": 2, "weight": 1}} for name in NAMES]
    first = plan(stateful_set(9), placement=preferences)
    second = plan(stateful_set(9), first.object, placement=preferences)
    assert second.object is None
    assert second.held == first.held
