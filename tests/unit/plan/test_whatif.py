"""What would follow from a change: the pipeline on a supposed snapshot, compared with today's."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.api import keys
from argosy.kube.objects import encode
from argosy.plan.explain.forecast import ClusterChange, Counts, Forecast, object_change
from argosy.plan.explain.snapshot import Irrelevant, ObjectKey, ScenarioError, Snapshot
from argosy.plan.explain.whatif import concerned, forecast
from argosy.plan.pipeline.inputs import PassInputs
from argosy.plan.pipeline.policy import PolicyRef, override_refs, propagation_ref
from argosy.plan.pipeline.run import run_locally
from tests.unit.plan.worlds import DEPLOYMENTS, NAMESPACES, cluster, deployment, override_policy, policy

WEB = ObjectKey("deployments.apps", "default", "web")
MOVING = {
    "rescheduleWhen": {"policyContentChanged": True, "clusterJoined": True, "clusterLabelsChanged": True},
    "replicaRescheduling": {"avoidDisruption": True},
}

#: Alike, so that numbers can be told by heart.
EVEN = [{"cluster": f"m{number}", "preferences": {"weight": 1}} for number in range(1, 6)]

PLACED_IN_M1 = [{"controller": keys.GLOBAL_SCHEDULER, "placement": [{"cluster": "m1"}]}]
OVERRIDDEN_IN_M1 = [
    {
        "controller": keys.OVERRIDE_CONTROLLER,
        "clusters": [{"cluster": "m1", "patches": [{"path": "/data/key", "value": "UEFTU1dPUkQ="}]}],
    }
]


def manifest(name: str = "web", replicas: int = 6, **patch: Any) -> dict[str, Any]:
    return deployment(metadata={"name": name, "uid": f"u-{name}"}, spec={"replicas": replicas}, **patch)


def manifest_of(policy: Any) -> dict[str, Any]:
    """A policy as a user would write it."""
    return {"apiVersion": keys.API_VERSION, "kind": policy.kind, **msgspec.to_builtins(policy)}


def snapshot(*sources: dict[str, Any], clusters: tuple[str, ...] = ("m1", "m2", "m3"), **spec: Any) -> Snapshot:
    """At rest: every source has the federated object that follows from the rest."""
    by_key = {ObjectKey("deployments.apps", "default", each["metadata"]["name"]): encode(each) for each in sources}
    return settled(
        Snapshot(
            type_configs={each.name: each for each in (DEPLOYMENTS, NAMESPACES)},
            clusters={name: cluster(name) for name in clusters},
            sources=by_key or {WEB: encode(manifest())},
            policies={PolicyRef("all", "default"): policy(**{"reschedulePolicy": MOVING, "placement": EVEN, **spec})},
        )
    )


def settled(world: Snapshot) -> Snapshot:
    """As the controllers leave it, object by object."""
    federated = dict(world.federated)
    for key in world.sources:
        outcome = executed(world, key)
        if outcome.object is not None:
            federated[key] = encode(outcome.object)
    return msgspec.structs.replace(world, federated=federated)


def executed(world: Snapshot, key: ObjectKey) -> Any:
    source = world.source(key)
    labels = source["metadata"].get("labels") or {}
    ref = propagation_ref(labels, key.namespace)
    inputs = PassInputs(
        source=source,
        existing=world.federated_object(key),
        type_config=world.type_configs[key.type],
        fleet=world.fleet,
        policy=world.policies.get(ref),
        override_policies={
            each: world.override_policies[each]
            for each in override_refs(labels, key.namespace)
            if each in world.override_policies
        },
    )
    return run_locally(inputs)


def numbers(made: Forecast) -> dict[str, tuple[int | None, int | None]]:
    (only,) = made.objects
    return {each.cluster: (each.replicas_before, each.replicas_after) for each in only.clusters}


class TestForecast:
    def test_nothing_supposed_changes_nothing_and_looks_at_nothing(self):
        world = snapshot()
        made = forecast(world, world)
        assert not made.changes
        assert made == Forecast()

    def test_scaling_out_only_starts(self):
        world = snapshot()
        made = forecast(world, world.with_replicas(WEB, 9))
        assert numbers(made) == {"m1": (2, 3), "m2": (2, 3), "m3": (2, 3)}
        assert (made.total.started, made.total.moved, made.total.stopped) == (3, 0, 0)
        assert made.clusters["m2"] == Counts(started=1)
        assert made.total.updated == 0

    def test_scaling_to_what_it_is_changes_nothing(self):
        world = snapshot()
        assert not forecast(world, world.with_replicas(WEB, 6)).changes

    def test_a_cluster_that_is_lost_gives_its_replicas_to_the_others(self):
        world = snapshot()
        made = forecast(world, world.with_lost("m1"))
        assert numbers(made) == {"m1": (2, None), "m2": (2, 3), "m3": (2, 3)}
        assert made.objects[0].clusters[0].copy == "removed"
        assert (made.total.moved, made.total.started, made.total.stopped) == (2, 0, 0)
        assert (made.total.removed, made.clusters["m1"].stopped) == (1, 2)

    def test_a_cordoned_cluster_keeps_what_it_has_and_gets_nothing_new(self):
        world = snapshot(manifest("web", 6))
        assert not forecast(world, world.with_cordoned("m1")).changes
        fresh = world.with_cordoned("m1").with_object(manifest("new", 4))
        made = forecast(world, fresh)
        assert [each.name for each in made.objects] == ["new"]
        assert numbers(made) == {"m2": (None, 2), "m3": (None, 2)}

    def test_a_new_cluster_is_as_large_as_the_median_unless_it_says(self):
        world = snapshot()
        joined = world.with_new_cluster({"apiVersion": keys.API_VERSION, "metadata": {"name": "m4"}})
        assert joined.clusters["m4"].status.resources.allocatable == {"cpu": "10", "memory": "10Gi"}
        made = forecast(world, joined.with_replicas(WEB, 12))
        assert numbers(made)["m4"] == (None, 3)

    def test_a_new_cluster_with_a_size_gets_its_share(self):
        world = snapshot(placement=[])
        resources = {"allocatable": {"cpu": "30", "memory": "30Gi"}}
        joined = world.with_new_cluster({"metadata": {"name": "m4"}, "status": {"resources": resources}})
        made = forecast(world, joined.with_replicas(WEB, 12))
        assert numbers(made)["m4"] == (None, 6)

    def test_nothing_that_fits_is_told_as_unschedulable_and_keeps_its_place(self):
        world = snapshot()
        lost = world.with_lost("m1").with_lost("m2").with_lost("m3")
        made = forecast(world, lost)
        assert made.objects[0].clusters == ()
        assert made.objects[0].held.reason == "Unschedulable"
        assert (made.total.unschedulable, made.total.objects) == (1, 1)
        back = forecast(settled(lost), world)
        assert back.objects[0].released

    def test_a_policy_that_goes_missing_holds(self):
        world = snapshot()
        label = {keys.PROPAGATION_POLICY_LABEL: "other"}
        made = forecast(world, world.with_object(deployment(metadata={"labels": label, "uid": "u-web"})))
        assert made.objects[0].held.reason == "PolicyNotFound"
        assert (made.total.held, made.total.unschedulable) == (1, 0)

    def test_a_changed_policy_moves_what_names_it(self):
        world = snapshot(manifest("web"), manifest("shop"))
        only_m1 = policy(reschedulePolicy=MOVING, placement=[{"cluster": "m1"}])
        made = forecast(world, world.with_object(manifest_of(only_m1)))
        assert [each.name for each in made.objects] == ["shop", "web"]
        assert made.total.moved == 8

    def test_a_change_that_the_policy_defers_is_told(self):
        never = {"rescheduleWhen": {"policyContentChanged": False}}
        world = snapshot(reschedulePolicy=never)
        elsewhere = policy(reschedulePolicy=never, placement=[{"cluster": "m1"}])
        made = forecast(world, world.with_object(manifest_of(elsewhere)))
        assert not made.changes
        assert made.deferred == {"deployments.apps default/web": "policyContentChanged:false"}

    def test_overrides_are_told_cluster_by_cluster(self):
        differ = override_policy(
            {
                "targetClusters": {"clusters": ["m2"]},
                "overriders": {"jsonpatch": [{"path": "/spec/paused", "operator": "add", "value": True}]},
            }
        )
        labelled = deployment(metadata={"labels": {keys.OVERRIDE_POLICY_LABEL: "differ"}, "uid": "u-web"})
        world = snapshot()
        made = forecast(world, world.with_object(manifest_of(differ)).with_object(labelled))
        assert made.objects[0].clusters == (
            ClusterChange("m2", "kept", 2, 2, overridden=True, overrides=("add /spec/paused = true",)),
        )
        assert (made.total.overridden, made.total.updated) == (1, 0)

    def test_a_copy_that_will_be_held_stays_as_it_is(self):
        wrong = {"jsonpatch": [{"path": "/spec/nothing", "operator": "remove"}]}
        differ = override_policy({"targetClusters": {"clusters": ["m2"]}, "overriders": wrong})
        labels = {"labels": {keys.OVERRIDE_POLICY_LABEL: "differ"}, "uid": "u-web"}
        image = {"template": {"spec": {"containers": [{"name": "web", "image": "nginx:2"}]}}}
        world = snapshot().with_object(manifest_of(differ))
        made = forecast(world, world.with_object(deployment(metadata=labels, spec=image)))
        (told,) = (each for each in made.objects[0].clusters if each.cluster == "m2")
        assert told.held.startswith("OverridePolicy differ, overrideRules[0], cluster m2: ")
        assert (told.updated, made.total.updated, made.objects[0].held) == (False, 2, None)

    def test_the_values_of_a_secret_are_not_told(self):
        federated = {
            "spec": {"template": {"kind": "Secret"}, "placements": PLACED_IN_M1, "overrides": OVERRIDDEN_IN_M1}
        }
        source = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
        made = object_change(DEPLOYMENTS, source, None, federated, held_before=None, held=None)
        assert made.clusters[0].overrides == ("replace /data/key",)

    def test_another_image_updates_every_copy(self):
        world = snapshot()
        image = {"template": {"spec": {"containers": [{"name": "web", "image": "nginx:2"}]}}}
        made = forecast(world, world.with_object(deployment(metadata={"uid": "u-web"}, spec=image)))
        assert [each.updated for each in made.objects[0].clusters] == [True] * 3
        assert made.total.updated == 3

    def test_an_object_without_a_policy_any_more_is_removed(self):
        world = snapshot()
        bare = deployment(metadata={"labels": {keys.PROPAGATION_POLICY_LABEL: None}, "uid": "u-web"})
        made = forecast(world, world.with_object(bare))
        assert (made.total.removed, made.total.stopped) == (3, 6)

    def test_an_object_that_asks_for_no_propagation_is_named(self):
        world = snapshot()
        bare = deployment(metadata={"name": "bare", "labels": {keys.PROPAGATION_POLICY_LABEL: None}})
        made = forecast(world, world.with_object(bare))
        assert not made.changes
        assert made.notes == ("deployments.apps default/bare: no policy claims it, and it is not propagated",)

    def test_a_policy_that_selects_shows_what_it_would_claim(self):
        bare = deployment(metadata={"labels": {keys.PROPAGATION_POLICY_LABEL: None}, "uid": "u-web"})
        world = snapshot(bare)
        selecting = policy("chosen", resourceSelectors=[{"apiVersion": "apps/v1", "kind": "Deployment"}])
        made = forecast(world, world.with_object(manifest_of(selecting)))
        assert (made.total.added, made.total.started) == (3, 6)

    def test_a_policy_that_is_narrowed_shows_what_would_be_held(self):
        bare = deployment(metadata={"labels": {keys.PROPAGATION_POLICY_LABEL: None}, "uid": "u-web"})
        empty = snapshot(bare)
        wide = policy("chosen", resourceSelectors=[{"kind": "Deployment"}])
        world = settled(empty.with_object(manifest_of(wide)))
        narrow = policy("chosen", resourceSelectors=[{"kind": "Deployment", "name": "another"}])
        made = forecast(world, world.with_object(manifest_of(narrow)))
        assert [each.held.reason for each in made.objects] == ["NoLongerSelected"]
        assert made.total.removed == 0

    def test_what_is_on_its_way_already_is_told_apart(self):
        world = snapshot()
        moving = msgspec.structs.replace(world, sources={WEB: encode(manifest("web", 12))})
        made = forecast(moving, moving.with_replicas(WEB, 15))
        assert made.unsettled == ("deployments.apps default/web",)
        assert made.total.started == 3

    def test_namespaces_go_to_a_new_cluster(self):
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "uid": "n"}}
        key = ObjectKey("namespaces", "", "shop")
        world = snapshot()
        world = settled(msgspec.structs.replace(world, sources={**world.sources, key: encode(namespace)}))
        made = forecast(world, world.with_new_cluster({"metadata": {"name": "m4"}}))
        shop = next(each for each in made.objects if each.kind == "Namespace")
        assert shop.clusters == (ClusterChange("m4", "added"),)


def requesting(cpu: str, name: str, replicas: int, policy: str = "all") -> dict[str, Any]:
    """A Deployment whose pods ask for so much."""
    made = manifest(name, replicas)
    made["metadata"]["labels"] = {"app": name, keys.PROPAGATION_POLICY_LABEL: policy}
    made["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return made


class TestFilling:
    def test_what_was_decided_for_one_takes_room_from_the_next(self):
        world = snapshot(clusters=("m1", "m2"), placement=[])
        pinned = policy("pinned", reschedulePolicy=MOVING, placement=[{"cluster": "m1"}])
        world = world.with_object(manifest_of(pinned))
        alone = forecast(world, world.with_object(requesting("0", "b", 10)))
        assert numbers(alone) == {"m1": (None, 5), "m2": (None, 5)}
        both = world.with_object(requesting("9", "a", 1, "pinned")).with_object(requesting("0", "b", 10))
        a, b = forecast(world, both).objects
        assert [each.cluster for each in a.clusters] == ["m1"]
        shares = {each.cluster: each.replicas_after for each in b.clusters}
        assert shares["m2"] > shares["m1"]

    def test_those_that_matter_most_have_their_room_first(self):
        world = snapshot(clusters=("m1", "m2"), placement=[])
        world = msgspec.structs.replace(world, priorities={"": 0, "vital": 1000})
        vital = requesting("9", "z", 1)
        vital["spec"]["template"]["spec"]["priorityClassName"] = "vital"
        after = world.with_object(requesting("1", "a", 1)).with_object(vital)
        assert [key.name for key in concerned(world, after)] == ["z", "a"]

    def test_a_workload_that_comes_lets_the_one_that_waits_for_it_come_too(self):
        beside = {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {"matchLabels": {"app": "db"}}}]}
        together = policy("together", reschedulePolicy=MOVING, schedulingMode="Duplicate", workloadAffinity=beside)
        waiting = requesting("0", "api", 2, "together")
        world = settled(snapshot(manifest("web")).with_object(manifest_of(together)).with_object(waiting))
        assert placements(world)[ObjectKey("deployments.apps", "default", "api")] == {}
        pinned = policy("pinned", placement=[{"cluster": "m2"}])
        after = world.with_object(manifest_of(pinned)).with_object(requesting("0", "db", 1, "pinned"))
        db, api = forecast(world, after).objects
        assert (db.name, api.name) == ("db", "api")
        assert [each.cluster for each in db.clusters] == ["m2"]
        assert [each.cluster for each in api.clusters] == ["m2"]
        assert api.released


class TestSuppose:
    def test_what_makes_no_sense_is_said(self):
        world = snapshot()
        with pytest.raises(ScenarioError, match="there is no cluster 'm9'; the clusters are: m1, m2, m3"):
            world.with_lost("m9")
        with pytest.raises(ScenarioError, match="the cluster m1 already exists"):
            world.with_new_cluster({"metadata": {"name": "m1"}})
        with pytest.raises(ScenarioError, match="default/none does not exist"):
            world.with_replicas(ObjectKey("deployments.apps", "default", "none"), 3)
        with pytest.raises(ScenarioError, match="PropagationPolicy x: Expected"):
            world.with_object(
                {
                    "apiVersion": keys.API_VERSION,
                    "kind": "PropagationPolicy",
                    "metadata": {"name": "x"},
                    "spec": {"maxClusters": "many"},
                }
            )
        with pytest.raises(Irrelevant, match="Gadget x"):
            world.with_object({"apiVersion": "v1", "kind": "Gadget", "metadata": {"name": "x"}})

    def test_only_the_objects_a_change_concerns_are_looked_at(self):
        other = deployment(metadata={"name": "alone", "labels": {keys.PROPAGATION_POLICY_LABEL: "own"}})
        world = snapshot(manifest("web"), other)
        world = settled(
            msgspec.structs.replace(world, policies={**world.policies, PolicyRef("own", "default"): policy("own")})
        )
        changed = manifest_of(policy("own", maxClusters=1))
        assert [key.name for key in concerned(world, world.with_object(changed))] == ["alone"]
        assert [key.name for key in concerned(world, world.with_replicas(WEB, 7))] == ["web"]
        assert [key.name for key in concerned(world, world.with_cordoned("m1"))] == ["alone", "web"]


def placements(world: Snapshot) -> dict[ObjectKey, dict[str, int | None]]:
    """Replicas by cluster, as the federated objects say."""
    found: dict[ObjectKey, dict[str, int | None]] = {}
    for key in world.federated:
        spec = world.federated_object(key)["spec"]
        patches = {
            item["cluster"]: item["patches"][0]["value"]
            for entry in spec.get("overrides") or ()
            if entry["controller"] == keys.GLOBAL_SCHEDULER
            for item in entry["clusters"]
        }
        found[key] = {
            each["cluster"]: patches.get(each["cluster"])
            for entry in spec.get("placements") or ()
            for each in entry["placement"]
        }
    return found


@st.composite
def suppositions(draw: st.DrawFn) -> tuple[Snapshot, Snapshot]:
    clusters = tuple(f"m{number}" for number in range(1, draw(st.integers(1, 5)) + 1))
    sources = [manifest(name, draw(st.integers(0, 20))) for name in ("a", "b", "c")[: draw(st.integers(1, 3))]]
    world = snapshot(*sources, clusters=clusters, maxClusters=draw(st.none() | st.integers(1, 4)), placement=[])
    after = world
    for _ in range(draw(st.integers(0, 4))):
        match draw(st.sampled_from(["scale", "lose", "cordon", "add", "policy"])):
            case "scale":
                name = draw(st.sampled_from(sources))["metadata"]["name"]
                after = after.with_replicas(ObjectKey("deployments.apps", "default", name), draw(st.integers(0, 40)))
            case "lose":
                after = after.with_lost(draw(st.sampled_from(clusters)))
            case "cordon":
                after = after.with_cordoned(draw(st.sampled_from(clusters)))
            case "add" if "new" not in after.clusters:
                after = after.with_new_cluster({"metadata": {"name": "new"}})
            case "policy":
                preferences = [
                    {"cluster": name, "preferences": {"weight": draw(st.integers(0, 3))}} for name in clusters
                ]
                after = after.with_object(manifest_of(policy(reschedulePolicy=MOVING, placement=preferences)))
    return world, after


@settings(deadline=None, max_examples=60)
@given(suppositions())
def test_the_forecast_is_what_the_controllers_then_do(worlds):
    before, after = worlds
    made = forecast(before, after)
    then = settled(after)
    was, is_now = placements(before), placements(then)
    foretold = {ObjectKey("deployments.apps", each.namespace, each.name): each for each in made.objects}
    for key, now in is_now.items():
        expected = dict(was.get(key, {}))
        for each in foretold[key].clusters if key in foretold else ():
            if each.copy == "removed":
                del expected[each.cluster]
            else:
                expected[each.cluster] = each.replicas_after
        assert expected == now
    total = sum(number or 0 for each in is_now.values() for number in each.values()) - sum(
        number or 0 for each in was.values() for number in each.values()
    )
    assert made.total.started - made.total.stopped == total
    assert sum(each.started for each in made.clusters.values()) == made.total.started + made.total.moved
    assert not forecast(then, then).changes
    assert not forecast(before, msgspec.structs.replace(before, clusters=dict(before.clusters))).changes


@pytest.mark.parametrize("katalyst", [False, True])
def test_what_pods_ask_for_of_katalysts_resources_counts_where_the_controllers_count_it(katalyst):
    today = msgspec.structs.replace(snapshot(manifest("api")), katalyst=katalyst)
    asking = manifest()
    requests = {"requests": {"resource.katalyst.kubewharf.io/reclaimed_millicpu": "500"}}
    asking["spec"]["template"]["spec"]["containers"][0]["resources"] = requests
    then = msgspec.structs.replace(today, sources={**today.sources, WEB: encode(asking)})
    (told,) = forecast(today, then).objects
    # No cluster here has any.
    assert told.placed_nowhere == katalyst


def test_one_whose_policy_is_missing_is_carried_nowhere_and_gets_what_waited_when_it_is_there():
    today = snapshot(manifest("web", 6))
    renamed = manifest("web", 9)
    renamed["metadata"]["labels"] = {keys.PROPAGATION_POLICY_LABEL: "later"}
    then = msgspec.structs.replace(today, sources={WEB: encode(renamed)})
    (told,) = forecast(today, then).objects
    assert told.held is not None
    assert told.clusters == ()
    held = settled(then)
    policies = {**then.policies, PolicyRef("later", "default"): policy(name="later", placement=EVEN)}
    (told,) = forecast(held, msgspec.structs.replace(held, policies=policies)).objects
    assert told.released
    assert {each.cluster: (each.replicas_after, each.updated) for each in told.clusters} == {
        "m1": (3, True),
        "m2": (3, True),
        "m3": (3, True),
    }


def test_a_newcomer_of_nonsensical_size_is_refused():
    body = {
        "apiVersion": keys.API_VERSION,
        "kind": "FederatedCluster",
        "metadata": {"name": "m9"},
        "status": {"resources": {"allocatable": {"cpu": "lots"}}},
    }
    with pytest.raises(ScenarioError, match=r"m9: status\.resources\.allocatable\.cpu"):
        snapshot().with_new_cluster(body)
