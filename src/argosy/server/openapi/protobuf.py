"""The OpenAPI 2 document in protobuf, the only form that kubectl reads.

kubectl needs it where version 3 does not suffice: to validate a `kind: List`, and objects of a custom resource that is created
by the same command. Field numbers are those of the public OpenAPIv2.proto.
"""

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

__all__ = ["CONTENT_TYPE", "encode_document"]

CONTENT_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

Json = Mapping[str, Any]
Write = Callable[[Any], bytes]

_SCHEMA_TEXTS = {"$ref": 1, "format": 2, "title": 3, "description": 4, "pattern": 13}
_SCHEMA_DOUBLES = {"multipleOf": 6, "maximum": 7, "minimum": 9}
_SCHEMA_FLAGS = {"exclusiveMaximum": 8, "exclusiveMinimum": 10, "uniqueItems": 16}
_SCHEMA_COUNTS = {
    "maxLength": 11, "minLength": 12, "maxItems": 14, "minItems": 15, "maxProperties": 17, "minProperties": 18,
}  # fmt: skip
_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "options": 6, "head": 7, "patch": 8}


def encode_document(
    version: str, paths: Iterable[tuple[str, Json]], definitions: Iterable[tuple[str, Json]]
) -> bytearray:
    """The document of a Kubernetes version. Paths and definitions are taken one by one."""
    whole = bytearray(_text(1, "2.0") + _message(2, _text(1, "Kubernetes") + _text(2, version)))
    _add(whole, 8, [_message(2, _named(path, _path(item))) for path, item in paths])
    _add(whole, 9, [_message(1, _named(name, _schema(node))) for name, node in definitions])
    return whole


def _add(whole: bytearray, field: int, parts: list[bytes]) -> None:
    """A message of many parts, which is never copied as a whole: that takes long if it is large."""
    whole += _varint(field << 3 | 2) + _varint(sum(map(len, parts)))
    for part in parts:
        whole += part


def _varint(number: int) -> bytes:
    if number < 0x80:
        return bytes((number,)) if number >= 0 else _varint(number + (1 << 64))
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _text(field: int, value: str) -> bytes:
    return _message(field, value.encode()) if value else b""


def _texts(field: int, values: Iterable[str]) -> bytes:
    return b"".join(_message(field, value.encode()) for value in values)


def _count(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _flag(field: int, value: Any) -> bytes:
    return _count(field, 1) if value else b""


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def _named(name: str, content: bytes) -> bytes:
    return _text(1, name) + _message(2, content)


def _any(value: Any) -> bytes:
    """Any value is carried as YAML, of which JSON is a part."""
    return _text(2, orjson.dumps(value).decode())


def _extensions(field: int, node: Json) -> bytes:
    return b"".join(_message(field, _named(key, _any(value))) for key, value in node.items() if key[:2] == "x-")


def _schema(node: Json) -> bytes:
    parts: list[bytes] = []
    for key, value in node.items():
        if key in _SCHEMA_TEXTS:
            parts.append(_text(_SCHEMA_TEXTS[key], value))
        elif key in _SCHEMA_COUNTS:
            parts.append(_count(_SCHEMA_COUNTS[key], value))
        elif key in _SCHEMA_DOUBLES:
            parts.append(_double(_SCHEMA_DOUBLES[key], value))
        elif key in _SCHEMA_FLAGS:
            parts.append(_flag(_SCHEMA_FLAGS[key], value))
        elif key in _SCHEMA_OTHERS:
            parts.append(_SCHEMA_OTHERS[key](value))
    parts.append(_extensions(31, node))
    return b"".join(parts)


def _additional(value: Any) -> bytes:
    return _message(21, _message(1, _schema(value)) if isinstance(value, Mapping) else _flag(2, value))


def _properties(value: Json) -> bytes:
    return _message(25, b"".join(_message(1, _named(name, _schema(node))) for name, node in value.items()))


_SCHEMA_OTHERS: dict[str, Write] = {
    "default": lambda value: _message(5, _any(value)),
    "required": lambda value: _texts(19, value),
    "enum": lambda value: b"".join(_message(20, _any(item)) for item in value),
    "additionalProperties": _additional,
    "type": lambda value: _message(22, _texts(1, [value])),
    "items": lambda value: _message(23, _message(1, _schema(value))),
    "properties": _properties,
}


def _path(item: Json) -> bytes:
    operations = b"".join(_message(field, _operation(item[name])) for name, field in _METHODS.items() if name in item)
    return operations + b"".join(_message(9, _parameter(parameter)) for parameter in item.get("parameters") or ())


def _operation(operation: Json) -> bytes:
    responses = b"".join(
        _message(1, _named(code, _message(1, _response(response)))) for code, response in operation["responses"].items()
    )
    return b"".join(
        (
            _text(3, operation["description"]),
            _text(5, operation["operationId"]),
            _texts(6, operation["produces"]),
            _texts(7, operation["consumes"]),
            b"".join(_message(8, _parameter(parameter)) for parameter in operation["parameters"]),
            _message(9, responses),
            _texts(10, operation["schemes"]),
            _extensions(13, operation),
        )
    )


def _response(response: Json) -> bytes:
    schema = response.get("schema")
    body = _message(2, _message(1, _schema(schema))) if schema else b""
    return _text(1, response["description"]) + body


def _parameter(parameter: Json) -> bytes:
    return _message(1, _body_parameter(parameter) if parameter["in"] == "body" else _plain_parameter(parameter))


def _body_parameter(parameter: Json) -> bytes:
    texts = _text(2, parameter["name"]) + _text(3, "body") + _flag(4, parameter.get("required"))
    return _message(1, texts + _message(5, _schema(parameter["schema"])))


def _plain_parameter(parameter: Json) -> bytes:
    """Query and path parameters differ in where they keep the type: one of them has a field more in front of it."""
    in_path = parameter["in"] == "path"
    kind, unique = (5, 19) if in_path else (6, 20)
    content = b"".join(
        (
            _flag(1, parameter.get("required")),
            _text(2, parameter["in"]),
            _text(3, parameter.get("description", "")),
            _text(4, parameter["name"]),
            _text(kind, parameter["type"]),
            _flag(unique, parameter.get("uniqueItems")),
        )
    )
    return _message(2, _message(4 if in_path else 3, content))
