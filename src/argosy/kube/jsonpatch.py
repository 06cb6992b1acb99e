"""JSON Patch (RFC 6902) in the dialect Kubernetes' API server and KubeAdmiral's overrides share.

It differs from the RFC in two ways: `replace` of a missing member of an existing object adds it, and negative array
indexes count from the end. Error texts are those of the library kube-apiserver uses. The input is never changed:
containers are copied along the paths an operation touches, and only once, so that the time depends on the sum of document and
patch, not on their product; anything that could take longer is bounded.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from argosy.kube.mergepatch import same

__all__ = ["MAX_OPERATIONS", "JsonPatchError", "MalformedPatch", "TooManyOperations", "apply"]

MAX_OPERATIONS: Final = 10_000
#: What all `copy` operations of one patch may add, as in kube-apiserver: repeated copies could double a document forever.
MAX_COPIED_BYTES: Final = 3 * 1024 * 1024

#: Limit for list items that all insertions and removals of one patch shift.
MAX_MOVED_ITEMS: Final = 50_000_000

_ABSENT: Final = object()
_DECODING: Final = "error decoding patch: json: cannot unmarshal {} into Go value of type {}"


class JsonPatchError(ValueError):
    """An operation does not apply to the document (422 in an API server)."""


class MalformedPatch(JsonPatchError):
    """The body is not a patch at all (400)."""


class TooManyOperations(JsonPatchError):
    """Too many operations (413)."""


def apply(doc: Any, operations: Any) -> Any:
    """The patched document; parts that did not change are shared with `doc`. `operations` is the decoded patch, unchecked."""
    if not isinstance(operations, Sequence) or isinstance(operations, str | bytes):
        raise MalformedPatch(_DECODING.format(_json_kind(operations), "[]handlers.jsonPatchOp"))
    if len(operations) > MAX_OPERATIONS:
        raise TooManyOperations(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        )
    working = _Document(doc)
    for operation in operations:
        if not isinstance(operation, Mapping):
            raise MalformedPatch(_DECODING.format(_json_kind(operation), "handlers.jsonPatchOp"))
        working.perform(operation)
    return working.root


class _Document:
    """A document being patched. `_owned` holds the containers made here, which may be changed in place."""

    def __init__(self, root: Any):
        self.root = root
        self._owned: dict[int, Any] = {}
        self._copied = 0
        self._moved = 0

    def perform(self, operation: Mapping[str, Any]) -> None:
        kind = operation.get("op", "unknown")
        match kind:
            case "add":
                self._add(_pointer(operation, "add"), operation.get("value"))
            case "remove":
                self._remove(_pointer(operation, "remove"))
            case "replace":
                self._replace(_pointer(operation, "replace"), operation.get("value"))
            case "move":
                self._move(_source(operation, "move"), _pointer(operation, "move"))
            case "copy":
                self._copy(_source(operation, "copy"), _pointer(operation, "copy"))
            case "test":
                self._test(_pointer(operation, "test"), operation.get("value"))
            case _:
                raise JsonPatchError(f"Unexpected kind: {kind}")

    def _add(self, path: str, value: Any) -> None:
        parent, key = self._parent_for_writing(path)
        if parent is None:
            raise JsonPatchError(f'add operation does not apply: doc is missing path: "{path}": missing value')
        self._insert(parent, key, value, f"error in add for path: '{path}'")

    def _remove(self, path: str) -> None:
        parent, key = self._parent_for_writing(path)
        if parent is None:
            raise JsonPatchError(f'remove operation does not apply: doc is missing path: "{path}": missing value')
        self._delete(parent, key, f"error in remove for path: '{path}'")

    def _replace(self, path: str, value: Any) -> None:
        if path == "":
            if not isinstance(value, dict | list):
                raise JsonPatchError("replace operation value must be object or array")
            self.root = value
            return
        parent, key = self._parent_for_writing(path)
        if parent is None:
            raise JsonPatchError(f"replace operation does not apply: doc is missing path: {path}: missing value")
        if isinstance(parent, dict):
            parent[key] = value
            return
        try:
            parent[_index(key, len(parent))] = value
        except JsonPatchError:
            raise JsonPatchError(
                f"replace operation does not apply: doc is missing key: {path}: missing value"
            ) from None

    def _move(self, source: str, path: str) -> None:
        parent, key = self._parent_for_writing(source)
        if parent is None:
            raise JsonPatchError(f"move operation does not apply: doc is missing from path: {source}: missing value")
        value = _get(parent, key, f"error in move for path: '{key}'")
        self._delete(parent, key, f"error in move for path: '{key}'")
        target, key = self._parent_for_writing(path)
        if target is None:
            raise JsonPatchError(
                f"move operation does not apply: doc is missing destination path: {path}: missing value"
            )
        self._insert(target, key, value, f"error in move for path: '{path}'")

    def _copy(self, source: str, path: str) -> None:
        parent, key = self._parent(source)
        if parent is None:
            raise JsonPatchError(f"copy operation does not apply: doc is missing from path: {source}: missing value")
        value = _get(parent, key, f"error in copy for from: '{source}'")
        try:
            encoded = orjson.dumps(None if value is _ABSENT else value)
        except TypeError as error:  # too deep
            raise JsonPatchError(f"error while performing deep copy: {error}") from None
        self._copied += len(encoded)
        if self._copied > MAX_COPIED_BYTES:
            raise JsonPatchError(
                f"Unable to complete the copy, the accumulated size increase of copy is {self._copied}, "
                f"exceeding the limit {MAX_COPIED_BYTES}"
            )
        target, key = self._parent_for_writing(path)
        if target is None:
            raise JsonPatchError(
                f"copy operation does not apply: doc is missing destination path: {path}: missing value"
            )
        self._insert(target, key, orjson.loads(encoded), "error while adding value during copy")

    def _test(self, path: str, wanted: Any) -> None:
        if path == "":
            value = self.root
        else:
            parent, key = self._parent(path)
            if parent is None:
                raise JsonPatchError(f"test operation does not apply: is missing path: {path}: missing value")
            value = _get(parent, key, f"error in test for path: '{path}'")
        if not same(None if value is _ABSENT else value, wanted):
            raise JsonPatchError(f"testing value {path} failed: test failed")

    def _parent(self, path: str) -> tuple[Any, str]:
        """The container of the path's last key, and that key; (None, "") if there is none."""
        keys = _keys(path)
        if not keys:
            return None, ""
        node = self.root
        for key in keys[:-1]:
            node = _child(node, key)
            if not isinstance(node, dict | list):
                return None, ""
        return (node, keys[-1]) if isinstance(node, dict | list) else (None, "")

    def _parent_for_writing(self, path: str) -> tuple[Any, str]:
        """As `_parent`, with every container on the way copied. An invalid path changes nothing."""
        if self._parent(path)[0] is None:
            return None, ""
        keys = _keys(path)
        node = self.root = self._own(self.root)
        for key in keys[:-1]:
            child = self._own(_child(node, key))
            if isinstance(node, dict):
                node[key] = child
            else:
                node[_index(key, len(node))] = child
            node = child
        return node, keys[-1]

    def _insert(self, parent: Any, key: str, value: Any, context: str) -> None:
        value = None if value is _ABSENT else value
        if isinstance(parent, dict):
            parent[key] = value
            return
        if key == "-":
            parent.append(value)
            return
        try:
            index = _index(key, len(parent) + 1)
        except JsonPatchError as error:
            raise JsonPatchError(f"{context}: {error}") from None
        self._make_way(len(parent) - index)
        parent.insert(index, value)

    def _delete(self, parent: Any, key: str, context: str) -> None:
        if isinstance(parent, dict):
            if key not in parent:
                raise JsonPatchError(f"{context}: Unable to remove nonexistent key: {key}: missing value")
            del parent[key]
            return
        try:
            index = _index(key, len(parent))
        except JsonPatchError as error:
            raise JsonPatchError(f"{context}: {error}") from None
        self._make_way(len(parent) - index)
        del parent[index]

    def _make_way(self, items: int) -> None:
        self._moved += items
        if self._moved > MAX_MOVED_ITEMS:
            raise JsonPatchError(
                f"the operations move {self._moved} items of lists to other places, exceeding the limit {MAX_MOVED_ITEMS}"
            )

    def _own(self, node: Any) -> Any:
        if id(node) in self._owned:
            return node
        mine = node.copy()
        self._owned[id(mine)] = mine  # holding it keeps the id from being used again
        return mine


