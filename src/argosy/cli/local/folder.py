"""Data folders: who works in one, and what lies where in that of `argosy up`. Private to their owner, since they hold keys.

One process owns a folder with everything in it, whatever the command: `claim` comes before the first write. The folders that
`argosy up` has inside its own are claimed as well, so that a command given one of them meets its owner too.
"""

import os
from pathlib import Path
from typing import Annotated

import typer

from argosy.cli.local.processes import Holder, PidFile
from argosy.cli.output.failures import Failure

__all__ = ["MEMBERS", "RESTORE", "SERVER", "SIM", "UP", "AcceptDataLoss", "DataFolder", "check", "claim", "owner"]

#: What owners call themselves.
UP = "argosy up"
SERVER = "argosy server"
SIM = "argosy sim"
RESTORE = "argosy restore"
#: What earlier versions locked in their folders, and who they were. `argosy down` does not know them.
_EARLIER = {"up.pid": f"{UP} of an earlier version", "sim.pid": f"{SIM} of an earlier version"}
#: The members' process of an `argosy up`, which ends with it.
MEMBERS = "members of argosy up"

AcceptDataLoss = Annotated[
    bool,
    typer.Option("--accept-data-loss", help="Start although the store misses acknowledged writes."),
]


def owner(folder: Path) -> PidFile:
    return PidFile(folder / "owner.pid")


def check(folder: Path) -> None:
    """Raises Failure where somebody has the folder, or one that it is part of."""
    real = folder.resolve()
    for each in (real, *real.parents):
        holder = _holder(each)
        # What started us has claimed it for both of us.
        if holder is not None and holder.pid not in (os.getpid(), os.getppid()):
            raise _in_use(real, each, holder)


def _holder(folder: Path) -> Holder | None:
    """Who has this very folder, of whichever version."""
    found = owner(folder).holder()
    if found is not None:
        return found
    for name, command in _EARLIER.items():
        earlier = PidFile(folder / name).holder()
        if earlier is not None:
            return Holder(earlier.pid, command)
    return None


def claim(folder: Path, command: str) -> None:
    """The folder, made where it is missing, is this process's until its end. Raises Failure that names who has it."""
    check(folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    real = folder.resolve()
    holder = owner(real).take(command)
    if holder is not None:
        raise _in_use(real, real, holder)
    # Again: of two who claim a folder and one inside it at the same time, at least one sees the other.
    check(folder)


def _in_use(folder: Path, held: Path, holder: Holder) -> Failure:
    inside = "" if folder == held else f", and {folder} is part of it"
    ending = f"`argosy down --data {held}`" if holder.command == UP else "Ctrl-C there, or SIGTERM,"
    return Failure(
        f"the data folder {held} is in use by {holder}{inside}",
        f"{ending} stops it; --data chooses another folder",
    )


class DataFolder:
    def __init__(self, path: Path):
        self.path = path
        self.control_plane = path / "control-plane"
        self.members = path / "members"
        self.kubeconfig = path / "kubeconfig"
        self.log = path / "logs" / "control-plane.log"
        self.crash_log = path / "logs" / "control-plane.out"
        self.members_log = path / "logs" / "members.log"
        self.up = owner(path)
        self.sim = owner(self.members)

    def check(self) -> None:
        """Raises Failure where somebody has it, or a part of it."""
        check(self.path)
        check(self.control_plane)
        holder = _holder(self.members)
        if holder is not None and holder.command != MEMBERS:  # those left over of an `up` that was killed are ended
            raise _in_use(self.members, self.members, holder)

    def claim(self) -> None:
        """All of it, for `argosy up`. Raises Failure."""
        self.check()
        try:
            claim(self.path, UP)
            claim(self.control_plane, UP)
        except OSError as error:
            raise self._unwritable(error) from None

    def known_members(self) -> int:
        """How many members were simulated here before; they are still joined."""
        folder = self.members / "members"
        return sum(1 for each in folder.iterdir() if each.is_dir()) if folder.is_dir() else 0

    def make(self) -> None:
        """Raises Failure where the folder cannot be written."""
        for folder in (self.path, self.control_plane, self.members, self.log.parent):
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                # By writing, because permissions do not tell: root may write everywhere but on a read-only disk.
                probe = folder / ".writable"
                probe.write_bytes(b"x")
                probe.unlink()
            except OSError as error:
                raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> Failure:
        return Failure(
            f"the data folder {self.path} cannot be written: {error.strerror or error}",
            "choose another folder with --data, or make room if the disk is full",
        )
