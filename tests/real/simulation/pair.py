"""Pair: one scenario played on two members at once. Orders go to both; at each station they must come to agree."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from argosy.kube.client import Patch
from argosy.kube.resource import Resource
from tests.harness.eventually import eventually
from tests.real.simulation import view
from tests.real.simulation.record import PODS, Object, Record
from tests.real.simulation.worlds import World

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
#: Long, for machines that have much else to do.
PATIENCE = 90.0
GATE = "example.org/open"


class Disagreement(AssertionError):
    pass


class Side:
    def __init__(self, world: World, record: Record):
        self.world = world
        self.record = record

    def all(self, kind: str) -> list[Object]:
        return list(self.record.objects[kind].values())

    def one(self, kind: str, name: str) -> Object:
        """The object, or an empty one."""
        return self.record.objects[kind].get(name) or {"metadata": {}, "spec": {}, "status": {}}


class Pair:
    def __init__(self, namespace: str, sides: tuple[Side, Side]):
        self.namespace = namespace
        self.sides = sides

    async def open(self) -> None:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        for side in self.sides:
            client = side.world.client
            await client.create(NAMESPACES, body)
            await eventually(lambda c=client: c.get(ACCOUNTS, "default", self.namespace), PATIENCE)

    async def create(self, resource: Resource, obj: Object) -> None:
        for side in self.sides:
            made = await side.world.client.create(resource, obj, self.namespace)
            await self._told(side, made)

    async def patch(self, resource: Resource, name: str, body: Object) -> None:
        for side in self.sides:
            client = side.world.client
            changed = await client.patch(resource, name, body, self.namespace, kind=Patch.STRATEGIC)
            await self._told(side, changed)

    async def delete(self, resource: Resource, name: str, propagation: str | None = None) -> None:
        for side in self.sides:
            version = int(side.one(resource.kind, name)["metadata"]["resourceVersion"])
            await side.world.client.delete(resource, name, self.namespace, propagation=propagation)
            await eventually(
                lambda s=side, v=version: s.record.has_seen(resource.kind, name, v + 1),
                PATIENCE,
                "the deletion is told",
            )

    async def _told(self, side: Side, obj: Object) -> None:
        """Wait until the record has what was written: what is compared from now on comes after it."""
        kind, metadata = obj["kind"], obj["metadata"]
        version = int(metadata["resourceVersion"])
        await eventually(lambda: side.record.has_seen(kind, metadata["name"], version), PATIENCE, "the write is told")

    async def add_node(self, name: str) -> None:
        """A machine only for those of this scenario who ask for it: see `only`."""
        taint = {"key": "only", "value": self.namespace, "effect": "NoSchedule"}
        labels = {"only": self.namespace, "machine": name}
        await asyncio.gather(*(side.world.add_node(f"{self.namespace}-{name}", labels, [taint]) for side in self.sides))

    def only(self) -> Object:
        """For a pod's spec: runs on the machines of this scenario alone."""
        return {
            "nodeSelector": {"only": self.namespace},
            "tolerations": [{"key": "only", "operator": "Exists", "effect": "NoSchedule"}],
        }

    async def agree(self, station: str, holds: Callable[[Side], Any] = lambda side: True) -> None:
        """Wait until `holds` is true of both and their states are equal. Raises Disagreement."""
        deadline = time.monotonic() + PATIENCE
        one, other = self.sides
        while True:
            for side in self.sides:
                side.record.changed.clear()
            told = [bool(holds(side)) for side in self.sides]
            if all(told) and view.state(one.record) == view.state(other.record):
                return
            left = deadline - time.monotonic()
            if left <= 0:
                states = [view.state(side.record) for side in self.sides]
                names = (one.world.name, other.world.name)
                missing = [name for name, there in zip(names, told, strict=True) if not there]
                text = f"{station}: not reached by {missing}\n" if missing else f"{station}:\n"
                raise Disagreement(text + view.difference(states[0], states[1], names))
            waits = [asyncio.create_task(side.record.changed.wait()) for side in self.sides]
            await asyncio.wait(waits, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()

    def same(self, what: str, look: Callable[[Record], Any]) -> None:
        """What the records tell must be equal. Raises Disagreement."""
        one, other = (look(side.record) for side in self.sides)
        if one != other:
            names = [side.world.name for side in self.sides]
            raise Disagreement(f"{what}:\n  {names[0]}: {one}\n  {names[1]}: {other}")

    async def open_gates(self, count: int, image: str) -> None:
        """Let so many pods with this image, which wait at their gates, be ready."""
        for side in self.sides:
            waiting = [
                pod for pod in side.all("Pod") if _is_gated(pod) and pod["spec"]["containers"][0]["image"] == image
            ]
            assert len(waiting) >= count, f"{side.world.name}: {len(waiting)} pods at their gates, not {count}"
            for pod in sorted(waiting, key=lambda one: one["metadata"]["name"])[:count]:
                body = {"status": {"conditions": [{"type": GATE, "status": "True"}]}}
                client, name = side.world.client, pod["metadata"]["name"]
                opened = await client.patch(
                    PODS, name, body, self.namespace, kind=Patch.STRATEGIC, subresource="status"
                )
                await self._told(side, opened)


def _is_gated(pod: Object) -> bool:
    now = view.conditions(pod)
    return now.get("Ready") == "False ReadinessGatesNotReady" and GATE not in now
