"""A federation in one process for tests: an embedded control plane, the controllers, and members over real HTTPS.

Members here are bare API servers with nodes; where pods must run, tests use the simulated members instead.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from argosy.api import keys, resources
from argosy.control.install import install
from argosy.control.manager import Manager, Options
from argosy.control.timings import Timings
from argosy.kube import config
from argosy.kube.client import Client, Patch
from argosy.kube.errors import NotFound
from argosy.kube.http import HttpTransport
from argosy.kube.resource import Resource
from argosy.server.embedded import EmbeddedServer
from tests.harness.eventually import eventually

DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
SERVICES = Resource("", "v1", "services", "Service")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
SECRETS = Resource("", "v1", "secrets", "Secret")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
EVENTS = Resource("", "v1", "events", "Event")

#: As in production but for what is there only to be patient.
QUICK = Timings(
    health_period=0.5,
    health_threshold=0.4,
    member_event=0.2,
    deletion_recheck=0.2,
    cascade_recheck=0.2,
    conflict=0.05,
    retry_first=0.1,
    retry_most=1.0,
    status_quiet=0.03,
    status_longest=0.1,
    status_longest_busy=0.5,
)


def http_client(server: EmbeddedServer) -> Client:
    """A client over the wire, with the administrator's certificate."""
    pair = server.authority.client_pair("admin", "admin", ["system:masters"])
    connection = config.Connection(
        server=server.url,
        ca_data=server.authority.certificate,
        client_certificate=pair.certificate,
        client_key=pair.key,
    )
    return Client(HttpTransport(connection))


class Federation:
    """`async with Federation(members=3) as fed`: joined and ready when it is entered."""

    def __init__(
        self,
        members: int = 3,
        *,
        transport: str = "local",
        timings: Timings = QUICK,
        options: Options = Options(),
        data: Path | None = None,
        cpus: tuple[int, ...] = (),
    ):
        self.transport = transport
        self.timings = timings
        self.options = options
        self.data = data
        self.names = [f"m{number}" for number in range(1, members + 1)]
        self._cpus = dict(zip(self.names, cpus or (16,) * members, strict=True))
        self.plane = EmbeddedServer(data / "plane" if data else None)
        self.servers = {name: EmbeddedServer(data / name if data else None) for name in self.names}
        self.manager: Manager | None = None
        self._run: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Federation":
        await self.plane.start()
        for name, server in self.servers.items():
            await server.start()
            await add_node(server.client(), f"{name}-node", cpu=self._cpus[name])
        await install(self.client)
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

    async def start_controllers(self) -> None:
        client = self.plane.client() if self.transport == "local" else http_client(self.plane)
        self._manager_client = client
        self.manager = Manager(client, options=self.options, timings=self.timings)
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

    def ready_clusters(self) -> list[str]:
        assert self.manager is not None
        return sorted(cluster.name for cluster in self.manager.caches.clusters.values() if cluster.ready)

    # What a user does.

    async def join(self, name: str, **spec: Any) -> None:
        server = self.servers[name]
        user = server.kubeconfig(name)["users"][0]["user"]
        ca = server.kubeconfig(name)["clusters"][0]["cluster"]["certificate-authority-data"]
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": keys.SYSTEM_NAMESPACE},
            "data": {
                keys.SECRET_CA: ca,
                keys.SECRET_CLIENT_CERTIFICATE: user["client-certificate-data"],
                keys.SECRET_CLIENT_KEY: user["client-key-data"],
            },
        }
        await self.client.create(SECRETS, secret)
        cluster = {
            "apiVersion": keys.API_VERSION,
            "kind": "FederatedCluster",
            "metadata": {"name": name, "labels": {"name": name}},
            "spec": {"apiEndpoint": server.url, "secretRef": {"name": name}, **spec},
        }
        await self.client.create(resources.FEDERATED_CLUSTERS, cluster)

    async def policy(self, name: str = "policy", namespace: str = "default", **spec: Any) -> None:
        await self.client.create(
            resources.PROPAGATION_POLICIES,
            {
                "apiVersion": keys.API_VERSION,
                "kind": "PropagationPolicy",
                "metadata": {"name": name, "namespace": namespace},
                "spec": {"schedulingMode": "Divide", **spec},
            },
        )

    async def deploy(
        self, name: str = "web", replicas: int = 9, policy: str = "policy", namespace: str = "default", **labels: str
    ) -> dict[str, Any]:
        return await self.client.create(DEPLOYMENTS, deployment(name, replicas, policy, namespace, **labels))

    async def scale(self, name: str, replicas: int) -> None:
        await self.client.patch(DEPLOYMENTS, name, {"spec": {"replicas": replicas}}, "default")

    async def annotate(self, resource: Resource, name: str, namespace: str | None, **annotations: str | None) -> None:
        body = {"metadata": {"annotations": annotations}}
        await self.client.patch(resource, name, body, namespace, kind=Patch.MERGE)

    # What is there.

    async def replicas(self, name: str = "web", namespace: str = "default") -> dict[str, int]:
        """Replicas of a Deployment in every member that has it."""
        found = {}
        for member in self.names:
            try:
                found[member] = (await self.member(member).get(DEPLOYMENTS, name, namespace))["spec"]["replicas"]
            except NotFound:
                continue
        return found

    async def eventually_replicas(self, expected: dict[str, int], name: str = "web", timeout: float = 10.0) -> None:
        async def probe() -> bool:
            return await self.replicas(name) == expected

        try:
            await eventually(probe, timeout)
        except AssertionError:
            raise AssertionError(f"expected {expected}, found {await self.replicas(name)}") from None

    async def federated(self, name: str = "web-deployments.apps", namespace: str = "default") -> dict[str, Any]:
        return await self.client.get(resources.FEDERATED_OBJECTS, name, namespace)

    async def events(self, reason: str) -> list[dict[str, Any]]:
        listed = await self.client.list(EVENTS)
        return [event for event in listed.items if event["reason"] == reason]


def deployment(name: str, replicas: int, policy: str, namespace: str = "default", **labels: str) -> dict[str, Any]:
    selector = {"app": name}
    policy_label = {keys.PROPAGATION_POLICY_LABEL: policy} if policy else {}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": {**policy_label, **labels}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": selector},
            "template": {
                "metadata": {"labels": selector},
                "spec": {"containers": [{"name": "main", "image": "nginx:1.29"}]},
            },
        },
    }


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
