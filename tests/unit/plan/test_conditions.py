"""The conditions of a source say what `missing` says: nothing is complete while something is missing."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.api import keys
from argosy.api.federated import Cause
from argosy.api.types import FederatedCluster, FederatedTypeConfig
from argosy.kube import mergepatch
from argosy.kube.conditions import find
from argosy.plan.fields import Json
from argosy.plan.kinds.lack import About
from argosy.plan.kinds.observation import Observation
from argosy.plan.status.aggregate import source_status
from argosy.plan.status.wanted import Known, lacks
from tests.unit.plan import test_wanted
from tests.unit.plan.test_wanted import as_wanted, changed, with_copy
from tests.unit.plan.worlds import TYPE_CONFIGS, cluster

NOW = "2026-01-01T00:00:00Z"
DONE = [
    {"type": "Available", "status": "True"},
    {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
]
#: What a condition of the object is not about: it is paused, or a member has not answered just now.
APART = (About.PAUSE, About.SILENCE)


def finished() -> Known:
    """As wanted, and members' conditions say so."""
    known = as_wanted()
    for name in ("m1", "m2"):
        known = with_copy(known, name, {"status": {"conditions": DONE}})
    return known


def told(known: Known, **causes: Cause) -> Json:
    """The status that is written with what is known."""
    federated, collected = known.federated, known.collected
    assert federated is not None
    assert collected is not None
    written = {entry.cluster: entry.last_observed_generation for entry in federated.status.clusters}
    seen = {each.cluster: each for each in collected.clusters}
    observations = [
        Observation(
            name,
            seen[name].collected_fields if name in seen else None,
            known=name in seen,
            reachable=name in seen and not seen[name].error,
            last_written_generation=written.get(name, 0),
            cause=causes.get(name),
        )
        for name in federated.placed
    ]
    source = {key: value for key, value in known.source.items() if key != "status"}
    status = source_status(source, federated, observations, NOW, known)
    assert status is not None
    return status


