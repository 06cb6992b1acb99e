"""YAML as Kubernetes reads it: bytes to the JSON values that sigs.k8s.io/yaml makes of them.

Built on libyaml's events, without recursion, in time and memory linear in the size of the text. Fields are sorted by name
unless there are thousands; names are strings; `yamlscalar` decides what a scalar is; tags of lists and objects are ignored.
`<<` merges. An alias stands for a copy of its anchor's value, and a merge for one of its fields; all copies together are
bounded, since a few lines could otherwise become gigabytes.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import orjson
import yaml

from argosy.kube.jsonreader import MAX_CONTAINERS, MAX_DEPTH, MAX_DUPLICATES, TOO_DEEP, TOO_MANY
from argosy.kube.yamlscalar import ScalarError, as_json, as_key, resolve

__all__ = ["Document", "YamlError", "documents", "read"]

#: Limit for the values of all aliases of a document, as JSON, and for all merges, by the names of their fields: the size of
#: the largest request body. So everything in such a body may be merged once.
MAX_COPIED_BYTES: Final = 3 * 1024 * 1024

#: Sorting more would block the interpreter for too long, and nobody reads them in order.
_SORTED: Final = 10_000
_NO_KEY: Final = object()
_NOTHING: Final[set[str]] = set()
_MERGE: Final = object()
_MERGE_TAG: Final = "tag:yaml.org,2002:merge"
_SPACES: Final = re.compile(r"\s+")


class YamlError(ValueError):
    """The text is not YAML, or cannot be JSON. `line` and `column` count from 1; 0 if unknown."""

    def __init__(self, problem: str, line: int = 0, column: int = 0):
        super().__init__(f"yaml: line {line}: {problem}" if line else f"yaml: {problem}")
        self.problem = problem
        self.line = line
        self.column = column


class Duplicate(msgspec.Struct, frozen=True):
    """A duplicate field; the last one counts. `merged`: one of the two came by a merge."""

    line: int
    name: str
    merged: bool


class Document(msgspec.Struct, frozen=True):
    """One document of a text. `line` is where it starts, counted from 1."""

    value: Any
    line: int
    duplicates: tuple[Duplicate, ...]


def read(text: bytes) -> Document:
    """The first document, as Kubernetes reads a body: the rest is ignored. An empty text is null."""
    return next(documents(text), Document(None, 1, ()))


def documents(text: bytes) -> Iterator[Document]:
    """All documents of a text in turn, including empty ones (null). Raises YamlError when it reaches an error."""
    loader = yaml.CBaseLoader(text)
    try:
        while True:
            event = loader.get_event()
            if event is None or event.__class__ is yaml.StreamEndEvent:
                return
            if event.__class__ is yaml.DocumentStartEvent:
                yield _Builder(loader).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        raise YamlError(error.problem or error.context or "not valid", line, column) from None
    except yaml.reader.ReaderError as error:
        raise YamlError(error.reason) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise YamlError(_SPACES.sub(" ", str(error))[:200]) from None
    finally:
        loader.dispose()


class _Anchored:
    """An anchor's value: its JSON, made at its first alias, and its number of levels."""

    __slots__ = ("_json", "height", "value")

    def __init__(self, value: Any, height: int):
        self.value = value
        self.height = height
        self._json: bytes | None = None

    def json(self) -> bytes:
        if self._json is None:
            self._json = orjson.dumps(self.value)
        return self._json


class _Frame:
    """A list or an object being filled."""

    __slots__ = ("anchor", "height", "into", "key", "line", "merged")

    def __init__(self, into: Any, event: Any):
        self.into = into
        self.line: int = event.start_mark.line + 1
        self.anchor: str | None = event.anchor
        self.height = 1
        #: The name of the field that comes next, in an object.
        self.key: Any = _NO_KEY
        #: Names of fields that came by a merge, in an object.
        self.merged: set[str] = _NOTHING


