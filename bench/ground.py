"""Ground: a running federation, as a benchmark sees it: the user's client, the members' watches, and whose CPU time counts.

`simulated` has Argosy's own members, `stock` has stock Kubernetes as members and, if wanted, as control plane. Everything is a
process of its own on loopback, and ends with the benchmark.
"""

import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from argosy.api import keys, resources
from argosy.cli.client.membership import register, wait_ready
from argosy.kube import config
from argosy.kube.client import Client
from argosy.kube.errors import ApiError, TransportError
from argosy.kube.http import HttpTransport
from argosy.kube.informer import Change, Informer
from argosy.kube.lease import LEASES
from argosy.kube.objects import Metadata
from argosy.kube.resource import Resource
from argosy.testing import CONTROL_PLANE, Cluster, Options, clusters
from argosy.testing.component import Component
from argosy.testing.ports import free_ports
from bench.processes import argosy, pid_of, until
from bench.usage import cpu_seconds, peak_mib, resident_mib

DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
EVENTS = Resource("", "v1", "events", "Event")
#: Of each member, so that every pod of the largest run finds room.
SIMULATED_NODES = 40
STOCK_NODES = Options(nodes=4, capacity={"cpu": "64", "memory": "256Gi", "pods": "1000"}, audit=True)
_READY = 120.0
#: Benchmarks delete all they have made.
UNBRAKED = ("--brake-share", "100")


class _Spec(msgspec.Struct, frozen=True):
    replicas: int = 0


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    ready_replicas: int = 0
    updated_replicas: int = 0
    observed_generation: int = 0


