"""One federation for the tests of the command line, started and stopped by the command line itself."""

import contextlib
import io
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from argosy.cli import main


class Said(msgspec.Struct, frozen=True):
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """What it complained about: `error: …`, `hint: …`."""
        return [line for line in self.err.splitlines() if line.startswith(("error: ", "hint: "))]


def argosy(*arguments: str, timeout: float = 90.0) -> Said:
    """In a process of its own."""
    command = [sys.executable, "-m", "argosy.cli", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    return Said(done.returncode, done.stdout, done.stderr)


class Cli:
    """Commands against the session's federation, in this process: starting Python takes longer than most of them."""

    def __init__(self, data: Path):
        self.data = data
        self.kubeconfig = data / "kubeconfig"

    def __call__(self, *arguments: str) -> Said:
        return self.bare("--kubeconfig", str(self.kubeconfig), *arguments)

    def bare(self, *arguments: str) -> Said:
        out, err = io.StringIO(), io.StringIO()
        before, sys.argv = sys.argv, ["argosy", *arguments]
        code = 0
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
        finally:
            sys.argv = before
        return Said(code, out.getvalue(), err.getvalue())

    def ok(self, *arguments: str) -> str:
        said = self(*arguments)
        assert said.code == 0, f"argosy {' '.join(arguments)}\n{said.out}{said.err}"
        return said.out


@pytest.fixture(scope="session")
def federation(tmp_path_factory):
    """`argosy up --detach --members 3 --example`; (what it said, Cli)."""
    data = tmp_path_factory.mktemp("federation") / "data"
    said = argosy("up", "--detach", "--members", "3", "--data", str(data), "--example")
    try:
        assert said.code == 0, said.err
        yield said, Cli(data)
    finally:
        argosy("down", "--data", str(data))


@pytest.fixture(scope="session")
def cli(federation) -> Cli:
    return federation[1]
