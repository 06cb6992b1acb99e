"""Every declaration of the wake table names a test that fails without it; `make wake-mutants` shows that it does."""

import ast
from pathlib import Path

import pytest

from tests.wakes.expected import EXPECTED
from tests.wakes.rows import rows

ROOT = Path(__file__).parents[3]


async def test_every_row_has_a_test_and_every_test_a_row() -> None:
    assert sorted(EXPECTED) == sorted(rows())


@pytest.mark.parametrize("test", sorted(set(EXPECTED.values())))
def test_the_tests_are_there(test: str) -> None:
    file, _, named = test.partition("::")
    assert named.partition("[")[0] in _functions(ROOT / file)


def _functions(file: Path) -> set[str]:
    """Those of the file, or of the folder where a file takes all of its folder in."""
    tree = ast.parse(file.read_text())
    found = {each.name for each in tree.body if isinstance(each, ast.AsyncFunctionDef | ast.FunctionDef)}
    if any(isinstance(each, ast.ImportFrom) and each.names[0].name == "*" for each in tree.body):
        for other in file.parent.glob("*.py"):
            found |= _functions(other) if other != file and other.name != "everything.py" else set()
    return found
