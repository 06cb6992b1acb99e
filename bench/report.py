"""What every benchmark prints and keeps: rows with a value, a unit, the bar to reach and whether this run reached it."""

import argparse
import json
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table


class Report:
    def __init__(self, benchmark: str, parameters: dict[str, Any]):
        self.benchmark = benchmark
        self.parameters = parameters
        self.versions = {"argosy": version("argosy"), "python": platform.python_version()}
        self.rows: list[dict[str, Any]] = []

    def add(self, name: str, value: float | None, unit: str, better: str = "higher", bar: float | None = None) -> None:
        """One figure. `bar` is the number to reach; None where there is none. A value of None was not measured."""
        met = None
        if bar is not None and value is not None:
            met = value >= bar if better == "higher" else value <= bar
        # Long runs show how far they are; the table comes at the end.
        print(f"{name}: {_number(value)} {unit}", file=sys.stderr, flush=True)
        self.rows.append({"name": name, "value": value, "unit": unit, "better": better, "bar": bar, "met": met})

    def print(self) -> None:
        table = Table(title=f"{self.benchmark}  {_inline(self.parameters)}", title_justify="left")
        for column, justify in (("what", "left"), ("value", "right"), ("unit", "left"), ("bar", "right"), ("", "left")):
            table.add_column(column, justify=justify)
        for row in self.rows:
            sign = "≥" if row["better"] == "higher" else "≤"
            bar = "" if row["bar"] is None else f"{sign} {_number(row['bar'])}"
            verdict = {True: "reached", False: "NOT reached", None: ""}[row["met"]]
            table.add_row(row["name"], _number(row["value"]), row["unit"], bar, verdict)
        Console(width=120).print(table)
        Console(width=120).print(_inline(self.versions), style="dim")

    def write(self, path: Path) -> None:
        content = {
            "benchmark": self.benchmark,
            "parameters": self.parameters,
            "versions": self.versions,
            "rows": self.rows,
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=2) + "\n")

    def finish(self, arguments: argparse.Namespace) -> None:
        self.print()
        if arguments.json:
            self.write(Path(arguments.json))


def parser(description: str) -> argparse.ArgumentParser:
    """The options all benchmarks have."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--quick", action="store_true", help="smaller, ends within a minute")
    options.add_argument("--json", metavar="FILE", help="also write the rows there")
    return options


def percentile(values: list[float], share: float) -> float:
    """The value that `share` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    if isinstance(value, int) or value == int(value) or value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 10 else f"{value:.1f}"


def _inline(values: dict[str, Any]) -> str:
    return "  ".join(f"{key}={value}" for key, value in values.items())
