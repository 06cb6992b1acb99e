"""The explanation of one object's placement, from what is stored about it."""

from typing import Any

import msgspec
import pytest

from argosy.api import keys
from argosy.cli.output.explanation import Explained, Facts, decided_now, explained
from argosy.cli.output.failures import Failure
from argosy.cli.output.report import EventView
from argosy.fleet.snapshot import Fleet
from argosy.kube.objects import Metadata
from argosy.plan.claims.claim import Claim
from argosy.plan.explain.record import Inputs, encode, record_of
from argosy.plan.explain.snapshot import Snapshot
from argosy.plan.pipeline.policy import PolicyRef
from tests.unit.plan.worlds import DEPLOYMENTS, World, cluster, deployment, policy

TAINT = {"key": "maintenance", "effect": "NoSchedule"}
CLUSTERS = (cluster("m1"), cluster("m2"), cluster("m3", taints=[TAINT]))


def facts(*, record: bool = True, inputs: Inputs | None = None, **changes: Any) -> Facts:
    """Of a Deployment that was just scheduled to m1 and m2: m3 has a taint."""
    world = World(fleet=Fleet.of(CLUSTERS))
    outcome = world.run()
    metadata = world.object["metadata"]
    annotations = {key: value for key, value in metadata["annotations"].items() if key != keys.DECISION}
    if record:
        annotations[keys.DECISION] = encode(record_of(outcome.decision, inputs or Inputs()))
    given = {
        "source": world.source,
        "type_config": DEPLOYMENTS,
        "federated": {**world.object, "metadata": {**metadata, "annotations": annotations}},
        "policy": world.inputs["policy"],
        "clusters": CLUSTERS,
        "events": (),
    }
    return Facts(**{**given, **changes})


def annotated(given: Facts, **annotations: str) -> Facts:
    metadata = given.federated["metadata"]
    changed = {**metadata, "annotations": {**metadata["annotations"], **annotations}}
    return msgspec.structs.replace(given, federated={**given.federated, "metadata": changed})


def test_the_stored_decision_is_told():
    told = explained(facts())
    assert told.policy == "PropagationPolicy all"
    assert sorted(told.placements) == ["m1", "m2"]
    assert told.decision.placements == told.placements
    assert told.decision.clusters == 3
    assert any("1 refused by TaintToleration" in line and "(m3)" in line for line in told.lines)
    assert (told.undecided, told.since, told.held, told.deferred) == ("", (), "", "")


def test_why_not_in_a_cluster_comes_with_what_would_change_it():
    why = explained(facts(), "m3").cluster
    assert not why.placed
    assert why.because.startswith("TaintToleration refused it")
    assert why.change
    there = explained(facts(), "m1").cluster
    assert (there.placed, there.replicas) == (True, explained(facts()).placements["m1"])


def test_what_changed_since_is_named():
    newer = deployment(metadata={"generation": 4})
    given = facts(inputs=Inputs(policy_generation=1, source_generation=3))
    later = msgspec.structs.replace(given.policy, metadata=msgspec.structs.replace(given.policy.metadata, generation=2))
    told = explained(msgspec.structs.replace(given, policy=later, source=newer, clusters=(*CLUSTERS, cluster("m4"))))
    assert told.since == (
        "the policy has changed (generation 1, now 2)",
        "the object has changed (generation 3, now 4)",
        "clusters have joined, left, or changed in taints, APIs or labels that count",
    )
    assert told.deferred == "clusterJoined:false"


def test_a_label_that_the_decision_did_not_read_is_no_news():
    given = facts()
    labelled = tuple(
        msgspec.structs.replace(each, metadata=msgspec.structs.replace(each.metadata, labels={"team": "x"}))
        for each in given.clusters
    )
    assert explained(msgspec.structs.replace(given, clusters=labelled)).since == ()


def test_what_holds_the_placement_is_told_with_the_events():
    event = EventView(Metadata(), "Warning", "ScheduleFederatedObject", "nothing fits", "2026-01-01T00:00:00Z")
    held = '{"reason":"Unschedulable","message":"0/3 clusters are available"}'
    told = explained(annotated(facts(events=(event,)), **{keys.HELD: held}))
    assert told.held == "Unschedulable: 0/3 clusters are available"
    assert told.events == ("ScheduleFederatedObject: nothing fits",)