def served(source: Json, config: FederatedTypeConfig, copy: Json) -> Known:
    """As wanted, of a kind that the clusters serve."""
    api = {"group": config.resource.group, "version": config.resource.version, "kind": config.kind}
    members = [
        msgspec.convert(
            mergepatch.apply(msgspec.to_builtins(each), {"status": {"apiResourceTypes": [api]}}), FederatedCluster
        )
        for each in (cluster("m1"), cluster("m2"))
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(test_wanted, "CLUSTERS", tuple(members))
        return as_wanted(source, config, copy)


def condition(known: Known, type: str, **causes: Cause) -> tuple[str, str, str]:
    found = find(told(known, **causes).get("conditions"), type) or {}
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")


def test_all_is_complete_if_nothing_is_missing():
    assert condition(finished(), "Progressing")[:2] == ("True", "NewReplicaSetAvailable")
    assert condition(finished(), "Available")[:2] == ("True", "MinimumReplicasAvailable")


def test_a_member_that_says_complete_of_the_change_before_is_not_believed():
    known = with_copy(finished(), "m1", {"metadata": {"generation": 2}, "status": {"observedGeneration": 2}})
    status, reason, message = condition(known, "Progressing")
    assert (status, reason) == ("True", "ReplicaSetUpdated")
    assert message == "Deployment is progressing in clusters [m1]."


def test_a_held_object_does_not_progress_and_is_available_as_before():
    held = '{"reason":"PolicyNotFound","message":"PropagationPolicy default/policy not found"}'
    known = changed(finished(), federated={"metadata": {"annotations": {keys.HELD: held}}})
    status, reason, message = condition(known, "Progressing")
    assert (status, reason) == ("False", "Held")
    assert "PropagationPolicy default/policy not found" in message
    assert condition(known, "Available")[0] == "True"


def test_of_a_cluster_that_is_away_nothing_is_known():
    gone = msgspec.structs.replace(finished(), clusters=(cluster("m1"),))
    for type in ("Available", "Progressing"):
        status, reason, message = condition(gone, type)
        assert (status, reason) == ("Unknown", "ClusterNotReachable")
        assert "[m2]" in message


def test_replicas_that_no_cluster_has_are_not_available():
    known = finished()
    overrides = msgspec.to_builtins(known.federated.spec.overrides)
    for entry in overrides:
        if entry["controller"] == keys.GLOBAL_SCHEDULER:
            entry["clusters"][0]["patches"][0]["value"] -= 1
    short = changed(known, federated={"spec": {"overrides": overrides}})
    assert condition(short, "Available")[:2] == ("False", "MinimumReplicasUnavailable")


def test_why_pods_are_not_ready_is_in_the_messages():
    cause = Cause("ImagePullBackOff", 'image "nginx:bad"', 2, 3)
    behind = {"updatedReplicas": 1, "availableReplicas": 1, "readyReplicas": 1}
    states = [
        {"type": "Available", "status": "False"},
        {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"},
    ]
    known = with_copy(finished(), "m1", {"status": {**behind, "conditions": states}})
    told = 'm1: 2 of 3 pods: ImagePullBackOff: image "nginx:bad"'
    assert condition(known, "Available", m1=cause) == (
        "False",
        "MinimumReplicasUnavailable",
        f"Deployment does not have minimum availability in clusters [m1]. {told}",
    )
    assert condition(known, "Progressing", m1=cause) == (
        "False",
        "ProgressDeadlineExceeded",
        f"Deployment is not progressing in clusters [m1]. {told}",
    )
    assert condition(known, "PodsFailing", m1=cause) == ("True", "ImagePullBackOff", told)
    assert condition(known, "PodsFailing") == ("", "", "")


def test_a_status_that_says_the_same_is_not_written_again():
    known = with_copy(finished(), "m1", {"status": {"availableReplicas": 1}})
    cause = Cause("A", "b", 1, 3)
    first = told(known, m1=cause)
    again = msgspec.structs.replace(known, source={**known.source, "status": first})
    federated = known.federated
    assert federated is not None
    observations = [
        Observation(each.cluster, each.collected_fields, last_written_generation=3, cause=cause if n == 0 else None)
        for n, each in enumerate(known.collected.clusters)
    ]
    assert source_status(again.source, federated, observations, "2027-01-01T00:00:00Z", again) is None


PATCHES = st.fixed_dictionaries(
    {
        "status": st.fixed_dictionaries(
            {},
            optional={
                "observedGeneration": st.integers(1, 4),
                "replicas": st.integers(0, 5),
                "updatedReplicas": st.integers(0, 4),
                "availableReplicas": st.integers(0, 4),
            },
        )
    },
    optional={"metadata": st.fixed_dictionaries({"generation": st.integers(1, 4)})},
)


@given(PATCHES, st.sampled_from(["", "cannot be read"]), st.booleans(), st.booleans())
def test_complete_is_said_exactly_if_nothing_is_missing(patch: Json, error: str, held: bool, is_member: bool):
    known: Any = with_copy(finished(), "m1", patch, error=error)
    if held:
        known = changed(known, federated={"metadata": {"annotations": {keys.HELD: '{"reason":"X","message":"y"}'}}})
    if not is_member:
        known = msgspec.structs.replace(known, clusters=(cluster("m2"),))
    status = told(known)
    after = msgspec.structs.replace(known, source={**known.source, "status": status})
    missing = [each for each in lacks(after) if each.about not in APART]
    progressing = find(status["conditions"], "Progressing")
    complete = (progressing["status"], progressing["reason"]) == ("True", "NewReplicaSetAvailable")
    assert complete == (not missing and not error)


@pytest.mark.parametrize(("ready", "is_there"), [("True", True), ("False", False)])
def test_ready_of_any_kind_is_true_only_if_nothing_is_missing(ready: str, is_there: bool):
    """A kind that nothing special is known of."""
    config = TYPE_CONFIGS["services"]
    source = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "default", "generation": 1, "uid": "u", "labels": {}},
        "spec": {},
    }
    source["metadata"]["labels"] = {keys.PROPAGATION_POLICY_LABEL: "policy"}
    status = {"conditions": [{"type": "Ready", "status": "True", "reason": "Up", "message": ""}]}
    known = served(source, config, {"metadata": {"generation": 3}, "status": status})
    if not is_there:
        known = msgspec.structs.replace(known, clusters=(cluster("m1"),))
    assert condition(known, "Ready")[0] == ready


def test_the_end_of_a_job_waits_for_what_is_to_be_sent_and_is_not_taken_back():
    config = TYPE_CONFIGS["jobs.batch"]
    source: Json = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "web", "namespace": "default", "generation": 1, "uid": "u"},
        "spec": {"parallelism": 2, "template": {"spec": {}}},
    }
    source["metadata"]["labels"] = {keys.PROPAGATION_POLICY_LABEL: "policy"}
    ended = {"startTime": NOW, "completionTime": NOW, "succeeded": 1}
    ended["conditions"] = [{"type": "Complete", "status": "True"}]
    known = served(source, config, {"metadata": {"generation": 1}, "status": ended})
    assert condition(known, "Complete")[0] == "True"
    held = changed(known, federated={"metadata": {"annotations": {keys.HELD: '{"reason":"X","message":"y"}'}}})
    withheld = told(held)
    assert find(withheld.get("conditions"), "Complete") is None
    assert "completionTime" not in withheld
