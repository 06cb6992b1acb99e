"""The processes of a fault test: simulated members that live through it, and a control plane that does not."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

from argosy.kube import config
from argosy.kube.backoff import Backoff
from argosy.kube.client import Client
from argosy.kube.http import HttpTransport
from tests.faults.gauge import Gauge

__all__ = ["Plane", "SimulatedMembers"]

#: A client that is back as soon as the server is.
EAGER = Backoff(base=0.02, cap=0.05, jitter=0.5)
START = 30.0


class SimulatedMembers:
    """`argosy sim` until the test is over."""

    def __init__(self, folder: Path, members: int, speed: float):
        self.folder = folder
        self.names = [f"member-{number}" for number in range(1, members + 1)]
        self._arguments = ["--members", str(members), "--data", str(folder), "--speed", str(speed)]

    async def __aenter__(self) -> "SimulatedMembers":
        command = [sys.executable, "-m", "argosy.cli", "sim", *self._arguments]
        self._process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        async with asyncio.timeout(START):
            for _ in range(len(self.names) + 1):  # one line a member, and the kubeconfig's
                assert await self._process.stdout.readline(), "the simulated members did not start"
        self.clients = {name: Client(HttpTransport(self.connection(name))) for name in self.names}
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in self.clients.values():
            await client.close()
        self._process.terminate()
        await self._process.wait()

    def connection(self, name: str) -> config.Connection:
        return config.load(str(self.folder / "kubeconfig"), name)


class Plane:
    """The control plane of `tests.faults.plane` (or another module) on one folder, started as often as it was killed."""

    def __init__(self, folder: Path, module: str = "tests.faults.plane"):
        self.folder = folder
        self._module = module
        folder.mkdir(parents=True, exist_ok=True)
        self.gauge = Gauge(folder / "gauge")
        self._port = 0
        self._process: asyncio.subprocess.Process | None = None
        #: On the monotonic clock.
        self.ready_at = 0.0

    async def start(self) -> None:
        """Ready when this returns."""
        self.gauge.reset()
        line = await self._start()
        assert line, f"it did not start: {self._log()}"
        self._port = int(line)
        self.ready_at = time.monotonic()

    async def start_and_die(self) -> None:
        """It was armed to die before it is ready."""
        line = await self._start()
        assert not line, "it lived through its start"
        await self.killed(within=5)

    async def _start(self) -> bytes:
        reading, writing = os.pipe()
        command = [sys.executable, "-m", self._module, str(self.folder), str(self._port), str(writing)]
        with (self.folder / "log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(*command, pass_fds=(writing,), stdout=log, stderr=log)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            return await asyncio.wait_for(asyncio.to_thread(pipe.readline), START)

    def _log(self) -> str:
        return (self.folder / "log").read_text()[-2000:]

    async def killed(self, within: float) -> None:
        """Wait for its end; it was armed to die, and is killed from here where its moment did not come."""
        assert self._process is not None
        try:
            await asyncio.wait_for(self._process.wait(), within)
        except TimeoutError:
            self.kill()
            await self._process.wait()
        assert self._process.returncode == -9, f"it ended by itself: {self._log()}"

    def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    def client(self) -> Client:
        connection = config.load(str(self.folder / "kubeconfig"), "plane")
        return Client(HttpTransport(connection, backoff=EAGER, qps=10_000, burst=10_000))
