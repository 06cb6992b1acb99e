"""Ratcheting: an update is not refused for what it did not touch.

When a schema has been tightened, objects written before may be invalid. As in kube-apiserver, a problem in a part of the
object that is the same as before is let pass; whatever the update changes must be valid.
"""

from typing import Any

from argosy.server.crd.problems import Problem
from argosy.server.crd.structure import Structure

__all__ = ["introduced"]

_ABSENT: Any = object()


def introduced(problems: list[Problem], new: Any, old: Any, structure: Structure) -> list[Problem]:
    """The problems that lie in parts which differ between `old` and `new`."""
    return [problem for problem in problems if not _untouched(problem, new, old, structure)]


def _untouched(problem: Problem, new: Any, old: Any, structure: Structure | None) -> bool:
    if new == old:
        return True
    for step in problem.path:
        old = _correlated(step, new, old, structure)
        new = _at(new, step)
        if new is _ABSENT or old is _ABSENT:
            return False
        if type(new) is type(old) and new == old:
            return True
        if structure is not None:
            structure = structure.items if isinstance(step, int) else structure.child(step)
    return False


def _at(value: Any, step: str | int) -> Any:
    if isinstance(step, int):
        return value[step] if type(value) is list and step < len(value) else _ABSENT
    return value.get(step, _ABSENT) if type(value) is dict else _ABSENT


def _correlated(step: str | int, new: Any, old: Any, structure: Structure | None) -> Any:
    """The part of `old` that is the same part: by name in objects, by keys in list maps, nothing in other lists."""
    if isinstance(step, str):
        return _at(old, step)
    if structure is None or structure.list_type != "map" or type(old) is not list:
        return _ABSENT
    item = _at(new, step)
    if type(item) is not dict:
        return _ABSENT
    wanted = [item.get(key) for key in structure.keys]
    for candidate in old:
        if type(candidate) is dict and [candidate.get(key) for key in structure.keys] == wanted:
            return candidate
    return _ABSENT
