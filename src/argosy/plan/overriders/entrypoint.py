"""The overriders of a container's command and args. A container that is not there is skipped."""

from collections.abc import Iterable, Sequence
from typing import Literal

from argosy.api.overriders import APPEND, DELETE, OVERWRITE, EntrypointOverrider
from argosy.plan.copies.patches import OverrideError
from argosy.plan.copies.placement import Patches
from argosy.plan.fields import Json
from argosy.plan.overriders.containers import find
from argosy.plan.overriders.whole import replaced

__all__ = ["args", "command"]


def command(items: Iterable[EntrypointOverrider], obj: Json) -> Patches:
    """Raises OverrideError."""
    return _patches("command", items, obj)


def args(items: Iterable[EntrypointOverrider], obj: Json) -> Patches:
    """Raises OverrideError."""
    return _patches("args", items, obj)


def _patches(field: Literal["command", "args"], items: Iterable[EntrypointOverrider], obj: Json) -> Patches:
    made: dict[str, list[str]] = {}
    for item in items:
        container = find(obj, item.container_name)
        if container is None:
            continue
        path = f"{container.pointer}/{field}"
        made[path] = _changed(made[path] if path in made else container.listed(field, str), item)
    return replaced(made)


def _changed(before: Sequence[str], item: EntrypointOverrider) -> list[str]:
    value = list(item.value or ())
    match item.operator or OVERWRITE:
        case "append":
            if not value:
                raise OverrideError(f"container {item.container_name}: {APPEND} needs a value")
            return [*before, *value]
        case "overwrite":
            return value
        case "delete":
            return [each for each in before if each not in value]
        case other:
            raise OverrideError(f"unknown operator {other!r}: {APPEND}, {OVERWRITE} or {DELETE}")
