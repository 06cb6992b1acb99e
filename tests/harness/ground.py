"""Grounds: whole federations that scenarios run on unchanged, whatever they are made of.

    async with simulated_ground(folder) as ground:            (a) embedded control plane, simulated members
    async with embedded_ground(folder, clusters) as ground:   (b) embedded control plane, stock members
    async with stock_ground(plane, clusters) as ground:       (c) stock control plane, stock members

    ground.client                    the user's, of the control plane; survives restarts of it
    ground.candidates["m1"]          a member: client, url, kubeconfig, and a relay to cut, silence, refuse and heal
    async with ground.world() as w:  a namespace of one's own, and what a user does and sees there

The controllers run in this process with one scaled `Timings`. Stock clusters are the caller's and outlive the ground, so it
leaves them as it found them (`leave`). A ground belongs to the event loop it was entered in.
"""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from argosy.api import keys, resources
from argosy.control.manager import Manager
from argosy.control.options import Options
from argosy.control.timings import Timings
from argosy.kube import chance
from argosy.kube.client import Client
from argosy.kube.errors import ApiError, NotFound
from argosy.testing import Cluster
from tests.harness import candidates
from tests.harness.candidates import Candidate, Credentials
from tests.harness.federation import QUICK, UNBRAKED
from tests.harness.inside import Inside
from tests.harness.planes import EmbeddedPlane, Plane, StockPlane, VirtualPlane
from tests.harness.user import EVENTS, NAMESPACES, SECRETS, User, cluster_secret, exists, federated_cluster, reported
from tests.harness.virtual import virtual_loop
from tests.harness.virtual_server import connector

__all__ = ["GROUND", "Credentials", "Ground", "World", "embedded_ground", "simulated_ground", "stock_ground"]

NAMES = ("m1", "m2", "m3")
#: Quick, but with time to answer for processes that share two cores: a member is lost after three looks in vain, each of
#: them patient, not after one.
GROUND = msgspec.structs.replace(
    QUICK,
    health_period=6.0,
    health_threshold=10.0,
    apis_kept=10.0,
    member_silence=2.0,
    types_kept=2.0,
    watch_liveness=15.0,
)
#: Where members are in this process nobody is slower than we are.
SIMULATED = msgspec.structs.replace(GROUND, health_period=1.0, health_threshold=5.0, apis_kept=5.0)
_MANAGED = f"{keys.MANAGED_LABEL}=true"


