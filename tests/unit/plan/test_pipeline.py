"""One pass from a source to its federated object."""

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.api import keys
from argosy.api.clusters import ClusterResources
from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.fleet.snapshot import Fleet
from argosy.kube import mergepatch
from argosy.plan.copies.held_copies import held_copies
from argosy.plan.copies.placement import to_be_removed
from argosy.plan.explain.record import account_of, decode, record_of
from argosy.plan.metadata import annotations_of, labels_of
from argosy.plan.pipeline import pending
from argosy.plan.pipeline.federate import NameTaken
from argosy.plan.pipeline.held import held_of
from argosy.plan.pipeline.inputs import PassInputs
from argosy.plan.pipeline.run import run_locally
from argosy.plan.pipeline.template import template_of
from tests.unit.plan.worlds import (
    DEPLOYMENTS,
    NAMESPACES,
    TYPE_CONFIGS,
    World,
    cluster,
    deployment,
    fleet,
    named,
    override_policy,
    policy,
)

THIRD = "example.com/auditor"


def with_third_party() -> FederatedTypeConfig:
    steps = ((keys.GLOBAL_SCHEDULER,), (THIRD,), (keys.OVERRIDE_CONTROLLER,))
    return msgspec.structs.replace(DEPLOYMENTS, spec=msgspec.structs.replace(DEPLOYMENTS.spec, controllers=steps))


def pending_of(world: World) -> pending.Steps:
    return pending.parse(world.annotations[keys.PENDING_CONTROLLERS])


class TestRecord:
    def test_the_decision_is_recorded_in_the_same_write(self):
        world = World(policy=policy(), fleet=fleet("m1", "m2"))
        world.run()
        record = decode(world.annotations[keys.DECISION])
        account = account_of(record, record.names)
        assert account.placements == world.replicas
        assert account.inputs.policy == "PropagationPolicy/all"
        assert account.inputs.source_generation == 1

    def test_a_record_alone_is_no_reason_to_write(self):
        """Tried again for want of a place, with other scores and the same end."""
        placement = [{"cluster": name, "preferences": {"maxReplicas": 0}} for name in ("m1", "m2", "m3")]
        world = World(policy=policy(placement=placement))
        world.run()
        recorded = decode(world.annotations[keys.DECISION])
        busy = ClusterResources(allocatable={"cpu": "10"}, available={"cpu": "1"})
        status = msgspec.structs.replace(cluster("m1").status, resources=busy)
        fuller = Fleet.of([msgspec.structs.replace(cluster("m1"), status=status), cluster("m2"), cluster("m3")])
        again = world.run(fleet=fuller)
        assert again.object is None
        assert account_of(record_of(again.decision), fuller.names).scores != account_of(recorded, fuller.names).scores

    def test_an_object_that_stays_unplaced_is_written_once(self):
        unready = Fleet.of([cluster("m1", ready=False)])
        world = World(fleet=unready)
        assert world.run().object is not None
        again = world.run()
        assert again.decision is not None
        assert again.object is None
        account = account_of(decode(world.annotations[keys.DECISION]), ("m1",))
        assert account.message == "0/1 clusters are available: 1 cluster(s) were unready"

    def test_the_record_goes_with_the_policy(self):
        world = World()
        world.run()
        world.run(source=deployment(metadata={"labels": {keys.PROPAGATION_POLICY_LABEL: None}}), wanted=True)
        assert keys.DECISION not in world.annotations


