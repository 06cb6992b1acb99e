"""The data folder of `argosy up`: what lies where in it. Private to its owner, since it holds keys."""

from pathlib import Path

from argosy.cli.failures import Failure
from argosy.cli.processes import PidFile

__all__ = ["DataFolder"]


class DataFolder:
    def __init__(self, path: Path):
        self.path = path
        self.control_plane = path / "control-plane"
        self.members = path / "members"
        self.kubeconfig = path / "kubeconfig"
        self.log = path / "logs" / "control-plane.log"
        self.crash_log = path / "logs" / "control-plane.out"
        self.members_log = path / "logs" / "members.log"
        #: Locked while `argosy up` runs on this folder.
        self.up = PidFile(path / "up.pid")
        #: Locked while the simulated members run.
        self.sim = PidFile(self.members / "sim.pid")

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
                reason = error.strerror or str(error)
                raise Failure(
                    f"the data folder {self.path} cannot be written: {reason}",
                    "choose another folder with --data, or make room if the disk is full",
                ) from None
