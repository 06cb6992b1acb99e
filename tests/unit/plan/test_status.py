"""What flows back: propagation status, aggregated status, feedback, collected fields."""

import msgspec
import pytest

from argosy.api import keys
from argosy.api.federated import FederatedObject, FederatedStatus, PropagationEntry
from argosy.kube.conditions import find
from argosy.plan.copies.held_copies import Refusal, held_copies, with_held_copies
from argosy.plan.kinds.observation import Observation
from argosy.plan.pipeline.held import Held
from argosy.plan.status.aggregate import feedback_of, in_motion, source_status
from argosy.plan.status.collect import Seen, collected_fields, collected_status
from argosy.plan.status.propagation import Result, held_results, propagation_status, synced_clusters
from tests.unit.plan.worlds import DEPLOYMENTS, TYPE_CONFIGS, World, deployment

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"


class TestPropagation:
    def test_clusters_are_sorted_and_all_ok_is_propagated(self):
        results = {"m2": Result("OK", 3, "gen:3", "d"), "m1": Result("OK", 1, "gen:1", "d")}
        status = propagation_status(FederatedStatus(), 2, results, EARLY)
        assert [entry.cluster for entry in status.clusters] == ["m1", "m2"]
        assert status.clusters[1] == PropagationEntry("m2", "OK", 3, "gen:3", "d")
        assert status.synced_generation == 2
        assert msgspec.to_builtins(status.conditions) == (
            {"type": "Propagated", "status": "True", "lastUpdateTime": EARLY, "lastTransitionTime": EARLY},
        )

    def test_the_same_again_is_no_write(self):
        results = {"m1": Result("OK", 1, "gen:1", "d"), "m2": Result("ClusterNotReady")}
        status = propagation_status(FederatedStatus(), 2, results, EARLY)
        assert propagation_status(status, 2, results, LATE) is None

    def test_it_says_in_how_many_clusters_the_object_is_as_wanted(self):
        results = {"m1": Result("OK", 1, "gen:1", "d"), "m2": Result("ClusterNotReady")}
        assert synced_clusters(propagation_status(FederatedStatus(), 2, results, EARLY)) == "1/2"
        assert synced_clusters(FederatedStatus()) == "0/0"

    def test_a_cluster_that_cannot_be_reached_keeps_its_record(self):
        status = propagation_status(FederatedStatus(), 1, {"m1": Result("OK", 4, "gen:4", "d")}, EARLY)
        after = propagation_status(status, 1, {"m1": Result("ClusterNotReady")}, LATE)
        assert after.clusters == (PropagationEntry("m1", "ClusterNotReady", 4, "gen:4", "d"),)
        condition = after.conditions[0]
        assert (condition.status, condition.reason) == ("False", "CheckClusters")
        assert condition.last_transition_time == LATE

    def test_a_failed_round_says_why(self):
        after = propagation_status(FederatedStatus(), 1, {}, EARLY, reason="ClusterRetrievalFailed")
        assert (after.conditions[0].status, after.conditions[0].reason) == ("False", "ClusterRetrievalFailed")

    def test_the_transition_time_moves_only_when_the_status_flips(self):
        status = propagation_status(FederatedStatus(), 1, {"m1": Result("OK", 1, "gen:1")}, EARLY)
        after = propagation_status(status, 2, {"m1": Result("OK", 2, "gen:2")}, LATE)
        assert (after.conditions[0].last_transition_time, after.conditions[0].last_update_time) == (EARLY, LATE)

    def test_a_held_object_has_a_condition_until_it_goes_on(self):
        held = Held("Unschedulable", "0/3 clusters are available")
        status = propagation_status(FederatedStatus(), 1, {}, EARLY, held=held)
        assert [(c.type, c.status, c.reason) for c in status.conditions] == [
            ("Propagated", "True", ""),
            ("Scheduled", "False", "Unschedulable"),
        ]
        assert propagation_status(status, 1, {}, LATE, held=held) is None
        assert len(propagation_status(status, 1, {}, LATE).conditions) == 1


