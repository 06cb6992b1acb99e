"""Cluster: one stock Kubernetes cluster on loopback; and `clusters`, which starts several and removes them.

A cluster belongs to no event loop; its clients do, as every client. Its parts are in `options`, the command line of each
component in `commands`. When this process ends, for any reason, so do the components and their folder.
"""

import asyncio
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from argosy.kube.backoff import Backoff
from argosy.kube.client import Client
from argosy.kube.config import Connection
from argosy.kube.errors import AlreadyExists, ApiError, NotFound, TransportError
from argosy.kube.http import HttpTransport
from argosy.kube.resource import Resource
from argosy.testing import commands, kubeconfig
from argosy.testing.binaries import Binaries, find
from argosy.testing.component import Component
from argosy.testing.nodes import NODES, is_ready, node
from argosy.testing.options import Options
from argosy.testing.ports import free_ports

__all__ = ["Cluster", "Clusters", "StartError", "clusters"]

DEFAULT = Options()
_JANITOR = Path(__file__).with_name("janitor.py")
_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
_POLL = 0.03
_QUICK = Backoff(base=0.03, cap=0.06)
_PATIENCE = 180.0
#: Another program may take a port between our choice and the component's start.
_TRIES = 3


class StartError(Exception):
    """A cluster that did not start: which component, why, and the last lines of its log."""


class Cluster:
    """`cluster["kube-apiserver"]` is a component: kill(), stop(), start(), pause(), resume(); call `ready()` afterwards."""

    def __init__(self, name: str, folder: Path, binaries: Binaries, options: Options):
        self.name = name
        self.folder = folder
        self.options = options
        self.ports = commands.Ports(*free_ports(len(commands.Ports.__struct_fields__)))
        self.token = secrets.token_urlsafe(24)
        self._binaries = binaries
        self._files = commands.write_files(folder)
        self.authority = self._files.authority
        tokens = folder / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text(f'{self.token},admin,admin,"system:masters"\n')
        #: The administrator's kubeconfig, by client certificate: as a mapping, and as a file.
        self.config: dict[str, Any] = self._entry("admin", self._files.admin)
        self.kubeconfig = folder / "kubeconfig"
        kubeconfig.write(self.kubeconfig, self.config)
        for component, (user, groups) in commands.IDENTITIES.items():
            credential = self.authority.client(user, groups)
            kubeconfig.write(folder / f"{component}.kubeconfig", self._entry(user, credential))
        self.components = {
            name: Component(name, [str(binaries.path(name)), *commands.command(name, self.ports, options)], folder)
            for name in commands.component_names(options)
        }

        #: The audit log: what was read, and the position.
        self._audit: list[dict[str, Any]] = []
        self._audit_read = 0

    def __getitem__(self, component: str) -> Component:
        return self.components[component]

    def __repr__(self) -> str:
        return f"Cluster({self.name!r}, {self.server!r})"

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.ports.apiserver}"

    @property
    def kubectl(self) -> list[str]:
        """The kubectl command for this cluster: add arguments."""
        return [str(self._binaries.path("kubectl")), f"--kubeconfig={self.kubeconfig}"]

    @property
    def logs(self) -> dict[str, Path]:
        return {name: component.log for name, component in self.components.items()}

    @property
    def audit(self) -> list[dict[str, Any]]:
        """The writes so far, oldest first, without leases. Needs `Options.audit`."""
        try:
            with (self.folder / "audit.log").open("rb") as log:
                log.seek(self._audit_read)
                added = log.read()
        except FileNotFoundError:
            return []
        # The last line may be incomplete.
        whole = added[: added.rfind(b"\n") + 1]
        self._audit_read += len(whole)
        self._audit += [orjson.loads(line) for line in whole.splitlines()]
        return list(self._audit)

    def connection(self) -> Connection:
        """The administrator's connection, by token."""
        return Connection(self.server, ca_data=self.authority.certificate, token=self.token)

    def client(self, **transport: Any) -> Client:
        """A client of the administrator, to be closed by the caller; the arguments are HttpTransport's."""
        return Client(HttpTransport(self.connection(), **transport))

    def kubeconfig_of(self, user: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig of another user, by client certificate."""
        path = self.folder / f"kubeconfig-{secrets.token_hex(4)}"
        kubeconfig.write(path, self._entry(user, self.authority.client(user, groups)))
        return path

    async def compact(self) -> int:
        """Compact etcd's history; returns its revision. A running kube-apiserver still has its own cache."""
        async with aiohttp.ClientSession(f"http://127.0.0.1:{self.ports.etcd}") as session:
            async with session.post("/v3/kv/range", json={"key": "AA=="}, raise_for_status=True) as answer:
                revision = int((await answer.json())["header"]["revision"])
            body = {"revision": str(revision), "physical": True}
            async with session.post("/v3/kv/compaction", json=body, raise_for_status=True):
                return revision

    async def start(self) -> None:
        """Start everything, also after `kill`, and wait until it is ready. Raises StartError."""
        self["etcd"].start()
        self["kube-apiserver"].start()
        await self._apiserver_ready()
        await self._create_nodes()
        for component in self.components.values():
            if not component.running:
                component.start()
        await self.ready()

    async def ready(self) -> None:
        """Wait until everything answers again, as after `start`. Raises StartError."""
        await self._apiserver_ready()
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=2.0)) as session:
            if "kube-controller-manager" in self.components:
                await self._until("kube-controller-manager", lambda: self._controllers_run(session))
            if "kube-scheduler" in self.components:
                await self._until("kube-scheduler", lambda: _is_healthy(session, self.ports.scheduler))
        client = self._impatient()
        try:
            if self.options.has_service_accounts:
                await self._until("kube-controller-manager", lambda: _has_account(client))
            if self.options.nodes:
                await self._until("kwok", lambda: self._nodes_ready(client))
        finally:
            await client.close()

    def kill(self) -> None:
        """Kill all components at once; `start` starts them again on their data."""
        for component in self.components.values():
            component.kill()

    def _entry(self, user: str, credential: Any) -> dict[str, Any]:
        return kubeconfig.entry(self.name, self.server, self._files.authority.certificate, user, credential)

    def _impatient(self) -> Client:
        return self.client(timeout=2.0, backoff=_QUICK)

    async def _apiserver_ready(self) -> None:
        client = self._impatient()
        try:
            await self._until("kube-apiserver", lambda: _answers(client))
        finally:
            await client.close()

    async def _create_nodes(self) -> None:
        client = self._impatient()
        try:
            for number in range(1, self.options.nodes + 1):
                try:
                    await client.create(NODES, self._node(number))
                except AlreadyExists:
                    continue
        finally:
            await client.close()

    def _node(self, number: int) -> dict[str, Any]:
        return node(f"{self.name}-node-{number}", self.options.capacity, version=self.options.version)

    async def _controllers_run(self, session: aiohttp.ClientSession) -> bool:
        # It is healthy long before. Its controllers are listed once all of them were started, and until then it exits if
        # kube-apiserver refuses it anything.
        text = await _health(session, self.ports.controller_manager)
        wanted = [name for name in self.options.controllers if not name.startswith(("*", "-"))]
        return all(f"[+]{name} ok" in text for name in wanted or ["namespace-controller"])

    async def _nodes_ready(self, client: Client) -> bool:
        nodes = (await client.list(NODES)).items
        return len(nodes) >= self.options.nodes and all(is_ready(one) for one in nodes)

    async def _until(self, component: str, probe: Callable[[], Awaitable[bool]]) -> None:
        deadline = time.monotonic() + _PATIENCE
        last = "it does not answer"
        while True:
            for started in self.components.values():
                if started.crashed:
                    raise self._failed(started, f"ended with exit code {started.exit_code}")
            try:
                if await probe():
                    return
            except (TransportError, ApiError, aiohttp.ClientError, TimeoutError) as error:
                last = str(error) or type(error).__name__
            if time.monotonic() > deadline:
                raise self._failed(self[component], f"was not ready within {_PATIENCE:.0f} s ({last})")
            await asyncio.sleep(_POLL)

    def _failed(self, component: Component, why: str) -> StartError:
        return StartError(f"{component.name} of {self.name} {why}; its log ends with:\n{component.tail()}")


