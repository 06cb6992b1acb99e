"""The walk through the house in docs/architecture.md: its files and names are there, and it stays short."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
WALK = re.compile(r"^(\d+)\. `([^`]+\.py)`: `([^`]+)`\.", re.MULTILINE)
MOST_FILES = 30


def steps() -> list[tuple[int, str, str]]:
    text = (ROOT / "docs" / "architecture.md").read_text()
    return [(int(number), path, name) for number, path, name in WALK.findall(text)]


def names_in(path: Path) -> set[str]:
    """Functions, classes, methods as `Class.method`, and constants."""
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = (each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
            found |= {f"{node.name}.{method.name}" for method in methods}
        if isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found


def test_every_file_and_name_of_the_walk_is_there() -> None:
    for _, path, name in steps():
        file = ROOT / "src" / "argosy" / path
        assert file.is_file(), path
        assert name in names_in(file), f"{path} has no {name}"


def test_the_walk_is_short_and_counted() -> None:
    numbers = [number for number, _, _ in steps()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert 20 < len(numbers) <= MOST_FILES
    assert len({path for _, path, _ in steps()}) == len(numbers), "no file is opened twice"
