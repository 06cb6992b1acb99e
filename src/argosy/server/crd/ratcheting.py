"""Ratcheting: an update is not refused for what it did not change.

After a schema was tightened, older objects may be invalid. As in kube-apiserver, problems in unchanged parts of the object are
ignored; whatever the update changes must be valid.
"""

from typing import Any

import orjson

from argosy.server.crd.problems import Problem
from argosy.server.crd.structure import Structure
from argosy.server.crd.validation import MAX_PROBLEMS

__all__ = ["introduced"]

_ABSENT: Any = object()


def introduced(problems: list[Problem], new: Any, old: Any, structure: Structure) -> list[Problem]:
    """The problems in parts that differ between `old` and `new`."""
    comparison = _Comparison()
    found = [problem for problem in problems if not comparison.untouched(problem, new, old, structure)]
    # If not all problems were collected, others may be new.
    return found if found or len(problems) < MAX_PROBLEMS else problems[:1]


class _Comparison:
    """Parts with many problems are compared once, not once for each."""

    def __init__(self) -> None:
        self._same: dict[tuple[int, int], bool] = {}
        self._by_keys: dict[int, dict[bytes, Any]] = {}

    def untouched(self, problem: Problem, new: Any, old: Any, structure: Structure | None) -> bool:
        if self._is(new, old):
            return True
        for step in problem.path:
            old = self._correlated(step, new, old, structure)
            new = _at(new, step)
            if new is _ABSENT or old is _ABSENT:
                return False
            if type(new) is type(old) and self._is(new, old):
                return True
            if structure is not None:
                structure = structure.items if isinstance(step, int) else structure.child(step)
        return False

    def _is(self, new: Any, old: Any) -> bool:
        if not isinstance(new, dict | list):
            return bool(new == old)
        pair = id(new), id(old)
        same = self._same.get(pair)
        if same is None:
            same = self._same[pair] = bool(new == old)
        return same

    def _correlated(self, step: str | int, new: Any, old: Any, structure: Structure | None) -> Any:
        """The corresponding part of `old`: by name in objects, by keys in list maps, none in other lists."""
        if isinstance(step, str):
            return _at(old, step)
        if structure is None or structure.list_type != "map" or type(old) is not list:
            return _ABSENT
        item = _at(new, step)
        if type(item) is not dict:
            return _ABSENT
        found = self._by_keys.get(id(old))
        if found is None:
            found = self._by_keys[id(old)] = {}
            for candidate in old:
                if type(candidate) is dict:
                    found.setdefault(_key(candidate, structure), candidate)
        return found.get(_key(item, structure), _ABSENT)


def _key(item: Any, structure: Structure) -> bytes:
    return orjson.dumps([item.get(key) for key in structure.keys], option=orjson.OPT_SORT_KEYS)


def _at(value: Any, step: str | int) -> Any:
    if isinstance(step, int):
        return value[step] if type(value) is list and step < len(value) else _ABSENT
    return value.get(step, _ABSENT) if type(value) is dict else _ABSENT