class Clusters:
    """Several clusters in one temporary folder: for callers that start and stop in different places."""

    def __init__(self, count: int = 1, options: Options = DEFAULT, binaries: Binaries | None = None):
        self._count = count
        self._options = options
        self._binaries = binaries or find(version=options.version)
        self._folder = Path(tempfile.mkdtemp(prefix="argosy-kubernetes-"))
        self._janitor = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_JANITOR), str(self._folder)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        self.all: list[Cluster] = []

    async def start(self) -> list[Cluster]:
        """Start them in parallel. Raises StartError; call `stop` in any case."""
        starts = [self._start(f"cluster-{number}") for number in range(1, self._count + 1)]
        # All starts end before the first failure is raised, so that `stop` finds none still running.
        for failure in await asyncio.gather(*starts, return_exceptions=True):
            if failure is not None:
                raise failure
        self.all.sort(key=lambda cluster: int(cluster.name.rpartition("-")[2]))
        return self.all

    def stop(self) -> None:
        """Kill them and remove their folder."""
        for cluster in self.all:
            cluster.kill()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._janitor.communicate()

    async def _start(self, name: str) -> None:
        for attempt in range(1, _TRIES + 1):
            folder = self._folder / f"{name}-{attempt}"
            folder.mkdir(mode=0o700)
            cluster = Cluster(name, folder, self._binaries, self._options)
            self.all.append(cluster)
            try:
                await cluster.start()
                return
            except StartError as error:
                if attempt == _TRIES or "address already in use" not in str(error):
                    raise
                cluster.kill()
                self.all.remove(cluster)


@asynccontextmanager
async def clusters(
    count: int = 1, options: Options = DEFAULT, *, binaries: Binaries | None = None
) -> AsyncIterator[list[Cluster]]:
    """So many clusters, ready to use, removed afterwards. Raises BinariesMissing or StartError."""
    started = Clusters(count, options, binaries)
    try:
        yield await started.start()
    finally:
        started.stop()


async def _answers(client: Client) -> bool:
    return (await client.request("GET", "/readyz")) is not None


async def _is_healthy(session: aiohttp.ClientSession, port: int) -> bool:
    return bool(await _health(session, port))


async def _health(session: aiohttp.ClientSession, port: int) -> str:
    """The list of its health checks; empty if one fails."""
    # Its certificate is self-signed.
    async with session.get(f"https://127.0.0.1:{port}/healthz?verbose", ssl=False) as answer:
        return await answer.text() if answer.status == 200 else ""


async def _has_account(client: Client) -> bool:
    try:
        await client.get(_ACCOUNTS, "default", "default")
    except NotFound:
        return False
    return True
