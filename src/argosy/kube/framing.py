"""Watch framing: the bytes of a watch stream cut into lines, and lines into events. Pure; the stream itself is `kube.http`."""

import msgspec

from argosy.kube.answers import DEFAULT
from argosy.kube.errors import AnswerTooLarge, BadAnswer, from_status
from argosy.kube.objects import UNREADABLE
from argosy.kube.transport import Event

__all__ = ["Lines", "event"]

TYPES = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK"})
_OBJECT = b',"object":'
#: How an event begins in the usual encoding of API servers.
_BEGINNINGS = {f'{{"type":"{type}"'.encode(): type for type in TYPES}


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


_decoder = msgspec.json.Decoder(_Event)


class Lines:
    """Collects chunks and returns complete lines. What follows the last newline is not an event: the stream broke there."""

    def __init__(self, limit: int = DEFAULT.object) -> None:
        self._limit = limit
        self._partial: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` completes, without their newlines and without empty ones."""
        lines = chunk.split(b"\n")
        self._size += len(lines[0])
        if self._size > self._limit:
            raise AnswerTooLarge(f"a watch event is longer than {self._limit} bytes")
        self._partial.append(lines[0])
        if len(lines) == 1:
            return []
        lines[0] = b"".join(self._partial)
        tail = lines.pop()
        self._partial = [tail]
        self._size = len(tail)
        return [line for line in lines if line and not line.isspace()]


def event(line: bytes) -> Event:
    """One line as an event. An ERROR event is raised as the ApiError it carries, any other line as a BadAnswer.

    The object is not parsed here: parsing every object twice would halve the throughput of a watch.
    """
    at = line.find(_OBJECT, 0, 32)
    type_ = _BEGINNINGS.get(line[:at])
    if type_ is not None and line.endswith(b"}}"):
        return Event(type_, line[at + len(_OBJECT) : -1])
    try:
        found = _decoder.decode(line)
        if found.type in TYPES:
            return Event(found.type, bytes(found.object))
        if found.type == "ERROR":
            status = msgspec.json.decode(found.object, type=dict)
            raise from_status(status)
    except (*UNREADABLE, ValueError, TypeError, AttributeError) as error:
        raise BadAnswer(f"a watch event is not one: {error}") from None
    raise BadAnswer(f"a watch event has the unknown type {found.type[:40]!r}")
