"""Retained: fields that members own, by their paths. A copy that has such a field keeps it; one that has none gets ours.

A path is dotted, such as `spec.foo`, and may begin with a dot. `[*]` stands for the items of a list, those of the same name.
"""

import re
from collections.abc import Callable
from typing import Any, Final

from argosy.api.typeconfigs import FIELD_PATH
from argosy.plan.fields import ABSENT, Json

__all__ = ["keeping_fields", "steps_of"]

_EACH: Final = "[*]"
#: Who an object is, which nobody else decides, and labels and annotations, of which members keep their own anyway.
_OURS: Final = frozenset({"apiVersion", "kind", "metadata"})


def steps_of(path: str) -> tuple[str, ...]:
    """The steps of a path; none if it is malformed, or not to be retained."""
    if re.fullmatch(FIELD_PATH, path, re.ASCII) is None:
        return ()
    steps = tuple(path.removeprefix(".").replace(_EACH, f".{_EACH}").split("."))
    return () if steps[0] in _OURS else steps


def keeping_fields(paths: tuple[str, ...]) -> Callable[[Json, Json], Json]:
    """(desired, observed): the desired object with the observed one's values at these paths."""
    walks = [steps for path in paths if (steps := steps_of(path))]

    def retain(desired: Json, observed: Json) -> Json:
        for steps in walks:
            desired = _kept(desired, observed, steps)
        return desired

    return retain


def _kept(desired: Any, observed: Any, steps: tuple[str, ...]) -> Any:
    """ABSENT if there is neither ours nor theirs."""
    if not steps:
        return observed
    step, rest = steps[0], steps[1:]
    if step == _EACH:
        if not isinstance(desired, list) or not isinstance(observed, list):
            return desired
        found = {name: each for each in observed if (name := _name(each))}
        return [_kept(each, found[name], rest) if (name := _name(each)) in found else each for each in desired]
    if not isinstance(observed, dict) or step not in observed or not (desired is ABSENT or isinstance(desired, dict)):
        return desired
    before: Json = desired if isinstance(desired, dict) else {}
    kept = _kept(before.get(step, ABSENT), observed[step], rest)
    return desired if kept is ABSENT else {**before, step: kept}


def _name(item: Any) -> str:
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) else ""
