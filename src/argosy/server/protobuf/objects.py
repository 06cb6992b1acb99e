"""Kubernetes objects from protobuf messages, in the form of their JSON.

The numbers of the fields come from `messages.json.z`, made by `scripts/distill_protobuf.py`: message name -> fields, each
[number, JSON name, type, shape]. A type is s(tring), b(ytes), ?(bool), i(nteger), d(ouble), f(loat) or a message's name; a
shape is "" (JSON leaves its zero value out), "p" (JSON shows it: pointers, required fields, structs), "*" (list), "m" (map) or
"." (inlined).
"""

import base64
import math
import struct
import zlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib import resources
from typing import Any

import orjson

from argosy.kube import duration
from argosy.kube.timestamps import micro_timestamp, timestamp
from argosy.server.protobuf.wire import Bounds, Fixed, ProtobufError, Value, fields, varint

__all__ = ["ProtobufError", "decode"]

MAGIC = b"k8s\x00"
_META = "k8s.io.apimachinery.pkg.apis.meta.v1."
_CRD = "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1."
_EMPTY = memoryview(b"")
#: Where messages of groups lie that are not part of k8s.io/api.
_PACKAGES = {
    "apiextensions.k8s.io": "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions",
    "apiregistration.k8s.io": "k8s.io.kube_aggregator.pkg.apis.apiregistration",
}

#: Field number -> JSON name, type, shape.
Message = dict[int, tuple[str, str, str]]


def decode(body: bytes) -> dict[str, Any]:
    """The object in a body, apiVersion and kind included. Raises ProtobufError."""
    if not body:
        raise ProtobufError("empty data")
    if not body.startswith(MAGIC):
        raise ProtobufError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    bounds = Bounds()
    api_version = kind = ""
    raw = _EMPTY
    for number, value in fields(memoryview(body)[len(MAGIC) :], bounds):
        if number == 1:
            head = dict(fields(_view(value), bounds))
            api_version, kind = _text(head.get(1, _EMPTY)), _text(head.get(2, _EMPTY))
        elif number == 2:
            raw = _view(value)
    name = _message_name(api_version, kind)
    if name not in _messages():
        raise ProtobufError(f'no protobuf form of kind "{kind}" in version "{api_version}" is known; send it as JSON')
    return {"apiVersion": api_version, "kind": kind, **_object(name, raw, bounds)}


