"""Whether an object is as wanted: what is missing, cluster by cluster."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.api import keys
from argosy.api.federated import CollectedStatus, FederatedObject
from argosy.api.statusrules import StatusRules
from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.fleet.snapshot import Fleet
from argosy.kube import mergepatch
from argosy.plan.copies.digest import digest, template_digest
from argosy.plan.copies.placement import overrides_for
from argosy.plan.fields import Json
from argosy.plan.kinds.registry import kind_of
from argosy.plan.status.collect import UNREACHABLE
from argosy.plan.status.wanted import Known, missing, propagation_in
from tests.unit.plan.worlds import DEPLOYMENTS, World, cluster, deployment, named, override_policy

CLUSTERS = (cluster("m1"), cluster("m2"))


def reported(replicas: int, **status: Any) -> Json:
    """A Deployment's copy that is as it should be, but for `status`."""
    counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), replicas)
    return {
        "metadata": {"generation": 3},
        "spec": {"replicas": replicas},
        "status": {"observedGeneration": 3, **counts, **status},
    }


def as_wanted(
    source: Json | None = None, config: FederatedTypeConfig = DEPLOYMENTS, copy: Json | None = None, **inputs: Any
) -> Known:
    """Everything is as it should be: federated, sent everywhere, reported by the members, and summed up."""
    world = World(source=source or deployment(), type_config=config, fleet=Fleet.of(CLUSTERS), **inputs)
    world.run()
    assert world.object is not None
    federated = msgspec.convert(world.object, FederatedObject)
    spec = world.object["spec"]
    copies, records = [], []
    for name in federated.placed:
        patches = overrides_for(spec, name, config.spec.controllers)
        replicas = next((each["value"] for each in patches if each["path"] == "/spec/replicas"), 6)
        found = reported(replicas) if copy is None else copy
        copies.append({"cluster": name, "collectedFields": found})
        written = digest(template_digest(spec["template"]), patches, federated.metadata.annotations)
        records.append(
            {"cluster": name, "status": "OK", "lastObservedGeneration": 3, "version": "gen:3", "digest": written}
        )
    synced = {"syncedGeneration": federated.metadata.generation, "clusters": records}
    ready = sum((each["collectedFields"].get("status") or {}).get("readyReplicas") or 0 for each in copies)
    status = {"observedGeneration": 1, "readyReplicas": ready}
    return Known(
        source={**world.source, "status": status},
        type_config=config,
        federated=msgspec.convert({**world.object, "status": synced}, FederatedObject),
        collected=msgspec.convert({"metadata": {"name": "web"}, "clusters": copies}, CollectedStatus),
        clusters=CLUSTERS,
        fleet_paused=False,
    )


def changed(known: Known, **fields: Json) -> Known:
    """With merge patches of some of its parts; a list is replaced."""
    types: dict[str, Any] = {
        "federated": FederatedObject,
        "collected": CollectedStatus,
        "type_config": FederatedTypeConfig,
    }
    parts: dict[str, Any] = {}
    for name, patch in fields.items():
        patched = mergepatch.apply(msgspec.to_builtins(getattr(known, name)), patch)
        parts[name] = msgspec.convert(patched, types[name]) if name in types else patched
    return msgspec.structs.replace(known, **parts)


def with_copy(known: Known, name: str, patch: Json, **entry: Any) -> Known:
    entries = []
    for each in msgspec.to_builtins(known.collected)["clusters"]:
        if each["cluster"] == name:
            each = {**each, **entry, "collectedFields": mergepatch.apply(each["collectedFields"], patch)}
        entries.append(each)
    return changed(known, collected={"clusters": entries})


def test_nothing_is_missing_if_all_is_as_wanted():
    assert missing(as_wanted()) == []


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ({"updatedReplicas": 1}, ["m1: 1 of 3 replicas are updated"]),
        ({"updatedReplicas": None}, ["m1: 0 of 3 replicas are updated"]),
        ({"availableReplicas": 2}, ["m1: 2 of 3 replicas are available"]),
        ({"replicas": 4}, ["m1: 1 replicas of the old version are still running"]),
        ({"replicas": 5, "updatedReplicas": 5}, ["m1: 2 replicas too many are still running"]),
        ({"observedGeneration": 2}, ["m1: its newest change is not observed yet"]),
        (
            {
                "updatedReplicas": 1,
                "conditions": [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}],
            },
            [
                "m1: 1 of 3 replicas are updated",
                "m1: the roll-out does not progress: ProgressDeadlineExceeded",
            ],
        ),
        ({"conditions": 7, "updatedReplicas": 1}, ["m1: its status cannot be understood"]),
        ({"updatedReplicas": "3"}, ["m1: 0 of 3 replicas are updated"]),
    ],
)
def test_a_deployment_lacks_what_kubectl_rollout_status_waits_for(status, told):
    assert missing(with_copy(as_wanted(), "m1", {"status": status})) == told


