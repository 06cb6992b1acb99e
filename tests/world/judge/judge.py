"""The judge of one world: all lines, and what they found."""

from functools import partial

from argosy.server.storage.base import Change
from tests.world.judge.causes import Causes
from tests.world.judge.durable import Durable
from tests.world.judge.foreign import Foreign
from tests.world.judge.leadership import Leadership
from tests.world.judge.line import Line
from tests.world.judge.log import UnexpectedErrors
from tests.world.judge.paused import Paused
from tests.world.judge.silent import Silent
from tests.world.judge.statuses import Statuses
from tests.world.world import World

__all__ = ["Judge"]

#: Of what is broken again and again so much is told.
_MOST = 10


class Judge:
    def __init__(self, world: World):
        self._world = world
        self.failures: list[str] = []
        disks = {server.name: server.disk for server in (world.plane, *world.members.values())}
        self.silent = Silent(self.broken)
        self.lines: list[Line] = [
            Durable(self.broken, disks),
            Leadership(self.broken, world.plane.disk),
            Causes(self.broken, world.loop.time),
            Foreign(self.broken),
            Paused(self.broken, world.loop.time),
            Statuses(self.broken, {name: member.disk for name, member in world.members.items()}, world.loop.time),
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