class TestFirstPass:
    def test_one_write_makes_the_whole_object(self):
        world = World()
        outcome = world.run()
        assert outcome.create
        assert sum(world.replicas.values()) == 6
        assert sorted(world.replicas) == ["m1", "m2", "m3"]
        obj = outcome.object
        assert obj["kind"] == "FederatedObject"
        assert obj["metadata"]["name"] == "web-deployments.apps"
        assert obj["metadata"]["namespace"] == "default"
        assert obj["metadata"]["finalizers"] == [keys.SYNC_FINALIZER]
        assert obj["metadata"]["labels"] == {"apps/v1": "Deployment", keys.PROPAGATION_POLICY_LABEL: "all"}
        assert obj["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "name": "web",
                "uid": "u-1",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
        assert pending_of(world) == ()
        assert orjson.loads(world.annotations[keys.SCHEDULING]) == {
            "sourceGeneration": 1,
            "fedGeneration": 1,
            "placement": world.replicas,
        }
        assert world.annotations[keys.ENABLE_FOLLOWER_SCHEDULING] == "true"
        assert [note.reason for note in outcome.notes] == ["ScheduleFederatedObject"]

    def test_the_same_inputs_ask_for_no_second_write(self):
        world = World()
        world.run()
        again = world.run()
        assert again.object is None
        assert again.notes == ()

    def test_the_same_inputs_give_the_same_bytes(self):
        one, other = (World().run().object for _ in range(2))
        assert orjson.dumps(one) == orjson.dumps(other)

    def test_status_and_feedback_on_the_source_ask_for_no_write(self):
        world = World()
        world.run()
        touched = deployment(
            status={"replicas": 6, "observedGeneration": 1},
            metadata={"annotations": {keys.SCHEDULING: "{}"}, "resourceVersion": "99", "finalizers": ["x"]},
        )
        assert world.run(source=touched).object is None

    def test_nothing_wants_it_so_nothing_is_made(self):
        plain = deployment(metadata={"labels": {keys.PROPAGATION_POLICY_LABEL: None}})
        inputs = PassInputs(source=plain, type_config=DEPLOYMENTS, fleet=fleet())
        assert run_locally(inputs).object is None
        assert run_locally(msgspec.structs.replace(inputs, wanted=True)).object is not None

    @pytest.mark.parametrize(
        "metadata",
        [{"annotations": {keys.NO_FEDERATED_RESOURCE: "1"}}, {"namespace": keys.SYSTEM_NAMESPACE}],
        ids=["opted out", "system namespace"],
    )
    def test_some_objects_are_never_federated(self, metadata):
        assert World(source=deployment(metadata=metadata)).run().object is None

    def test_another_sources_federated_object_is_left_alone(self):
        world = World()
        world.run()
        world.object["metadata"]["ownerReferences"][0]["name"] = "Web"
        with pytest.raises(NameTaken, match="Web"):
            world.run()

    def test_duplicate_mode_places_without_numbers(self):
        world = World(policy=policy(schedulingMode="Duplicate"))
        world.run()
        assert world.replicas == {"m1": None, "m2": None, "m3": None}
        assert "overrides" not in world.object["spec"]


class TestLaterPasses:
    def test_scaling_writes_once_and_keeps_what_runs(self):
        world = World()
        world.run()
        before = world.replicas
        world.run(source=deployment(spec={"replicas": 9}, metadata={"generation": 2}))
        assert sum(world.replicas.values()) == 9
        assert all(world.replicas[name] >= number for name, number in before.items())
        assert world.run().object is None

    def test_a_cluster_leaves_only_with_a_note(self):
        world = World()
        world.run()
        world.run(policy=policy(placement=[{"cluster": "m1"}, {"cluster": "m2"}]))
        assert world.typed.placed == ("m1", "m2")
        assert to_be_removed(world.annotations) == ["m3"]

    def test_a_cluster_that_comes_back_is_no_longer_to_be_removed(self):
        world = World(policy=policy(schedulingMode="Duplicate"))
        world.run()
        world.run(policy=policy(schedulingMode="Duplicate", placement=[{"cluster": "m1"}]))
        assert to_be_removed(world.annotations) == ["m2", "m3"]
        world.run(policy=policy(schedulingMode="Duplicate"))
        assert to_be_removed(world.annotations) == []
        assert world.typed.placed == ("m1", "m2", "m3")

    def test_removing_the_policy_label_unschedules(self):
        world = World()
        world.run()
        plain = deployment(metadata={"labels": {keys.PROPAGATION_POLICY_LABEL: None}})
        world.run(source=plain, policy=None)
        assert world.typed.placed == ()
        assert to_be_removed(world.annotations) == ["m1", "m2", "m3"]
        assert world.run().object is None
        assert world.run(fleet=fleet("m1")).object is None

    def test_entries_of_other_controllers_are_carried_through(self):
        world = World()
        world.run()
        placement = {"controller": keys.FOLLOWER_CONTROLLER, "placement": [{"cluster": "m9"}, {"cluster": "m8"}]}
        patches = {"controller": "x", "clusters": [{"cluster": "m1", "patches": [{"path": "/a", "value": None}]}]}
        world.object["spec"]["placements"].insert(0, placement)
        world.object["spec"]["overrides"].insert(0, patches)
        world.object["spec"]["follows"] = [{"kind": "Deployment", "name": "lead"}]
        world.object["metadata"]["annotations"]["example.com/note"] = "kept"
        world.run(source=deployment(spec={"replicas": 12}, metadata={"generation": 2}))
        assert world.object["spec"]["placements"][0] == placement
        assert world.object["spec"]["overrides"][0] == patches
        assert world.object["spec"]["follows"] == [{"kind": "Deployment", "name": "lead"}]
        assert world.annotations["example.com/note"] == "kept"

    def test_labels_are_the_sources_wholesale_and_annotations_mirror_it(self):
        world = World(source=deployment(metadata={"annotations": {keys.ORPHAN: "all", "team": "a"}}))
        world.run()
        world.object["metadata"]["labels"]["foreign"] = "x"
        assert world.annotations[keys.ORPHAN] == "all"
        world.run(source=deployment(metadata={"annotations": {"team": "a"}}))
        assert "foreign" not in world.typed.metadata.labels
        assert keys.ORPHAN not in world.annotations
        assert world.object["spec"]["template"]["metadata"]["annotations"] == {"team": "a"}

    def test_a_federated_object_on_its_way_out_is_left_alone(self):
        world = World()
        world.run()
        world.object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        assert world.run(source=deployment(spec={"replicas": 9})).object is None

    def test_no_scheduling_keeps_the_old_placement(self):
        world = World()
        world.run()
        before = world.replicas
        annotated = deployment(spec={"replicas": 30}, metadata={"annotations": {keys.NO_SCHEDULING: "1"}})
        world.run(source=annotated)
        assert world.replicas == before
        assert world.object["spec"]["template"]["spec"]["replicas"] == 30


class TestHolding:
    def test_a_missing_policy_holds_a_new_object_in_front_of_the_scheduler(self):
        world = World(policy=None)
        outcome = world.run()
        assert outcome.held.reason == "PolicyNotFound"
        assert outcome.held.message == "PropagationPolicy default/all not found"
        assert pending_of(world)[0] == (keys.GLOBAL_SCHEDULER,)
        assert [note.type for note in outcome.notes] == ["Warning"]
        again = world.run()
        assert again.object is None
        assert again.notes == ()

    def test_a_policy_that_appears_lets_it_go_on(self):
        world = World(policy=None)
        world.run()
        world.run(policy=policy())
        assert held_of(world.annotations) is None
        assert sum(world.replicas.values()) == 6
        assert pending_of(world) == ()

    def test_a_deleted_policy_changes_no_placement(self):
        world = World()
        world.run()
        before = world.object["spec"]
        outcome = world.run(policy=None)
        assert outcome.held.reason == "PolicyNotFound"
        assert world.object["spec"] == before
        assert pending_of(world) == ()

    def test_a_missing_profile_holds(self):
        world = World(policy=policy(schedulingProfile="fast"))
        assert world.run().held.reason == "SchedulingProfileNotFound"

    def test_nothing_fits_keeps_the_current_placement_and_says_so(self):
        world = World()
        world.run()
        before = world.typed.placed
        outcome = world.run(policy=policy(clusterSelector={"zone": "nowhere"}))
        assert world.typed.placed == before
        assert outcome.held.reason == "Unschedulable"
        assert "0/3 clusters are available" in outcome.held.message
        assert pending_of(world) == ()
        assert world.run().object is None

    def test_held_for_want_of_a_cluster_it_is_tried_again_with_every_change(self):
        world = World()
        world.run()
        world.run(policy=policy(clusterSelector={"zone": "a"}))
        labelled = Fleet.of([cluster("m1"), cluster("m2", labels={"zone": "a"}), cluster("m3")])
        world.run(fleet=labelled)
        assert world.typed.placed == ("m2",)
        assert held_of(world.annotations) is None
        assert to_be_removed(world.annotations) == ["m1", "m3"]

    def test_an_unplaced_object_is_placed_once_a_cluster_is_ready(self):
        world = World(fleet=Fleet.of([cluster("m1", ready=False)]))
        assert world.run().held.reason == "Unschedulable"
        world.run(fleet=fleet("m1"))
        assert world.replicas == {"m1": 6}

    def test_a_missing_override_policy_holds_in_front_of_its_step(self):
        labels = {keys.OVERRIDE_POLICY_LABEL: "differ"}
        world = World(source=deployment(metadata={"labels": labels}))
        outcome = world.run()
        assert outcome.held.reason == "OverridePolicyNotFound"
        assert pending_of(world) == ((keys.OVERRIDE_CONTROLLER,),)
        assert len(world.typed.placed) == 3

    def test_a_bad_override_keeps_the_last_good_ones(self):
        labels = {keys.OVERRIDE_POLICY_LABEL: "differ"}
        good = override_policy({"overriders": {"jsonpatch": [{"path": "/spec/paused", "value": True}]}})
        world = World(source=deployment(metadata={"labels": labels}), override_policies=named(good))
        world.run()
        before = world.object["spec"]
        bad = override_policy({"overriders": {"jsonpatch": [{"operator": "remove", "path": "/spec/nothing"}]}})
        outcome = world.run(override_policies=named(bad))
        assert outcome.held is None
        held = held_copies(world.object["metadata"]["annotations"])
        assert all("OverridePolicy differ, overrideRules[0]" in held.why(name) for name in ("m1", "m2", "m3"))
        assert world.object["spec"] == before
        assert world.run(override_policies=named(bad)).object is None, "a second pass has nothing to write"
        world.run(override_policies=named(good))
        assert keys.HELD_COPIES not in world.object["metadata"]["annotations"]
        world.run(override_policies=named(bad))
        unlisted = msgspec.structs.replace(DEPLOYMENTS.spec, controllers=((keys.GLOBAL_SCHEDULER,),))
        world.type_config = msgspec.structs.replace(DEPLOYMENTS, spec=unlisted)
        world.run()
        assert keys.HELD_COPIES not in world.object["metadata"]["annotations"], "nobody overrides it any more"

    def test_what_is_held_in_one_cluster_goes_on_in_the_others(self):
        labels = {keys.OVERRIDE_POLICY_LABEL: "differ"}
        wrong = {"jsonpatch": [{"operator": "remove", "path": "/spec/nothing"}]}
        bad = override_policy({"targetClusters": {"clusters": ["m2"]}, "overriders": wrong})
        world = World(source=deployment(metadata={"labels": labels}), override_policies=named(bad))
        world.run()
        world.run(source=deployment(metadata={"labels": labels, "generation": 2}, spec={"replicas": 12}))
        assert sum(world.replicas.values()) == 12
        assert pending_of(world) == ()
        held = held_copies(world.object["metadata"]["annotations"])
        assert [bool(held.why(name)) for name in ("m1", "m2", "m3")] == [False, True, False]


class TestOverrides:
    def test_patches_are_stored_for_the_clusters_they_are_for(self):
        rule = {
            "targetClusters": {"clusters": ["m2"]},
            "overriders": {"jsonpatch": [{"path": "/spec/template/spec/containers/0/image", "value": "nginx:2"}]},
        }
        labels = {keys.OVERRIDE_POLICY_LABEL: "differ"}
        world = World(source=deployment(metadata={"labels": labels}), override_policies=named(override_policy(rule)))
        world.run()
        assert world.object["spec"]["overrides"][-1] == {
            "controller": keys.OVERRIDE_CONTROLLER,
            "clusters": [
                {
                    "cluster": "m2",
                    "patches": [{"path": "/spec/template/spec/containers/0/image", "value": "nginx:2"}],
                }
            ],
        }
        assert world.run().object is None


class TestThirdParties:
    def test_the_pass_stops_in_front_and_goes_on_behind(self):
        labels = {keys.OVERRIDE_POLICY_LABEL: "differ"}
        rule = {"overriders": {"jsonpatch": [{"path": "/spec/paused", "value": True}]}}
        world = World(
            source=deployment(metadata={"labels": labels}),
            type_config=with_third_party(),
            override_policies=named(override_policy(rule)),
        )
        world.run()
        assert pending_of(world) == ((THIRD,), (keys.OVERRIDE_CONTROLLER,))
        assert world.typed.overrides_of(keys.OVERRIDE_CONTROLLER) == {}
        assert world.run().object is None
        world.object["metadata"]["annotations"][keys.PENDING_CONTROLLERS] = pending.dump([[keys.OVERRIDE_CONTROLLER]])
        world.run()
        assert pending_of(world) == ()
        assert set(world.typed.overrides_of(keys.OVERRIDE_CONTROLLER)) == {"m1", "m2", "m3"}

    def test_a_changed_placement_sends_a_finished_object_past_them_again(self):
        world = World(type_config=with_third_party())
        world.run()
        world.object["metadata"]["annotations"][keys.PENDING_CONTROLLERS] = "[]"
        assert world.run().object is None
        world.run(policy=policy(placement=[{"cluster": "m1"}]))
        assert pending_of(world) == ((THIRD,), (keys.OVERRIDE_CONTROLLER,))

    def test_an_unreadable_pending_list_starts_the_pipeline_again(self):
        world = World()
        world.run()
        world.object["metadata"]["annotations"][keys.PENDING_CONTROLLERS] = "nonsense"
        world.run()
        assert pending_of(world) == ()


def test_an_autoscaler_waits_and_says_so():
    labels = {keys.PROPAGATION_POLICY_LABEL: "all"}
    metadata = {"name": "web", "namespace": "default", "uid": "h", "labels": labels}
    source = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": {}}
    world = World(source=source, type_config=TYPE_CONFIGS["horizontalpodautoscalers.autoscaling"])
    assert world.run().held.reason == "StepNotServed"
    assert pending_of(world)[0] == (keys.FEDERATED_HPA_CONTROLLER,)
    assert world.typed.placed == ()


class TestNamespaces:
    def namespace(self, name="shop", **annotations):
        return {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "uid": "n-1", "annotations": annotations},
        }

    def test_it_goes_everywhere_and_is_adopted_where_it_exists(self):
        world = World(source=self.namespace(), type_config=NAMESPACES, policy=None)
        outcome = world.run()
        assert outcome.object["kind"] == "ClusterFederatedObject"
        assert "namespace" not in outcome.object["metadata"]
        assert world.typed.placed == ("m1", "m2", "m3")
        assert world.annotations[keys.INTERNAL_CONFLICT_RESOLUTION] == "adopt"
        assert world.annotations[keys.INTERNAL_CLUSTERS_TO_ADOPT] == '{"regexp":".*"}'
        assert world.annotations[keys.INTERNAL_ORPHAN] == "adopted"
        assert pending_of(world) == ()
        world.run(fleet=fleet("m1", "m2", "m3", "m4"))
        assert world.typed.placed == ("m1", "m2", "m3", "m4")

    @pytest.mark.parametrize("name", ["kube-system", "default", "kube-admiral-system", "kube-flannel"])
    def test_system_namespaces_stay_at_home(self, name):
        assert World(source=self.namespace(name), type_config=NAMESPACES, policy=None).run().object is None

    def test_opting_out_is_honoured_and_takes_nothing_away(self):
        out = self.namespace(**{keys.NO_AUTO_PROPAGATION: "true"})
        assert World(source=out, type_config=NAMESPACES, policy=None).run().object is None
        world = World(source=self.namespace(), type_config=NAMESPACES, policy=None)
        world.run()
        world.run(source=out, fleet=fleet("m1", "m2", "m3", "m4"))
        assert world.typed.placed == ("m1", "m2", "m3")


