"""Type checking: does an object have the fields and JSON types its schema says, as kube-apiserver's decoder would find?

`check` does in place what decoding into Go structs and encoding again does to an object: unknown fields go, nulls go,
quantities and times get their canonical form. Every write passes here, so nothing is built for valid values. Values are not
validated beyond what a decoder can see; semantic validation is elsewhere.
"""

import binascii
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from argosy.kube.fieldpath import Path, written
from argosy.kube.quantity import QuantityError, parse
from argosy.kube.timestamps import micro_timestamp, timestamp

if TYPE_CHECKING:
    from argosy.kube.schema import Type

__all__ = ["Checked", "check", "strict_error"]

_RANGES: Final = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
_SECONDS: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII).fullmatch
_MICROSECONDS: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII).fullmatch
_RFC3339: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII).fullmatch
_RFC3339_MICRO: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)", re.ASCII).fullmatch
_LAYOUTS: Final = {"time": "2006-01-02T15:04:05Z07:00", "micro-time": "2006-01-02T15:04:05.000000Z07:00"}
_TIME_ELEMENTS: Final = (
    (r"\d{4}", "2006"),
    ("-", "-"),
    (r"\d\d", "01"),
    ("-", "-"),
    (r"\d\d", "02"),
    ("T", "T"),
    (r"\d\d", "15"),
    (":", ":"),
    (r"\d\d", "04"),
    (":", ":"),
    (r"\d\d(\.\d+)?", "05"),
    (r"Z|[+-]\d\d:\d\d", "Z07:00"),
)
#: Unknown fields that are reported; Kubernetes stops at as many.
MAX_UNKNOWN: Final = 100
#: What a null inside a list or map becomes: Go's zero value.
_ZERO: Final[dict[str, Callable[[], Any]]] = {
    "string": str,
    "integer": int,
    "number": int,
    "boolean": bool,
    "object": dict,
    "quantity": lambda: "0",
    "int-or-string": int,
    "bytes": str,
}


class Checked(msgspec.Struct, frozen=True):
    """What was found: paths of unknown fields (removed), and messages for values of the wrong type (left as they are).

    The first message is the one Go's decoder would give: it stops at a value whose type decodes itself (a quantity, a time),
    and otherwise goes on to the end and then reports the first error.
    """

    unknown: tuple[str, ...] = ()
    mistyped: tuple[str, ...] = ()


_FINE: Final = Checked()


def check(type: "Type", obj: dict[str, Any]) -> Checked:
    """Check a whole object against its kind's type, changing it as described above."""
    findings = _Findings()
    _object(type, obj, None, findings)
    if not findings.unknown and not findings.mistyped and not findings.stopped:
        return _FINE
    return Checked(tuple(findings.unknown), (*findings.stopped, *findings.mistyped))


def strict_error(unknown: Iterable[str]) -> str:
    """The message for unknown fields when a client asked for strict validation."""
    return "strict decoding error: " + ", ".join(f'unknown field "{path}"' for path in unknown)


class _Findings:
    """Unknown fields up to a number, and the first of each kind of wrong value: the others are not reported."""

    __slots__ = ("mistyped", "stopped", "unknown")

    def __init__(self) -> None:
        self.unknown: list[str] = []
        self.mistyped: tuple[str, ...] = ()
        self.stopped: tuple[str, ...] = ()

    def unknown_field(self, path: Path, key: str) -> None:
        if len(self.unknown) < MAX_UNKNOWN:
            self.unknown.append(written((path, f".{key}")))

    def mismatch(self, value: Any, path: Path, owner: str, wanted: str) -> None:
        if not self.mistyped:
            self.mistyped = (_mismatch(value, path, owner, wanted),)

    def unreadable(self, text: str) -> None:
        if not self.mistyped:
            self.mistyped = (text,)

    def stop(self, value: Any, path: Path, owner: str, wanted: str) -> None:
        if not self.stopped:
            self.stopped = (_mismatch(value, path, owner, wanted),)

    def stop_at(self, text: str) -> None:
        if not self.stopped:
            self.stopped = (text,)