def test_nothing_is_decided_about_an_object_that_was_held_from_the_beginning():
    held = '{"reason":"PolicyNotFound","message":"there is no PropagationPolicy nowhere"}'
    given = annotated(facts(record=False), **{keys.HELD: held})
    spec = {**given.federated["spec"], "placements": []}
    told = explained(msgspec.structs.replace(given, federated={**given.federated, "spec": spec}))
    assert told.undecided == "nothing is decided: it is held"
    assert told.held == "PolicyNotFound: there is no PropagationPolicy nowhere"


def test_an_object_without_a_record_says_so_and_one_that_is_broken_too():
    bare = explained(facts(record=False))
    assert "no decision is on record" in bare.undecided
    assert explained(facts(record=False), "m3").cluster.because == bare.undecided
    broken = explained(annotated(facts(), **{keys.DECISION: "{}"}))
    assert broken.decision is None
    assert "unreadable" in broken.undecided


def test_an_object_that_is_not_federated_says_why():
    unlabelled = deployment(metadata={"labels": {keys.PROPAGATION_POLICY_LABEL: None}})
    assert "no policy is named" in explained(facts(federated=None, source=unlabelled)).undecided
    assert "this kind is not federated" in explained(facts(federated=None, type_config=None)).undecided


def test_the_policy_that_got_it_and_those_that_would_are_told():
    claim = Claim(PolicyRef("all", "default"), True, "its own label names it", (PolicyRef("fleet"),))
    told = explained(facts(claim=claim))
    assert (told.policy, told.claimed) == ("PropagationPolicy all", "its own label names it")
    assert told.other_policies == ("ClusterPropagationPolicy fleet",)


def test_a_policy_that_is_named_and_does_not_exist_is_told():
    assert explained(facts(policy=None)).policy == "PropagationPolicy all (not found)"


def test_what_is_never_selected_says_why():
    source = deployment(metadata={"labels": {keys.PROPAGATION_POLICY_LABEL: None}, "namespace": keys.SYSTEM_NAMESPACE})
    told = explained(facts(federated=None, policy=None, source=source))
    assert told.claimed == f"nothing in the namespace {keys.SYSTEM_NAMESPACE} is selected"


def test_an_unknown_cluster_is_refused():
    with pytest.raises(Failure, match="there is no cluster 'm9'; the clusters are: m1, m2, m3"):
        explained(facts(), "m9")


def test_a_cluster_that_left_and_still_counts_is_told():
    told = explained(facts(clusters=CLUSTERS[1:]), "m1")
    assert told.cluster.placed


async def test_a_decision_of_this_moment_sees_what_the_record_does_not():
    given = facts(clusters=(cluster("m1"), cluster("m2"), cluster("m3")))
    snapshot = Snapshot(
        type_configs={DEPLOYMENTS.name: DEPLOYMENTS},
        clusters={each.name: each for each in given.clusters},
        policies={PolicyRef("all", "default"): policy()},
    )
    account = await decided_now(snapshot, given)
    assert account.refused == ()
    told: Explained = explained(given, "m3", account)
    assert told.decision is account
    assert "refused" not in told.cluster.because


async def test_nothing_to_decide_is_a_failure():
    unlabelled = deployment(metadata={"labels": {keys.PROPAGATION_POLICY_LABEL: None}})
    with pytest.raises(Failure, match="nothing would be decided now: no policy is named"):
        await decided_now(Snapshot(type_configs={DEPLOYMENTS.name: DEPLOYMENTS}), facts(source=unlabelled))


def test_a_follower_says_whom_it_follows_and_where_to():
    given = facts(record=False)
    spec = {
        **given.federated["spec"],
        "follows": [{"group": "apps", "kind": "Deployment", "namespace": "default", "name": "lead"}],
        "placements": [{"controller": keys.FOLLOWER_CONTROLLER, "placement": [{"cluster": "m1"}]}],
    }
    given = msgspec.structs.replace(given, federated={**given.federated, "spec": spec})
    told = explained(given, "m1")
    assert (told.follows, told.followed_to) == (("Deployment lead",), ("m1",))
    assert told.cluster is not None
    assert told.cluster.because == "it follows Deployment lead"
    assert "goes where the objects go that need it" in explained(given).undecided


def test_what_an_object_waits_for_is_told():
    told = explained(annotated(facts(), **{keys.WAITS_FOR: '["ConfigMap default/settings"]'}))
    assert told.waits_for == ("ConfigMap default/settings",)
