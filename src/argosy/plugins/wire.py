"""The messages between the control plane and the process of a package's plugins, over a socket pair.

Every message is preceded by its length. Messages to the plugins are pickled: they are ours. Messages from them are MessagePack
of fixed types: external code ran there, and the worst they can be is wrong.

The process remembers the clusters, so that a question carries only those that changed since the last one.
"""

import pickle
import struct
from typing import Any, NamedTuple

import msgspec
import numpy as np

from argosy.fleet.columns import Amounts
from argosy.fleet.member import Member
from argosy.fleet.snapshot import Column, Rows
from argosy.plan.scheduling.framework import Division, Reply
from argosy.plan.scheduling.unit import Unit
from argosy.plugins.bounds import LONGEST_ERROR, LONGEST_TEXT, MOST_TEXTS, cut, few

__all__ = [
    "CONFIGURE",
    "HEAD",
    "LONGEST_DESCRIPTION",
    "Asked",
    "Described",
    "Hello",
    "Offer",
    "Told",
    "WireError",
    "decode_member",
    "described",
    "encode_member",
    "framed",
    "longest_answer",
    "reply_of",
    "told",
]

#: Length of the message that follows.
HEAD = struct.Struct("!Q")
#: Largest description of a package, however many plugins it has.
LONGEST_DESCRIPTION = 1024 * 1024
#: Instead of an extension point: asks whether the plugin takes these arguments.
CONFIGURE = "configure"
_LARGEST = 2**53


class WireError(Exception):
    """The other side sent an invalid message."""


class Hello(NamedTuple):
    """The first message to a process: what to load, and from where."""

    origin: str
    #: Name and value of each entry point.
    points: tuple[tuple[str, str], ...]
    path: tuple[str, ...]
    #: Seconds for loading.
    seconds: float
    #: Bytes of memory for loading, and afterwards beyond what it uses.
    memory_to_load: int
    memory: int


class Offer(msgspec.Struct, frozen=True, array_like=True):
    """One plugin of a package."""

    name: str
    phase: str
    weight: int
    configurable: bool


class Described(msgspec.Struct, frozen=True, array_like=True):
    """The first message from a process: the package's plugins, and entry points that cannot be used, with the reason."""

    offers: list[Offer]
    unusable: dict[str, str]


class Asked(NamedTuple):
    """A question. `names` are all clusters, None if unchanged since the last question; `members` those that changed."""

    number: int
    plugin: str
    phase: str
    arguments: tuple[Any, ...]
    seconds: float
    unit: Unit
    names: tuple[str, ...] | None
    members: tuple[bytes, ...]
    available: Amounts
    rows: Rows
    scores: Column


class Told(msgspec.Struct, frozen=True, array_like=True):
    """An answer. Arrays are bytes: bools of one byte, numbers of eight."""

    number: int
    error: str = ""
    passed: bytes = b""
    #: For each refused cluster, in order: which of the texts is the reason.
    codes: bytes = b""
    texts: list[str] = []
    rows: bytes = b""
    #: Also the replicas.
    scores: bytes = b""
    overflow: bytes = b""


_members = msgspec.msgpack.Decoder(Member)
_told = msgspec.msgpack.Decoder(Told)
_described = msgspec.msgpack.Decoder(Described)


def framed(message: Hello | Asked | Told | Described) -> bytes:
    pickled = isinstance(message, Hello | Asked)
    body = pickle.dumps(message, protocol=5) if pickled else msgspec.msgpack.encode(message)
    return HEAD.pack(len(body)) + body


def encode_member(member: Member) -> bytes:
    return msgspec.msgpack.encode(member)


def decode_member(data: bytes) -> Member:
    return _members.decode(data)


def described(body: bytes) -> Described:
    try:
        said = _described.decode(body)
    except msgspec.DecodeError as error:
        raise WireError(str(error)) from None
    return Described(said.offers, {name: cut(why, LONGEST_ERROR) for name, why in said.unusable.items()})


def longest_answer(clusters: int) -> int:
    """An upper limit in bytes for an answer about so many clusters: two numbers for each of them, and some text."""
    return 64 * 1024 + 64 * clusters


def told(body: bytes) -> Told:
    try:
        return _told.decode(body)
    except msgspec.DecodeError as error:
        raise WireError(str(error)) from None


def reply_of(answer: Told, phase: str, rows: Rows) -> Reply:
    """The reply for these rows. Raises WireError."""
    if answer.error:
        return Reply(error=cut(answer.error, LONGEST_ERROR))
    count = len(rows)
    if phase == "filter":
        passed = np.frombuffer(answer.passed, dtype=np.uint8).astype(np.bool_)
        refused = np.flatnonzero(~passed).tolist()
        codes, texts = _numbers(answer.codes, len(refused)), answer.texts[:MOST_TEXTS]
        if len(passed) != count or (len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < len(texts)):
            raise WireError("an answer for other clusters")
        texts = [cut(text, LONGEST_TEXT) for text in texts]
        reasons = {at: texts[code] for at, code in zip(refused, codes.tolist(), strict=True)}
        return Reply(passed=passed, reasons=reasons)
    if phase == "score":
        return Reply(scores=_numbers(answer.scores, count))
    if phase == "select":
        chosen = _numbers(answer.rows)
        return Reply(rows=chosen.astype(np.intp), scores=_numbers(answer.scores, len(chosen)))
    if phase == "replicas":
        replicas, overflow = _numbers(answer.scores, count), _numbers(answer.overflow, count)
        if count and min(int(replicas.min()), int(overflow.min())) < 0:
            raise WireError("negative replicas")
        return Reply(division=Division(replicas, overflow, few(answer.texts)))
    return Reply()


def _numbers(data: bytes, count: int | None = None) -> Column:
    if len(data) % 8 or (count is not None and len(data) != 8 * count):
        raise WireError("an answer for other clusters")
    column = np.frombuffer(data, dtype=np.int64)
    if len(column) and not -_LARGEST <= int(column.min()) <= int(column.max()) <= _LARGEST:
        raise WireError("a number is too large")
    return column
