"""`argosy controllers` as processes of their own, on a stock control plane with stock members, all of whose writes are logged."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from argosy.api import keys, resources
from argosy.api.types import FederatedCluster
from argosy.kube.client import Client
from argosy.kube.lease import LEASES
from argosy.testing import API_SERVER, CONTROL_PLANE, Cluster
from argosy.testing.component import Component
from argosy.testing.pytest_plugin import Kubernetes
from tests.harness.eventually import eventually
from tests.harness.user import NAMESPACES, SECRETS, User, cluster_secret, federated_cluster

__all__ = ["PLANE", "WITHOUT_VERSION", "Controllers", "StockFederation", "Write", "stock_federation", "writes"]

PLANE = msgspec.structs.replace(CONTROL_PLANE, audit=True)
#: Nobody runs pods: what is looked at is who writes.
MEMBER = msgspec.structs.replace(API_SERVER, audit=True)
#: What controllers write without the version they read: a request that was on its way when its process was stopped is done
#: (see `argosy.control.fence`).
WITHOUT_VERSION = {("events", ""), ("federatedobjects", "status"), ("clusterfederatedobjects", "status")}
_AGENT = re.compile(r"argosy-controllers/\S+ \(shard (\S+); (\S+)\)")


class Write(msgspec.Struct, frozen=True):
    """A write of some controllers process, as an API server's audit log has it."""

    cluster: str
    identity: str
    shard: str
    verb: str
    #: Plural, namespace and name of the object, and the subresource.
    resource: str
    namespace: str
    name: str
    subresource: str
    code: int
    received: datetime

    @property
    def is_harmless(self) -> bool:
        """Even where it comes from a leader that was stopped, after the next one began: refused, or without a version."""
        return self.code in (404, 409) or (self.resource, self.subresource) in WITHOUT_VERSION


class Controllers:
    """One process."""

    def __init__(self, name: str, folder: Path, kubeconfig: Path, *arguments: str):
        command = [sys.executable, "-m", "argosy.cli", "controllers", "--kubeconfig", str(kubeconfig), "--port", "0"]
        self.process = Component(name, [*command, *arguments], folder)

    def start(self) -> None:
        self.process.start()

    @property
    def log(self) -> str:
        return self.process.log.read_text()

    async def readyz(self, query: str = "") -> str:
        found = re.findall(r"probes and metrics: (\S+)", self.log)
        if not found:
            assert self.process.running, self.log[-3000:]
            return ""
        patience = aiohttp.ClientTimeout(total=5)
        async with (
            aiohttp.ClientSession(timeout=patience) as session,
            session.get(f"{found[-1]}/readyz{query}") as answer,
        ):
            return await answer.text() if answer.status == 200 else ""

    async def leads(self) -> bool:
        return await self.readyz() == "ok"

    async def waits(self) -> bool:
        return (await self.readyz()).startswith("ok: waiting")


class StockFederation(User):
    patience = 90.0

    def __init__(self, plane: Cluster, members: dict[str, Cluster]):
        self.plane = plane
        self.clusters = members
        self.names = list(members)
        self._client = plane.client()
        self._members = {name: cluster.client() for name, cluster in members.items()}
        self._started: list[Controllers] = []

    @property
    def client(self) -> Client:
        return self._client

    def member(self, name: str) -> Client:
        return self._members[name]

    def controllers(self, name: str, *arguments: str) -> Controllers:
        """Started; ends with the federation at the latest."""
        made = Controllers(name, self.plane.folder, self.plane.kubeconfig, *arguments)
        self._started.append(made)
        made.start()
        return made

    @property
    def running(self) -> list[Controllers]:
        return [each for each in self._started if each.process.running]

    async def leading(self, *controllers: Controllers) -> None:
        for each in controllers:
            await self.eventually(each.leads, f"{each.process.name} leads")

    async def lease(self, name: str = "argosy-controllers") -> dict[str, Any]:
        return (await self.client.get(LEASES, name, keys.SYSTEM_NAMESPACE))["spec"]

    async def holder(self) -> str:
        return (await self.lease()).get("holderIdentity") or ""

    async def join_all(self) -> None:
        for name, cluster in self.clusters.items():
            user = cluster.config["users"][0]["user"]
            authority = cluster.config["clusters"][0]["cluster"]["certificate-authority-data"]
            data = {
                keys.SECRET_CA: authority,
                keys.SECRET_CLIENT_CERTIFICATE: user["client-certificate-data"],
                keys.SECRET_CLIENT_KEY: user["client-key-data"],
            }
            await self.client.create(SECRETS, cluster_secret(name, data))
            await self.client.create(resources.FEDERATED_CLUSTERS, federated_cluster(name, cluster.server))
        await self.eventually(self._all_ready, "all members are ready")

    async def _all_ready(self) -> bool:
        listed = await self.client.list(resources.FEDERATED_CLUSTERS, into=FederatedCluster)
        return {cluster.name for cluster in listed.items if cluster.ready} == set(self.names)

    async def namespaces(self, *names: str) -> None:
        """Each with a policy that carries everything to all members."""
        for name in names:
            await self.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
            await self.policy(namespace=name, schedulingMode="Duplicate")

    def writes(self) -> list[Write]:
        """All writes of controllers processes so far, in the control plane ("") and in members."""
        return writes({"": self.plane, **self.clusters})

    async def close(self) -> None:
        await asyncio.gather(*(each.process.stop() for each in self._started))
        for client in (self._client, *self._members.values()):
            await client.close()


def writes(clusters: Mapping[str, Cluster]) -> list[Write]:
    """All writes of controllers processes so far in these clusters, whose logs are on."""
    return [
        write
        for name, cluster in clusters.items()
        for event in cluster.audit
        if (write := _write(name, event)) is not None
    ]


def _write(cluster: str, event: dict[str, Any]) -> Write | None:
    agent = _AGENT.fullmatch(event.get("userAgent", ""))
    if agent is None or event["stage"] != "ResponseComplete":
        return None
    about = event.get("objectRef") or {}
    if about.get("resource", "").endswith("reviews"):  # questions, asked by POST
        return None
    return Write(
        cluster,
        agent[2],
        agent[1],
        event["verb"],
        about.get("resource", ""),
        about.get("namespace", ""),
        about.get("name", ""),
        about.get("subresource", ""),
        (event.get("responseStatus") or {}).get("code", 0),
        datetime.fromisoformat(event["requestReceivedTimestamp"]),
    )


@asynccontextmanager
async def stock_federation(kubernetes: Kubernetes, members: int) -> AsyncIterator[StockFederation]:
    """Clusters of its own; no controllers run yet."""
    (plane,), others = await asyncio.gather(kubernetes(1, PLANE), kubernetes(members, MEMBER))
    federation = StockFederation(plane, {f"m{number}": one for number, one in enumerate(others, 1)})
    try:
        yield federation
    finally:
        await federation.close()


async def settled(federation: StockFederation, quiet: float = 3.0) -> None:
    """Until no controllers have written anything for a while."""
    seen, since = -1, 0.0
    loop = asyncio.get_running_loop()

    def still() -> bool:
        nonlocal seen, since
        count = len(federation.writes())
        if count != seen:
            seen, since = count, loop.time()
        return loop.time() - since > quiet

    await eventually(still, federation.patience, "nobody writes any more")
