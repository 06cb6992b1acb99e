"""Pods by ReplicaSet: counted event by event."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from argosy.fleet.capacity import PodView
from argosy.fleet.pods.replicasets import Pods, PodsByReplicaSet
from argosy.kube.objects import decode

SINCE = "2026-01-01T00:00:00Z"


def pod(replica_set: str | None = "u1", scheduled: str | None = "True", **more: Any) -> PodView:
    """Decoded, as the watch does it."""
    owners = [
        {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "n"},
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": replica_set, "controller": True},
    ]
    conditions = [{"type": "Initialized", "status": "True", "lastTransitionTime": SINCE, "lastProbeTime": None}]
    if scheduled is not None:
        reason = {"False": "Unschedulable"}.get(scheduled)
        condition = {"type": "PodScheduled", "status": scheduled, "lastTransitionTime": SINCE}
        conditions.append({**condition, **({"reason": reason} if reason else {}), **more.pop("condition", {})})
    metadata = {"name": "p", "ownerReferences": owners if replica_set else None, **more.pop("metadata", {})}
    status = {"phase": "Running", "conditions": conditions, **more}
    return decode(json.dumps({"metadata": metadata, "spec": {}, "status": status}).encode(), PodView)


def test_pods_are_counted_by_who_made_them() -> None:
    pods = PodsByReplicaSet()
    pods.change("a", None, pod("u1"))
    pods.change("b", None, pod("u1", "False"))
    pods.change("c", None, pod("u2", None))
    assert pods.change("d", None, pod(None)) == ""
    assert pods.of("u1") == Pods(2, 1, {"b": SINCE})
    assert pods.of("u2") == Pods(1, 0, {})
    assert pods.of("u3") == Pods()


def test_pods_that_go_finish_or_are_gated_count_for_nobody() -> None:
    pods = PodsByReplicaSet()
    pods.change("a", None, pod(metadata={"deletionTimestamp": SINCE}))
    pods.change("b", None, pod(phase="Failed"))
    pods.change("c", None, pod(scheduled="False", condition={"reason": "SchedulingGated"}))
    assert pods.of("u1") == Pods(1, 0, {})


def test_only_changes_that_count_are_told() -> None:
    pods = PodsByReplicaSet()
    before = pod(scheduled="False")
    assert pods.change("a", None, before) == "u1"
    assert pods.change("a", before, pod(scheduled="False", phase="Pending")) == ""
    after = pod()
    assert pods.change("a", before, after) == "u1"
    assert pods.change("a", after, pod(condition={"lastTransitionTime": "2027-01-01T00:00:00Z"})) == ""
    assert pods.change("a", after, None) == "u1"
    assert pods.of("u1") == Pods()


versions = st.none() | st.builds(
    pod,
    st.sampled_from(["u1", "u2", None]),
    st.sampled_from(["True", "False", None]),
    phase=st.sampled_from(["Running", "Failed"]),
)


@given(st.lists(st.tuples(st.sampled_from("abc"), versions), max_size=30))
def test_counting_event_by_event_gives_what_counting_the_last_state_gives(events) -> None:
    running, known = PodsByReplicaSet(), {}
    for key, version in events:
        running.change(key, known.get(key), version)
        known[key] = version
    fresh = PodsByReplicaSet()
    for key, version in known.items():
        fresh.change(key, None, version)
    for uid in ("u1", "u2"):
        assert running.of(uid) == fresh.of(uid)
