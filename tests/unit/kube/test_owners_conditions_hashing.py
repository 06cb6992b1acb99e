from typing import Any

from argosy.kube.conditions import find, is_false, is_true, remove_condition, set_condition
from argosy.kube.hashing import fnv1_32, fnv1a_32, fnv1a_64, safe_encode
from argosy.kube.owners import controller_of, is_controlled_by, owner_reference, owners_of

OWNER: dict[str, Any] = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "rs", "uid": "u1"}}


def test_reference_names_the_owner_and_marks_the_controller() -> None:
    plain = owner_reference(OWNER)
    controlling = owner_reference(OWNER, controller=True, block_owner_deletion=True)
    assert plain == {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "u1"}
    assert controlling == {**plain, "controller": True, "blockOwnerDeletion": True}
    pod = {"metadata": {"ownerReferences": [plain, controlling]}}
    assert controller_of(pod) == controlling
    assert is_controlled_by(pod, "u1")
    assert not is_controlled_by(pod, "u2")
    assert owners_of({"metadata": {"ownerReferences": None}}) == []
    assert controller_of({}) is None


def test_transition_time_moves_only_when_the_status_flips() -> None:
    first = set_condition(None, "Ready", "True", "Started", "ok", "t1")
    assert first == [
        {"type": "Ready", "status": "True", "reason": "Started", "message": "ok", "lastTransitionTime": "t1"}
    ]
    second = set_condition(first, "Ready", "True", "Running", "fine", "t2", observed_generation=4)
    assert find(second, "Ready") == {**first[0], "reason": "Running", "message": "fine", "observedGeneration": 4}
    third = set_condition(second, "Ready", "False", "Gone", "", "t3")
    assert third[0]["lastTransitionTime"] == "t3"
    assert is_true(second, "Ready")
    assert is_false(third, "Ready")
    assert first[0]["reason"] == "Started"


def test_other_conditions_keep_their_place() -> None:
    conditions = [
        {"type": "A", "status": "True"},
        {"type": "B", "status": "True", "lastTransitionTime": "t0", "lastProbeTime": "p"},
    ]
    changed = set_condition(conditions, "B", "True", "R", "M", "t1")
    assert changed[0] is conditions[0]
    assert changed[1] == {
        "type": "B",
        "status": "True",
        "lastTransitionTime": "t0",
        "lastProbeTime": "p",
        "reason": "R",
        "message": "M",
    }
    assert remove_condition(changed, "A") == changed[1:]
    assert find(changed, "C") is None
    assert not is_true(None, "A")


def test_hashes_are_the_published_ones() -> None:
    assert (fnv1_32(b""), fnv1_32(b"a"), fnv1_32(b"foobar")) == (0x811C9DC5, 0x050C5D7E, 0x31F0B262)
    assert (fnv1a_32(b""), fnv1a_32(b"a"), fnv1a_32(b"foobar")) == (0x811C9DC5, 0xE40C292C, 0xBF9CF968)
    assert (fnv1a_64(b""), fnv1a_64(b"a"), fnv1a_64(b"foobar")) == (
        0xCBF29CE484222325,
        0xAF63DC4C8601EC8C,
        0x85944171F73967E8,
    )


def test_safe_encoding_is_kubernetes_own() -> None:
    assert [safe_encode(text) for text in ("6f8d7c", "abc123", "zzz")] == ["b4dzcx", "vwx567", "sss"]
