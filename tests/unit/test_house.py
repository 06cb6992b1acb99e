"""The layout of the source: folders one can take in at a glance, each with words on what is in it, files of one concept."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "argosy"
MOST_MODULES = 20
LONGEST_FILE = 500
#: Flat on purpose: each of their modules is one well-known concept of Kubernetes (a selector, a quantity, a kubelet, a ReplicaSet
#: controller), found by its own name; folders would only put another name in front.
FLAT = {"kube", "sim"}
PACKAGES = sorted(path.parent.relative_to(SOURCE) for path in SOURCE.rglob("__init__.py"))


@pytest.mark.parametrize("package", PACKAGES, ids=str)
def test_a_folder_can_be_taken_in_at_a_glance(package: Path) -> None:
    modules = [path for path in (SOURCE / package).glob("*.py") if path.name != "__init__.py"]
    assert len(modules) <= MOST_MODULES or str(package) in FLAT


@pytest.mark.parametrize("package", PACKAGES, ids=str)
def test_a_folder_says_what_is_in_it(package: Path) -> None:
    said = ast.get_docstring(ast.parse((SOURCE / package / "__init__.py").read_text()))
    assert said, f"{package}/__init__.py says nothing"


def test_files_are_short() -> None:
    lengths = {path.relative_to(SOURCE): len(path.read_text().splitlines()) for path in SOURCE.rglob("*.py")}
    assert {str(path): length for path, length in lengths.items() if length > LONGEST_FILE} == {}