def member(replicas, ready=None, generation=1, progressing="NewReplicaSetAvailable", available=True):
    ready = replicas if ready is None else ready
    conditions = [{"type": "Available", "status": "True" if available else "False"}]
    if progressing:
        failed = progressing == "ProgressDeadlineExceeded"
        conditions.append({"type": "Progressing", "status": "False" if failed else "True", "reason": progressing})
    status = {
        "observedGeneration": generation,
        "replicas": replicas,
        "updatedReplicas": replicas,
        "readyReplicas": ready,
        "availableReplicas": ready,
        "unavailableReplicas": replicas - ready,
        "conditions": conditions,
    }
    return {"metadata": {"name": "web", "generation": generation}, "status": status}


@pytest.fixture
def synced():
    """A federated Deployment that every member has."""
    world = World()
    world.run()
    entries = [{"cluster": name, "status": "OK", "lastObservedGeneration": 1} for name in ("m1", "m2", "m3")]
    world.object["status"] = {"syncedGeneration": 1, "clusters": entries}
    return world


def seen(**objects):
    return [Observation(name, obj, last_written_generation=1) for name, obj in objects.items()]


class TestDeployment:
    def test_counts_are_added_up_and_the_generation_follows(self, synced):
        status = source_status(synced.source, synced.typed, seen(m1=member(2), m2=member(2, 1), m3=member(2)), EARLY)
        counts = {key: value for key, value in status.items() if key != "conditions"}
        assert counts == {
            "observedGeneration": 1,
            "replicas": 6,
            "updatedReplicas": 6,
            "readyReplicas": 5,
            "availableReplicas": 5,
            "unavailableReplicas": 1,
        }

    def test_conditions_say_available_and_progressed(self, synced):
        status = source_status(synced.source, synced.typed, seen(m1=member(2), m2=member(4)), EARLY)
        assert find(status["conditions"], "Available") == {
            "type": "Available",
            "status": "True",
            "reason": "MinimumReplicasAvailable",
            "message": "Deployment has minimum availability.",
            "lastUpdateTime": EARLY,
            "lastTransitionTime": EARLY,
        }
        assert find(status["conditions"], "Progressing")["reason"] == "NewReplicaSetAvailable"

    def test_one_member_that_lags_is_named(self, synced):
        observations = seen(m1=member(2), m2=member(2, 0, available=False, progressing="ReplicaSetUpdated"))
        conditions = source_status(synced.source, synced.typed, observations, EARLY)["conditions"]
        assert find(conditions, "Available")["message"].endswith("in clusters [m2].")
        assert find(conditions, "Progressing")["reason"] == "ReplicaSetUpdated"

    def test_a_passed_deadline_anywhere_fails_the_rollout(self, synced):
        observations = seen(m1=member(2), m2=member(2, 0, progressing="ProgressDeadlineExceeded"))
        condition = find(source_status(synced.source, synced.typed, observations, EARLY)["conditions"], "Progressing")
        assert (condition["status"], condition["reason"]) == ("False", "ProgressDeadlineExceeded")

    def test_the_same_again_is_no_write(self, synced):
        observations = seen(m1=member(2), m2=member(4))
        status = source_status(synced.source, synced.typed, observations, EARLY)
        assert source_status({**synced.source, "status": status}, synced.typed, observations, LATE) is None

    def test_times_move_only_with_what_they_tell_of(self, synced):
        first = source_status(synced.source, synced.typed, seen(m1=member(2)), EARLY)
        second = source_status({**synced.source, "status": first}, synced.typed, seen(m1=member(3)), LATE)
        assert second["conditions"] == first["conditions"]
        third = source_status(
            {**synced.source, "status": first}, synced.typed, seen(m1=member(3, 0, available=False)), LATE
        )
        assert find(third["conditions"], "Available")["lastTransitionTime"] == LATE

    @pytest.mark.parametrize("behind", ["source", "dispatch", "member", "absent"])
    def test_the_generation_waits_for_everybody(self, synced, behind):
        source = {**synced.source, "status": {"observedGeneration": 0}}
        observations = seen(m1=member(2))
        if behind == "source":
            source = {**deployment(spec={"replicas": 7}, metadata={"generation": 2}), "status": source["status"]}
        if behind == "dispatch":
            synced.object["status"]["clusters"][1]["status"] = "UpdateFailed"
        if behind == "member":
            observations = [Observation("m1", member(2), last_written_generation=2)]
        if behind == "absent":
            observations = [*observations, Observation("m2", None)]
        assert source_status(source, synced.typed, observations, EARLY)["observedGeneration"] == 0

    def test_a_network_cut_does_not_look_like_lost_replicas(self, synced):
        observations = [Observation("m1", member(2), last_written_generation=1)]
        cut = Observation("m2", member(4), reachable=False, last_written_generation=1)
        status = source_status(synced.source, synced.typed, [*observations, cut], EARLY)
        assert status["readyReplicas"] == 6
        assert find(status["conditions"], "MembersUnreachable")["message"] == (
            "counts of clusters [m2] are the last known ones"
        )
        silent = msgspec.structs.replace(cut, silent_since="2026-01-01T00:00:00Z")
        told = source_status(synced.source, synced.typed, [*observations, silent], EARLY)
        assert find(told["conditions"], "MembersUnreachable")["message"] == (
            "counts of clusters [m2 (not heard of since 2026-01-01T00:00:00Z)] are the last known ones"
        )
        healed = source_status(
            {**synced.source, "status": status}, synced.typed, seen(m1=member(2), m2=member(4)), LATE
        )
        assert find(healed["conditions"], "MembersUnreachable") is None

    def test_where_nothing_is_known_of_a_member_the_counts_stay(self, synced):
        before = source_status(synced.source, synced.typed, seen(m1=member(2), m2=member(4)), EARLY)
        unknown = Observation("m2", None, reachable=False, known=False)
        source = {**synced.source, "status": before}
        status = source_status(source, synced.typed, [*seen(m1=member(2)), unknown], LATE)
        assert {k: v for k, v in status.items() if k != "conditions"} == {
            k: v for k, v in before.items() if k != "conditions"
        }
        assert find(status["conditions"], "Available")["status"] == "Unknown"
        assert find(status["conditions"], "Progressing")["status"] == "Unknown"
        assert find(status["conditions"], "MembersUnreachable")["status"] == "True"
        assert source_status({**source, "status": status}, synced.typed, [*seen(m1=member(2)), unknown], LATE) is None


WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "generation": 3}}


class TestAnyKind:
    def merged(self, synced, *statuses, now=EARLY):
        observations = seen(**{f"m{n}": {"status": status} for n, status in enumerate(statuses)})
        return source_status(WIDGET, synced.typed, observations, now)

    def test_one_members_status_is_taken_as_it_is(self, synced):
        status = {"phase": "Happy", "conditions": [{"type": "Ready", "status": "True"}]}
        assert self.merged(synced, status) == status

    def test_several_agree_or_are_left_out_and_counts_add_up(self, synced):
        one = {"phase": "Happy", "replicas": 2, "numberReady": 1, "address": "a", "flag": True}
        other = {"phase": "Happy", "replicas": 3, "address": "b", "flag": True}
        assert self.merged(synced, one, other) == {"phase": "Happy", "replicas": 5, "numberReady": 1, "flag": True}

    def test_a_condition_is_true_only_where_all_say_so(self, synced):
        good = {"conditions": [{"type": "Ready", "status": "True", "reason": "Fine", "message": "m"}]}
        bad = {"conditions": [{"type": "Ready", "status": "False", "reason": "Broken", "message": "oops"}]}
        assert find(self.merged(synced, good, good)["conditions"], "Ready")["status"] == "True"
        condition = find(self.merged(synced, good, bad)["conditions"], "Ready")
        assert (condition["status"], condition["reason"], condition["message"]) == ("False", "Broken", "m1: oops")

    def test_conditions_have_only_the_times_every_kind_has(self, synced):
        status = {"conditions": [{"type": "Ready", "status": "True", "reason": "Fine", "message": "m"}]}
        [condition] = self.merged(synced, status, status)["conditions"]
        assert condition.keys() == {"type", "status", "reason", "message", "lastTransitionTime"}

    @pytest.mark.parametrize(("status", "marked"), [({"phase": "Happy"}, False), ({"conditions": []}, True)])
    def test_only_kinds_with_conditions_are_marked_as_last_known(self, synced, status, marked):
        cut = [Observation("m1", {"status": status}, reachable=False), Observation("m2", {"status": status})]
        merged = source_status(WIDGET, synced.typed, cut, EARLY)
        assert ("conditions" in merged) is marked

    def test_nothing_seen_says_nothing(self, synced):
        assert self.merged(synced) is None


