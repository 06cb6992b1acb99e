"""Each row of docs/dispatch.md names the scenario that shows it, and each scenario that takes copies away is in a row."""

import re
from pathlib import Path

from tests.scenarios import drift, drifting, everything, removals, retention

TEXT = (Path(__file__).parents[3] / "docs" / "dispatch.md").read_text()
NAMED = set(re.findall(r"`(test_\w+)`", TEXT))


def test_every_scenario_that_is_named_exists():
    assert not {name for name in NAMED if not hasattr(everything, name)}


def test_every_row_of_the_matrix_is_shown_by_one():
    rows = TEXT.split("## What is taken away")[1].split("\n\n")[2].splitlines()[2:]
    assert len(rows) > 15
    assert not [row for row in rows if "`test" not in row]


def test_what_copies_go_through_is_in_the_page():
    assert not {name for module in (drift, drifting, removals, retention) for name in module.__all__} - NAMED