@pytest.mark.parametrize(
    ("rule", "shown"),
    [
        ({}, {"observedGeneration": 1, "readyReplicas": 6}),
        ({"highest": ["readyReplicas"]}, {"observedGeneration": 1, "readyReplicas": 3}),
        ({"omitted": ["readyReplicas"]}, {"observedGeneration": 1}),
    ],
)
def test_its_own_status_shows_what_its_kind_merges(rule, shown):
    merge = msgspec.convert({"merge": rule}, StatusRules)
    spec = msgspec.structs.replace(DEPLOYMENTS.spec, status_rules=merge)
    known = as_wanted(config=msgspec.structs.replace(DEPLOYMENTS, spec=spec))
    assert missing(changed(known, source={"status": {"readyReplicas": None, **shown}})) == []
    behind = changed(known, source={"status": {**shown, "readyReplicas": 2}})
    assert missing(behind) == ["its own status does not show the newest state yet"]


@pytest.mark.parametrize("message", ["", "container main"])
def test_the_cause_is_told_with_what_is_missing_whether_or_not_it_says_more(message):
    cause = {"reason": "ReadinessGatesNotReady", "message": message, "pods": 1, "of": 3}
    known = with_copy(as_wanted(), "m1", {"status": {"availableReplicas": 2}}, cause=cause)
    text = "m1: 1 of 3 pods: ReadinessGatesNotReady" + (f": {message}" if message else "")
    assert missing(known) == ["m1: 2 of 3 replicas are available", text]


@pytest.mark.parametrize(
    ("patch", "entry", "told"),
    [
        ({"metadata": {"generation": 2}}, {}, "m1: the state of its copy since the last change is not known yet"),
        ({}, {"error": UNREACHABLE}, "m1: its copy cannot be read: what is known is old"),
    ],
)
def test_what_is_known_of_before_says_nothing_of_now(patch, entry, told):
    assert missing(with_copy(as_wanted(), "m1", patch, **entry)) == [told]


def test_where_generations_are_not_collected_the_observed_one_tells():
    known = with_copy(as_wanted(), "m1", {"metadata": {"generation": None}, "status": {"observedGeneration": 2}})
    assert missing(known) == ["m1: the state of its copy since the last change is not known yet"]


def test_a_copy_nothing_was_heard_of_is_missing():
    known = as_wanted()
    assert missing(changed(known, collected={"clusters": []})) == [
        "m1: the state of its copy is not known yet",
        "m2: the state of its copy is not known yet",
    ]


@pytest.mark.parametrize(
    ("patch", "told"),
    [
        ({"spec": {"replicas": 7}}, "the newest change is not federated yet"),
        ({"metadata": {"generation": 2}}, "the newest change is not federated yet"),
        ({"metadata": {"labels": {keys.OVERRIDE_POLICY_LABEL: "x"}}}, "the newest change is not federated yet"),
        ({"metadata": {"annotations": {keys.PAUSED: "true"}}}, "the newest change is not federated yet"),
        (
            {"metadata": {"annotations": {keys.NO_FEDERATED_RESOURCE: "true"}}, "spec": {"replicas": 7}},
            f"the newest change is not federated: the annotation {keys.NO_FEDERATED_RESOURCE} says so",
        ),
        (
            {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
            "being deleted: its copies in the members go first",
        ),
        ({"metadata": {"uid": "u-2"}}, "the name of its federated object is taken by that of Deployment web"),
        ({"status": {"observedGeneration": 0}}, "its own status does not show the newest state yet"),
        ({"status": {"observedGeneration": None}}, "its own status does not show the newest state yet"),
        ({"status": {"readyReplicas": 5}}, "its own status does not show the newest state yet"),
    ],
)
def test_a_change_of_the_source_is_missing_until_it_is_everywhere(patch, told):
    assert missing(changed(as_wanted(), source=patch)) == [told]


def test_the_federations_own_feedback_on_a_source_is_no_change_of_it():
    feedback = {"metadata": {"annotations": {keys.SCHEDULING: "{}"}, "resourceVersion": "99"}}
    assert missing(changed(as_wanted(), source=feedback)) == []


def test_ok_is_what_was_sent_and_not_what_is_to_be_sent():
    known = changed(as_wanted(), federated={"spec": {"template": {"spec": {"paused": True}}}})
    assert known.federated is not None
    assert propagation_in(known, "m1") == "Pending"
    assert "m1: Pending" in missing(known)


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ({"syncedGeneration": 0}, ["the newest change is on its way to the members"]),
        ({"clusters": [{"cluster": "m1", "status": "UpdateFailed"}]}, ["m1: UpdateFailed: no", "m2: Pending"]),
        (
            {"conditions": [{"type": "Propagated", "status": "False", "reason": "TemplateRefused"}]},
            ["nothing is sent to members: TemplateRefused"],
        ),
    ],
)
def test_what_is_recorded_of_its_propagation(status, told):
    assert missing(changed(as_wanted(), federated={"status": status}), {"m1": "no"}) == told


