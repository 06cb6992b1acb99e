"""What checking a built-in object costs: the work grows with its lists and maps and no faster, whichever is long."""

from collections.abc import Iterator
from typing import Any

import pytest

from argosy.kube.schema import Type
from argosy.server.kinds import builtin_kinds
from argosy.server.kinds.shared.builtin import BuiltinStrategy
from argosy.server.registry import Kind
from tests.harness.growth import assert_linear

SCALARS: dict[str, Any] = {
    "string": lambda i: f"name-{i}",
    "integer": lambda i: i % 1000 + 1,
    "boolean": lambda i: True,
    "quantity": lambda i: "1",
    "int-or-string": lambda i: i % 1000 + 1,
    "time": lambda i: "2026-01-01T00:00:00Z",
    "micro-time": lambda i: "2026-01-01T00:00:00.000000Z",
    "bytes": lambda i: "YQ==",
}


def collections(type: Type, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Type]]:
    """Every list and map below, with the way to it: into the first item of lists."""
    if len(path) > 12:
        return
    for name, field in type.fields.items():
        here = (*path, name)
        if field.kind == "object":
            yield from collections(field, here)
        elif field.kind in ("array", "map") and field.item is not None:
            yield here, field
            if field.item.kind == "object":
                yield from collections(field.item, (*here, 0 if field.kind == "array" else "key"))


def of_all_kinds() -> Iterator[tuple[Kind, tuple[str | int, ...], Type]]:
    """Each once: most kinds share the types of pods."""
    seen = set()
    for kind in builtin_kinds():
        if not isinstance(kind.strategy, BuiltinStrategy) or kind.strategy.type is None:
            continue
        for path, field in collections(kind.strategy.type):
            same = field.name, field.item and field.item.name, path[-2:]
            if same not in seen:
                seen.add(same)
                yield kind, path, field


def item(type: Type, number: int) -> Any:
    if type.kind == "object":
        return {name: SCALARS[field.kind](number) for name, field in type.fields.items() if field.kind in SCALARS}
    if type.kind in ("array", "map"):
        return [] if type.kind == "array" else {}
    return SCALARS[type.kind](number) if type.kind in SCALARS else {}


def object_with(kind: Kind, path: tuple[str | int, ...], field: Type, size: int, distinct: bool) -> dict[str, Any]:
    assert field.item is not None
    items = [item(field.item, number if distinct else 0) for number in range(size)]
    value: Any = items if field.kind == "array" else {f"key-{number}": each for number, each in enumerate(items)}
    for step in reversed(path):
        value = [value] if step == 0 else {step: value}
    value["metadata"] = {**value.get("metadata", {}), "name": "x", "uid": "u", "namespace": "default"}
    return {"apiVersion": kind.api_version, "kind": kind.kind, **value}


def checked(kind: Kind, obj: dict[str, Any]) -> None:
    if kind.strategy.decode(obj).mistyped:
        return
    kind.strategy.default(obj)
    kind.strategy.prepare_create(obj)
    if not kind.strategy.validate(obj):
        kind.strategy.warnings(obj)


@pytest.mark.parametrize("distinct", [True, False], ids=["distinct", "alike"])
def test_every_list_and_map_of_every_kind(distinct):
    wrong = []
    for kind, path, field in of_all_kinds():
        try:
            assert_linear(
                lambda make: checked(make[0], object_with(*make, distinct)),
                lambda size: (kind, path, field, size),  # noqa: B023
                250,
            )
        except AssertionError as error:
            wrong.append(f"{kind.kind} {'.'.join(map(str, path))}: {error}")
    assert not wrong, "\n".join(wrong)
