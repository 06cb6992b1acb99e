"""Changes: the smallest parts in which two JSON objects differ. Items of lists go by their names where they have some.

A path is a tuple of steps, `.key` or `[name]`; its text is what users read.
"""

from collections.abc import Iterator
from typing import Any, Final

from msgspec import UNSET

from argosy.plan.fields import Json, equal

__all__ = ["Path", "changes", "is_secret", "put", "text"]

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


def put(node: Any, path: Path, value: Any) -> Any:
    """The object with the value at the path, or without it if that is UNSET; the same object if it has no such place."""
    if not path:
        return value
    step, *rest = path
    if step.startswith("."):
        if not isinstance(node, dict):
            return node
        key = step[1:]
        changed = put(node.get(key, {} if rest else UNSET), tuple(rest), value)
        others = {name: each for name, each in node.items() if name != key or changed is not UNSET}
        return others if changed is UNSET else {**others, key: changed}
    if not isinstance(node, list):
        return node
    found = [number for number, each in enumerate(node) if _is_named(each, step)]
    if not found:
        return node if rest or value is UNSET else [*node, value]
    changed = put(node[found[0]], tuple(rest), value)
    return [*node[: found[0]], *([] if changed is UNSET else [changed]), *node[found[0] + 1 :]]


def _is_named(item: Any, step: str) -> bool:
    return isinstance(item, dict) and f"[{item.get('name')}]" == step
