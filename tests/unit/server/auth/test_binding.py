"""Tokens bound to an object are valid as long as that very object is there."""

import datetime

import orjson
import pytest

from argosy.kube.errors import ApiError
from argosy.server.auth.binding import BoundObjects
from argosy.server.auth.tokens import ServiceAccountTokens, TokenRefused, new_key
from argosy.server.kinds import builtin_kinds
from argosy.server.registry import Registry
from argosy.server.storage.base import Record
from argosy.server.watchcache.entry import Entry

NOW = 1_000_000.0


@pytest.fixture
def store() -> dict[str, Entry]:
    return {}


@pytest.fixture
def bound(store: dict[str, Entry]) -> BoundObjects:
    registry = Registry()
    for kind in builtin_kinds():
        registry.add(kind)
    put(store, "core/serviceaccounts/ci/bot", "ServiceAccount", "u")
    return BoundObjects(store.get, registry, clock=lambda: NOW)


def put(store: dict[str, Entry], key: str, kind: str, uid: str, account: str = "bot", deleted: float = 0) -> None:
    metadata = {"name": key.rpartition("/")[2], "namespace": "ci", "uid": uid}
    if deleted:
        at = datetime.datetime.fromtimestamp(deleted, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        metadata["deletionTimestamp"] = at
    obj = {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": {"serviceAccountName": account}}
    store[key] = Entry.of(Record(key, 1, orjson.dumps(obj)))


@pytest.mark.parametrize(
    ("kind", "key"), [("Pod", "core/pods/ci/x"), ("Secret", "core/secrets/ci/x"), ("Node", "core/nodes/x")]
)
def test_a_token_dies_with_its_object(store: dict[str, Entry], bound: BoundObjects, kind: str, key: str) -> None:
    put(store, key, kind, "u1")
    tokens = ServiceAccountTokens(new_key(), refusal=bound.refusal)
    claims = bound.claims("ci", "bot", {"apiVersion": "v1", "kind": kind, "name": "x", "uid": "u1"})
    token, _ = tokens.sign("ci", "bot", "u", bound=claims)
    assert tokens.verify(token) is not None
    put(store, key, kind, "u1", deleted=NOW - 10)
    assert tokens.verify(token) is not None, "it is only just being deleted"
    put(store, key, kind, "u1", deleted=NOW - 70)
    refused(tokens, token)
    put(store, key, kind, "u2")
    refused(tokens, token)
    del store[key]
    refused(tokens, token)


def refused(tokens: ServiceAccountTokens, token: str) -> None:
    with pytest.raises(TokenRefused, match="service account token has been invalidated"):
        tokens.verify(token)


def test_a_token_dies_with_its_account(store: dict[str, Entry], bound: BoundObjects) -> None:
    tokens = ServiceAccountTokens(new_key(), refusal=bound.refusal)
    token, _ = tokens.sign("ci", "bot", "u")
    assert tokens.verify(token) is not None
    account = "core/serviceaccounts/ci/bot"
    put(store, account, "ServiceAccount", "u", deleted=NOW - 70)
    with pytest.raises(TokenRefused, match="service account ci/bot has been deleted"):
        tokens.verify(token)
    put(store, account, "ServiceAccount", "another")
    with pytest.raises(TokenRefused, match="does not match claim"):
        tokens.verify(token)
    del store[account]
    with pytest.raises(TokenRefused, match='serviceaccounts "bot" not found'):
        tokens.verify(token)


@pytest.mark.parametrize(
    ("reference", "code"),
    [
        ({"apiVersion": "v1", "kind": "Pod", "name": "none"}, 404),
        ({"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "other"}, 409),
        ({"apiVersion": "v1", "kind": "Pod", "name": "foreign"}, 400),
        ({"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}, 400),
        ({"apiVersion": "apps/v1", "kind": "Pod", "name": "x"}, 400),
        ({"name": "x"}, 400),
        ({}, 400),
    ],
)
def test_what_a_token_cannot_be_bound_to(
    store: dict[str, Entry], bound: BoundObjects, reference: dict[str, str], code: int
) -> None:
    put(store, "core/pods/ci/x", "Pod", "u1")
    put(store, "core/pods/ci/foreign", "Pod", "u3", account="other")
    with pytest.raises(ApiError) as error:
        bound.claims("ci", "bot", reference)
    assert error.value.code == code


def test_no_reference_binds_to_nothing(bound: BoundObjects) -> None:
    assert bound.claims("ci", "bot", None) == {}
