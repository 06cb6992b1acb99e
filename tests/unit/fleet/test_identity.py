"""Whether what answers is the member that joined, by its system namespace."""

from typing import Any

import orjson
import pytest

from argosy.api import keys
from argosy.fleet.identity import Identity, Verdict, judged

MEMBER = Identity("m1", "cluster-uid", "namespace-uid")


def namespace(uid: str = "namespace-uid", mark: str | None = "cluster-uid", **changes: Any) -> bytes:
    annotations = {keys.FEDERATED_CLUSTER_UID: mark} if mark else None
    metadata = {"name": keys.SYSTEM_NAMESPACE, "uid": uid, "annotations": annotations}
    return orjson.dumps({"kind": "Namespace", "apiVersion": "v1", "metadata": metadata, **changes})


def status(code: int, name: str) -> bytes:
    return orjson.dumps(
        {"kind": "Status", "code": code, "metadata": {}, "details": {"name": name, "kind": "namespaces"}}
    )


def test_the_member_is_known_by_mark_and_uid():
    assert judged(MEMBER, 200, namespace()) == Verdict(uid="namespace-uid")


def test_before_its_uid_was_seen_the_mark_is_enough():
    assert judged(Identity("m1", "cluster-uid"), 200, namespace("new")) == Verdict(uid="new")


@pytest.mark.parametrize(
    ("code", "body", "words", "may_reclaim"),
    [
        (404, status(404, keys.SYSTEM_NAMESPACE), "has no namespace", True),
        (200, namespace(mark="another"), "does not carry the uid", False),
        (200, namespace(mark=None), "does not carry the uid", False),
        (200, namespace(uid="another"), "has the uid another, the member's namespace-uid", True),
    ],
)
def test_another_cluster_is_told_from_it(code, body, words, may_reclaim):
    verdict = judged(MEMBER, code, body)
    assert not verdict.uid
    assert verdict.mismatch is not None
    assert words in str(verdict.mismatch)
    assert ("argosy join m1 --reclaim" in str(verdict.mismatch)) is may_reclaim


@pytest.mark.parametrize(
    ("code", "body"),
    [
        (404, b"404 page not found"),
        (404, status(404, "another")),
        (401, status(401, "")),
        (403, status(403, keys.SYSTEM_NAMESPACE)),
        (503, b"<html>"),
        (200, b""),
        (200, b"[]"),
        (200, b"{}"),
        (200, b'{"metadata": 7}'),
        (200, namespace(kind="Pod")),
        (200, namespace(uid="")),
        (302, namespace()),
    ],
)
def test_what_is_no_answer_says_nothing(code, body):
    """Neither that it is the member nor that it is not."""
    assert judged(MEMBER, code, body) == Verdict()