def _message_name(api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    if kind in ("DeleteOptions", "Status"):
        return _META + kind
    package = _PACKAGES.get(group) or f"k8s.io.api.{group.partition('.')[0] or 'core'}"
    return f"{package}.{version}.{kind}"


@lru_cache(maxsize=1)
def _messages() -> dict[str, Message]:
    data = resources.files("argosy.server.protobuf").joinpath("messages.json.z").read_bytes()
    table: dict[str, list[tuple[int, str, str, str]]] = orjson.loads(zlib.decompress(data))
    return {name: {field[0]: (field[1], field[2], field[3]) for field in listed} for name, listed in table.items()}


def _object(name: str, data: memoryview, bounds: Bounds) -> dict[str, Any]:
    bounds.enter()
    known = _messages()[name]
    out: dict[str, Any] = {}
    for number, raw in fields(data, bounds):
        field = known.get(number)
        if field is None:
            continue
        json_name, type, shape = field
        if shape == "m":
            key, value = _pair(type, _view(raw), bounds)
            out.setdefault(json_name, {})[key] = value
        elif shape == "*":
            out.setdefault(json_name, []).extend(_items(type, raw, bounds))
        elif shape == ".":
            out |= _object(type, _view(raw), bounds)
        else:
            value = _value(type, raw, bounds)
            # Go writes zero values of all plain fields here, but in JSON only those without omitempty.
            if value is not None and (shape == "p" or (value != "" and value != 0 and value != {})):
                out[json_name] = value
    bounds.leave()
    return out


def _pair(type: str, data: memoryview, bounds: Bounds) -> tuple[str, Any]:
    entry = dict(fields(data, bounds))
    return _text(entry.get(1, _EMPTY)), _value(type, entry.get(2, 0 if type in ("i", "?") else _EMPTY), bounds)


def _items(type: str, raw: Value, bounds: Bounds) -> list[Any]:
    if type not in ("i", "?") or not isinstance(raw, memoryview):
        return [_value(type, raw, bounds)]
    # Packed numbers.
    at, numbers = 0, []
    while at < len(raw):
        bounds.count()
        number, at = varint(raw, at)
        numbers.append(_value(type, number, bounds))
    return numbers


def _value(type: str, raw: Value, bounds: Bounds) -> Any:
    special = _SPECIAL.get(type)
    if special is not None:
        return special(_view(raw), bounds)
    if type == "s":
        return _text(raw)
    if type in ("i", "?"):
        if not isinstance(raw, int):
            raise ProtobufError("a number was expected")
        return bool(raw) if type == "?" else raw - (1 << 64) if raw >> 63 else raw
    if type in ("d", "f"):
        return _float(type, raw)
    data = _view(raw)
    if type == "b":
        return base64.b64encode(data).decode()
    return _object(type, data, bounds)


def _float(type: str, raw: Value) -> float:
    if not isinstance(raw, Fixed) or len(raw) != (8 if type == "d" else 4):
        raise ProtobufError("a floating-point number was expected")
    value: float = struct.unpack("<d" if type == "d" else "<f", raw)[0]
    if not math.isfinite(value):
        raise ProtobufError("a floating-point number is not finite")
    return value


def _view(raw: Value) -> memoryview:
    if not isinstance(raw, memoryview):
        raise ProtobufError("a message or a text was expected where a number was found")
    return raw


def _text(raw: Value) -> str:
    try:
        return str(_view(raw), "utf-8")
    except UnicodeDecodeError:
        raise ProtobufError("a text is not valid UTF-8") from None


def _signed(raw: Value) -> int:
    if not isinstance(raw, int):
        raise ProtobufError("a number was expected")
    return raw - (1 << 64) if raw >> 63 else raw


# Types whose JSON is not an object of their fields.


def _time(data: memoryview, bounds: Bounds) -> str | None:
    return _moment(data, timestamp, bounds)


def _micro_time(data: memoryview, bounds: Bounds) -> str | None:
    return _moment(data, micro_timestamp, bounds)


def _moment(data: memoryview, write: Callable[[datetime], str], bounds: Bounds) -> str | None:
    if not data:
        return None
    parts = dict(fields(data, bounds))
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(
            seconds=_signed(parts.get(1, 0)), microseconds=_signed(parts.get(2, 0)) // 1000
        )
    except OverflowError:
        raise ProtobufError("a time is out of range") from None
    return write(moment)


def _duration(data: memoryview, bounds: Bounds) -> str:
    return duration.format(_signed(dict(fields(data, bounds)).get(1, 0)))


def _quantity(data: memoryview, bounds: Bounds) -> str:
    return _text(dict(fields(data, bounds)).get(1, _EMPTY)) or "0"


def _int_or_string(data: memoryview, bounds: Bounds) -> int | str:
    parts = dict(fields(data, bounds))
    return _text(parts.get(3, _EMPTY)) if parts.get(1) == 1 else _signed(parts.get(2, 0))


def _raw_json(data: memoryview, bounds: Bounds) -> Any:
    text = _view(dict(fields(data, bounds)).get(1, _EMPTY))
    try:
        return orjson.loads(text) if text else None
    except orjson.JSONDecodeError as error:
        raise ProtobufError(f"an embedded object is not JSON: {error}") from None


def _strings(data: memoryview, bounds: Bounds) -> list[str]:
    return [_text(value) for number, value in fields(data, bounds) if number == 1]


def _schema_or_list(data: memoryview, bounds: Bounds) -> Any:
    parts = _object(_CRD + "JSONSchemaPropsOrArray", data, bounds)
    return parts.get("schema") or parts.get("jSONSchemas") or {}


def _schema_or_bool(data: memoryview, bounds: Bounds) -> Any:
    parts = _object(_CRD + "JSONSchemaPropsOrBool", data, bounds)
    return parts["schema"] if "schema" in parts else bool(parts.get("allows"))


def _schema_or_strings(data: memoryview, bounds: Bounds) -> Any:
    parts = _object(_CRD + "JSONSchemaPropsOrStringArray", data, bounds)
    return parts["schema"] if "schema" in parts else parts.get("property", [])


_SPECIAL: dict[str, Callable[[memoryview, Bounds], Any]] = {
    f"{_META}Time": _time,
    f"{_META}MicroTime": _micro_time,
    f"{_META}Duration": _duration,
    f"{_META}FieldsV1": _raw_json,
    f"{_META}Verbs": _strings,
    "k8s.io.apimachinery.pkg.api.resource.Quantity": _quantity,
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": _int_or_string,
    "k8s.io.apimachinery.pkg.runtime.RawExtension": _raw_json,
    "k8s.io.api.authentication.v1.ExtraValue": _strings,
    "k8s.io.api.authorization.v1.ExtraValue": _strings,
    "k8s.io.api.certificates.v1.ExtraValue": _strings,
    f"{_CRD}JSON": _raw_json,
    f"{_CRD}JSONSchemaPropsOrArray": _schema_or_list,
    f"{_CRD}JSONSchemaPropsOrBool": _schema_or_bool,
    f"{_CRD}JSONSchemaPropsOrStringArray": _schema_or_strings,
}
