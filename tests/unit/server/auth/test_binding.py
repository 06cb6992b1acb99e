"""Tokens bound to an object are valid as long as that very object is there."""

import orjson
import pytest

from argosy.kube.errors import ApiError
from argosy.server.auth.binding import BoundObjects
from argosy.server.auth.tokens import ServiceAccountTokens, new_key
from argosy.server.entry import Entry
from argosy.server.kinds import builtin_kinds
from argosy.server.registry import Registry
from argosy.server.storage.base import Record


@pytest.fixture
def store() -> dict[str, Entry]:
    return {}


@pytest.fixture
def bound(store: dict[str, Entry]) -> BoundObjects:
    registry = Registry()
    for kind in builtin_kinds():
        registry.add(kind)
    return BoundObjects(store.get, registry)


def put(store: dict[str, Entry], key: str, kind: str, uid: str, account: str = "bot") -> None:
    obj = {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": key.rpartition("/")[2], "namespace": "ci", "uid": uid},
        "spec": {"serviceAccountName": account},
    }
    store[key] = Entry(Record(key, 1, orjson.dumps(obj)))


@pytest.mark.parametrize(
    ("kind", "key"), [("Pod", "core/pods/ci/x"), ("Secret", "core/secrets/ci/x"), ("Node", "core/nodes/x")]
)
def test_a_token_dies_with_its_object(store: dict[str, Entry], bound: BoundObjects, kind: str, key: str) -> None:
    put(store, key, kind, "u1")
    tokens = ServiceAccountTokens(new_key(), bound_lives=bound.live)
    claims = bound.claims("ci", "bot", {"apiVersion": "v1", "kind": kind, "name": "x", "uid": "u1"})
    token, _ = tokens.sign("ci", "bot", "u", bound=claims)
    assert tokens.verify(token) is not None
    put(store, key, kind, "u2")
    assert tokens.verify(token) is None
    del store[key]
    assert tokens.verify(token) is None


@pytest.mark.parametrize(
    ("reference", "code"),
    [
        ({"apiVersion": "v1", "kind": "Pod", "name": "none"}, 404),
        ({"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "other"}, 409),
        ({"apiVersion": "v1", "kind": "Pod", "name": "foreign"}, 400),
        ({"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}, 400),
        ({"apiVersion": "apps/v1", "kind": "Pod", "name": "x"}, 400),
        ({"name": "x"}, 400),
    ],
)
def test_what_a_token_cannot_be_bound_to(
    store: dict[str, Entry], bound: BoundObjects, reference: dict[str, str], code: int
) -> None:
    put(store, "core/pods/ci/x", "Pod", "u1")
    put(store, "core/pods/ci/foreign", "Pod", "u3", account="other")
    with pytest.raises(ApiError) as refused:
        bound.claims("ci", "bot", reference)
    assert refused.value.code == code


def test_no_reference_binds_to_nothing(bound: BoundObjects) -> None:
    assert bound.claims("ci", "bot", None) == {}
