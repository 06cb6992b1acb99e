"""Runs every vector file of a folder that has an adapter, and tells what differs.

A file is `{"cases": [{"name", "input", "expected"}]}`; its name chooses the adapter, which turns an input into what the
product answers, in the shape of `expected`. Where the product differs on purpose, the case is named in
`expected_differences.toml` with the reason, and counted apart; a case named there that does not differ is a failure too.
"""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.vectors.adapters import Adapter, adapters

EXPECTED_DIFFERENCES = Path(__file__).with_name("expected_differences.toml")


class Usage(Exception):
    """There is nothing to run."""


class Totals(NamedTuple):
    passed: int
    failed: int
    without_adapter: int
    on_purpose: int


class _Outcome(NamedTuple):
    passed: int = 0
    on_purpose: int = 0
    complaints: tuple[str, ...] = ()


def run(folder: Path, tell: Callable[[str], None], differences: Path = EXPECTED_DIFFERENCES) -> Totals:
    """One line a file, then its differences; the totals last."""
    files = sorted(folder.glob("*.json")) if folder.is_dir() else []
    if not files:
        raise Usage(f"no vector files (*.json) in {folder}")
    known, purposes = adapters(), _purposes(differences)
    passed = failed = without = on_purpose = 0
    for file in files:
        adapter = known.get(file.stem)
        if adapter is None:
            without += 1
            tell(f"{file.stem} -/{len(_cases(file) or [])} without adapter")
            continue
        outcome, total = _run_file(file, adapter, purposes)
        passed, on_purpose = passed + outcome.passed, on_purpose + outcome.on_purpose
        failed += len(outcome.complaints)
        apart = f" ({outcome.on_purpose} differ on purpose)" if outcome.on_purpose else ""
        tell(f"{file.stem} {outcome.passed}/{total}{apart}")
        for complaint in outcome.complaints:
            tell(complaint)
    if on_purpose:
        tell(f"{on_purpose} differ on purpose ({differences.name})")
    tell(f"{passed} passed, {failed} failed, {without} without adapter")
    return Totals(passed, failed, without, on_purpose)


def _run_file(file: Path, adapter: Adapter, purposes: dict[tuple[str, str], str]) -> tuple[_Outcome, int]:
    cases = _cases(file)
    if cases is None:
        return _Outcome(complaints=(f"  {file.name}: not a vector file",)), 0
    passed = on_purpose = 0
    complaints = []
    for case in cases:
        difference = _difference(case, adapter)
        meant = (file.stem, case["name"]) in purposes
        if difference is None and not meant:
            passed += 1
        elif difference is not None and meant:
            on_purpose += 1
        else:
            complaints.append(
                f"  {case['name']}: {difference or 'named as a difference on purpose, but does not differ'}"
            )
    return _Outcome(passed, on_purpose, tuple(complaints)), len(cases)


def _difference(case: dict[str, Any], adapter: Adapter) -> str | None:
    try:
        actual = adapter.answer(case["input"])
    except Exception as error:  # whatever the product raises here is a difference to report, not the end of the run
        return f"{type(error).__name__}: {error}"
    if adapter.same(case["expected"], actual):
        return None
    return f"expected {json.dumps(case['expected'])}, got {json.dumps(actual, default=str)}"


def _cases(file: Path) -> list[dict[str, Any]] | None:
    try:
        cases = json.loads(file.read_bytes())["cases"]
    except (ValueError, KeyError, TypeError):
        return None
    well_formed = isinstance(cases, list) and all({"name", "input", "expected"} <= set(case) for case in cases)
    return cases if well_formed else None


def _purposes(file: Path) -> dict[tuple[str, str], str]:
    listed = tomllib.loads(file.read_text()).get("difference", []) if file.exists() else []
    return {(entry["file"], entry["case"]): entry["why"] for entry in listed}
