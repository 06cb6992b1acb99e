"""What may differ from a stock member is written down once in the comparison and once for readers: the two must agree."""

import re
from pathlib import Path

from tests.real.simulation.differences import DIFFERENCES

_DOCUMENT = Path(__file__).parents[3] / "docs" / "simulation.md"


def test_the_documentation_lists_the_differences_the_comparison_allows() -> None:
    table = _DOCUMENT.read_text().partition("| difference | what |\n|---|---|\n")[2].partition("\n\n")[0]
    listed = re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)
    assert listed == list(DIFFERENCES)
