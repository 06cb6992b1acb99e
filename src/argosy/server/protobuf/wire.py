"""The protobuf wire format: a message's bytes as (field number, value) pairs, without knowing what they mean."""

from collections.abc import Iterator

__all__ = ["Fixed", "ProtobufError", "Value", "fields", "varint"]


class Fixed(bytes):
    """The four or eight bytes of a floating-point number."""


#: Integers of varint fields; a view of texts, bytes and messages, so that deep nesting copies nothing.
Value = int | memoryview | Fixed


class ProtobufError(ValueError):
    """The bytes are not a message."""


def varint(data: memoryview, at: int) -> tuple[int, int]:
    """An integer and where it ended."""
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


def fields(data: memoryview) -> Iterator[tuple[int, Value]]:
    at = 0
    while at < len(data):
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
