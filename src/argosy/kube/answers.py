"""Answers: how much of a server's answer is read, and how long a server that asks for it (429) is left alone. No I/O.

A server is not trusted to stop: whatever it sends is cut off where no honest answer reaches, before it is held in memory.
What reading costs is a matter of parts and not of bytes: a megabyte of empty lists takes as long as a hundred megabytes of
text. So the parts of a large answer are counted before any of them is made, which takes one to ten milliseconds a megabyte;
an object that passes is read in 130 ms at worst.
"""

from collections.abc import Callable

import msgspec

from argosy.kube import chance, clock
from argosy.kube.jsonreader import MAX_CONTAINERS, TOO_MANY

__all__ = ["DEFAULT", "SMALLEST_OBJECT", "UNCOUNTED", "AnswerLimits", "Hold", "crowd", "values"]

MiB = 1024 * 1024


class AnswerLimits(msgspec.Struct, frozen=True):
    """In bytes. Above what etcd takes (1.5 MiB by default, an object as JSON being a few times that), below what hurts."""

    #: One object, one event of a watch, and every other answer that is no list.
    object: int = 8 * MiB
    #: One page of a list. To cut it into its objects holds the event loop: some 40 ms for so much of nodes, 8 ms for the 4 MiB
    #: that are asked for, and at worst, with half a million objects of no size in it, 150 ms.
    page: int = 32 * MiB


DEFAULT = AnswerLimits()

#: Texts (names of fields are some) and values in one object, values in one page. Kubernetes takes bodies of 3 MiB, which have
#: no room for more of them. Objects and arrays in one object are as many as our own server takes; nothing real comes near.
MOST_TEXTS = 3 * MiB // 3
MOST_VALUES = 3 * MiB // 2
#: Bytes in which there is no room for too many of anything.
UNCOUNTED = 2 * MAX_CONTAINERS
#: Bytes: with a uid, a version and a date no object has fewer.
SMALLEST_OBJECT = 64


def crowd(body: bytes) -> str:
    """What an object has too many of to be read while others wait; empty where it has not."""
    if len(body) <= UNCOUNTED:
        return ""
    if _quotes(body) > 2 * MOST_TEXTS:
        return f"more than {MOST_TEXTS} texts"
    if body.count(b",") <= MOST_VALUES and _containers(body) <= MAX_CONTAINERS:
        return ""
    plain = _without_texts(body)
    if _containers(plain) > MAX_CONTAINERS:
        return TOO_MANY
    return f"more than {MOST_VALUES} values" if plain.count(b",") > MOST_VALUES else ""


def values(body: bytes) -> int:
    """At least so many values are in a page; where they are in too many texts to look through, commas in those count too."""
    found = body.count(b",")
    if found <= MOST_VALUES or _quotes(body) > 2 * MOST_TEXTS:
        return found
    return _without_texts(body).count(b",")


def _quotes(body: bytes) -> int:
    """Those that begin and end texts; no fewer than half of them, where backslashes stand before them."""
    escaped = body.count(b'\\"') if b"\\" in body else 0
    return body.count(b'"') - escaped


def _containers(body: bytes) -> int:
    return body.count(b"{") + body.count(b"[")


def _without_texts(body: bytes) -> bytes:
    """What of some JSON is no text. Pairs of backslashes go first: what is left of a run escapes what follows."""
    if b"\\" in body:
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(body.split(b'"')[::2])


class Hold:
    """One server's wish to be left alone: while it lasts, nobody who shares this asks for anything."""

    def __init__(self, longest: float, clock: Callable[[], float] = clock.monotonic) -> None:
        """`longest` is what a wish counts for at most, in seconds; 0 heeds none."""
        self._longest = longest
        self._clock = clock
        self._until = 0.0

    @property
    def heeded(self) -> bool:
        return self._longest > 0

    def ask(self, seconds: float) -> None:
        # Not all of those who wait come back at the same moment.
        wanted = min(seconds, self._longest) * (1 + 0.1 * chance.random())
        self._until = max(self._until, self._clock() + wanted)

    def remaining(self) -> float:
        """Seconds until it may be asked again."""
        return max(0.0, self._until - self._clock())
