"""What checking an object costs: the work grows with the object and no faster, however much is wrong with it."""

import copy
from typing import Any

import pytest

from argosy.kube import schema, typecheck
from argosy.server import status
from argosy.server.crd.strategy import CustomResourceStrategy
from argosy.server.fielderrors import invalid
from tests.harness.growth import assert_linear
from tests.unit.server.crd.builders import definition, strategy_of, widget

ITEM = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z]+$"},
        "mode": {"type": "integer", "enum": list(range(2_000))},
        "template": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
    },
}
SPEC = {
    "type": "object",
    "properties": {
        "items": {"type": "array", "items": ITEM},
        "numbers": {"type": "array", "items": {"type": "integer", "maximum": 5}},
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "named": {
            "type": "array",
            "items": ITEM,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        "map": {"type": "object", "additionalProperties": {"type": "array", "items": ITEM}},
    },
}
#: Specs by the number of their parts.
FAMILIES: dict[str, Any] = {
    "wrong numbers": lambda n: {"numbers": [9] * n},
    "wrong types": lambda n: {"numbers": ["x"] * n},
    "wrong items": lambda n: {"items": [{"name": "A"}] * n},
    "items without a name": lambda n: {"items": [{}] * n},
    "unknown fields": lambda n: {f"u{i}": 1 for i in range(n)},
    "unknown fields of items": lambda n: {"items": [{"name": "a", "u": 1} for _ in range(n)]},
    "the same in a set": lambda n: {"set": ["a"] * n},
    "pairs in a set": lambda n: {"set": [f"a{i // 2}" for i in range(n)]},
    "the same in a list map": lambda n: {"named": [{"name": "a"}] * n},
    "pairs in a list map": lambda n: {"named": [{"name": f"a{i // 2}"} for i in range(n)]},
    "nothing of an enumeration": lambda n: {"items": [{"name": "a", "mode": -1}] * n},
    "below a long name": lambda n: {"map": {"k" * 100 * n: [{"name": "a", "template": {"kind": "A"}}] * n}},
    "wrong below a long name": lambda n: {"map": {"k" * 100 * n: [{"name": "A", "u": 1} for _ in range(n)]}},
}


def written(strategy: CustomResourceStrategy, spec: Any) -> None:
    obj = widget(spec)
    old = copy.deepcopy(obj)
    strategy.decode(obj)
    strategy.default(obj)
    status.invalid_kind("", "", "", strategy.validate(obj) or [invalid("", "", "")])
    strategy.validate_update(obj, old)


@pytest.mark.parametrize("family", FAMILIES)
def test_custom_objects(family):
    strategy = strategy_of(definition(SPEC))
    assert_linear(lambda spec: written(strategy, spec), FAMILIES[family], 2_000)


def test_very_many_causes_are_told_up_to_a_number():
    error = status.invalid_kind("", "Thing", "t", [invalid(f"spec.f{i}", i, "wrong") for i in range(5_000)])
    causes = error.status["details"]["causes"]
    assert len(causes) == 1001
    assert causes[-1] == {"reason": "FieldValueInvalid", "message": "Invalid value: and 4000 more", "field": ""}
    error = status.invalid_kind("", "Thing", "t", [invalid("spec", "x" * 100_000, "wrong")] * 100)
    assert len(error.status["details"]["causes"]) < 15


def test_an_update_is_refused_where_what_is_new_cannot_be_told_from_what_is_old():
    strategy = strategy_of(definition(SPEC))
    old = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w"},
        "spec": {"numbers": [9] * 5_000},
    }
    new = {**old, "spec": {"numbers": [9] * 5_000, "items": [{"name": "A"}]}}
    assert strategy.validate_update(new, old)


BUILTIN: dict[str, Any] = {
    "unknown fields": lambda n: {f"u{i}": 1 for i in range(n)},
    "unknown fields of containers": lambda n: {"spec": {"containers": [{"name": "c", "u": 1} for _ in range(n)]}},
    "wrong types": lambda n: {"spec": {"containers": [1] * n}},
    "wrong types deep inside": lambda n: {"spec": {"containers": [{"ports": [{"containerPort": "x"}] * n}]}},
    "wrong quantities": lambda n: {
        "spec": {"containers": [{"resources": {"limits": {f"r{i}": "?" for i in range(n)}}}]}
    },
    "long keys": lambda n: {
        "spec": {"containers": [{"resources": {"limits": {f"{'k' * 500}{i}": "1" for i in range(n)}}}]}
    },
}


@pytest.mark.parametrize("family", BUILTIN)
def test_built_in_objects(family):
    pod = schema.load().kind("", "v1", "Pod")
    assert pod is not None
    assert_linear(lambda make: typecheck.check(pod, make()), lambda size: lambda: BUILTIN[family](size), 5_000)


def test_types_below_a_long_key():
    review = schema.load().kind("authorization.k8s.io", "v1", "SubjectAccessReview")
    assert review is not None

    def make(size: int) -> dict[str, Any]:
        return {"spec": {"extra": {"k" * 100 * size: [1] * size}}}

    assert_linear(lambda obj: typecheck.check(review, obj), make, 3_000)