def test_members_that_are_gone_not_ready_silent_or_leaving():
    known = as_wanted()
    silent = {"type": "Responding", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    conditions = [{"type": "Ready", "status": "True"}, silent]
    leaving = {"metadata": {"name": "m2", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    for members, told in (
        ((CLUSTERS[0],), "m2 is not a member"),
        ((CLUSTERS[0], cluster("m2", ready=False)), "m2 is not ready: "),
        (_members({"status": {"conditions": conditions}}), "m2: not heard of since 2026-01-01T00:00:00Z"),
        (_members(leaving), "m2 is leaving the federation"),
    ):
        assert missing(msgspec.structs.replace(known, clusters=members)) == [told]


def _members(patch: Json) -> tuple[Any, ...]:
    second = mergepatch.apply(msgspec.to_builtins(CLUSTERS[1]), patch)
    return (CLUSTERS[0], msgspec.convert(second, type(CLUSTERS[1])))


def test_a_pause_is_named_with_what_it_keeps_back_and_not_alone():
    known = msgspec.structs.replace(as_wanted(), fleet_paused=True)
    assert missing(known) == []
    assert missing(changed(known, source={"spec": {"replicas": 7}}))[0] == "the fleet is paused: `argosy resume fleet`"


def test_replicas_that_no_cluster_has():
    known = as_wanted()
    scheduled = msgspec.to_builtins(known.federated)["spec"]["overrides"]
    scheduled[0]["clusters"] = scheduled[0]["clusters"][:1]
    assert "3 replicas are in no cluster" in missing(changed(known, federated={"spec": {"overrides": scheduled}}))


def test_replicas_of_any_name_that_no_cluster_has():
    known = as_wanted()
    scheduled = msgspec.to_builtins(known.federated)["spec"]["overrides"]
    scheduled[0]["clusters"] = scheduled[0]["clusters"][:1]
    scheduled[0]["clusters"][0]["patches"] = [{"op": "replace", "path": "/spec/size", "value": 4}]
    sized = changed(
        known,
        federated={"spec": {"overrides": scheduled, "template": {"spec": {"size": 6}}}},
        type_config={"spec": {"pathDefinition": {"replicasSpec": "spec.size"}}},
    )
    assert "2 replicas are in no cluster" in missing(sized)


COUNTS = st.integers(0, 5)


@given(wanted=COUNTS, replicas=COUNTS, updated=COUNTS, available=COUNTS, observed=st.integers(1, 3))
def test_a_deployment_is_as_wanted_exactly_if_kubectl_would_say_so_and_nothing_is_left_over(
    wanted, replicas, updated, available, observed
):
    counts = {"replicas": replicas, "updatedReplicas": updated, "availableReplicas": available}
    copy = {"metadata": {"generation": 3}, "status": {"observedGeneration": observed, **counts}}
    lacking = kind_of(deployment()).unfinished(deployment(spec={"replicas": wanted}), copy)
    rolled_out = observed >= 3 and updated >= wanted and replicas <= updated and available >= wanted
    assert (lacking == []) == (rolled_out and replicas <= wanted)


def test_what_it_waits_for_and_does_not_exist_is_missing():
    known = as_wanted(missing=["ConfigMap default/settings"])
    assert missing(known) == ["waits for ConfigMap default/settings, which does not exist"]


def test_a_list_of_followers_that_cannot_be_read_is_told():
    known = as_wanted(deployment(metadata={"annotations": {keys.FOLLOWERS: "["}}))
    assert [each.partition(":")[0] for each in missing(known)] == [f"annotation {keys.FOLLOWERS} is ignored"]


# Overrides that cannot be applied.

DIFFERS = deployment(metadata={"labels": {keys.OVERRIDE_POLICY_LABEL: "differ"}})
WRONG_IN_M1 = override_policy(
    {
        "targetClusters": {"clusters": ["m1"]},
        "overriders": {"jsonpatch": [{"operator": "remove", "path": "/spec/nothing"}]},
    }
)


def held() -> Known:
    return as_wanted(DIFFERS, override_policies=named(WRONG_IN_M1))


def test_a_held_cluster_is_never_as_wanted_whatever_was_recorded():
    known = held()
    (told,) = missing(known)
    assert told.startswith("m1: ApplyOverridesFailed: OverridePolicy differ, overrideRules[0], cluster m1: ")
    assert propagation_in(known, "m1") == "ApplyOverridesFailed"
    assert propagation_in(known, "m2") == "OK"


def test_replicas_that_a_held_copy_keeps_are_told():
    known = with_copy(held(), "m1", {"spec": {"replicas": 7}})
    assert missing(known)[1] == "m1: its copy keeps 7 replicas, and 3 are wanted"
    known = with_copy(held(), "m1", {"spec": {"replicas": None}})
    assert missing(known)[1] == "m1: its copy keeps its replicas, whatever their number; 3 are wanted"
    entries = [each for each in msgspec.to_builtins(held().federated.status.clusters) if each["cluster"] != "m1"]
    copies = [each for each in msgspec.to_builtins(held().collected.clusters) if each["cluster"] != "m1"]
    known = changed(held(), federated={"status": {"clusters": entries}}, collected={"clusters": copies})
    assert missing(known)[1] == "m1: nothing is created there: its 3 replicas run nowhere"
