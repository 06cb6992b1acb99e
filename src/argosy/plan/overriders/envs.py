"""The overrider of a container's environment variables. A container that is not there is skipped."""

from collections.abc import Iterable, Sequence
from typing import Any

from argosy.api.overriders import ADD_IF_ABSENT, DELETE, OVERWRITE, EnvOverrider
from argosy.plan.copies.patches import OverrideError
from argosy.plan.copies.placement import Patches
from argosy.plan.fields import Json
from argosy.plan.overriders.containers import find
from argosy.plan.overriders.whole import replaced

__all__ = ["envs"]

Variables = list[dict[str, Any]]


def envs(items: Iterable[EnvOverrider], obj: Json) -> Patches:
    """One patch of all variables for each container. Raises OverrideError."""
    made: dict[str, Variables] = {}
    for item in items:
        container = find(obj, item.container_name)
        if container is None:
            continue
        path = f"{container.pointer}/env"
        made[path] = _changed(made[path] if path in made else container.listed("env", dict), item)
    return replaced(made)


def _changed(before: Variables, item: EnvOverrider) -> Variables:
    value = item.value or ()
    match item.operator or OVERWRITE:
        case "addIfAbsent":
            return _with(before, value, item.container_name)
        case "overwrite":
            wanted = {_name(each): each for each in value}
            return [wanted.get(_name(each), each) for each in before]
        case "delete":
            unwanted = {_name(each) for each in value}
            return [each for each in before if _name(each) not in unwanted]
        case other:
            raise OverrideError(f"unknown operator {other!r}: {ADD_IF_ABSENT}, {OVERWRITE} or {DELETE}")


def _with(before: Variables, value: Sequence[dict[str, Any]], container: str) -> Variables:
    if not value:
        raise OverrideError(f"container {container}: {ADD_IF_ABSENT} of variables needs a value")
    after = list(before)
    for each in value:
        if any(_name(present) == _name(each) for present in after):
            raise OverrideError(f"container {container}: {ADD_IF_ABSENT} of {_name(each)}, but it is there")
        after.append(each)
    return after


def _name(variable: dict[str, Any]) -> str:
    return str(variable.get("name"))
