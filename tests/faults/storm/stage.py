"""What a storm happens to: a ground (b) or (c) whose control plane and controllers are processes that can be killed.

    stage(None, members, folder)    (b) `argosy up` in one process, stock members
    stage(plane, members, folder)   (c) stock control plane, two `argosy controllers`, stock members

Each part that can fail is a target; those of the network are relays, in front of each member and, on (c), between each
controllers process and the control plane.
"""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec

from argosy.api import keys
from argosy.cli.local import access
from argosy.kube import config
from argosy.kube.client import Client
from argosy.kube.errors import ApiError, TransportError
from argosy.kube.http import HttpTransport
from argosy.kube.lease import LEASES
from argosy.testing import API_SERVER, Cluster, StartError, kubeconfig
from argosy.testing.component import Component
from argosy.testing.ports import free_ports
from tests.faults.processes import EAGER
from tests.faults.storm.plan import LEADER, PLANE, STANDBY, Kind
from tests.harness import candidates
from tests.harness.candidates import Candidate
from tests.harness.ground import Ground
from tests.harness.planes import StockPlane
from tests.harness.relay import Relay
from tests.real.controllers import Controllers

__all__ = ["FEDERATION", "MEMBER", "Stage", "Target", "stage"]

#: With somebody who writes copies' statuses and annotations beside us; without pods, which would cost a lot and show nothing.
MEMBER = msgspec.structs.replace(API_SERVER, audit=True, controllers=(*API_SERVER.controllers, "deployment-controller"))

#: Who our controllers are to the members, so that audit logs tell them from everybody else.
FEDERATION = "federation"
#: Longer than any fault lasts: a request to a paused server is answered in the end, so that nothing open happens late.
_PATIENCE = 60.0
_START = 120.0


class Target:
    """Something that fails. `begin` and `end` belong together; one fault at a time."""

    def __init__(self, name: str, process: Component | None = None, relay: Relay | None = None):
        self.name = name
        self.process = process
        self.relay = relay
        self.busy = False

    async def begin(self, kind: Kind) -> None:
        match kind:
            case Kind.CUT:
                assert self.relay is not None
                self.relay.refuse()
                self.relay.cut()
            case Kind.SILENCE:
                assert self.relay is not None
                self.relay.silence()
            case Kind.PAUSE | Kind.OUTSLEEP:
                assert self.process is not None
                self.process.pause()
            case _:
                self._kill(kind)

    async def end(self, kind: Kind) -> None:
        match kind:
            case Kind.CUT | Kind.SILENCE:
                assert self.relay is not None
                self.relay.heal()
            case Kind.PAUSE | Kind.OUTSLEEP:
                assert self.process is not None
                self.process.resume()
            case _:
                await self._start()

    def _kill(self, kind: Kind) -> None:
        assert self.process is not None
        self.process.kill()

    async def _start(self) -> None:
        assert self.process is not None
        if not self.process.running:  # it may have ended by itself before, and be started again already
            self.process.start()


class ClusterTarget(Target):
    """The process that pauses is kube-apiserver."""

    def __init__(self, name: str, cluster: Cluster, relay: Relay | None = None):
        super().__init__(name, cluster["kube-apiserver"], relay)
        self._cluster = cluster

    def _kill(self, kind: Kind) -> None:
        super()._kill(kind)
        if kind is Kind.KILL_ALL:
            self._cluster["etcd"].kill()

    async def _start(self) -> None:
        # Others of its components may end while it is away, as Kubernetes' own do; somebody starts them again.
        deadline = time.monotonic() + _START
        while True:
            for component in self._cluster.components.values():
                if not component.running:
                    component.start()
            try:
                return await self._cluster.ready()
            except StartError:
                if time.monotonic() > deadline:
                    raise


class EmbeddedProcess:
    """`argosy up` without members: API server and controllers in one process."""

    def __init__(self, folder: Path):
        self._folder = folder
        (port,) = free_ports(1)
        self.url = f"https://127.0.0.1:{port}"
        command = [sys.executable, "-m", "argosy.cli", "up", "--data", str(folder / "data"), "--port", str(port)]
        self.process = Component("argosy-up", command, folder)

    async def start(self) -> None:
        if not self.process.running:
            self.process.start()
        deadline = time.monotonic() + _START
        while not await self._answers():
            assert self.process.running, self.process.tail()
            assert time.monotonic() < deadline, self.process.tail()
            await asyncio.sleep(0.05)

    async def _answers(self) -> bool:
        try:
            client = self.client()
        except config.ConfigError:
            return False
        try:
            return await client.request("GET", "/readyz") is not None
        except (ApiError, TransportError):
            return False
        finally:
            await client.close()

    async def kill(self) -> None:
        self.process.kill()

    async def install(self, client: Client) -> None:
        """It has done so itself."""

    def client(self) -> Client:
        connection = config.load(str(self._folder / "data" / "kubeconfig"), "argosy")
        return Client(HttpTransport(connection, timeout=_PATIENCE, backoff=EAGER, user_agent="storm"))

    def controllers_client(self) -> Client:
        raise NotImplementedError("its controllers run inside")