def test_what_members_say_of_a_definition_is_not_what_the_control_plane_serves(synced):
    source = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "a"}}
    refused = {"status": {"conditions": [{"type": "Established", "status": "False"}], "storedVersions": ["v1"]}}
    assert source_status(source, synced.typed, seen(m1=refused, m2=refused), EARLY) is None


def test_feedback_mirrors_the_federated_object(synced):
    annotations = feedback_of(synced.source, synced.typed)
    assert annotations == {keys.SCHEDULING: synced.annotations[keys.SCHEDULING]}
    source = deployment(metadata={"annotations": {**annotations, keys.APPLIED_MIGRATION_CONFIGURATION: "old"}})
    assert feedback_of(source, synced.typed) == annotations
    assert feedback_of(deployment(metadata={"annotations": annotations}), synced.typed) is None


class TestCollecting:
    def test_fields_are_copied_by_path_and_missing_ones_named(self):
        found, error = collected_fields(
            {"spec": {"replicas": 2, "x": 1}, "status": {"a": 1}}, ["spec.replicas", "status", "b.c", "a.z"]
        )
        assert found == {"spec": {"replicas": 2}, "status": {"a": 1}}
        assert error == "Failed to get those fields: a.z: not found, b.c: not found"

    def member(self):
        obj = member(2)
        return {**obj, "metadata": {**obj["metadata"], "creationTimestamp": EARLY}, "spec": {"replicas": 2}}

    def test_one_entry_for_each_cluster_that_has_the_object(self, synced):
        looked = {"m2": Seen(self.member()), "m1": Seen(error="timed out"), "m3": Seen()}
        status = collected_status(synced.object, DEPLOYMENTS, looked, None, EARLY)
        assert status["kind"] == "CollectedStatus"
        assert status["metadata"]["name"] == "web-deployments.apps"
        assert status["metadata"]["labels"] == synced.object["metadata"]["labels"]
        assert status["metadata"]["annotations"] == {keys.LATEST_REPLICASET_DIGESTS: "[]"}
        assert status["metadata"]["ownerReferences"][0]["uid"] == "f-1"
        assert [entry["cluster"] for entry in status["clusters"]] == ["m1", "m2"]
        assert status["clusters"][0] == {"cluster": "m1", "collectedFields": {}, "error": "timed out"}
        assert status["clusters"][1]["collectedFields"]["spec"] == {"replicas": 2}
        assert status["lastUpdateTime"] == EARLY

    def test_what_was_placed_nowhere_has_none(self, synced):
        assert collected_status(synced.object, DEPLOYMENTS, {}, None, EARLY) is None

    def test_the_same_again_is_no_write_and_a_change_has_its_time(self, synced):
        looked = {"m1": Seen(self.member())}
        first = collected_status(synced.object, DEPLOYMENTS, looked, None, EARLY)
        first["metadata"] |= {"uid": "c", "resourceVersion": "9", "managedFields": []}
        assert collected_status(synced.object, DEPLOYMENTS, looked, first, LATE) is None
        changed = collected_status(synced.object, DEPLOYMENTS, {"m1": Seen()}, first, LATE)
        assert (changed["clusters"], changed["lastUpdateTime"]) == ([], LATE)
        assert changed["metadata"]["resourceVersion"] == "9"

    def test_an_unreachable_member_keeps_its_last_fields(self, synced):
        first = collected_status(synced.object, DEPLOYMENTS, {"m1": Seen(self.member())}, None, EARLY)
        kept = collected_status(synced.object, DEPLOYMENTS, {"m1": Seen(reachable=False)}, first, LATE)
        assert kept["clusters"][0]["collectedFields"] == first["clusters"][0]["collectedFields"]
        assert "not reachable" in kept["clusters"][0]["error"]

    def test_digests_come_from_members_that_report_them(self, synced):
        prefix = keys.LATEST_REPLICASET_PREFIX
        reported = {
            "name": "web-1",
            "replicas": "2",
            "available-replicas": "1",
            "ready-replicas": "1",
            "observed-generation": "4",
        }
        annotations = {prefix + key: value for key, value in reported.items()} | {keys.SOURCE_GENERATION: "3"}
        obj = self.member()
        obj["metadata"] = {**obj["metadata"], "annotations": annotations}
        status = collected_status(synced.object, DEPLOYMENTS, {"m1": Seen(obj), "m2": Seen(self.member())}, None, EARLY)
        assert status["metadata"]["annotations"][keys.LATEST_REPLICASET_DIGESTS] == (
            '[{"clusterName":"m1","replicasetName":"web-1","replicas":2,"availableReplicas":1,"readyReplicas":1,'
            '"observedGeneration":4,"sourceGeneration":3}]'
        )


