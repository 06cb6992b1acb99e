"""A federation in one process for tests: an embedded control plane, the controllers, and members over HTTPS, or over the virtual
network where the test runs on virtual time.

Members here are bare API servers with nodes; where pods must run, tests use the simulated members instead.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec

from argosy.api import keys, resources
from argosy.control.manager import Manager
from argosy.control.options import Options
from argosy.control.scheduling.plugin_workers import PluginWorkers
from argosy.control.timings import Timings
from argosy.kube import config
from argosy.kube.client import Client
from argosy.kube.http import HttpTransport
from argosy.plan.brake.limits import Limits
from argosy.plan.plugins import IN_TREE
from argosy.plan.scheduling.profile import Registry
from argosy.server.embedded import ADMIN, EmbeddedServer
from tests.harness.eventually import eventually, holds
from tests.harness.inside import Inside
from tests.harness.servers import new_plane, new_server, set_up
from tests.harness.user import (
    CONFIGMAPS,
    DEPLOYMENTS,
    EVENTS,
    NAMESPACES,
    NODES,
    SECRETS,
    SERVICES,
    User,
    cluster_secret,
    deployment,
    federated_cluster,
)
from tests.harness.virtual_server import VirtualServer, connector, wire

__all__ = [
    "CONFIGMAPS",
    "DEPLOYMENTS",
    "EVENTS",
    "NAMESPACES",
    "NODES",
    "QUICK",
    "SECRETS",
    "SERVICES",
    "UNBRAKED",
    "WATCHFUL",
    "Federation",
    "add_node",
    "deployment",
    "federation",
    "http_client",
]

#: As in production but for what is there only to be patient. A member that answers late on a busy machine is not unready.
QUICK = Timings(
    health_period=0.5,
    probe_timeout=2.0,
    health_recheck=0.1,
    health_threshold=60.0,
    report_period=0.5,
    watch_lost=1.0,
    apis_kept=60.0,
    member_event=0.2,
    rights_kept=0.2,
    types_kept=0.2,
    member_hold=1.0,
    deletion_recheck=0.2,
    cascade_recheck=0.2,
    conflict=0.05,
    retry_first=0.1,
    retry_most=1.0,
    status_quiet=0.03,
    status_longest=0.1,
    status_longest_busy=0.5,
    unready_grace=3.0,
    migration_quiet=0.2,
    policy_counts=0.2,
)
#: Nothing is held: a test's few objects are soon more than a share of all.
UNBRAKED = Options(brake=Limits(share=1.0))
#: Where a member is to be lost.
WATCHFUL = msgspec.structs.replace(QUICK, health_threshold=0.4, apis_kept=0.4)


def http_client(server: EmbeddedServer) -> Client:
    """A client over the wire, with the administrator's certificate."""
    if isinstance(server, VirtualServer):
        return wire(server, "user", ADMIN)
    pair = server.authority.client_pair("admin", "admin", ["system:masters"])
    connection = config.Connection(
        server=server.url,
        ca_data=server.authority.certificate,
        client_certificate=pair.certificate,
        client_key=pair.key,
    )
    return Client(HttpTransport(connection))


class Federation(User):
    """`async with Federation(members=3) as fed`: joined and ready when it is entered."""

    def __init__(
        self,
        members: int = 3,
        *,
        transport: str = "local",
        timings: Timings = QUICK,
        options: Options = UNBRAKED,
        data: Path | None = None,
        cpus: tuple[int, ...] = (),
        plugins: Registry = IN_TREE,
        workers: PluginWorkers | None = None,
    ):
        self.transport = transport
        self.timings = timings
        self.options = options
        self.plugins = plugins
        self.workers = workers
        self.data = data
        self.names = [f"m{number}" for number in range(1, members + 1)]
        self._cpus = dict(zip(self.names, cpus or (16,) * members, strict=True))
        self.plane = new_plane(data / "plane" if data else None)
        self.servers = {name: new_server(data / name if data else None) for name in self.names}
        self.manager: Manager | None = None
        self._run: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Federation":
        await self.plane.start()
        for name, server in self.servers.items():
            await server.start()
            await add_node(server.client(), f"{name}-node", cpu=self._cpus[name])
        await set_up(self.plane)
        await self.start_controllers()
        for name in self.names:
            await self.join(name)
        await eventually(lambda: len(self.ready_clusters()) == len(self.names), why="all members ready")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop_controllers()
        for server in self.servers.values():
            await server.stop()
        await self.plane.stop()

    @property
    def client(self) -> Client:
        """The user's client of the control plane."""
        return self.plane.client()

    def member(self, name: str) -> Client:
        return self.servers[name].client()

    def endpoint(self, name: str) -> str:
        """Where the control plane finds the member."""
        return self.servers[name].url

    async def start_controllers(self) -> None:
        client = self.plane.client() if self.transport == "local" else http_client(self.plane)
        self._manager_client = client
        self.manager = Manager(
            client,
            options=self.options,
            timings=self.timings,
            connect=connector(),
            plugins=self.plugins,
            workers=self.workers,
        )
        self._run = asyncio.create_task(self.manager.run())
        await eventually(lambda: self.manager is not None and self.manager.ready.is_set(), why="controllers ready")

    async def stop_controllers(self) -> None:
        if self._run is None:
            return
        self._run.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._run
        self._run = None
        await self._manager_client.close()

    @property
    def inside(self) -> Inside:
        assert self.manager is not None
        return Inside(self.manager)

    async def quiet(self, seconds: float = 2.0) -> bool:
        """Nothing was worked on for so long: for `eventually`. Members that were just joined have told all of themselves."""
        await holds(self.inside.idle, seconds)
        return True

    def ready_clusters(self) -> list[str]:
        return sorted(cluster.name for cluster in self.inside.caches.clusters.values() if cluster.ready)

    async def join(self, name: str, **spec: Any) -> None:
        server = self.servers[name]
        entry = server.kubeconfig(name)
        user, cluster = entry["users"][0]["user"], entry["clusters"][0]["cluster"]
        data = {
            keys.SECRET_CA: cluster["certificate-authority-data"],
            keys.SECRET_CLIENT_CERTIFICATE: user["client-certificate-data"],
            keys.SECRET_CLIENT_KEY: user["client-key-data"],
        }
        await self.client.create(SECRETS, cluster_secret(name, data))
        await self.client.create(resources.FEDERATED_CLUSTERS, federated_cluster(name, self.endpoint(name), **spec))


async def add_node(client: Client, name: str, cpu: int, memory: str = "64Gi") -> None:
    await client.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    amounts = {"cpu": str(cpu), "memory": memory, "pods": "110"}
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "",
        "lastHeartbeatTime": "2026-01-01T00:00:00Z",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = {"status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}}
    await client.patch(NODES, name, status, subresource="status")


@contextlib.asynccontextmanager
async def federation(members: int = 3, **options: Any) -> AsyncIterator[Federation]:
    async with Federation(members, **options) as fed:
        yield fed
