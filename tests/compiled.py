"""Compile the tests and what they import, before workers collect them: `python -m tests.compiled`.

Every worker of a run collects all tests, so in a fresh checkout each of them would compile everything. Two collections, each of
some folders, compile it once and use two cores.
"""

import subprocess
import sys
from pathlib import Path

from tests.scratch import environment

__all__ = ["main"]

TESTS = Path(__file__).parent
#: As many files as all other folders together.
LARGEST = TESTS / "unit"


def main() -> None:
    if (LARGEST / "__pycache__").is_dir():  # what changed since is little
        return
    others = [folder for folder in TESTS.iterdir() if folder.is_dir() and any(folder.rglob("test_*.py"))]
    with environment() as variables:
        collections = [
            subprocess.Popen(
                [sys.executable, "-m", "pytest", "--collect-only", "-q", *map(str, folders)],
                env=variables,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for folders in ([LARGEST], [folder for folder in others if folder != LARGEST])
        ]
        for each in collections:  # what cannot be collected is told by the run itself
            each.wait()


if __name__ == "__main__":
    main()
