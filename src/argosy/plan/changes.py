"""Changes: the smallest parts in which two JSON objects differ. Items of lists go by their names where they have some.

A path is a tuple of steps, `.key` or `[name]`; its text is what users read.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import UNSET

from argosy.plan.fields import Json, equal

__all__ = ["Path", "at", "changes", "is_secret", "put", "text"]

Path = tuple[str, ...]

_DEEPEST: Final = 1000


def changes(old: Json, new: Json, deepest: int = _DEEPEST) -> Iterator[tuple[Path, Any, Any]]:
    """Path, value in `old`, value in `new`; UNSET for what is not there. Below the depth `deepest`, parts count as a whole."""
    yield from _changes((), old, new, deepest)


def _changes(path: Path, old: Any, new: Any, deepest: int) -> Iterator[tuple[Path, Any, Any]]:
    if old is UNSET or new is UNSET:
        if old not in (None, UNSET) or new not in (None, UNSET):  # a null is as good as nothing
            yield path, old, new
        return
    if equal(old, new):
        return
    for keyed in (_by_key, _by_name) if len(path) < deepest else ():
        before, after = keyed(old), keyed(new)
        if before is not None and after is not None:
            for step in sorted(before.keys() | after.keys()) if keyed is _by_key else dict.fromkeys([*before, *after]):
                yield from _changes((*path, step), before.get(step, UNSET), after.get(step, UNSET), deepest)
            return
    yield path, old, new


def _by_key(value: Any) -> dict[str, Any] | None:
    return {f".{key}": each for key, each in value.items()} if isinstance(value, dict) else None


def _by_name(value: Any) -> dict[str, Any] | None:
    """Items by name; None if this is no list of items with different names."""
    if not isinstance(value, list) or not all(isinstance(each, dict) and "name" in each for each in value):
        return None
    named = {f"[{each['name']}]": each for each in value}
    return named if len(named) == len(value) else None


def is_secret(obj: Json) -> bool:
    """Whether an object's values are not to be shown."""
    return obj.get("kind") == "Secret"


def text(path: Path) -> str:
    return "".join(path).removeprefix(".")


def at(node: Any, path: Path) -> Any:
    """The value at the path; UNSET if there is none."""
    for step in path:
        children = _by_key(node) if step.startswith(".") else _by_name(node)
        node = (children or {}).get(step, UNSET)
    return node


def put(node: Any, values: Iterable[tuple[Path, Any]]) -> Any:
    """The object with each value at its path, or without it if that is UNSET; places that it does not have are left out.

    All are put in one walk: each put for itself would copy a large map as often as it is changed.
    """
    inside: dict[str, list[tuple[Path, Any]]] = {}
    for path, value in values:
        if not path:
            return value
        inside.setdefault(path[0], []).append((path[1:], value))
    if isinstance(node, dict):
        fields = {step[1:]: each for step, each in inside.items() if step.startswith(".")}
        changed = {key: _put_into(node.get(key, UNSET), each) for key, each in fields.items()}
        return {key: value for key, value in {**node, **changed}.items() if value is not UNSET}
    if isinstance(node, list):
        items = []
        for each in node:
            values = inside.pop(_step_to(each), ())
            items.append(put(each, values) if values else each)
        items += [put(UNSET, values) for step, values in inside.items() if step.startswith("[")]
        return [each for each in items if each is not UNSET]
    return node


def _put_into(child: Any, values: list[tuple[Path, Any]]) -> Any:
    """Objects on the way to a value are made."""
    if child is not UNSET or not all(path and path[0].startswith(".") for path, _ in values):
        return put(child, values)
    return put({}, values) or UNSET


def _step_to(item: Any) -> str:
    return f"[{item['name']}]" if isinstance(item, dict) and "name" in item else ""
