"""What commands print: tables for people, and the objects themselves as JSON, YAML or names for programs."""

import datetime
import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any

from argosy.kube import timestamps

__all__ = ["Output", "Warnings", "age", "print_objects", "say", "table"]

#: Styles of words that say how something is doing, on a terminal.
_STYLES = {"True": "green", "OK": "green", "Ready": "green", "False": "red", "Unknown": "yellow", "Paused": "yellow"}


class Output(StrEnum):
    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


def say(text: str = "", style: str = "") -> None:
    """One line of result, coloured on a terminal; the text is taken as it is."""
    if not style or not sys.stdout.isatty():
        print(text)
        return
    from rich.console import Console
    from rich.text import Text

    Console().print(Text(text, style), soft_wrap=True)


class Warnings:
    """Prints what an API server warns of, as kubectl does: each text once, beside the result."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def __call__(self, text: str) -> None:
        if text in self._told:
            return
        self._told.add(text)
        line = f"Warning: {_clean(text)}"
        if not sys.stderr.isatty():
            print(line, file=sys.stderr)
            return
        from rich.console import Console
        from rich.text import Text

        Console(stderr=True).print(Text(line, "yellow"), soft_wrap=True)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], indent: str = "") -> None:
    """Aligned columns, never wrapped: programs read lines."""
    lines = [[_clean(cell) for cell in row] for row in (columns, *rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    if not sys.stdout.isatty():
        for line in lines:
            print((indent + "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))).rstrip())
        return
    from rich.console import Console
    from rich.text import Text

    console = Console()
    for number, line in enumerate(lines):
        text = Text(indent)
        for cell, width in zip(line, widths, strict=True):
            text.append(cell.ljust(width), "bold" if number == 0 else _STYLES.get(cell, ""))
            text.append("   ")
        console.print(text, soft_wrap=True)


def print_objects(objects: Sequence[dict[str, Any]], output: Output, *, single: bool = False) -> None:
    """As JSON, YAML or names; several as a List, one asked for by name as itself."""
    if output is Output.NAME:
        for obj in objects:
            print(reference(obj))
        return
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    if single and len(objects) == 1:
        body = objects[0]
    if output is Output.JSON:
        import json

        print(json.dumps(body, indent=2, ensure_ascii=False))
        return
    from argosy.kube.yamlwriter import to_yaml

    print(to_yaml(body).decode(), end="")


def reference(obj: dict[str, Any]) -> str:
    """`deployment.apps/web`, as kubectl names things."""
    group = obj.get("apiVersion", "").rpartition("/")[0]
    kind = obj.get("kind", "").lower()
    return f"{kind}.{group}/{obj['metadata']['name']}" if group else f"{kind}/{obj['metadata']['name']}"


def age(timestamp: str | None) -> str:
    """How long ago, in the largest unit that says something; "-" where it is not known."""
    then = timestamps.parse(timestamp)
    if then is None:
        return "-"
    seconds = int((datetime.datetime.now(datetime.UTC) - then).total_seconds())
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length}{unit}"
    return f"{max(seconds, 0)}s"


def _clean(cell: str) -> str:
    """Objects come from others: nothing in them may move the cursor or end a line."""
    return "".join(character if character.isprintable() else " " for character in cell)
