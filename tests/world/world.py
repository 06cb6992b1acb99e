"""A world: an API server, its controllers and members, the network between them, and a user. All of it follows from the seed."""

import base64
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from random import Random
from typing import TextIO, TypeVar

from argosy.api import keys, resources
from argosy.api.shards import Shard
from argosy.cli.local.caveats import Caveats
from argosy.cli.local.guard import Guard
from argosy.control.install.installer import install
from argosy.control.options import Options
from argosy.control.timings import Timings
from argosy.kube import chance, clock
from argosy.kube.client import Client
from argosy.kube.errors import AlreadyExists
from argosy.kube.transport import Event, Request
from argosy.server.auth.tokens import new_key
from argosy.sim.spec import MemberSpec, NodePool
from argosy.sim.timings import Timings as SimulatedTimings
from tests.harness.eventually import eventually
from tests.harness.federation import UNBRAKED
from tests.harness.user import SECRETS, cluster_secret, federated_cluster
from tests.world.clocks import ProcessClock
from tests.world.disk import Disk
from tests.world.loop import WorldLoop
from tests.world.network import ADMINISTRATOR, Network, Watching
from tests.world.places import ADMIN, PLANE, Controllers, Place, Server, address, token
from tests.world.trace import Trace
from tests.world.wire import Wire

__all__ = ["World", "play", "prepare"]

T = TypeVar("T")
USER = "user"
_MEMBERS = ("m1", "m2", "m3")


class World:
    def __init__(
        self,
        loop: WorldLoop,
        seed: str,
        *,
        members: Sequence[MemberSpec],
        controllers: int = 2,
        shards: int = 1,
        timings: Timings = Timings(),
        pods: SimulatedTimings | None = None,
        options: Options = UNBRAKED,
        disks: Mapping[str, Disk] = {},
        output: TextIO | None = None,
    ):
        """`disks` are those of earlier ones, by place. With shards, each controllers process has one."""
        self.loop = loop
        self.seed = seed
        self.trace = Trace(loop.time, output)
        self.watching: list[Watching] = [self.trace]
        self.network = Network(loop, Random(f"{seed}/network"), self)
        pods = pods or SimulatedTimings()
        disk = disks.get(PLANE) or Disk()
        self.plane = Server(
            loop, self.network, seed, PLANE, disk, signing_key=_key(), admission=(Guard, Caveats), timings=pods
        )
        self.members: dict[str, Server] = {}
        for spec in members:
            disk = disks.get(spec.name) or Disk()
            self.members[spec.name] = Server(
                loop, self.network, seed, spec.name, disk, signing_key=_key(), spec=spec, timings=pods
            )
        self.controllers = [
            Controllers(
                loop,
                self.network,
                seed,
                f"controllers-{number + 1}",
                timings=timings,
                shard=Shard(number % shards, shards),
                options=options,
            )
            for number in range(controllers)
        ]
        #: What each member has.
        self.cpus = {spec.name: sum(int(pool.cpu) * pool.count for pool in spec.pools) for spec in members}
        self.user = Client(Wire(self.network, USER, PLANE, ADMIN))

    # Whatever is said, all who watch are told.

    def sent(self, client: str, server: str, request: Request) -> None:
        for each in self.watching:
            each.sent(client, server, request)

    def answered(self, client: str, server: str, request: Request, answer: object) -> None:
        for each in self.watching:
            each.answered(client, server, request, answer)

    def heard(self, client: str, server: str, request: Request, answer: object) -> None:
        for each in self.watching:
            each.heard(client, server, request, answer)

    def told(self, client: str, server: str, request: Request, events: list[Event]) -> None:
        for each in self.watching:
            each.told(client, server, request, events)

    @property
    def places(self) -> list[Place]:
        return [self.plane, *self.members.values(), *self.controllers]

    async def open(self) -> None:
        """Everything runs, and the members are joined and ready, when this returns."""
        for place in self.places:
            await place.start()
        for name in self.members:
            await self.join(name)
        for name in self.members:
            await eventually(lambda name=name: self.is_ready(name), 60.0, f"{name} is ready")

    def administrator(self, place: str) -> Client:
        """Of a member, or of the control plane. Nothing happens to what he sends."""
        return Client(Wire(self.network, ADMINISTRATOR, place, ADMIN))

    async def join(self, name: str) -> None:
        data = {keys.SECRET_CA: b"none", keys.SECRET_BOOTSTRAP_TOKEN: token(name).encode()}
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        with suppress(AlreadyExists):
            await self.user.create(SECRETS, cluster_secret(name, encoded))
        await self.user.create(resources.FEDERATED_CLUSTERS, federated_cluster(name, address(name)))

    async def is_ready(self, name: str) -> bool:
        cluster = await self.user.get(resources.FEDERATED_CLUSTERS, name)
        conditions = (cluster.get("status") or {}).get("conditions") or ()
        states = {each["type"]: each["status"] for each in conditions}
        return states.get("Joined") == states.get("Ready") == "True"


def play(
    seed: str | int,
    work: Callable[[World], Awaitable[T]],
    *,
    members: Sequence[MemberSpec] | None = None,
    output: TextIO | None = None,
    **options: object,
) -> tuple[World, T]:
    """A world of this seed, from its beginning to the end of `work`."""
    specs = members if members is not None else [MemberSpec(name, (NodePool(3),)) for name in _MEMBERS]
    seed, disks = str(seed), {name: disk.copy() for name, disk in _installed().items()}

    async def made(loop: WorldLoop) -> tuple[World, T]:
        world = World(loop, seed, members=specs, disks=disks, output=output, **options)  # type: ignore[arg-type]
        await world.open()
        return world, await work(world)

    return _run(seed, made)


def prepare() -> None:
    """What all worlds begin with, made once."""
    _installed()
    _key()


def _run(seed: str, work: Callable[[WorldLoop], Awaitable[T]]) -> T:
    loop = WorldLoop(Random(f"{seed}/order"))

    async def begin() -> T:
        clock.set_clock(ProcessClock(loop))
        chance.set_source(Random(f"{seed}/{USER}"))
        return await work(loop)

    try:
        return loop.run_until_complete(begin())
    finally:
        loop.end()


@cache
def _installed() -> dict[str, Disk]:
    """The disks of a control plane on which Argosy was installed, and of members that were just made: without nodes."""

    async def made(loop: WorldLoop) -> dict[str, Disk]:
        world = World(loop, "installation", members=(), controllers=0)
        await world.plane.start()
        await install(world.user)
        servers = [world.plane, *(_empty(world, name) for name in _MEMBERS)]
        for server in servers[1:]:
            await server.start()
        for server in servers:
            await server.shut_down()
        return {server.name: server.disk.copy() for server in servers}

    return _run("installation", made)


def _empty(world: World, name: str) -> Server:
    return Server(world.loop, world.network, world.seed, name, Disk(), signing_key=_key(), timings=SimulatedTimings())


@cache
def _key() -> bytes:
    """Nothing in a world is signed with it."""
    return new_key()