class Ground(User):
    """Joined and ready when it is entered. `patience` is how long anything may take here until it counts as failed."""

    def __init__(
        self,
        plane: Plane,
        members: Iterable[Candidate],
        *,
        timings: Timings = GROUND,
        options: Options = UNBRAKED,
        patience: float = 30.0,
    ):
        self.plane = plane
        self.timings = timings
        self.options = options
        self.patience = patience
        self.candidates = {candidate.name: candidate for candidate in members}
        self.names = list(self.candidates)
        self.manager: Manager | None = None
        self._client: Client | None = None
        self._controllers: tuple[asyncio.Task[None], Client] | None = None
        self._relays = contextlib.AsyncExitStack()
        self._numbers = itertools.count(1)
        self._worlds: list[str] = []

    async def __aenter__(self) -> "Ground":
        try:
            await self.plane.start()
            self._client = self.plane.client()
            await self.install()
            for candidate in self.candidates.values():
                await self._relays.enter_async_context(candidate.relay)
            await self.start_controllers()
            await asyncio.gather(*(self.join(name) for name in self.names))
            await self.eventually_ready(*self.names)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop_controllers()
        if self._client is not None:
            await self._client.close()
        await self._relays.aclose()
        for candidate in self.candidates.values():
            await candidate.client.close()
        await self.plane.kill()

    @property
    def client(self) -> Client:
        assert self._client is not None
        return self._client

    @property
    def inside(self) -> Inside:
        assert self.manager is not None
        return Inside(self.manager)

    def member(self, name: str) -> Client:
        return self.candidates[name].client

    # The controllers and the plane.

    async def install(self) -> None:
        """As an operator does at first, and again when a type config was added."""
        await self.plane.install(self.client)

    async def start_controllers(self) -> None:
        client = self.plane.controllers_client()
        self.manager = manager = Manager(client, options=self.options, timings=self.timings, connect=connector())
        self._controllers = (asyncio.create_task(manager.run()), client)
        await self.eventually(manager.ready.is_set, "the controllers are ready")

    async def stop_controllers(self) -> None:
        if self._controllers is None:
            return
        task, client = self._controllers
        self._controllers = None
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await client.close()

    async def restart_plane(self) -> None:
        """API server and controllers end, wherever they are in their work, and come back on the same data."""
        await self.stop_controllers()
        await self.plane.kill()
        await self.plane.start()
        await self.start_controllers()

    # Members come and go.

    async def join(self, name: str, credentials: str = Credentials.CERTIFICATE, **spec: Any) -> None:
        """As a user would; `eventually_ready` says whether it worked."""
        candidate, kind = self.candidates[name], Credentials(credentials)
        if kind is Credentials.SERVICE_ACCOUNT:
            spec = {"useServiceAccount": True, **spec}
        await self.client.create(SECRETS, cluster_secret(name, await candidate.secret(kind)))
        await self.client.create(resources.FEDERATED_CLUSTERS, federated_cluster(name, candidate.url, **spec))

    async def unjoin(self, name: str) -> None:
        """Until the cluster has left and its secret is gone. Annotate it first where copies are to go along.

        Scenarios before this one are over: what of theirs had not been deleted there would stay for good.
        """
        await self.eventually_alone()
        await self.client.delete(resources.FEDERATED_CLUSTERS, name)
        await self.eventually_gone(resources.FEDERATED_CLUSTERS, name)
        await self.forget_secret(name)

    async def eventually_alone(self) -> None:
        """Nothing is left of scenarios before this one."""
        for namespace in self._worlds[:-1]:
            await self.eventually_gone(NAMESPACES, namespace)

    async def forget_secret(self, name: str) -> None:
        await self.client.delete(SECRETS, name, keys.SYSTEM_NAMESPACE)

    async def conditions(self, name: str) -> dict[str, dict[str, Any]]:
        """Of a FederatedCluster, by type."""
        cluster = await self.client.get(resources.FEDERATED_CLUSTERS, name)
        return {each["type"]: each for each in (cluster.get("status") or {}).get("conditions") or ()}

    async def is_ready(self, name: str) -> bool:
        conditions = await self.conditions(name)
        return all(conditions.get(each, {}).get("status") == "True" for each in ("Joined", "Ready"))

    async def eventually_ready(self, *names: str) -> None:
        for name in names:
            try:
                await self.eventually(lambda name=name: self.is_ready(name))
            except AssertionError:
                raise AssertionError(f"{name} did not get ready: {await self.conditions(name)}") from None

    async def eventually_unready(self, name: str) -> None:
        async def unready() -> bool:
            return not await self.is_ready(name)

        await self.eventually(unready, f"{name} is shown as not ready")

    async def eventually_gone(self, resource: Any, name: str, namespace: str | None = None) -> None:
        """From the control plane. If it is not, the failure tells what it waits for."""

        async def gone() -> bool:
            return not await self.exists(resource, name, namespace)

        try:
            await self.eventually(gone, f"{resource.kind} {name} is gone")
        except AssertionError as error:
            left = await self.client.get(resource, name, namespace)
            conditions = (left.get("status") or {}).get("conditions")
            told = await self._told(resource.kind, name)
            raise AssertionError(f"{error}: {left['metadata']}, {conditions}, {told}") from None

    async def _told(self, kind: str, name: str) -> list[str]:
        """What events say about an object."""
        listed = await self.client.list(EVENTS)
        of = [each for each in listed.items if each["involvedObject"].items() >= {"kind": kind, "name": name}.items()]
        return [f"{each['reason']}: {each['message']}" for each in of]

    async def eventually_released(self, name: str) -> None:
        """The member's system namespace, by which it belongs to us, is gone: it can be joined again."""

        async def released() -> bool:
            return not await exists(self.member(name), NAMESPACES, keys.SYSTEM_NAMESPACE)

        await self.eventually(released, f"{name} is released")

    # Scenarios.

    @contextlib.asynccontextmanager
    async def world(self) -> AsyncIterator["World"]:
        """A new namespace, whose deletion is asked for at the end; `leave` sees it through.

        All members are ready: an object placed without one of them would not come to it later.
        """
        await self.eventually_ready(*self.names)
        namespace = f"scenario-{next(self._numbers)}-{chance.token(2).hex()}"
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        await self.client.create(NAMESPACES, manifest)
        self._worlds.append(namespace)
        try:
            yield World(self, namespace)
        finally:
            for candidate in self.candidates.values():
                candidate.relay.heal()
            with contextlib.suppress(NotFound):
                await self.client.delete(NAMESPACES, namespace)

    async def leave(self) -> None:
        """Everything of ours goes from control plane and members, as users make it go; AssertionError where it does not."""
        try:
            for namespace in self._worlds:
                await self.eventually_gone(NAMESPACES, namespace)
            for name in self.names:
                await self.client.delete(resources.FEDERATED_CLUSTERS, name)
            for name in self.names:
                await self.eventually_gone(resources.FEDERATED_CLUSTERS, name)
                await self.eventually_released(name)
                assert not await self._managed(name), f"copies are left in {name}"
        except BaseException:
            await asyncio.gather(*(self._clear(name) for name in self.names), return_exceptions=True)
            raise

    async def _managed(self, name: str) -> list[str]:
        """Names of managed namespaces: what else is managed is in one of them, and goes with it."""
        listed = await self.member(name).list(NAMESPACES, label_selector=_MANAGED)
        return [item["metadata"]["name"] for item in listed.items if not item["metadata"].get("deletionTimestamp")]

    async def _clear(self, name: str) -> None:
        """By force, for those who use the cluster after us."""
        await self.stop_controllers()
        for namespace in (*await self._managed(name), keys.SYSTEM_NAMESPACE):
            with contextlib.suppress(ApiError):
                await self.member(name).delete(NAMESPACES, namespace)
        await self.eventually_released(name)


