"""Numbers in text, parsed as by Go's strconv, with its error messages."""

import re

__all__ = ["parse_int", "parse_uint"]

_INT = re.compile(r"[+-]?[0-9]+", re.ASCII).fullmatch
_UINT = re.compile(r"[0-9]+", re.ASCII).fullmatch
#: Longer texts are no 64-bit numbers, and Python must not parse them.
_DIGITS = 20


def parse_int(text: str) -> int:
    """A number of 64 bits with a sign. Raises ValueError with Go's words."""
    if not _INT(text):
        raise ValueError(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    sign, digits = text[: len(text) - len(text.lstrip("+-"))], text.lstrip("+-").lstrip("0")
    value = int(sign + (digits or "0")) if len(digits) <= _DIGITS else 1 << 64
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f'strconv.ParseInt: parsing "{text}": value out of range')
    return value


def parse_uint(text: str) -> int:
    """A number of 64 bits without one. Raises ValueError with Go's words."""
    if not _UINT(text):
        raise ValueError(f'strconv.ParseUint: parsing "{text}": invalid syntax')
    digits = text.lstrip("0")
    value = int(digits or "0") if len(digits) <= _DIGITS else 1 << 64
    if value >= 1 << 64:
        raise ValueError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return value
