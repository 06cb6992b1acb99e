"""YAML scalars as Kubernetes reads them: what `12:30`, `yes`, `010` or `!!int 5` is as a JSON value.

Kubernetes (sigs.k8s.io/yaml) takes YAML 1.1's words for booleans and its octal numbers, and leaves out what YAML 1.2 left
out: sexagesimal numbers and dates are strings. A number too large for JSON is a string, too. Every scalar is read in time
linear in its length. `yamlreader` makes documents of scalars.
"""

import base64
import binascii
import math
import re
import struct
from decimal import Decimal
from typing import Final

__all__ = ["Scalar", "ScalarError", "as_json", "as_key", "resolve"]

Scalar = str | int | float | bool | None

_TAGS: Final = "tag:yaml.org,2002:"
_TYPED: Final = {"", "str", "bool", "int", "float", "null", "timestamp"}
_INT64: Final = 2**63
_UINT64: Final = 2**64

_WORDS: Final[dict[str, Scalar]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
#: Anything that starts otherwise is a string; most scalars are decided by this alone.
_STARTS: Final = frozenset("+-.0123456789")
_DECIMAL: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
#: Prefix and digits; without one of the letters a leading zero means octal.
_BASES: Final = re.compile(r"([-+]?)0(?:[xX]([0-9a-fA-F]+)|[oO]?([0-7]+)|[bB]([01]+))")
_SIGNED_BINARY: Final = re.compile(r"0b([-+][01]+)")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
#: Here underscores may stand between digits only.
_POINT: Final = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?")
_TIMESTAMP: Final = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}([Tt ]\d{1,2}:\d{1,2}:\d{1,2}([.,]\d+)?(Z|[-+]\d\d:\d\d)?)?", re.ASCII
)


class ScalarError(ValueError):
    """The text is not what its tag says, or cannot be in JSON."""


def resolve(text: str, tag: str | None) -> Scalar:
    """The value of a plain scalar, or of one with a tag. Infinities and NaN are returned as floats; JSON has none."""
    if not tag:
        return _untagged(text)
    name = tag.removeprefix(_TAGS) if tag.startswith(_TAGS) else "?"
    if name == "binary":
        return _binary(text)
    if name not in _TYPED or name == "str":
        return text
    if name == "timestamp":
        if _TIMESTAMP.fullmatch(text):
            return text
        raise _not_a(name, text, _untagged(text))
    value = _untagged(text)
    found = _type(value)
    if name == "float" and found == "int" and isinstance(value, int) and value < _INT64:
        return float(value)
    if found != name:
        raise _not_a(name, text, value)
    return value


def as_key(value: Scalar) -> str:
    """A scalar as the name of a field."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _short(value)
    if value is None or value >= _INT64:
        raise ScalarError(f"unsupported map key: {'null' if value is None else value}")
    return str(value)


def as_json(value: Scalar) -> Scalar:
    """A scalar after a round trip through JSON: a float without fraction is an integer, and integers have 64 bits."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ScalarError(f"json: unsupported value: {_go_infinity(value)}")
        if value.is_integer() and abs(value) <= _INT64:
            written = int(Decimal(repr(value)))  # the shortest digits, not the exact binary value
            return written if -_INT64 <= written < _INT64 else value
        return value
    if isinstance(value, int) and value >= _INT64:
        return float(value)
    return value


def _untagged(text: str) -> Scalar:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _STARTS:
        return text
    if text[0] == ".":
        return _number(text, text) if _POINT.fullmatch(text) else text
    plain = text.replace("_", "")
    if _DECIMAL.fullmatch(plain):
        if len(plain) <= 21:
            value = int(plain)
            # Without a sign there is one more bit.
            if -_INT64 <= value < (_INT64 if plain[0] == "+" else _UINT64):
                return value
        return _number(plain, text)
    if found := _BASES.fullmatch(plain):
        value = _based(found)
        if -_INT64 <= value < (_INT64 if found[1] else _UINT64):
            return value
    if _FLOAT.fullmatch(plain):
        return _number(plain, text)
    if found := _SIGNED_BINARY.fullmatch(plain):
        value = int(found[1], 2)
        if -_INT64 <= value < _INT64:
            return value
    return text


def _number(plain: str, text: str) -> float | str:
    value = float(plain)
    return text if math.isinf(value) else value


def _based(found: re.Match[str]) -> int:
    sign, hexadecimal, octal, binary = found.groups()
    if hexadecimal:
        value = int(hexadecimal, 16)
    else:
        value = int(octal, 8) if octal else int(binary, 2)
    return -value if sign == "-" else value


def _binary(text: str) -> str:
    try:
        return base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True).decode(errors="replace")
    except (binascii.Error, ValueError):
        raise ScalarError("!!binary value contains invalid base64 data") from None


def _type(value: Scalar) -> str:
    if value is None:
        return "null"
    return {bool: "bool", int: "int", float: "float"}.get(value.__class__, "str")


def _not_a(name: str, text: str, value: Scalar) -> ScalarError:
    return ScalarError(f"cannot decode !!{_type(value)} `{text[:100]}` as a !!{name}")


def _go_infinity(value: float) -> str:
    return "NaN" if math.isnan(value) else f"{value:+}".replace("inf", "Inf")


def _short(value: float) -> str:
    """The fewest digits that tell a 32-bit float from the next, as Kubernetes writes a float that is a key."""
    try:
        (single,) = struct.unpack("f", struct.pack("f", value))
    except OverflowError:
        single = math.copysign(math.inf, value)
    if not math.isfinite(single):
        return ".nan" if math.isnan(single) else ".inf" if single > 0 else "-.inf"
    for digits in range(1, 10):
        text = f"{single:.{digits - 1}e}"
        if struct.pack("f", float(text)) == struct.pack("f", single):
            break
    mantissa, _, exponent = text.partition("e")
    power = int(exponent)
    if power < -4 or power >= 6:
        return f"{mantissa}e{power:+03d}"
    return f"{Decimal(text):f}"
