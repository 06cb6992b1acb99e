"""Packing: arrays of whole numbers as short text, for records that are part of stored objects.

Each column is reduced to its smallest width and cut into planes of bytes. All columns share one stream, in which each has
its own code table: numbers of one kind compress well together and badly with others. The text holds neither meaning nor
length of the columns; they must be unpacked in the order they were packed.
"""

import zlib
from base64 import b64decode
from binascii import Error as Base64Error
from binascii import b2a_base64

import numpy as np
import numpy.typing as npt

__all__ = ["PackedError", "Packing", "Unpacker"]

Numbers = npt.NDArray[np.int64]

_WIDTHS = (1, 2, 4, 8)
#: Largest unpacked size. A fleet of 5,000 clusters with twenty score plugins needs an eighth of it.
_LARGEST = 2**24


class PackedError(ValueError):
    """The text was not made by `pack`."""


class Packing:
    """Packed columns, to which others can be added: a common prefix of many texts is packed once."""

    __slots__ = ("_done", "_stream")

    def __init__(self) -> None:
        # The least memory that suffices: zlib only looks for runs, and a small state is copied quickly.
        self._stream = zlib.compressobj(1, zlib.DEFLATED, -9, 4, zlib.Z_RLE)
        self._done = b""

    def add(self, *columns: Numbers) -> "Packing":
        """A new packing: these columns after those of this one."""
        longer = object.__new__(Packing)
        longer._stream = stream = self._stream.copy()
        parts = [self._done]
        for column in columns:
            parts.append(stream.compress(_planes(column)))
            parts.append(stream.flush(zlib.Z_BLOCK))
        longer._done = b"".join(parts)
        return longer

    def text(self) -> str:
        """As base64. Ends this packing: no columns can be added afterwards."""
        return b2a_base64(self._done + self._stream.flush(), newline=False).decode()


class Unpacker:
    """Gives back the columns of a text, one after the other."""

    def __init__(self, text: str) -> None:
        stream = zlib.decompressobj(-12)
        try:
            self._left = memoryview(stream.decompress(b64decode(text, validate=True), _LARGEST))
        except (Base64Error, ValueError, zlib.error) as error:
            raise PackedError(f"not a packed column: {error}") from None

    def take(self, count: int) -> Numbers:
        """The next column, which must hold this many numbers."""
        width = self._bytes(1)[0]
        if width == 0:
            return np.full(count, self._number(), dtype=np.int64)
        if width not in _WIDTHS:
            raise PackedError(f"no column is {width} bytes wide")
        lowest = self._number()
        planes = np.frombuffer(self._bytes(width * count), dtype=np.uint8).reshape(width, count)
        wide = np.zeros((count, 8), dtype=np.uint8)
        wide[:, :width] = planes.T
        return (wide.view("<u8")[:, 0] + np.int64(lowest).astype(np.uint64)).astype(np.int64)

    def _number(self) -> int:
        size = self._bytes(1)[0]
        return int.from_bytes(self._bytes(size), "little", signed=True)

    def _bytes(self, count: int) -> memoryview:
        if len(self._left) < count:
            raise PackedError("the columns end too early")
        taken, self._left = self._left[:count], self._left[count:]
        return taken


def _planes(column: Numbers) -> bytes:
    """Width, lowest number, and the distance of each number from it, low bytes first."""
    bits = int(np.bitwise_or.reduce(column))
    if bits == 0:
        return b"\0\0"
    if 0 < bits < 256:
        return b"\1\0" + column.astype(np.uint8).tobytes()
    lowest, highest = int(column.min()), int(column.max())
    size = (lowest.bit_length() + 8) // 8 if lowest else 0
    head = bytes((size,)) + lowest.to_bytes(size, "little", signed=True)
    if lowest == highest:
        return b"\0" + head
    above = column - lowest if lowest else column
    span = highest - lowest
    width = next(width for width in _WIDTHS if span < 256**width)
    planes = above.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :width]
    return bytes((width,)) + head + planes.T.tobytes()