def _mismatch(value: Any, path: Path, owner: str, wanted: str) -> str:
    field = re.sub(r"\[[^]]*\]", "", written(path))
    return f"json: cannot unmarshal {_shown(value, wanted)} into Go struct field {owner}.{field} of type {wanted}"


def _object(type: "Type", obj: dict[str, Any], path: Path, findings: _Findings) -> None:
    fields = type.fields
    dropped: list[str] | None = None
    for key, value in obj.items():
        field = fields.get(key)
        if field is None:
            findings.unknown_field(path, key)
        elif value.__class__ is field.plain:
            continue
        elif value is not None:
            if field.kind == "object" and value.__class__ is dict:
                _object(field, value, (path, f".{key}"), findings)
                continue
            result = _CHECKS[field.kind](field, value, (path, f".{key}"), findings, type)
            if result is not value:
                obj[key] = result
            continue
        if dropped is None:
            dropped = []
        dropped.append(key)
    if dropped:
        for key in dropped:
            del obj[key]


def _struct(type: "Type", value: Any, path: Path, findings: _Findings, owner: "Type") -> Any:
    if value.__class__ is dict:
        _object(type, value, path, findings)
    else:
        findings.mismatch(value, path, owner.name, _go_type(type))
    return value


def _array(type: "Type", value: Any, path: Path, findings: _Findings, owner: "Type") -> Any:
    if value.__class__ is list:
        _items(type, value, enumerate(value), path, findings, owner)
    else:
        findings.mismatch(value, path, owner.name, _go_type(type))
    return value


def _map(type: "Type", value: Any, path: Path, findings: _Findings, owner: "Type") -> Any:
    if value.__class__ is dict:
        _items(type, value, value.items(), path, findings, owner)
    else:
        findings.mismatch(value, path, owner.name, _go_type(type))
    return value


def _items(
    type: "Type", holder: Any, items: Iterable[tuple[Any, Any]], path: Path, findings: _Findings, owner: "Type"
) -> None:
    """The items of an array or a map, by index or key; changed in place."""
    item = type.item
    if item is None:
        return
    plain, item_check = item.plain, _CHECKS[item.kind]
    for at, inner in items:
        if inner.__class__ is plain:
            continue
        if inner is None:
            holder[at] = _zero(item)
            continue
        result = item_check(item, inner, (path, f"[{at}]"), findings, owner)
        if result is not inner:
            holder[at] = result


def _scalar(type: "Type", value: Any, path: Path, findings: _Findings, owner: "Type") -> Any:
    """Strings and booleans: valid ones never come here."""
    findings.mismatch(value, path, owner.name, _go_type(type))
    return value


def _integer(type: "Type", value: Any, path: Path, findings: _Findings, owner: "Type") -> Any:
    low, high = _RANGES.get(type.format) or _RANGES["int64"]
    if value.__class__ is not int or not low <= value <= high:
        findings.mismatch(value, path, owner.name, _go_type(type))
    return value


def _number(type: "Type", value: Any, path: Path, findings: _Findings, owner: "Type") -> Any:
    if value.__class__ is not int and value.__class__ is not float:
        findings.mismatch(value, path, owner.name, _go_type(type))
    return value


def _int_or_string(type: "Type", value: Any, path: Path, findings: _Findings, owner: "Type") -> Any:
    if value.__class__ is not str and (value.__class__ is not int or not -(2**31) <= value < 2**31):
        findings.stop(value, path, owner.name, "int32")
    return value


def _quantity(type: "Type", value: Any, path: Path, findings: _Findings, owner: "Type") -> Any:
    try:
        text = parse(value).canonical()
    except QuantityError as error:
        findings.stop_at(str(error))
        return value
    return value if text == value else text


def _time(type: "Type", value: Any, path: Path, findings: _Findings, owner: "Type") -> Any:
    if value.__class__ is not str:
        findings.stop(value, path, owner.name, "string")
        return value
    whole = type.kind == "time"
    if not (_RFC3339 if whole else _RFC3339_MICRO)(value):
        findings.stop_at(_unreadable_time(value, _LAYOUTS[type.kind]))
        return value
    try:
        moment = datetime.fromisoformat(_fraction_cut(value)).astimezone(UTC)
    except (ValueError, OverflowError):
        findings.stop_at(f'parsing time "{value}": {_part_out_of_range(value)} out of range')
        return value
    if (_SECONDS if whole else _MICROSECONDS)(value):
        return value
    return timestamp(moment) if whole else micro_timestamp(moment)


