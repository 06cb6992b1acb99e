"""Whatever the schema tables let through is answered: stored or refused, never a crash."""

import copy
import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.kube.schema import Type
from argosy.server.kinds import builtin_kinds
from argosy.server.kinds.shared.builtin import BuiltinStrategy
from argosy.server.registry import Kind

KINDS = [kind for kind in builtin_kinds() if kind.group and isinstance(kind.strategy, BuiltinStrategy)]
TEXTS = ["", "a", "A_b", "a.b/c", "a-1", "10.0.0.0/8", "010.0.0.1", "fd00::1", "*.a.b", "/x//y", "*", "@daily", "0-3,5"]
CHOICES = [
    "Always",
    "Never",
    "RollingUpdate",
    "Indexed",
    "In",
    "Exists",
    "Foo",
    "IPv4",
    "Namespaced",
    "Webhook",
    "None",
]
NUMBERS = [-(2**31), -1, 0, 1, 2, 80, 70_000, 2**31 - 1]
AMOUNTS = ["0", "1", "-1", "500m", "1Gi", "0.5"]


class Maker:
    """Random objects of a type: sparse where the type is deep, null now and then."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def value(self, type: Type, depth: int) -> Any:
        choice = self.random.choice
        match type.kind:
            case "string":
                return choice(TEXTS + CHOICES)
            case "integer" | "number":
                return choice(NUMBERS)
            case "boolean":
                return choice([True, False])
            case "quantity":
                return choice(AMOUNTS)
            case "int-or-string":
                return choice([*NUMBERS, "25%", "a", "101%", ""])
            case "time":
                return "2026-01-01T00:00:00Z"
            case "micro-time":
                return "2026-01-01T00:00:00.000000Z"
            case "bytes":
                return choice(["", "YQ=="])
            case "array":
                return [] if type.item is None else [self.value(type.item, depth + 1) for _ in range(choice([0, 1, 2]))]
            case "map":
                count = choice([0, 1, 2])
                return (
                    {} if type.item is None else {choice(TEXTS): self.value(type.item, depth + 1) for _ in range(count)}
                )
            case "object":
                return self.object(type, depth)
        return choice([None, {}, [], "a", {"type": "object"}])

    def object(self, type: Type, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        likelihood = 0.7 if depth < 2 else 1.6 / (depth + 1)
        for name, field in type.fields.items():
            if self.random.random() < likelihood and depth < 9:
                made[name] = None if self.random.random() < 0.05 else self.value(field, depth + 1)
        return made

    def of(self, kind: Kind) -> dict[str, Any]:
        strategy = kind.strategy
        assert isinstance(strategy, BuiltinStrategy)
        assert strategy.type is not None
        made = self.object(strategy.type, 0)
        return made | {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "a", "uid": "u"}}


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(KINDS), st.integers(0, 2**32))
def test_any_object_is_answered(kind: Kind, seed: int) -> None:
    maker, strategy = Maker(seed), kind.strategy
    obj, other = maker.of(kind), maker.of(kind)
    for made in (obj, other):
        if strategy.decode(made).mistyped:
            return
        strategy.default(made)
    strategy.prepare_create(obj)
    assert all(str(error) for error in strategy.validate(obj))
    assert all(isinstance(text, str) for text in strategy.warnings(obj))
    again = copy.deepcopy(obj)
    strategy.default(again)
    assert again == obj, "defaults are filled in once"

    for write, check in (
        (strategy.prepare_update, strategy.validate_update),
        (strategy.prepare_status, strategy.validate_status),
    ):
        new = copy.deepcopy(other)
        write(new, copy.deepcopy(obj))
        assert all(str(error) for error in check(new, obj))
        strategy.generation_grows(new, obj)

    for value in strategy.selectable.values():
        assert isinstance(value(obj), str)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([kind for kind in KINDS if kind.to_storage]), st.integers(0, 2**32))
def test_conversion_takes_any_object_and_comes_back_the_same(kind: Kind, seed: int) -> None:
    obj = Maker(seed).of(kind)
    if kind.strategy.decode(obj).mistyped:
        return
    kind.strategy.default(obj)
    kind.strategy.prepare_create(obj)
    assert kind.to_storage is not None
    assert kind.from_storage is not None
    there = copy.deepcopy(obj)
    kind.to_storage(there)
    kind.from_storage(there)
    once = copy.deepcopy(there)
    kind.to_storage(there)
    kind.from_storage(there)
    assert there == once
