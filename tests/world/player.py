"""The player: carries out a script in a world, each step at its time, and in the end makes everything well again."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from argosy.api import keys, resources
from argosy.kube.client import Patch
from argosy.kube.errors import ApiError, NotFound, TransportError
from argosy.server.storage.base import StorageError
from tests.harness.user import CONFIGMAPS, DEPLOYMENTS, NAMESPACES, deployment
from tests.world import script as steps
from tests.world.network import Link
from tests.world.places import Place
from tests.world.script import Script, Step
from tests.world.world import World

__all__ = ["Player"]

NAMESPACE = "default"
#: What a user gets to see when something is down.
TROUBLE = (ApiError, TransportError)
_AGAIN = 2.0


class Player:
    def __init__(self, world: World):
        self._world = world
        self._places = {place.name: place for place in world.places}
        #: How many faults of a kind there are on a link now.
        self._faults: Counter[tuple[str, str, str]] = Counter()
        self._actions: dict[type, Callable[[Any], Coroutine[Any, Any, None]]] = {
            steps.Deploy: self._deploy,
            steps.Configure: self._configure,
            steps.Scale: self._scale,
            steps.Roll: self._roll,
            steps.Delete: self._delete,
            steps.Follow: self._follow,
            steps.Rule: self._rule,
            steps.Taint: self._taint,
            steps.Tamper: self._tamper,
            steps.Replace: self._replace,
            steps.Pause: self._pause,
            steps.Crash: self._crash,
            steps.Stop: self._stop,
            steps.Cut: self._cut,
            steps.Lose: self._lose,
            steps.Refuse: self._refuse,
            steps.Slow: self._slow,
            steps.Impostor: self._impostor,
            steps.Forget: self._forget,
            steps.SetClock: self._set_clock,
            steps.FillDisk: self._fill_disk,
        }

    async def play(self, script: Script) -> None:
        """To the last step, and then until everything is well: what still runs then runs as it should."""
        began = self._world.loop.time()
        tasks = [asyncio.create_task(self._at(began + step.at, step)) for step in script]
        await asyncio.gather(*tasks)
        await self.heal()

    async def heal(self) -> None:
        world = self._world
        world.network.heal()
        world.plane.disk.full = False
        for place in self._places.values():
            if place.process is not None and place.process.stopped:
                place.resume()
        for place in self._places.values():
            await self._until_started(place)

    async def _at(self, when: float, step: Step) -> None:
        await asyncio.sleep(when - self._world.loop.time())
        with suppress(*TROUBLE):
            await self._actions[type(step)](step)

    # Users.

    async def _deploy(self, step: steps.Deploy) -> None:
        await self._world.user.create(DEPLOYMENTS, deployment(step.name, step.replicas, step.policy, NAMESPACE))

    async def _configure(self, step: steps.Configure) -> None:
        labels = {keys.PROPAGATION_POLICY_LABEL: step.policy}
        manifest = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": step.name, "namespace": NAMESPACE, "labels": labels},
            "data": {"value": step.value},
        }
        try:
            change = {"data": {"value": step.value}, "metadata": {"labels": labels}}
            await self._world.user.patch(CONFIGMAPS, step.name, change, NAMESPACE, kind=Patch.MERGE)
        except NotFound:
            await self._world.user.create(CONFIGMAPS, manifest)

    async def _scale(self, step: steps.Scale) -> None:
        await self._world.user.patch(DEPLOYMENTS, step.name, {"spec": {"replicas": step.replicas}}, NAMESPACE)

    async def _roll(self, step: steps.Roll) -> None:
        containers = [{"name": "main", "image": step.image}]
        change = {"spec": {"template": {"spec": {"containers": containers}}}}
        await self._world.user.patch(DEPLOYMENTS, step.name, change, NAMESPACE, kind=Patch.STRATEGIC)

    async def _delete(self, step: steps.Delete) -> None:
        await self._world.user.delete(DEPLOYMENTS if step.kind == "Deployment" else CONFIGMAPS, step.name, NAMESPACE)

    async def _follow(self, step: steps.Follow) -> None:
        change = {"metadata": {"labels": {keys.PROPAGATION_POLICY_LABEL: step.policy}}}
        await self._world.user.patch(DEPLOYMENTS, step.name, change, NAMESPACE, kind=Patch.MERGE)

    async def _rule(self, step: steps.Rule) -> None:
        user, policies = self._world.user, resources.PROPAGATION_POLICIES
        if step.spec is None:
            await user.delete(policies, step.policy, NAMESPACE)
            return
        metadata = {"name": step.policy, "namespace": NAMESPACE}
        manifest = {
            "apiVersion": keys.API_VERSION,
            "kind": "PropagationPolicy",
            "metadata": metadata,
            "spec": step.spec,
        }
        try:
            found = await user.get(policies, step.policy, NAMESPACE)
        except NotFound:
            await user.create(policies, manifest)
        else:
            await user.update(policies, {**found, "spec": step.spec})

    async def _taint(self, step: steps.Taint) -> None:
        taints = [{"key": "user", "effect": step.effect}] if step.effect else None
        change = {"spec": {"taints": taints}}
        await self._world.user.patch(resources.FEDERATED_CLUSTERS, step.cluster, change, kind=Patch.MERGE)

    async def _tamper(self, step: steps.Tamper) -> None:
        client = self._world.administrator(step.member)
        if step.replicas is None:
            await client.delete(DEPLOYMENTS, step.name, NAMESPACE)
        else:
            await client.patch(DEPLOYMENTS, step.name, {"spec": {"replicas": step.replicas}}, NAMESPACE)

    async def _replace(self, step: steps.Replace) -> None:
        client = self._world.administrator(step.member)
        with suppress(NotFound):
            await client.delete(DEPLOYMENTS, step.name, NAMESPACE)
        await client.create(DEPLOYMENTS, deployment(step.name, 1, "", NAMESPACE))
        await asyncio.sleep(step.seconds)
        await self._until_done(lambda: self._take_away(step))

    async def _take_away(self, step: steps.Replace) -> None:
        """Unless it is one of ours by now."""
        client = self._world.administrator(step.member)
        with suppress(NotFound):
            found = await client.get(DEPLOYMENTS, step.name, NAMESPACE)
            if (found["metadata"].get("labels") or {}).get(keys.MANAGED_LABEL) != "true":
                await client.delete(DEPLOYMENTS, step.name, NAMESPACE)

    async def _pause(self, step: steps.Pause) -> None:
        await self._annotate(step, "true")
        await asyncio.sleep(step.seconds)
        await self._until_done(lambda: self._annotate(step, None))

    async def _annotate(self, step: steps.Pause, value: str | None) -> None:
        change = {"metadata": {"annotations": {keys.PAUSED: value}}}
        resource, name, namespace = {
            "fleet": (NAMESPACES, keys.SYSTEM_NAMESPACE, None),
            "cluster": (resources.FEDERATED_CLUSTERS, step.name, None),
            "deployment": (DEPLOYMENTS, step.name, NAMESPACE),
        }[step.what]
        with suppress(NotFound):
            await self._world.user.patch(resource, name, change, namespace, kind=Patch.MERGE)

    async def _until_done(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """A user who does not give up."""
        while True:
            try:
                return await work()
            except TROUBLE:
                await asyncio.sleep(_AGAIN)

    # Faults.

    async def _crash(self, step: steps.Crash) -> None:
        place = self._places[step.place]
        if not place.runs:
            return
        place.crash()
        await asyncio.sleep(step.seconds)
        await self._until_started(place)

    async def _until_started(self, place: Place) -> None:
        while place.process is None:
            try:
                await place.start()
            except (StorageError, *TROUBLE):
                await asyncio.sleep(_AGAIN)

    async def _stop(self, step: steps.Stop) -> None:
        place = self._places[step.place]
        if not place.runs:
            return
        stopped = place.process
        place.pause()
        await asyncio.sleep(step.seconds)
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
        self._faults[fault] += 1
        await asyncio.sleep(seconds)
        self._faults[fault] -= 1
        if not self._faults[fault]:
            setattr(link, field, getattr(Link(), field))

    async def _slow(self, step: steps.Slow) -> None:
        await self._while(step.source, step.target, step.seconds, "latency", (step.latency / 2, step.latency))

    async def _impostor(self, step: steps.Impostor) -> None:
        impostors = self._world.network.impostors
        impostors[step.server] += 1
        await asyncio.sleep(step.seconds)
        impostors[step.server] -= 1

    async def _forget(self, step: steps.Forget) -> None:
        server = self._world.network.server(step.server)
        if server is not None:
            await server.store.compact(server.store.version)

    async def _set_clock(self, step: steps.SetClock) -> None:
        self._places[step.place].clock.ahead += step.seconds

    async def _fill_disk(self, step: steps.FillDisk) -> None:
        disk = self._world.plane.disk
        disk.full = True
        await asyncio.sleep(step.seconds)
        disk.full = False
