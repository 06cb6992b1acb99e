"""Commands of `argosy`, in this process or in one of their own: starting Python takes longer than most of them."""

import contextlib
import io
import subprocess
import sys

import msgspec

from argosy.cli import main

__all__ = ["Said", "argosy", "here"]


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


def here(*arguments: str) -> Said:
    """In this process, one at a time. From a coroutine it needs a thread: a command has an event loop of its own."""
    out, err = io.StringIO(), io.StringIO()
    before, sys.argv = sys.argv, ["argosy", *arguments]
    code = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.argv = before
    return Said(code, out.getvalue(), err.getvalue())
