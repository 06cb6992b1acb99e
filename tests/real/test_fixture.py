"""What the fixture does where the binaries are missing: skip by name, and fail where CI says that they must be there."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

_TEST = """
async def test_that_needs_a_cluster(kubernetes):
    await kubernetes(1)
"""


@pytest.mark.parametrize(("ci", "outcome", "code"), [("", "SKIPPED", 0), ("true", "ERROR", 1)])
async def test_missing_binaries(ci: str, outcome: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(_TEST)
    environ = {name: value for name, value in os.environ.items() if name != "KUBEBUILDER_ASSETS"}
    environ |= {"CI": ci, "ARGOSY_CACHE": str(tmp_path / "empty"), "PYTEST_ADDOPTS": ""}
    arguments = [
        "-m",
        "pytest",
        "-p",
        "argosy.testing.pytest_plugin",
        "-rsE",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    run = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, env=environ, cwd=tmp_path, stdout=asyncio.subprocess.PIPE
    )
    printed = (await run.communicate())[0].decode()
    assert outcome in printed
    assert "make kubernetes" in printed
    assert run.returncode == code
