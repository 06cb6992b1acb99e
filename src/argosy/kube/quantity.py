"""Quantities: exact amounts of a resource ("100m", "1.5Gi", "2e3"), read and written as Kubernetes does.

An amount is a whole number of nano-units, since Kubernetes rounds anything finer up to one; no float is ever involved.
Not a unit library: it knows the suffixes Kubernetes accepts and nothing of what they measure.
"""

import re
from functools import lru_cache
from typing import Any, Final, Literal

import msgspec

__all__ = [
    "BINARY_SI",
    "DECIMAL_EXPONENT",
    "DECIMAL_SI",
    "ZERO",
    "Format",
    "Quantity",
    "QuantityError",
    "parse",
    "parse_or_zero",
]

Format = Literal["DecimalSI", "BinarySI", "DecimalExponent"]
DECIMAL_SI: Final[Format] = "DecimalSI"
BINARY_SI: Final[Format] = "BinarySI"
DECIMAL_EXPONENT: Final[Format] = "DecimalExponent"

_NANO = 10**9
_MILLI = 10**6
_MAX_BINARY = (2**63 - 1) * _NANO
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = {0: "", 1: "Ki", 2: "Mi", 3: "Gi", 4: "Ti", 5: "Pi", 6: "Ei"}
#: A larger exponent or a longer text is refused: 1e999999999 would be a number of a billion digits.
_MAX_EXPONENT = 400
_MAX_LENGTH = 512

