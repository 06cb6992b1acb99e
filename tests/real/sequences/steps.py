"""Steps: one request of a sequence as a value that can be written down and replayed.

Texts may refer to what the server at hand answered before, since uids, versions and generated names are each server's own:
`<rv PATH>`, `<first PATH>` (the oldest version seen), `<uid PATH>`, `<name PREFIX>` (generated from it), `<continue NAME>`.
`{id}` keeps sequences apart. A body `{"$of": PATH, "changes": [[path, value], …], "else": …}` is the object last seen there,
changed: what a client does that reads before it writes.
"""

import copy
import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

__all__ = ["ABSENT", "Memory", "Step", "change", "namespaces"]

#: As the value of a change: the field is removed.
ABSENT = "$absent"
_REFERENCE = re.compile(r"<(rv|first|uid|name|continue) ([^<>]*)>")
_UNSEEN = {"uid": "00000000-0000-4000-8000-000000000000", "name": "unseen", "continue": ""}

Path = Sequence[str | int | dict[str, Any]]


class Step(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    method: str
    path: str
    query: dict[str, str] = {}
    type: str = "application/json"
    body: Any = None
    #: Open a watch; it is read to the end of the sequence.
    watch: bool = False
    #: Keep the continue token of the answer under this name.
    keep: str = ""
    #: Ask until the garbage collector is done with this object.
    settle: str = ""
    #: Ask until these objects look alike on both servers, whatever the garbage collectors do about them.
    family: list[str] = []


def namespaces() -> tuple[str, str]:
    return "seq-{id}-a", "seq-{id}-b"


class Memory:
    """What one server answered so far."""

    def __init__(self, identity: str):
        self._identity = identity
        #: The version the sequence began at: what a reference to an object means that was never seen.
        self.start = "1"
        self.objects: dict[str, dict[str, Any]] = {}
        self._known: dict[tuple[str, str], str] = {}

    def see(self, path: str, obj: dict[str, Any]) -> None:
        meta = obj["metadata"]
        self.objects[path] = obj
        self._known["uid", path] = meta["uid"]
        self._known["rv", path] = meta.get("resourceVersion", "1")
        self._known.setdefault(("first", path), meta.get("resourceVersion", "1"))
        if meta.get("generateName"):
            self._known["name", meta["generateName"]] = meta["name"]

    def keep(self, name: str, token: str) -> None:
        self._known["continue", name] = token

    def filled(self, value: Any) -> Any:
        if isinstance(value, str):
            text = value.replace("{id}", self._identity)
            # A path may itself have a generated name in it.
            return _REFERENCE.sub(self._referred, _REFERENCE.sub(self._referred, text))
        if isinstance(value, list):
            return [self.filled(one) for one in value]
        if not isinstance(value, dict):
            return value
        if "$of" not in value:
            return {self.filled(key): self.filled(one) for key, one in value.items()}
        seen = self.objects.get(self.filled(value["$of"]))
        obj = copy.deepcopy(seen) if seen is not None else self.filled(value["else"])
        for path, new in value["changes"]:
            change(obj, self.filled(path), self.filled(new))
        return obj

    def _referred(self, found: re.Match[str]) -> str:
        return self._known.get((found[1], found[2]), _UNSEEN.get(found[1], self.start))


def change(obj: Any, path: Path, value: Any) -> None:
    """Set or remove the value at a path, whose parts are keys, indexes, and items as in `{"name": "a"}`; makes the way there."""
    for part, following in itertools.pairwise(path):
        obj = _step_into(obj, part, [] if isinstance(following, (int, Mapping)) else {})
        if not isinstance(obj, (dict, list)):
            return
    last = path[-1]
    if isinstance(obj, dict) and isinstance(last, str):
        if value == ABSENT:
            obj.pop(last, None)
        else:
            obj[last] = value
    elif isinstance(obj, list):
        index = _index(obj, last)
        if value == ABSENT:
            del obj[index : index + 1]
        else:
            obj[index : index + 1] = [value]


def _step_into(obj: Any, part: Any, empty: Any) -> Any:
    if isinstance(obj, dict) and isinstance(part, str):
        if obj.get(part) is None:
            obj[part] = empty
        return obj[part]
    if isinstance(obj, list) and not isinstance(part, str):
        index = _index(obj, part)
        if index == len(obj):
            obj.append(dict(part) if isinstance(part, Mapping) else empty)
        return obj[index]
    return None


def _index(items: list[Any], part: Any) -> int:
    if isinstance(part, int):
        return min(part, len(items))
    for index, item in enumerate(items):
        if isinstance(item, dict) and isinstance(part, Mapping) and part.items() <= item.items():
            return index
    return len(items)