def _unreadable_time(value: str, layout: str) -> str:
    """Go names the first element of the layout it could not parse, and the text there."""
    rest = value
    elements: Sequence[tuple[str, str]] = _TIME_ELEMENTS
    if layout == _LAYOUTS["micro-time"]:
        *before, _, zone = _TIME_ELEMENTS
        elements = (*before, (r"\d\d", "05"), (r"\.\d{6}(?!\d)", ".000000"), zone)
    for pattern, element in elements:
        found = re.match(pattern, rest, re.ASCII)
        if found is None:
            return f'parsing time "{value}" as "{layout}": cannot parse "{rest}" as "{element}"'
        rest = rest[found.end() :]
    return f'parsing time "{value}": extra text: "{rest}"'


def _part_out_of_range(value: str) -> str:
    month, day, hour, minute = int(value[5:7]), int(value[8:10]), int(value[11:13]), int(value[14:16])
    if not 1 <= month <= 12:
        return "month"
    if hour > 23:
        return "hour"
    if minute > 59:
        return "minute"
    if int(value[17:19]) > 59:
        return "second"
    return "day" if not 1 <= day <= 28 else "year"


def _fraction_cut(value: str) -> str:
    """Digits beyond microseconds are cut, as in Kubernetes' own types."""
    return re.sub(r"(\.\d{6})\d+", r"\1", value)


def _bytes(type: "Type", value: Any, path: Path, findings: _Findings, owner: "Type") -> Any:
    if value.__class__ is not str:
        findings.mismatch(value, path, owner.name, "[]uint8")
        return value
    joined = value.replace("\n", "").replace("\r", "") if "\n" in value or "\r" in value else value
    try:
        binascii.a2b_base64(joined, strict_mode=True)
    except ValueError:  # binascii.Error is one, and so is text that is not ASCII
        findings.unreadable(f"illegal base64 data at input byte {_first_illegal(joined)}")
        return value
    return joined


def _first_illegal(text: str) -> int:
    """Where Go's decoder stops: at an invalid character, at misplaced padding, or after it."""
    legal = re.match(r"[A-Za-z0-9+/]*", text)
    end = legal.end() if legal else 0
    if end == len(text):
        return end // 4 * 4
    if text[end] == "=" and end % 4 == 3:
        return end + 1
    if text.startswith("==", end) and end % 4 == 2:
        return end + 2
    return end


def _any(type: "Type", value: Any, path: Path, findings: _Findings, owner: "Type") -> Any:
    return value


_Check = Callable[["Type", Any, Path, _Findings, "Type"], Any]
_CHECKS: Final[dict[str, _Check]] = {
    "object": _struct,
    "array": _array,
    "map": _map,
    "string": _scalar,
    "boolean": _scalar,
    "integer": _integer,
    "number": _number,
    "int-or-string": _int_or_string,
    "quantity": _quantity,
    "time": _time,
    "micro-time": _time,
    "bytes": _bytes,
    "any": _any,
}


def _zero(type: "Type") -> Any:
    make = _ZERO.get(type.kind)
    return make() if make else None


def _shown(value: Any, wanted: str) -> str:
    """What Go says it found; if a number was expected, the number is spelt out."""
    if value.__class__ is bool:
        return "bool"
    if isinstance(value, int | float):
        return f"number {value}" if wanted.startswith(("int", "float")) else "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _go_type(type: "Type") -> str:
    match type.kind:
        case "string" | "time" | "micro-time":
            return "string"
        case "boolean":
            return "bool"
        case "integer":
            return type.format or "int64"
        case "number":
            return "float64"
        case "bytes":
            return "[]uint8"
        case "array":
            return f"[]{_go_type(type.item)}" if type.item else "[]interface {}"
        case "map":
            return f"map[string]{_go_type(type.item)}" if type.item else "map[string]interface {}"
        case _:
            return ".".join((type.definition or "interface {}").split(".")[-2:])