MARKS = sorted(keys.MARKS)
LABELS = st.dictionaries(
    st.sampled_from(["app", "tier", *sorted(keys.POLICY_LABELS), *MARKS]), st.sampled_from(["a", "b"])
)
ANNOTATIONS = st.dictionaries(
    st.sampled_from(
        ["note", keys.ORPHAN, keys.SCHEDULING, keys.STICKY_CLUSTER, keys.LATEST_REPLICASET_DIGESTS, *MARKS]
    ),
    st.sampled_from(["true", "false"]),
)


@given(labels=LABELS, annotations=ANNOTATIONS, status=st.booleans())
def test_the_stored_merge_patch_turns_the_source_into_the_template(labels, annotations, status):
    source = deployment()
    source["metadata"] |= {"labels": labels, "annotations": annotations}
    if not status:
        del source["status"]
    inputs = PassInputs(source=source, type_config=DEPLOYMENTS, fleet=fleet(), policy=policy("a"), wanted=True)
    obj = run_locally(inputs).object
    patch = orjson.loads(obj["metadata"]["annotations"][keys.TEMPLATE_MERGE_PATCH])
    assert mergepatch.apply(source, patch) == template_of(source) == obj["spec"]["template"]
    assert keys.MARKS.isdisjoint({*labels_of(template_of(source)), *annotations_of(template_of(source))})


