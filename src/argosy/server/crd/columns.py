"""Printer columns of custom resources: a definition's additionalPrinterColumns as a Printer."""

from collections.abc import Sequence
from typing import Any

import orjson

from argosy.server.crd.jsonpath import JsonPath, JsonPathError, parse
from argosy.server.crd.validation import go_number
from argosy.server.printers.base import NAME, Column, Printer, seconds, since

__all__ = ["columns_printer"]

_DEFAULT = [{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]


def columns_printer(definitions: Sequence[dict[str, Any]]) -> Printer:
    """Name first, then the given columns (or the age if none are given); a column with an invalid path stays empty."""
    columns = [NAME]
    paths: list[tuple[JsonPath | None, str]] = []
    for column in definitions or _DEFAULT:
        path = column.get("jsonPath", "")
        described = column.get("description") or f"Custom resource definition column (in JSONPath format): {path}"
        shown = int(column.get("priority") or 0)
        columns.append(Column(column["name"], column["type"], column.get("format") or "", described, shown))
        paths.append((_parsed(path), column["type"]))

    def cells(obj: dict[str, Any], now: float) -> list[Any]:
        return [obj["metadata"].get("name", ""), *(_cell(path, kind, obj, now) for path, kind in paths)]

    return Printer(columns, cells)


def _parsed(path: str) -> JsonPath | None:
    try:
        return parse(path)
    except JsonPathError:
        return None


def _cell(path: JsonPath | None, kind: str, obj: dict[str, Any], now: float) -> Any:
    found = path.find(obj) if path is not None else []
    if not found or (found[0] is None and kind != "string"):
        return None
    value = found[0]
    number = type(value) is int or type(value) is float
    match kind:
        case "string":
            return _text(value)
        case "integer":
            return int(value) if number else None
        case "number":
            return value if number else None
        case "boolean":
            return value if type(value) is bool else None
        case "date" if isinstance(value, str):
            return since(value, now) if seconds(value) is not None else "<invalid>"
    return None


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, float):
        return go_number(value)
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
