"""Processes of data folders: a pid file each, locked for as long as the process lives: a stale one is no live one.

The lock, not the number, says whether it runs: numbers are used again, and the system lets go of a lock however a process ends.
"""

import contextlib
import fcntl
import os
import signal
import sys
import time
from pathlib import Path
from typing import NamedTuple

from argosy.cli.output.failures import Failure

__all__ = ["Holder", "PidFile", "command", "stop"]

_POLL = 0.05


def command(*arguments: str) -> list[str]:
    """How to run ourselves again."""
    return [sys.executable, "-m", "argosy.cli", *arguments]


class Holder(NamedTuple):
    """A process and what it was started as; 0 and "" where it has not said so yet."""

    pid: int
    command: str

    def __str__(self) -> str:
        who = self.command or "another process"
        return f"{who} (process {self.pid})" if self.pid else who


class PidFile:
    def __init__(self, path: Path):
        self.path = path

    def take(self, command: str) -> Holder | None:
        """Ours until the end of this process, under that name: None, or who has it."""
        file = os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600)
        # Who asks `running` holds the lock for an instant.
        tries = 5
        while not _lock(file):
            tries -= 1
            if not tries:
                holder = _holder(file)
                os.close(file)
                return holder
            time.sleep(_POLL)
        # A courtesy to whoever is refused; on a full disk it has to do without.
        with contextlib.suppress(OSError):
            line = f"{os.getpid()} {command}\n".encode()
            os.ftruncate(file, 0)
            os.pwrite(file, line, 0)
        # Never closed by us: whoever waits for our end would find us still at it.
        return None

    def holder(self) -> Holder | None:
        """Who holds it; None when nobody does."""
        try:
            file = os.open(self.path, os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return None
        try:
            # Shared, so that two who ask at once do not take each other for the holder.
            return None if _lock(file, fcntl.LOCK_SH) else _holder(file)
        finally:
            os.close(file)

    def running(self) -> int | None:
        """The number of the process that holds it."""
        holder = self.holder()
        return holder.pid if holder is not None else None


def stop(pid_file: PidFile, command: str, what: str, grace: float = 20.0) -> bool:
    """SIGTERM, then SIGKILL after `grace` seconds. False when nothing of that name ran; on return nothing does."""
    holder = pid_file.holder()
    if holder is None or not holder.pid or holder.command != command:
        return False
    pid = holder.pid
    for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, 5.0)):
        # Asked anew each time: in between the process may have gone and its number been given to a stranger.
        if pid_file.running() != pid:
            return True
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return True
        except PermissionError:
            raise Failure(f"{what} (process {pid}) belongs to another user", "ask them, or use sudo") from None
        if _gone(pid_file, pid, patience):
            return True
    raise Failure(f"{what} (process {pid}) does not end", "see what it waits for: ps -o state,wchan -p " + str(pid))


def _gone(pid_file: PidFile, pid: int, patience: float) -> bool:
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if pid_file.running() != pid:
            return True
        time.sleep(_POLL)
    return False


def _lock(file: int, how: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _holder(file: int) -> Holder:
    number, _, command = os.pread(file, 256, 0).decode(errors="replace").strip().partition(" ")
    return Holder(int(number) if number.isascii() and number.isdigit() else 0, command)
