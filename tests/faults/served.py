"""An API server in a process of its own, with a client, and what the system says about the process."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from argosy.kube import config
from argosy.kube.client import Client
from argosy.kube.http import HttpTransport

__all__ = ["Served"]

START = 120.0


class Served:
    """`async with Served(folder) as server`: serving when it is entered; ended in order, unless it was killed.

    It is `argosy server` unless another module and its arguments are named.
    """

    def __init__(self, folder: Path, *command: str):
        self.folder = folder
        self._command = command or ("argosy.cli", "server", "--data", str(folder), "--port", "0")

    async def __aenter__(self) -> "Served":
        command = [sys.executable, "-m", *self._command]
        self.process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        line = await asyncio.wait_for(self.process.stdout.readline(), START)
        assert line.startswith(b"serving "), f"the server did not start: {line!r}"
        self.connection = config.load(str(self.folder / "kubeconfig"), "argosy")
        self.port = int(self.connection.server.rpartition(":")[2])
        self.client = Client(HttpTransport(self.connection))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()
        if self.alive:
            self.process.terminate()
        await self.process.wait()

    @property
    def alive(self) -> bool:
        return self.process.returncode is None

    def resident(self) -> int:
        """Bytes of memory."""
        fields = Path(f"/proc/{self.process.pid}/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))
