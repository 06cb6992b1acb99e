"""The control plane under test: `argosy up` in a process of its own, its log, its memory, and a member that lies."""

import asyncio
import contextlib
import os
import ssl
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from argosy.api import keys, resources
from argosy.kube import config
from argosy.kube.client import Client
from argosy.kube.http import HttpTransport
from argosy.server.embedded import EmbeddedServer
from tests.harness.eventually import eventually
from tests.harness.federation import add_node
from tests.harness.liar import Liar
from tests.harness.user import SECRETS, cluster_secret, federated_cluster

__all__ = ["Plane", "lying_member"]

MEMBER = "liar"


class Plane:
    """`async with Plane(folder) as plane`: ready when it is entered, ended in order."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "logs" / "control-plane.log"

    async def __aenter__(self) -> "Plane":
        command = [sys.executable, "-m", "tests.fuzz.impatient", "up", "--data", str(self.folder), "--port", "0"]
        command += ["--brake-share", "100"]  # everything is deleted at once when it is cleaned up
        self._output = (self.folder.parent / f"{self.folder.name}.out").open("wb")
        self.process = await asyncio.create_subprocess_exec(*command, stdout=self._output, stderr=subprocess.STDOUT)
        kubeconfig = self.folder / "kubeconfig"
        await eventually(lambda: self.process.returncode is not None or kubeconfig.exists(), why="a kubeconfig")
        assert self.alive, f"it did not start, see {self._output.name}"
        self.connection = config.load(str(kubeconfig), None)
        self.port = int(self.connection.server.rpartition(":")[2])
        self.client = Client(HttpTransport(self.connection, timeout=60.0))
        await eventually(self._is_ready, why="it is ready")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()
        if self.alive:
            self.process.terminate()
        await self.process.wait()
        self._output.close()

    async def _is_ready(self) -> bool:
        await self.client.get(resources.FEDERATED_TYPE_CONFIGS, "deployments.apps")
        return await self.client.request("GET", "/readyz") == b"ok"

    @property
    def alive(self) -> bool:
        return self.process.returncode is None

    def resident(self) -> int:
        """Bytes of memory."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def context(self) -> ssl.SSLContext:
        """For connections of an administrator."""
        made = ssl.create_default_context(cadata=self.connection.ca_data.decode())
        with tempfile.NamedTemporaryFile(suffix=".pem") as pair:
            pair.write(self.connection.client_certificate + b"\n" + self.connection.client_key)
            pair.flush()
            made.load_cert_chain(pair.name)
        return made

    def exceptions(self) -> list[str]:
        """From the log and what was printed: every traceback with the line before it."""
        found = []
        for path in (self.log, Path(self._output.name)):
            lines = path.read_text(errors="replace").splitlines() if path.exists() else []
            for at, line in enumerate(lines):
                if line.startswith("Traceback (most recent call last)"):
                    end = next((n for n in range(at + 1, len(lines)) if not lines[n].startswith((" ", "\t"))), at + 1)
                    found.append("\n".join(lines[max(0, at - 1) : min(end + 1, at + 60)]))
        return found


@contextlib.asynccontextmanager
async def lying_member(plane: Plane) -> AsyncIterator[Liar]:
    """Joined, and truthful so far."""
    server = EmbeddedServer()
    await server.start()
    try:
        await add_node(server.client(), "node", cpu=64)
        async with Liar(server) as liar:
            entry = server.kubeconfig(MEMBER)
            user, cluster = entry["users"][0]["user"], entry["clusters"][0]["cluster"]
            data = {
                keys.SECRET_CA: cluster["certificate-authority-data"],
                keys.SECRET_CLIENT_CERTIFICATE: user["client-certificate-data"],
                keys.SECRET_CLIENT_KEY: user["client-key-data"],
            }
            await plane.client.create(SECRETS, cluster_secret(MEMBER, data))
            await plane.client.create(resources.FEDERATED_CLUSTERS, federated_cluster(MEMBER, liar.url))

            async def joined() -> bool:
                found = await plane.client.get(resources.FEDERATED_CLUSTERS, MEMBER)
                conditions = {each["type"]: each["status"] for each in found["status"]["conditions"]}
                return conditions.get("Joined") == conditions.get("Ready") == "True"

            await eventually(joined, why="the member has joined")
            yield liar
    finally:
        await server.stop()
