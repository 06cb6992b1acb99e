"""Processes of a data folder: a pid file each, locked for as long as the process lives: a stale one is no live one.

The lock, not the number, says whether it runs: numbers are used again, and the system lets go of a lock however a process ends.
"""

import fcntl
import os
import signal
import sys
import time
from pathlib import Path

from argosy.cli.failures import Failure

__all__ = ["PidFile", "command", "stop"]

_POLL = 0.05


def command(*arguments: str) -> list[str]:
    """How to run ourselves again."""
    return [sys.executable, "-m", "argosy.cli", *arguments]


class PidFile:
    def __init__(self, path: Path):
        self.path = path

    def take(self) -> int | None:
        """Ours until the end of this process: None, or who has it (0 where that is not known)."""
        file = os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600)
        # Who asks `running` holds the lock for an instant.
        tries = 5
        while not _lock(file):
            tries -= 1
            if not tries:
                holder = _number(file)
                os.close(file)
                return holder
            time.sleep(_POLL)
        line = f"{os.getpid()}\n".encode()
        os.pwrite(file, line, 0)
        os.ftruncate(file, len(line))
        # Never closed by us: whoever waits for our end would find us still at it.
        return None

    def running(self) -> int | None:
        """The process that holds it; None when nobody does."""
        try:
            file = os.open(self.path, os.O_RDWR)
        except FileNotFoundError:
            return None
        try:
            # Shared, so that two who ask at once do not take each other for the holder.
            return None if _lock(file, fcntl.LOCK_SH) else _number(file)
        finally:
            os.close(file)


def stop(pid_file: PidFile, what: str, grace: float = 20.0) -> bool:
    """SIGTERM, then SIGKILL after `grace` seconds. False when nothing ran; on return nothing does."""
    pid = pid_file.running()
    if not pid:
        return False
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


def _number(file: int) -> int:
    text = os.pread(file, 32, 0).decode(errors="replace").strip()
    return int(text) if text.isascii() and text.isdigit() else 0