class _Builder:
    """Builds one document from the events after its start."""

    def __init__(self, loader: Any):
        self._next = loader.get_event
        self._anchors: dict[str, _Anchored | None] = {}
        self._copied = 0
        self._containers = 0
        self._duplicates: list[Duplicate] = []

    def document(self) -> Document:
        frames: list[_Frame] = []
        frame: _Frame | None = None
        while True:
            event = self._next()
            kind = event.__class__
            line = event.start_mark.line + 1
            height = 0
            if kind is yaml.ScalarEvent:
                value = self._scalar(event, line)
            elif kind is yaml.AliasEvent:
                value, height = self._alias(event.anchor, line)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                assert frame is not None
                value, height, line = frame.into, frame.height, frame.line
                if kind is yaml.MappingEndEvent and len(value) <= _SORTED:
                    value = dict(sorted(value.items()))
                if frame.anchor is not None:
                    self._anchors[frame.anchor] = _Anchored(value, height)
                frames.pop()
                frame = frames[-1] if frames else None
            else:
                if frame is not None and frame.key is _NO_KEY and frame.into.__class__ is dict:
                    raise YamlError("invalid map key: a field's name is a text", line)
                frame = _Frame({} if kind is yaml.MappingStartEvent else [], event)
                if frame.anchor is not None:
                    self._anchors[frame.anchor] = None
                frames.append(frame)
                if len(frames) > MAX_DEPTH:
                    raise _too_deep(line)
                self._containers += 1
                if self._containers > MAX_CONTAINERS:
                    raise YamlError(TOO_MANY, line)
                continue
            if frame is None:
                self._next()  # the document's end
                return Document(_json(value, line), line, tuple(self._duplicates))
            if height and len(frames) + height > MAX_DEPTH:
                raise _too_deep(line)
            if height >= frame.height:
                frame.height = height + 1
            if frame.into.__class__ is list:
                frame.into.append(_json(value, line))
            elif frame.key is _NO_KEY:
                frame.key = value if value is _MERGE else _key(value, line)
            else:
                self._set(frame, value, line)

    def _scalar(self, event: Any, line: int) -> Any:
        text: str = event.value
        tag: str | None = event.tag
        if tag is None and not event.implicit[0]:
            value: Any = text
        elif text == "<<" and (tag is None or tag == _MERGE_TAG):
            value = _MERGE
        else:
            try:
                value = resolve(text, tag)
            except ScalarError as error:
                raise YamlError(str(error), line) from None
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(text if value is _MERGE else value, 0)
        return value

    def _alias(self, name: str, line: int) -> tuple[Any, int]:
        if name not in self._anchors:
            raise YamlError(f"unknown anchor '{name}' referenced", line)
        anchored = self._anchors[name]
        if anchored is None:
            raise YamlError(f"anchor '{name}' value contains itself", line)
        if not isinstance(anchored.value, list | dict):
            self._copied += len(anchored.value) if isinstance(anchored.value, str) else 8
            self._check_copied("aliasing", line)
            return anchored.value, 0
        encoded = anchored.json()
        self._copied += len(encoded)
        self._containers += encoded.count(b"{") + encoded.count(b"[")
        self._check_copied("aliasing", line)
        return orjson.loads(encoded), anchored.height

    def _check_copied(self, how: str, line: int) -> None:
        if self._copied > MAX_COPIED_BYTES or self._containers > MAX_CONTAINERS:
            raise YamlError(f"document contains excessive {how}", line)

    def _set(self, frame: _Frame, value: Any, line: int) -> None:
        name, frame.key = frame.key, _NO_KEY
        if name is not _MERGE:
            if name in frame.into:
                self._tell(line, name, name in frame.merged)
            frame.into[name] = _json(value, line)
            return
        merged = value if isinstance(value, list) else [value]
        if not all(isinstance(part, dict) for part in merged):
            raise YamlError("map merge requires map or sequence of maps as the value", line)
        for part in reversed(merged):
            # Nested merges add the same fields once per level; their values are not copied.
            self._copied += sum(map(len, part)) + len(part)
            self._check_copied("merging", line)
            for key in part:
                if key in frame.into:
                    self._tell(line, key, True)
            frame.into.update(part)
            if frame.merged is _NOTHING:
                frame.merged = set()
            frame.merged.update(part)

    def _tell(self, line: int, name: str, merged: bool) -> None:
        if len(self._duplicates) < MAX_DUPLICATES:
            self._duplicates.append(Duplicate(line, name, merged))


def _json(value: Any, line: int) -> Any:
    """A value that will be in a list or a field."""
    if value.__class__ is str or value.__class__ is dict or value.__class__ is list:
        return value
    if value is _MERGE:
        return "<<"
    try:
        return as_json(value)
    except ScalarError as error:
        raise YamlError(str(error), line) from None


def _key(value: Any, line: int) -> str:
    if value.__class__ is str:
        return str(value)
    if isinstance(value, list | dict):
        raise YamlError("invalid map key: a field's name is a text", line)
    try:
        return as_key(value)
    except ScalarError as error:
        raise YamlError(str(error), line) from None


def _too_deep(line: int) -> YamlError:
    return YamlError(TOO_DEEP, line)
