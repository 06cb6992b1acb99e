"""The processes of a world: the control plane's API server, its controllers, and members. Each can crash, stop and come back."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextvars import Context
from random import Random

import msgspec

from argosy.api import keys
from argosy.api.shards import WHOLE, Shard, lease_name
from argosy.cli.local.leasefence import LeaseFence
from argosy.control.manager import Manager
from argosy.control.options import Options
from argosy.control.sharding.election import ShardElection
from argosy.control.timings import Timings
from argosy.fleet.credentials import Connection
from argosy.kube import chance, clock
from argosy.kube.challenge import Challenge
from argosy.kube.client import Client
from argosy.kube.lease import LeaderElector
from argosy.server.admission.chain import MakePlugin
from argosy.server.assembly import Assembly
from argosy.server.auth.identity import User
from argosy.server.http.limits import Limits
from argosy.sim.cluster import Cluster
from argosy.sim.manager import ControllerManager
from argosy.sim.spec import MemberSpec
from argosy.sim.timings import Timings as SimulatedTimings
from tests.harness.federation import UNBRAKED
from tests.world.clocks import ProcessClock
from tests.world.disk import Disk, DiskStorage
from tests.world.loop import PROCESS, Process, WorldLoop
from tests.world.network import Network
from tests.world.wire import Wire

__all__ = ["ADMIN", "PLANE", "Controllers", "Place", "Server", "address", "token"]

PLANE = "plane"
ADMIN = User("admin", ("system:masters", "system:authenticated"))


def address(member: str) -> str:
    """By which the control plane knows a member."""
    return f"https://{member}:6443"


def token(member: str) -> str:
    """The federation's, there."""
    return f"token-of-{member}"


class Place(ABC):
    """Where a process runs, one after the other."""

    def __init__(self, loop: WorldLoop, network: Network, seed: str, name: str):
        self.name = name
        self.clock = ProcessClock(loop)
        self.process: Process | None = None
        self._loop = loop
        self._network = network
        self._seed = seed
        self._runs = 0

    async def start(self) -> None:
        """Returns when it is under way, as far as its main function says."""
        assert self.process is None
        self._runs += 1
        name = f"{self.name}/{self._runs}"
        process = self.process = Process(name, self._loop.create_future())
        self.context = self._context(process, Random(f"{self._seed}/{name}"))
        main = self._loop.create_task(self._main(), context=self.context)
        assert process.gone is not None
        await asyncio.wait({main, process.gone}, return_when=asyncio.FIRST_COMPLETED)
        if main.done() and main.exception() is not None:
            self.crash()
            main.result()

    @property
    def runs(self) -> bool:
        return self.process is not None and not self.process.stopped

    def crash(self, *, silent: bool = False) -> None:
        """With `silent` nobody is told: the machine is gone as well."""
        assert self.process is not None
        self._loop.kill_process(self.process)
        self.process = None
        self._network.hang_up(self.name, silent=silent)
        self._network.leave(self.name)

    def pause(self) -> None:
        assert self.process is not None
        self._loop.stop_process(self.process)

    def resume(self) -> None:
        assert self.process is not None
        self._loop.continue_process(self.process)

    def _context(self, process: Process, source: Random) -> Context:
        context = Context()

        def enter() -> None:
            PROCESS.set(process)
            clock.set_clock(self.clock)
            chance.set_source(source)

        context.run(enter)
        return context

    @abstractmethod
    async def _main(self) -> None: ...


class Server(Place):
    """An API server on its disk; a member's has nodes and controllers of its own."""

    def __init__(
        self,
        loop: WorldLoop,
        network: Network,
        seed: str,
        name: str,
        disk: Disk,
        *,
        signing_key: bytes,
        admission: Sequence[MakePlugin] = (),
        spec: MemberSpec | None = None,
        timings: SimulatedTimings,
    ):
        super().__init__(loop, network, seed, name)
        self.disk = disk
        self._signing_key = signing_key
        self._admission = admission
        self._spec = spec
        self._timings = timings

    async def _main(self) -> None:
        storage = DiskStorage(self.disk, Random(f"{self._seed}/{self.process}/disk"))
        assembly = Assembly(
            storage,
            ca=b"",
            signing_key=self._signing_key,
            tokens={token(self.name): ADMIN},
            limits=Limits(),
            admission=self._admission,
        )
        await assembly.start()
        if self._spec is not None:
            machines = ControllerManager(Cluster(assembly.access, self._timings))
            await machines.open(list(self._spec.nodes()))
        self._assembly = assembly
        self._network.listen(self.name, assembly.server, self.context)

    async def shut_down(self) -> None:
        """In order, and for good."""
        self._network.hang_up(self.name)
        await self._loop.create_task(self._assembly.stop(), context=self.context)


class Controllers(Place):
    """`argosy controllers`: elected, and fenced."""

    def __init__(
        self,
        loop: WorldLoop,
        network: Network,
        seed: str,
        name: str,
        *,
        timings: Timings,
        shard: Shard = WHOLE,
        options: Options = UNBRAKED,
    ):
        super().__init__(loop, network, seed, name)
        self._timings = timings
        self.shard = shard
        #: Of the process that leads, or led last.
        self.manager: Manager | None = None
        self._options = msgspec.structs.replace(options, shard=shard)

    async def _main(self) -> None:
        self.manager = None
        self._client = Client(Wire(self._network, self.name, PLANE, ADMIN))
        running = asyncio.ensure_future(ShardElection(self._client, self.shard).run(self._elector, self._lead))
        running.add_done_callback(self._ended)

    def _ended(self, running: "asyncio.Future[None]") -> None:
        """They run until they are killed."""
        self._loop.errors.append(f"{self.process} ended: {running.exception()!r}")

    def _elector(self) -> LeaderElector:
        """Each process has an identity of its own: who comes back waits for the lease as everybody does."""
        return LeaderElector(self._client, keys.SYSTEM_NAMESPACE, lease_name(self.shard), str(self.process))

    async def _lead(self, elector: LeaderElector) -> None:
        self.manager = manager = Manager(
            self._client,
            options=self._options,
            timings=self._timings,
            fence=LeaseFence(elector),
            connect=self._connect,
        )
        await manager.run()

    def _connect(self, name: str, connection: Connection, challenge: Challenge | None) -> Client:
        host = connection.server.removeprefix("https://").partition(":")[0]
        headers = {"authorization": f"Bearer {connection.token.decode()}"}
        return Client(Wire(self._network, self.name, host, headers, challenge))