_SHAPE = re.compile(r"([+-]?)0*([0-9]*)(\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_WRONG_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_WRONG_NUMBER = "unable to parse numeric part of quantity"
_WRONG_SUFFIX = "unable to parse quantity's suffix"


class QuantityError(ValueError):
    """The text is no quantity; the message is Kubernetes' own."""


class Quantity(msgspec.Struct, frozen=True, eq=False):
    """An exact amount. Compared and hashed by amount alone: "1" equals "1000m"."""

    nanos: int
    format: Format = DECIMAL_SI
    #: The text as given, where Kubernetes hands it back unchanged instead of the canonical form ("1.500", "1E3").
    text: str | None = None

    @classmethod
    def from_milli(cls, milli: int, format: Format = DECIMAL_SI) -> "Quantity":
        return cls(milli * _MILLI, format)

    @classmethod
    def from_value(cls, value: int, format: Format = DECIMAL_SI) -> "Quantity":
        return cls(value * _NANO, format)

    def value(self) -> int:
        """Whole units; a fraction is rounded away from zero, so that a small request is not 0."""
        return _rounded_up(self.nanos, _NANO)

    def milli(self) -> int:
        """Thousandths of a unit, rounded away from zero."""
        return _rounded_up(self.nanos, _MILLI)

    def canonical(self) -> str:
        """What kube-apiserver stores and prints: no fraction, the largest suffix that keeps the number whole."""
        if self.text is not None:
            return self.text
        nanos = self.nanos
        if nanos == 0:
            return "0"
        if self.format == BINARY_SI and nanos % _NANO == 0 and abs(nanos) >= 1024 * _NANO:
            return _binary(nanos // _NANO)
        return _decimal(nanos, exponent_form=self.format == DECIMAL_EXPONENT)

    def __str__(self) -> str:
        return self.canonical()

    def __eq__(self, other: object) -> bool:
        return self.nanos == other.nanos if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: "Quantity") -> bool:
        return self.nanos < other.nanos

    def __le__(self, other: "Quantity") -> bool:
        return self.nanos <= other.nanos

    def __gt__(self, other: "Quantity") -> bool:
        return self.nanos > other.nanos

    def __ge__(self, other: "Quantity") -> bool:
        return self.nanos >= other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __bool__(self) -> bool:
        return self.nanos != 0

    def __add__(self, other: "Quantity") -> "Quantity":
        """The sum; its format is the left side's unless that is zero, as in Kubernetes."""
        return Quantity(self.nanos + other.nanos, self.format if self.nanos else other.format)

    def __sub__(self, other: "Quantity") -> "Quantity":
        return Quantity(self.nanos - other.nanos, self.format if self.nanos else other.format)

    def __mul__(self, factor: int) -> "Quantity":
        return Quantity(self.nanos * factor, self.format)

    __rmul__ = __mul__

    def __neg__(self) -> "Quantity":
        return Quantity(-self.nanos, self.format)


ZERO: Final = Quantity(0)


def parse(text: str | int | float) -> Quantity:
    """The quantity a JSON value stands for: a string, or a bare number as Kubernetes accepts it in manifests."""
    if isinstance(text, str):
        return _parse(text)
    if isinstance(text, bool) or not isinstance(text, int | float):
        raise QuantityError(_WRONG_FORMAT)
    # repr gives the shortest decimal that reads back, which is the text in the document.
    return _parse(repr(text))


def parse_or_zero(value: Any) -> Quantity:
    """The quantity, or zero if it cannot be read: for values that are validated elsewhere."""
    try:
        return parse(value)
    except QuantityError:
        return ZERO


@lru_cache(maxsize=8192)
def _parse(text: str) -> Quantity:
    shape = _SHAPE.fullmatch(text) if 0 < len(text) <= _MAX_LENGTH else None
    if shape is None:
        raise QuantityError(_WRONG_FORMAT)
    sign, whole, _, fraction, suffix = shape.groups()
    whole, fraction = whole or "0", fraction or ""
    digits = int(whole + fraction)
    if sign == "-":
        digits = -digits
    binary = _BINARY.get(suffix)
    if binary is not None:
        return _parsed_binary(text, digits, int(whole), fraction, binary)
    exponent = _DECIMAL.get(suffix)
    format = DECIMAL_SI
    if exponent is None:
        exponent = _exponent(suffix)
        format = DECIMAL_EXPONENT
    scale = exponent - len(fraction)
    kept = (
        digits != 0
        and scale >= -9
        and scale % 3 == 0
        and whole[0] != "0"
        and len(whole) + len(fraction) <= 18
        and not (whole + fraction).endswith("000")
    )
    return Quantity(_scaled(digits, scale + 9), format, text if kept else None)


def _parsed_binary(text: str, digits: int, whole: int, fraction: str, exponent: int) -> Quantity:
    nanos = _rounded_up(digits * _NANO << exponent, 10 ** len(fraction))
    capped = max(-_MAX_BINARY, min(_MAX_BINARY, nanos))
    kept = not fraction and whole & 7 != 0 and capped == nanos and len(str(whole)) + exponent * 3 // 10 < 15
    below_one = 0 < abs(capped) < _NANO
    return Quantity(capped, DECIMAL_SI if below_one else BINARY_SI, text if kept else None)


def _exponent(suffix: str) -> int:
    if suffix[0] not in "eE" or not re.fullmatch(r"[-+]?[0-9]+", suffix[1:], re.ASCII):
        raise QuantityError(_WRONG_SUFFIX)
    exponent = int(suffix[1:])
    if abs(exponent) > _MAX_EXPONENT:
        raise QuantityError(_WRONG_NUMBER)
    return exponent


def _scaled(digits: int, power: int) -> int:
    return digits * 10**power if power >= 0 else _rounded_up(digits, 10**-power)


def _rounded_up(amount: int, unit: int) -> int:
    return -(-amount // unit) if amount >= 0 else amount // unit


def _binary(units: int) -> str:
    power = 0
    while units % 1024 == 0 and power < 6:
        units //= 1024
        power += 1
    return f"{units}{_BINARY_SUFFIX[power]}"


def _decimal(nanos: int, *, exponent_form: bool) -> str:
    exponent = -9
    while nanos % 1000 == 0 and (exponent_form or exponent < 18):
        nanos //= 1000
        exponent += 3
    if exponent_form:
        return f"{nanos}e{exponent}" if exponent else str(nanos)
    return f"{nanos}{_DECIMAL_SUFFIX[exponent]}"
