"""The protobuf wire format: a message's bytes as (field number, value) pairs, without their meaning."""

from collections.abc import Iterator

__all__ = ["MAX_DEPTH", "MAX_FIELDS", "Bounds", "Fixed", "ProtobufError", "Value", "fields", "varint"]


MAX_DEPTH = 100
#: The densest real objects, definitions with their schemas, have 5.4 bytes per field, so the largest accepted body (3 MiB) has
#: no more fields than this; a body of two-byte fields, which costs the most time per byte, would.
MAX_FIELDS = 600_000


class Fixed(bytes):
    """The four or eight bytes of a floating-point number."""


#: Integers of varint fields; a view of texts, bytes and messages, so that deep nesting copies nothing.
Value = int | memoryview | Fixed


class ProtobufError(ValueError):
    """The bytes are not a message."""


class Bounds:
    """The cost of reading one body so far; one per body."""

    __slots__ = ("depth", "fields")

    def __init__(self) -> None:
        self.depth = 0
        self.fields = 0

    def enter(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ProtobufError(f"messages are nested deeper than {MAX_DEPTH} levels")

    def leave(self) -> None:
        self.depth -= 1

    def count(self) -> None:
        self.fields += 1
        if self.fields > MAX_FIELDS:
            raise ProtobufError(f"a body has more than {MAX_FIELDS} fields")


def varint(data: memoryview, at: int) -> tuple[int, int]:
    """An integer and its end."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ProtobufError("a number is cut off or too long")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7


def fields(data: memoryview, bounds: Bounds) -> Iterator[tuple[int, Value]]:
    at = 0
    while at < len(data):
        bounds.count()
        tag = data[at]
        if tag < 0x80:  # as nearly all are
            at += 1
        else:
            tag, at = varint(data, at)
        number, form = tag >> 3, tag & 7
        if number == 0:
            raise ProtobufError("a field has no number")
        if form == 0:
            value, at = varint(data, at)
            yield number, value
            continue
        if form == 2:
            size, at = varint(data, at)
        elif form in (1, 5):
            size = 8 if form == 1 else 4
        else:
            raise ProtobufError(f"fields of wire type {form} are not used here")
        if at + size > len(data):
            raise ProtobufError("a field is cut off")
        chunk = data[at : at + size]
        yield number, chunk if form == 2 else Fixed(chunk)
        at += size