class World(User):
    """One scenario's namespace on a ground."""

    def __init__(self, ground: Ground, namespace: str):
        self.ground = ground
        self.namespace = namespace
        self.names = ground.names
        self.patience = ground.patience

    @property
    def client(self) -> Client:
        return self.ground.client

    def member(self, name: str) -> Client:
        return self.ground.member(name)

    async def rejoin(self, name: str, credentials: str = Credentials.CERTIFICATE) -> None:
        """Until the namespace it kept is ours again: one that is deleted before that would stay there for good."""
        await self.ground.join(name, credentials)
        await self.ground.eventually_ready(name)

        async def taken_over() -> bool:
            federated = await self.client.get(resources.CLUSTER_FEDERATED_OBJECTS, f"{self.namespace}-namespaces")
            return reported(federated).get(name) == "OK"

        await self.eventually(taken_over, f"the namespace is propagated to {name} again")


@contextlib.asynccontextmanager
async def simulated_ground(folder: Path, **options: Any) -> AsyncIterator[Ground]:
    """On virtual time the folder stays empty, and relays are faults of the network."""
    async with contextlib.AsyncExitStack() as stack:
        members = [await stack.enter_async_context(candidates.simulated(name, nodes=2)) for name in NAMES]
        plane = EmbeddedPlane(folder) if virtual_loop() is None else VirtualPlane()
        yield await stack.enter_async_context(Ground(plane, members, **{"timings": SIMULATED, **options}))


@contextlib.asynccontextmanager
async def embedded_ground(folder: Path, clusters: Sequence[Cluster], **options: Any) -> AsyncIterator[Ground]:
    async with Ground(EmbeddedPlane(folder), _stock_members(clusters), **{"patience": 180.0, **options}) as ground:
        yield ground


@contextlib.asynccontextmanager
async def stock_ground(plane: Cluster, clusters: Sequence[Cluster], **options: Any) -> AsyncIterator[Ground]:
    async with Ground(StockPlane(plane), _stock_members(clusters), **{"patience": 180.0, **options}) as ground:
        yield ground


def _stock_members(clusters: Sequence[Cluster]) -> list[Candidate]:
    return [candidates.stock(cluster, f"m{number}") for number, cluster in enumerate(clusters, 1)]