def _pointer(operation: Mapping[str, Any], kind: str) -> str:
    path = operation.get("path")
    if not isinstance(path, str):
        raise JsonPatchError(f"{kind} operation failed to decode path: operation missing path field: missing value")
    return path


def _source(operation: Mapping[str, Any], kind: str) -> str:
    source = operation.get("from")
    if not isinstance(source, str):
        raise JsonPatchError(f"{kind} operation failed to decode from: operation, missing from field: missing value")
    return source


def _keys(path: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def _child(node: Any, key: str) -> Any:
    if isinstance(node, dict):
        return node.get(key)
    try:
        return node[_index(key, len(node))]
    except JsonPatchError:
        return None


def _index(key: str, length: int) -> int:
    """The position an existing item's key stands for."""
    index = _number(key)
    if not -length <= index < length:
        raise JsonPatchError(f"Unable to access invalid index: {index}: invalid index referenced")
    return index + length if index < 0 else index


def _number(key: str) -> int:
    digits = key[1:] if key[:1] in ("+", "-") else key
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 18:
        raise JsonPatchError(f'strconv.Atoi: parsing "{key}": invalid syntax')
    return int(key)


def _get(parent: Any, key: str, context: str) -> Any:
    if isinstance(parent, dict):
        return parent.get(key, _ABSENT)
    try:
        return parent[_index(key, len(parent))]
    except JsonPatchError as error:
        raise JsonPatchError(f"{context}: {error}") from None


def _json_kind(value: Any) -> str:
    kinds = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}
    return kinds.get(value.__class__, "null")