class _StockPlane(StockPlane):
    def client(self) -> Client:
        return self.cluster.client(timeout=_PATIENCE, backoff=EAGER, user_agent="storm")

    async def kill(self) -> None:
        """It is the caller's to stop."""


class Stage(Ground):
    def __init__(self, plane: Cluster | None, members: Sequence[Cluster], folder: Path):
        self.letter = "b" if plane is None else "c"
        self.clusters = {f"m{number}": cluster for number, cluster in enumerate(members, 1)}
        self.stock_plane = plane
        self.folder = folder
        self.controllers: list[Controllers] = []
        #: Controllers that ended by themselves.
        self.restarts = 0
        chosen = _StockPlane(plane) if plane is not None else EmbeddedProcess(folder)
        super().__init__(chosen, [_member(cluster, name) for name, cluster in self.clusters.items()], patience=_START)
        self.targets: dict[str, Target] = {
            name: ClusterTarget(name, cluster, self.candidates[name].relay) for name, cluster in self.clusters.items()
        }
        if isinstance(chosen, EmbeddedProcess):
            self.targets[PLANE] = Target(PLANE, chosen.process)
        else:
            self.targets[PLANE] = ClusterTarget(PLANE, chosen.cluster)

    @property
    def audited(self) -> dict[str, Cluster]:
        """All whose logs tell of writes, by name; the control plane's is there where it is stock."""
        return self.clusters if self.stock_plane is None else {PLANE: self.stock_plane, **self.clusters}

    async def start_controllers(self) -> None:
        if self.stock_plane is None:
            return
        for name in ("controllers-1", "controllers-2"):
            relay = await self._relays.enter_async_context(Relay("127.0.0.1", self.stock_plane.ports.apiserver))
            credential = self.stock_plane.authority.client(access.CONTROLLERS)
            authority = self.stock_plane.authority.certificate
            path = self.folder / f"{name}.kubeconfig"
            kubeconfig.write(path, kubeconfig.entry("plane", relay.url, authority, access.CONTROLLERS, credential))
            process = Controllers(name, self.folder, path, "--no-install")
            process.start()
            self.controllers.append(process)
            self.targets[name] = Target(name, process.process, relay)

        async def one_leads() -> bool:
            return any([await each.leads() for each in self.controllers])

        await self.eventually(one_leads, "one of the controllers leads")

    async def stop_controllers(self) -> None:
        for each in self.controllers:
            await each.process.stop(grace=30.0)

    async def supervise(self) -> None:
        """Controllers that end by themselves are started again, as whoever runs them would."""
        while True:
            for each in self.controllers:
                if each.process.crashed:
                    self.restarts += 1
                    each.start()
            await asyncio.sleep(1.0)

    async def target(self, name: str) -> Target | None:
        """None for a leader while there is none, or nobody to ask."""
        if name not in (LEADER, STANDBY):
            return self.targets[name]
        try:
            async with asyncio.timeout(5):
                lease = await self.client.get(LEASES, "argosy-controllers", keys.SYSTEM_NAMESPACE)
        except (ApiError, TransportError, TimeoutError):
            return None
        holder = (lease["spec"].get("holderIdentity") or "").split("_")
        leads = [each for each in self.controllers if str(each.process.pid) in holder]
        chosen = leads if name == LEADER else [each for each in self.controllers if each not in leads]
        return self.targets[chosen[0].process.name] if chosen else None

    def logs(self) -> dict[str, str]:
        """Of our own processes."""
        if self.stock_plane is not None:
            return {each.process.name: each.log for each in self.controllers}
        log = self.folder / "data" / "logs" / "control-plane.log"
        return {"argosy-up": log.read_text() if log.exists() else ""}


def _member(cluster: Cluster, name: str) -> Candidate:
    candidate = candidates.stock(cluster, name)
    return candidate._replace(issue=lambda: cluster.authority.client(FEDERATION, ["system:masters"]))


@contextlib.asynccontextmanager
async def stage(plane: Cluster | None, members: Sequence[Cluster], folder: Path) -> AsyncIterator[Stage]:
    made = Stage(plane, members, folder)
    async with made:
        yield made
