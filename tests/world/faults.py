"""Faults: what a script does to processes, links, clocks and disks, and how all of it ends."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

from argosy.kube.errors import ApiError, TransportError
from argosy.server.storage.base import StorageError
from tests.world import steps
from tests.world.network import Link
from tests.world.places import Place
from tests.world.world import World

__all__ = ["Faults"]

#: Seconds between two tries to start.
_AGAIN = 2.0


class Faults:
    def __init__(self, world: World):
        self._world = world
        self._places = {place.name: place for place in world.places}
        #: How many faults of a kind there are on a link now.
        self._links: Counter[tuple[str, str, str]] = Counter()
        self.actions: dict[type, Callable[[Any], Coroutine[Any, Any, None]]] = {
            steps.Crash: self._crash,
            steps.Restore: self._restore,
            steps.Stop: self._stop,
            steps.Suspend: self._suspend,
            steps.Cut: self._cut,
            steps.Lose: self._lose,
            steps.Refuse: self._refuse,
            steps.Slow: self._slow,
            steps.Impostor: self._impostor,
            steps.Gap: self._gap,
            steps.SetClock: self._set_clock,
            steps.FillDisk: self._fill_disk,
        }

    async def heal(self) -> None:
        """Everything runs again, by the right time, and everybody reaches everybody."""
        self._world.network.heal()
        self._world.plane.disk.full = False
        for place in self._places.values():
            place.clock.ahead = 0.0
            if place.process is not None and place.process.stopped:
                place.resume()
        for place in self._places.values():
            await self._until_started(place)

    async def _crash(self, step: steps.Crash) -> None:
        place = self._places[step.place]
        if not place.runs:
            return
        place.crash(silent=step.silent)
        await asyncio.sleep(step.seconds)
        await self._until_started(place)

    async def _restore(self, step: steps.Restore) -> None:
        server = self._world.members[step.server]
        copy = server.disk.copy()
        await asyncio.sleep(step.age)
        if server.process is not None:
            server.crash()
        server.disk.become(copy)
        await self._until_started(server)

    async def _until_started(self, place: Place) -> None:
        while place.process is None:
            try:
                await place.start()
            except (StorageError, ApiError, TransportError):
                await asyncio.sleep(_AGAIN)

    async def _stop(self, step: steps.Stop) -> None:
        await self._while_stopped(self._places[step.place], step.seconds)

    async def _suspend(self, step: steps.Suspend) -> None:
        place = self._places[step.place]
        place.clock.fall_asleep()
        await self._while_stopped(place, step.seconds)
        place.clock.wake_up()

    async def _while_stopped(self, place: Place, seconds: float) -> None:
        if place.runs:
            stopped = place.process
            place.pause()
            await asyncio.sleep(seconds)
            if place.process is stopped and stopped is not None and stopped.stopped:
                place.resume()

    async def _cut(self, step: steps.Cut) -> None:
        await self._while(step.source, step.target, step.seconds, "cut", True)

    async def _lose(self, step: steps.Lose) -> None:
        await self._while(step.source, step.target, step.seconds, "loss", step.share)

    async def _refuse(self, step: steps.Refuse) -> None:
        await self._while(step.client, step.server, step.seconds, "refused", step.share)

    async def _while(self, source: str, target: str, seconds: float, field: str, value: object) -> None:
        link, fault = self._world.network.link(source, target), (source, target, field)
        setattr(link, field, value)
        self._links[fault] += 1
        await asyncio.sleep(seconds)
        self._links[fault] -= 1
        if not self._links[fault]:
            setattr(link, field, getattr(Link(), field))

    async def _slow(self, step: steps.Slow) -> None:
        await self._while(step.source, step.target, step.seconds, "latency", (step.latency / 2, step.latency))

    async def _impostor(self, step: steps.Impostor) -> None:
        impostors = self._world.network.impostors
        impostors[step.server] += 1
        await asyncio.sleep(step.seconds)
        impostors[step.server] -= 1

    async def _gap(self, step: steps.Gap) -> None:
        network = self._world.network
        network.muted[step.server] = None
        await asyncio.sleep(step.seconds)
        server = network.server(step.server)
        if server is not None:
            await server.store.compact(server.store.version)
        network.unmute(step.server)

    async def _set_clock(self, step: steps.SetClock) -> None:
        self._places[step.place].clock.ahead += step.seconds

    async def _fill_disk(self, step: steps.FillDisk) -> None:
        disk = self._world.plane.disk
        disk.full = True
        await asyncio.sleep(step.seconds)
        disk.full = False
