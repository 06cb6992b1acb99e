"""Tests look into running controllers through `tests/harness/inside.py` alone."""

import ast
from pathlib import Path

TESTS = Path(__file__).parents[2]
SURFACE = TESTS / "harness" / "inside.py"
#: Managers of another kind: a kube-controller-manager, and the controllers of a simulated member.
OTHERS = ("real/simulation", "server/test_sim")
#: What a manager offers to whoever runs it.
OFFERED = {"loops", "metrics", "notes", "problems", "ready", "run", "stop", "subscriptions"}


def test_nobody_else_reaches_into_a_manager() -> None:
    reached = [
        f"{path.relative_to(TESTS)}:{node.lineno} {ast.unparse(node)}"
        for path in TESTS.rglob("*.py")
        if path != SURFACE
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr not in OFFERED
        and (
            (isinstance(node.value, ast.Name) and node.value.id == "manager")
            or (isinstance(node.value, ast.Attribute) and node.value.attr == "manager")
        )
        and "control.manager" not in ast.unparse(node)
    ]
    assert [each for each in reached if not each.startswith(OTHERS)] == []