class Deployment(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()


class Ground:
    """`controllers` is the process they run in; of an embedded control plane it is the API server as well."""

    def __init__(
        self,
        plane: config.Connection,
        members: Mapping[str, config.Connection],
        controllers: Component,
        *,
        plane_cluster: Cluster | None = None,
        member_clusters: Mapping[str, Cluster] | None = None,
    ):
        self.names = list(members)
        self.controllers = controllers
        self.client = Client(HttpTransport(plane, qps=1e6, burst=1_000_000))
        self.members = {name: Client(HttpTransport(connection)) for name, connection in members.items()}
        #: Where these are stock clusters.
        self.plane_cluster = plane_cluster
        self.member_clusters = dict(member_clusters or {})
        #: Deployment -> members that hold it, as their watches tell.
        self.present: dict[str, dict[str, Deployment]] = {}
        self.sources: Informer[Deployment] = Informer(self.client, DEPLOYMENTS, Deployment, namespace="default")
        #: What was written beside the objects themselves, as watches tell: events, and the heartbeats of clusters and leases.
        self.events = 0
        self.heartbeats = 0
        self.changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def cpu(self) -> float:
        return cpu_seconds(pid_of(self.controllers))

    def resident(self) -> float:
        return resident_mib(pid_of(self.controllers))

    def peak(self) -> float:
        return peak_mib(pid_of(self.controllers))

    async def join(self, members: Mapping[str, config.Connection]) -> None:
        for name, connection in members.items():
            await register(self.client, name, connection, {})
        for name in members:
            await wait_ready(self.client, name, _READY, lambda text: None)

    async def watch(self) -> None:
        """Start to look; returns when everything has been listed once."""
        self.sources.add_handler(lambda change: self.changed.set())
        informers: list[Informer[Any]] = [self.sources]
        for name, client in self.members.items():
            informer: Informer[Deployment] = Informer(client, DEPLOYMENTS, Deployment, namespace="default")
            informer.add_handler(self._seen_by(name))
            informers.append(informer)
        events: Informer[Any] = Informer(self.client, EVENTS, Deployment)
        events.add_handler(self._event)
        heartbeats: Informer[Any] = Informer(self.client, resources.FEDERATED_CLUSTERS, Deployment)
        heartbeats.add_handler(self._heartbeat)
        leases: Informer[Any] = Informer(self.client, LEASES, Deployment)
        leases.add_handler(self._heartbeat)
        informers += [events, heartbeats, leases]
        self._tasks = [asyncio.create_task(informer.run()) for informer in informers]
        for informer in informers:
            await informer.synced.wait()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for client in (self.client, *self.members.values()):
            await client.close()

    def _seen_by(self, member: str) -> Callable[[Change[Deployment]], None]:
        def seen(change: Change[Deployment]) -> None:
            name = change.key.partition("/")[2]
            if change.new is None:
                self.present.get(name, {}).pop(member, None)
            else:
                self.present.setdefault(name, {})[member] = change.new
            self.changed.set()

        return seen

    def _event(self, change: Change[Any]) -> None:
        self.events += change.new is not None

    def _heartbeat(self, change: Change[Any]) -> None:
        self.heartbeats += change.old is not None

    def everywhere(self, name: str) -> bool:
        return len(self.present.get(name, {})) == len(self.names)

    def reported(self, name: str, replicas: int) -> bool:
        """Whether the user's object says that all replicas are ready."""
        source = self.sources.get(f"default/{name}")
        return (
            source is not None
            and source.status.ready_replicas == replicas
            and source.status.updated_replicas == replicas
            and source.status.observed_generation == source.metadata.generation
        )

    async def until(self, condition: Callable[[], bool], timeout: float = 60.0) -> None:
        async with asyncio.timeout(timeout):
            while not condition():
                self.changed.clear()
                await self.changed.wait()

    async def until_all(self, names: list[str], done: Callable[[str], bool], stalled: float = 60.0) -> None:
        """However long it takes, as long as it goes on: the members' own pods are what takes the time here."""
        waiting, told = set(names), time.perf_counter()
        while waiting:
            self.changed.clear()
            left = {name for name in waiting if not done(name)}
            now = time.perf_counter()
            if len(left) < len(waiting) and now - told > 10:
                print(f"  {len(names) - len(left)} of {len(names)}", file=sys.stderr)
                told = now
            waiting = left
            if waiting:
                try:
                    async with asyncio.timeout(stalled):
                        await self.changed.wait()
                except TimeoutError:
                    some = ", ".join(sorted(waiting)[:5])
                    raise SystemExit(f"nothing changes any more, and {len(waiting)} are not done: {some}") from None
                await asyncio.sleep(0.05)

    async def create_policy(self) -> None:
        placement = [{"cluster": name, "preferences": {"weight": 1}} for name in self.names]
        policy = {
            "apiVersion": keys.API_VERSION,
            "kind": "PropagationPolicy",
            "metadata": {"name": "bench", "namespace": "default"},
            "spec": {"schedulingMode": "Divide", "placement": placement},
        }
        await self.client.create(resources.PROPAGATION_POLICIES, policy)

    async def version(self) -> int:
        """The embedded control plane's version counts its writes."""
        page = await self.client.list(resources.FEDERATED_TYPE_CONFIGS, into=bytes)
        return int(page.resource_version)


@contextlib.asynccontextmanager
async def simulated(members: int) -> AsyncIterator[Ground]:
    """`argosy up` and, in a process of their own, members with room for everything; joined and ready."""
    with tempfile.TemporaryDirectory(prefix="argosy-bench-") as name:
        folder = Path(name)
        fleet = folder / "fleet"
        simulation = argosy(
            *("sim", folder / "sim", "sim", "--members", str(members)),
            *("--nodes", str(SIMULATED_NODES), "--data", str(fleet)),
        )
        up = argosy("up", folder / "up", "up", "--data", str(folder / "data"), *UNBRAKED)
        try:
            await until(simulation, (fleet / "kubeconfig").exists)
            names = [f"member-{number}" for number in range(1, members + 1)]
            connections = {name: config.load(str(fleet / "kubeconfig"), name) for name in names}
            async with _opened(await _embedded(up, folder / "data"), connections, up) as ground:
                yield ground
        finally:
            await up.stop()
            await simulation.stop()


@contextlib.asynccontextmanager
async def stock(members: int, plane: str) -> AsyncIterator[Ground]:
    """Stock members; the control plane is `argosy up` ("embedded") or kube-apiserver with `argosy controllers` ("stock")."""
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="argosy-bench-")))
        started = await stack.enter_async_context(clusters(members, STOCK_NODES))
        connections = {cluster.name: cluster.connection() for cluster in started}
        hub: Cluster | None = None
        if plane == "stock":
            options = msgspec.structs.replace(CONTROL_PLANE, audit=True)
            (hub,) = await stack.enter_async_context(clusters(1, options))
            port = free_ports(1)[0]
            controllers = argosy(
                *("controllers", folder / "controllers", "controllers"),
                *("--kubeconfig", str(hub.kubeconfig), "--port", str(port), *UNBRAKED),
            )
            stack.push_async_callback(controllers.stop)
            connection = hub.connection()
        else:
            controllers = argosy("up", folder / "up", "up", "--data", str(folder / "data"), *UNBRAKED)
            stack.push_async_callback(controllers.stop)
            connection = await _embedded(controllers, folder / "data")
        by_name = {cluster.name: cluster for cluster in started}
        opened = _opened(connection, connections, controllers, plane_cluster=hub, member_clusters=by_name)
        yield await stack.enter_async_context(opened)


@contextlib.asynccontextmanager
async def _opened(
    plane: config.Connection, members: Mapping[str, config.Connection], controllers: Component, **clusters: Any
) -> AsyncIterator[Ground]:
    """Joined, watched and with its policy."""
    ground = Ground(plane, members, controllers, **clusters)
    try:
        await installed(ground)
        await ground.join(members)
        await ground.watch()
        await ground.create_policy()
        yield ground
    finally:
        await ground.close()


async def _embedded(up: Component, data: Path) -> config.Connection:
    await until(up, (data / "kubeconfig").exists)
    return config.load(str(data / "kubeconfig"), "argosy")


async def installed(ground: Ground) -> None:
    """Until the control plane answers and has the federation's kinds and the namespace of its secrets."""
    deadline = time.monotonic() + _READY
    while True:
        try:
            await ground.client.list(resources.PROPAGATION_POLICIES, into=bytes)
            await ground.client.get(
                Resource("", "v1", "namespaces", "Namespace", namespaced=False), keys.SYSTEM_NAMESPACE
            )
            return
        except (ApiError, TransportError) as error:
            pid_of(ground.controllers)  # where that has ended there is nothing to wait for
            if time.monotonic() > deadline:
                raise SystemExit(f"the control plane is not ready: {error}") from None
            await asyncio.sleep(0.1)
