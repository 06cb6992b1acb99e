"""Two members for one scenario: what they offer beyond their API is adding, losing and recovering machines."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import yaml

import argosy.testing
from argosy.kube import config
from argosy.kube.client import Client
from argosy.kube.errors import Conflict, NotFound
from argosy.kube.http import HttpTransport
from argosy.kube.resource import Resource
from argosy.server import kubeconfig
from argosy.sim.member import Member
from argosy.sim.spec import MemberSpec, NodePool
from argosy.sim.timings import Timings
from argosy.testing import Cluster, Options
from argosy.testing.nodes import is_ready, node
from tests.harness.eventually import eventually

NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
PODS = Resource("", "v1", "pods", "Pod")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
#: The machines every scenario finds.
BASE = 3
CAPACITY = {"cpu": "8", "memory": "32Gi", "pods": "110"}
OPTIONS = Options(nodes=BASE, capacity=CAPACITY)
TIMINGS = Timings(start=0.03, stop=0.02, node_grace=0.2, job=0.05, settle=0.005)
#: Seconds without a sign of life after which kube-controller-manager calls a node unreachable, and between kwok's signs.
_GRACE, _LEASE = 20, 12
_HARNESS_STAGES = Path(argosy.testing.__file__).with_name("stages.yaml")
_OWN_STAGES = Path(__file__).with_name("stages.yaml")
_TROUBLE = ["app:bad", "app:crash"]


class World(Protocol):
    name: str
    client: Client

    async def add_node(self, name: str, labels: Mapping[str, str], taints: list[dict[str, str]]) -> None:
        """One more machine, and its node Ready."""
        ...

    async def lose_node(self, name: str) -> None: ...

    async def recover_node(self, name: str) -> None: ...


class Simulated:
    name = "simulated"

    def __init__(self, member: Member, client: Client):
        self.member = member
        self.client = client

    async def add_node(self, name: str, labels: Mapping[str, str], taints: list[dict[str, str]]) -> None:
        await self.member.add_node(name, CAPACITY, labels, taints)

    async def lose_node(self, name: str) -> None:
        self.member.lose_node(name)

    async def recover_node(self, name: str) -> None:
        self.member.recover_node(name)


class Stock:
    name = "stock"

    def __init__(self, cluster: Cluster, client: Client):
        self.cluster = cluster
        self.client = client
        self._lost: set[str] = set()
        self._leaving: dict[str, dict[str, Any]] = {}
        self._stops: dict[str, asyncio.Task[None]] = {}

    def observe_pod(self, pod: dict[str, Any]) -> None:
        """Have a pod that was deleted go, if its node is not lost.

        As a kubelet does it: this pod, by its uid. kwok deletes by name alone, and may do so twice, whereupon the second one
        hits the next pod of that name; and it goes on with the pods of nodes it has let go of.
        """
        metadata, node = pod["metadata"], pod["spec"].get("nodeName")
        if "deletionTimestamp" not in metadata or metadata["uid"] in self._stops:
            return
        if node in self._lost:
            self._leaving[metadata["uid"]] = pod
        elif node:
            self._stops[metadata["uid"]] = asyncio.create_task(self._stop(metadata))

    async def _stop(self, metadata: dict[str, Any]) -> None:
        with contextlib.suppress(NotFound, Conflict):
            await self.client.delete(PODS, metadata["name"], metadata["namespace"], uid=metadata["uid"], grace_period=0)

    async def add_node(self, name: str, labels: Mapping[str, str], taints: list[dict[str, str]]) -> None:
        manifest = node(name, CAPACITY, labels)
        manifest["spec"] = {"taints": taints}
        await self.client.create(NODES, manifest)

        async def ready() -> bool:
            found = await self.client.get(NODES, name)
            rest = [one for one in found["spec"].get("taints") or () if one["key"] not in {t["key"] for t in taints}]
            return is_ready({**found, "spec": {"taints": rest}})

        await eventually(ready, 60, f"{name} is ready")

    async def lose_node(self, name: str) -> None:
        """kwok no longer speaks for a node whose lease is somebody else's."""
        self._lost.add(name)
        await self._hand_lease("nobody", 3600, name)

    async def recover_node(self, name: str) -> None:
        self._lost.remove(name)
        await self._hand_lease("nobody", 1, name)
        for pod in [one for one in self._leaving.values() if one["spec"]["nodeName"] == name]:
            self.observe_pod(pod)

    async def _hand_lease(self, holder: str, seconds: int, name: str) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": now}
        await self.client.patch(LEASES, name, {"spec": spec}, "kube-node-lease")


@asynccontextmanager
async def simulated(folder: Path, name: str) -> AsyncIterator[Simulated]:
    """A member of its own for each scenario, spoken to over HTTPS."""
    pool = NodePool(BASE, cpu=CAPACITY["cpu"], memory=CAPACITY["memory"], pods=int(CAPACITY["pods"]))
    member = Member(MemberSpec("sim", (pool,)), TIMINGS)
    await member.open()
    path = folder / f"{name}.kubeconfig"
    kubeconfig.write(path, member.kubeconfig())
    client = Client(HttpTransport(config.load(str(path))))
    try:
        yield Simulated(member, client)
    finally:
        await client.close()
        await member.close()


async def prepare(cluster: Cluster, folder: Path) -> None:
    """Give a cluster of the harness our stages, and less patience with silent nodes."""
    stages = folder / "stages.yaml"
    stages.write_text(yaml.safe_dump_all([*_restricted(_HARNESS_STAGES), *_read(_OWN_STAGES)]))
    kwok, manager = cluster["kwok"], cluster["kube-controller-manager"]
    kwok.command = [f"--config={stages}" if one.startswith("--config=") else one for one in kwok.command]
    kwok.command.append(f"--node-lease-duration-seconds={_LEASE}")
    manager.command.append(f"--node-monitor-grace-period={_GRACE}s")
    for component in (kwok, manager):
        component.kill()
    # Each kwok has a name of its own and would wait for the leases of the one before to run out.
    client = cluster.client()
    try:
        await client.delete_collection(LEASES, "kube-node-lease")
    finally:
        await client.close()
    for component in (kwok, manager):
        component.start()
    await cluster.ready()


def _read(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text()))


def _restricted(path: Path) -> list[dict[str, Any]]:
    """The harness' stages, less what ours are for and less stopping pods, which is up to `Stock`."""
    stages = _read(path)
    for stage in stages:
        if stage["metadata"]["name"] == "pod-ready":
            stage["spec"]["selector"]["matchExpressions"] += [
                {"key": ".spec.containers.[].image", "operator": "NotIn", "values": _TROUBLE},
            ]
    return [stage for stage in stages if stage["metadata"]["name"] != "pod-delete"]
