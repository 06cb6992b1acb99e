"""The judge of one world: all lines, and what they found."""

from functools import partial

from argosy.server.storage.base import Change
from tests.world.judge.busy import Busy
from tests.world.judge.causes import Causes
from tests.world.judge.claims import Claims
from tests.world.judge.departures import Departures
from tests.world.judge.durable import Durable
from tests.world.judge.foreign import Foreign
from tests.world.judge.heard import Heard
from tests.world.judge.heldcopies import HeldCopiesStay
from tests.world.judge.leadership import Leadership
from tests.world.judge.line import Line
from tests.world.judge.log import UnexpectedErrors
from tests.world.judge.ownwrites import OwnWrites
from tests.world.judge.paused import Paused
from tests.world.judge.placements import Placements
from tests.world.judge.preconditions import Preconditions
from tests.world.judge.reported import Reported
from tests.world.judge.silent import Silent
from tests.world.judge.statuses import Statuses
from tests.world.judge.untouched import Untouched
from tests.world.judge.writeahead import WriteAhead
from tests.world.world import World

__all__ = ["Judge"]

#: Of what is broken again and again so much is told.
_MOST = 10


class Judge:
    def __init__(self, world: World):
        self._world = world
        self.failures: list[str] = []
        disks = {server.name: server.disk for server in (world.plane, *world.members.values())}
        self._processes = {place.name: place for place in world.places}
        self.silent = Silent(self.broken, world.loop.time)
        self.untouched = Untouched(self.broken, {name: member.disk for name, member in world.members.items()})
        self.departures = Departures(self.broken, world.loop.time)
        members, time = {name: member.disk for name, member in world.members.items()}, world.loop.time
        shards = {each.name: each.shard for each in world.controllers}
        self.lines: list[Line] = [
            Durable(self.broken, disks),
            Leadership(self.broken, world.plane.disk, shards),
            OwnWrites(self.broken, disks, time, lambda name: str(self._processes[name].process)),
            Preconditions(self.broken),
            Busy(self.broken, time),
            Placements(self.broken, time, world.plane.disk, world.cpus, world.controllers[0].shard.count),
            Claims(self.broken, world.plane.disk),
            Reported(self.broken, members, time),
            Causes(self.broken, time),
            Foreign(self.broken),
            HeldCopiesStay(self.broken, world.plane.disk, frozenset(shards), time),
            Paused(self.broken, time),
            Statuses(self.broken, world.plane.disk, members, time, self.departures),
            Heard(self.broken, time, world.plane.disk, members, world.controllers, world.network),
            WriteAhead(self.broken, world.plane.disk, members, self.departures),
            self.departures,
            self.untouched,
            self.silent,
        ]
        self.log = UnexpectedErrors(self.broken)
        world.watching.extend(self.lines)
        for name, disk in disks.items():
            disk.observers.append(partial(self._stored, name))

    def broken(self, what: str) -> None:
        if len(self.failures) < _MOST:
            self.failures.append(f"{self._world.loop.time():.3f} {what}")

    def _stored(self, server: str, change: Change) -> None:
        for line in self.lines:
            line.stored(server, change)
