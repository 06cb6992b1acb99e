"""Which write-ahead log lies beside a store: SQLite gives it two salts, and raises the first one each time it restarts."""

import struct
from pathlib import Path
from typing import NamedTuple

__all__ = ["SALTS_AT", "Salts", "log_of", "salts_of"]

#: Where the salts are in the file.
SALTS_AT = 16
_HEADER = struct.Struct(">8I")
_FRAME_HEADER = 24
_MAGIC = 0x377F0682
_WORD = 0xFFFFFFFF
#: How often a log may have been restarted since its salts were recorded (a loss of power loses the newest records).
_RESTARTS = 1 << 16


class Salts(NamedTuple):
    first: int
    second: int

    def may_follow(self, earlier: "Salts") -> bool:
        """Whether a log with these salts is that one, or its continuation."""
        restarts = (self.first - earlier.first) & _WORD
        return self == earlier if restarts == 0 else restarts <= _RESTARTS


def log_of(store: Path) -> Path:
    return store.with_name(f"{store.name}-wal")


def salts_of(log: Path) -> Salts | None:
    """None if there is no log, or one that SQLite takes for empty. Changes nothing."""
    try:
        with log.open("rb") as file:
            head = file.read(_HEADER.size + _FRAME_HEADER + 1)
    except FileNotFoundError:
        return None
    if len(head) <= _HEADER.size + _FRAME_HEADER:
        return None
    magic, _format, _page, _sequence, first, second, *expected = _HEADER.unpack_from(head)
    if magic & ~1 != _MAGIC or _checksum(head[:24], big=bool(magic & 1)) != expected:
        return None
    return Salts(first, second)


def _checksum(head: bytes, *, big: bool) -> list[int]:
    words = struct.unpack(f"{'>' if big else '<'}{len(head) // 4}I", head)
    one = two = 0
    for index in range(0, len(words), 2):
        one = (one + words[index] + two) & _WORD
        two = (two + words[index + 1] + one) & _WORD
    return [one, two]