def test_sources_without_our_marks_are_stored_as_ever():
    """What a control plane stored before templates were rid of them is not all written again."""
    source = deployment(metadata={"labels": {"app": "web"}, "annotations": {"note": "true"}})
    inputs = PassInputs(source=source, type_config=DEPLOYMENTS, fleet=fleet(), policy=policy("a"), wanted=True)
    obj = run_locally(inputs).object
    patch = orjson.loads(obj["metadata"]["annotations"][keys.TEMPLATE_MERGE_PATCH])
    assert patch["metadata"]["annotations"] == dict.fromkeys(keys.IGNORED_ANNOTATIONS)
    assert patch["metadata"]["labels"] == {keys.PROPAGATION_POLICY_LABEL: None}
    assert obj["metadata"]["annotations"][keys.OBSERVED_ANNOTATIONS] == "|note"


POLICIES = st.sampled_from(
    [
        None,
        policy(),
        policy(schedulingMode="Duplicate"),
        policy(schedulingMode="Duplicate", maxClusters=1),
        policy(placement=[{"cluster": "m1"}, {"cluster": "m3"}]),
        policy(clusterSelector={"zone": "nowhere"}),
        policy(stickyCluster=True),
        policy(schedulingProfile="missing"),
    ]
)
FLEETS = st.sampled_from(
    [
        fleet(),
        fleet("m1"),
        fleet("m1", "m2", "m3", "m4"),
        Fleet.of([cluster("m1", ready=False), cluster("m2")]),
        Fleet.of([cluster("m1", taints=[{"key": "k", "effect": "NoExecute"}]), cluster("m2"), cluster("m3")]),
        Fleet(),
    ]
)
STEPS = st.tuples(POLICIES, FLEETS, st.integers(0, 20), st.booleans())


@given(steps=st.lists(STEPS, min_size=1, max_size=6))
def test_whatever_happens_no_copy_is_forgotten_and_a_second_pass_has_nothing_to_do(steps):
    world, ever = World(), set()
    for number, (stated, members, replicas, labelled) in enumerate(steps):
        label = None if not labelled else "all"
        changes = {"generation": number + 1, "labels": {keys.PROPAGATION_POLICY_LABEL: label}}
        world.run(source=deployment(spec={"replicas": replicas}, metadata=changes), policy=stated, fleet=members)
        if world.object is None:
            continue
        ever |= set(world.typed.placed)
        assert ever == set(world.typed.placed) | set(to_be_removed(world.annotations))
        again = world.run()
        assert again.object is None
        assert again.notes == ()