def test_replicas_that_start_or_stop_in_some_member_are_in_motion():
    def runs(wanted, replicas, ready):
        return {"spec": {"replicas": wanted}, "status": {"replicas": replicas, "readyReplicas": ready}}

    done, starting, stopping = runs(3, 3, 3), runs(3, 3, 1), runs(2, 3, 2)
    assert not in_motion(DEPLOYMENTS, [done, {"spec": {"replicas": 0}, "status": {}}])
    assert in_motion(DEPLOYMENTS, [done, starting])
    assert in_motion(DEPLOYMENTS, [stopping])
    assert in_motion(DEPLOYMENTS, [{"spec": {"replicas": 1}}]), "nothing was reported yet"
    assert not in_motion(TYPE_CONFIGS["jobs.batch"], [{"spec": {"parallelism": 2}, "status": {}}])
    assert in_motion(DEPLOYMENTS, [done, None]), "a copy is on its way"
    assert in_motion(TYPE_CONFIGS["jobs.batch"], [None])


def test_overrides_that_cannot_be_applied_are_a_condition_of_their_own():
    copies = held_copies(with_held_copies({}, {"m2": Refusal("OverridePolicy differ", 1, "no such field")}))
    why = "OverridePolicy differ, overrideRules[1], cluster m2: no such field"
    results = {"m1": Result("OK"), "m2": Result("ApplyOverridesFailed", message=why)}
    status = propagation_status(FederatedStatus(), 1, results, "now", held_copies=copies)
    assert [(each.type, each.status, each.reason, each.message) for each in status.conditions] == [
        ("Propagated", "False", "CheckClusters", ""),
        ("OverridesApplied", "False", "OverridesInvalid", why),
    ]
    assert [(each.status, each.message) for each in status.clusters] == [("OK", ""), ("ApplyOverridesFailed", why)]
    assert propagation_status(status, 1, results, "later", held_copies=copies) is None
    rendered = propagation_status(status, 1, results, "later")
    assert rendered.conditions[1].message == f"cluster m2: {why}", (
        "also if only the copy shows that it cannot be applied"
    )
    after = propagation_status(status, 1, {"m1": Result("OK"), "m2": Result("OK")}, "later")
    assert [each.type for each in after.conditions] == ["Propagated"]
    assert after.clusters[1].message == ""


def test_a_missing_override_policy_is_told_in_every_cluster():
    held = Held("OverridePolicyNotFound", "OverridePolicy default/differ not found")
    stored = {"metadata": {}, "spec": {"placements": [{"controller": "x", "placement": [{"cluster": "m1"}]}]}}
    results = held_results(msgspec.convert(stored, FederatedObject), held)
    assert results == {"m1": Result("ApplyOverridesFailed", message=held.message)}
    status = propagation_status(FederatedStatus(), 1, results, "now", reason=held.reason, held=held)
    assert [(each.type, each.message) for each in status.conditions if each.type == "OverridesApplied"] == [
        ("OverridesApplied", held.message)
    ]
