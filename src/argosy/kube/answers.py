"""Answers: how much of a server's answer is read, and how long requests wait after a 429. No I/O.

A server is not trusted to stop: an answer is cut off beyond any honest size, before it is held in memory. The cost of parsing
depends on parts, not bytes: a megabyte of empty lists takes as long as a hundred megabytes of text. So the parts of a large
answer are counted before parsing, which takes one to ten milliseconds per megabyte; an object that passes is parsed in 130 ms
at worst.
"""

from collections.abc import Callable

import msgspec

from argosy.kube import chance, clock
from argosy.kube.jsonreader import MAX_CONTAINERS, TOO_MANY

__all__ = ["DEFAULT", "SMALLEST_OBJECT", "UNCOUNTED", "AnswerLimits", "Hold", "crowd", "values"]

MiB = 1024 * 1024


class AnswerLimits(msgspec.Struct, frozen=True):
    """In bytes. Above what etcd accepts (1.5 MiB by default, and a few times that as JSON), below what does harm."""

    #: One object, one event of a watch, and every other answer that is not a list.
    object: int = 8 * MiB
    #: One page of a list. Splitting it into objects blocks the event loop: some 40 ms for this much of nodes, 8 ms for the
    #: usual 4 MiB, and at worst, with half a million empty objects in it, 150 ms.
    page: int = 32 * MiB


DEFAULT = AnswerLimits()

#: Strings (including field names) and values in one object, values in one page. Kubernetes accepts bodies of 3 MiB, which have
#: no room for more. Objects and arrays in one object are limited as in our own server; no real object comes near.
MOST_TEXTS = 3 * MiB // 3
MOST_VALUES = 3 * MiB // 2
#: A text of so many bytes has no room for too many parts.
UNCOUNTED = 2 * MAX_CONTAINERS
#: The smallest object in bytes: it has a uid, a version and a date.
SMALLEST_OBJECT = 64


def crowd(body: bytes) -> str:
    """What an object has too many of to be parsed in time; empty if nothing."""
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
    """A lower bound of the values in a page; if it has too many strings to look through, commas inside them count too."""
    found = body.count(b",")
    if found <= MOST_VALUES or _quotes(body) > 2 * MOST_TEXTS:
        return found
    return _without_texts(body).count(b",")


def _quotes(body: bytes) -> int:
    """Quotes that begin or end strings; with backslashes before them, at least half of those."""
    escaped = body.count(b'\\"') if b"\\" in body else 0
    return body.count(b'"') - escaped


def _containers(body: bytes) -> int:
    return body.count(b"{") + body.count(b"[")


def _without_texts(body: bytes) -> bytes:
    """The JSON without its strings. Pairs of backslashes are removed first: an odd one left escapes the next character."""
    if b"\\" in body:
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(body.split(b'"')[::2])


class Hold:
    """One server's 429: while it lasts, all that share this send nothing."""

    def __init__(self, longest: float, clock: Callable[[], float] = clock.monotonic) -> None:
        """`longest` limits the wait, in seconds; 0 ignores every 429."""
        self._longest = longest
        self._clock = clock
        self._until = 0.0

    @property
    def heeded(self) -> bool:
        return self._longest > 0

    def ask(self, seconds: float) -> None:
        # Spread, so that not all waiting requests come back at the same moment.
        wanted = min(seconds, self._longest) * (1 + 0.1 * chance.random())
        self._until = max(self._until, self._clock() + wanted)

    def remaining(self) -> float:
        """Seconds until the next request is allowed."""
        return max(0.0, self._until - self._clock())
