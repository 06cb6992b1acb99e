"""What clients of the control plane did: each write is noted before it is sent and again when it was acknowledged."""

import asyncio
import random
from collections.abc import Awaitable
from typing import Any, Generic, NamedTuple, TypeVar

from argosy.kube.client import Client, Patch
from argosy.kube.errors import ApiError, TransportError
from tests.harness.federation import CONFIGMAPS, DEPLOYMENTS, deployment

__all__ = ["POLICY", "Ledger", "State", "Writer", "flat_out"]

POLICY = "everywhere"
NAMESPACE = "default"


class State(NamedTuple):
    """What a client wants of a Deployment, or the number in a ConfigMap."""

    replicas: int
    image: str = ""


S = TypeVar("S")


class Ledger(Generic[S]):
    """By name of the object; None is "deleted"."""

    def __init__(self) -> None:
        self.acknowledged: dict[str, S | None] = {}
        #: Sent and not answered: may or may not have happened.
        self.open: dict[str, S | None] = {}
        #: Whatever a write was begun for since `forget_touched`.
        self.touched: set[str] = set()
        self.writes = 0
        self.highest = 0

    async def write(self, name: str, state: S | None, request: Awaitable[dict[str, Any]]) -> bool:
        """False when no answer came, or one that leaves open what happened."""
        highest = self.highest
        self.touched.add(name)
        self.open[name] = state
        try:
            answer = await request
        except TransportError:
            return False
        except ApiError as error:
            if error.code < 500:
                raise
            return False
        version = int(answer.get("metadata", {}).get("resourceVersion") or 0)
        assert version == 0 or version > highest, f"the version of {name} went back: {version} after {highest}"
        self.highest = max(self.highest, version)
        if version:
            self.answered(name, version)
        self.acknowledged[name] = state
        del self.open[name]
        self.writes += 1
        return True

    def answered(self, name: str, version: int) -> None:
        """A write was acknowledged with this version."""

    def allowed(self, name: str) -> list[S | None]:
        known = [self.acknowledged.get(name)]
        return [*known, self.open[name]] if name in self.open else known

    def resolve(self, found: dict[str, S]) -> None:
        """Every acknowledged write is there, and nothing that nobody wrote; what was open is now known."""
        for name in self.acknowledged.keys() | self.open.keys() | found.keys():
            self.settle(name, found.get(name))

    def settle(self, name: str, found: S | None) -> None:
        """The same of one object."""
        assert found in self.allowed(name), f"{name}: found {found}, allowed {self.allowed(name)}"
        self.acknowledged[name] = found
        self.open.pop(name, None)


class Writer:
    """One client with a few Deployments of its own, which it makes, changes and deletes until the server is gone."""

    def __init__(self, number: int, ledger: Ledger[State], chance: random.Random, most: int = 3):
        self._prefix = f"w{number}"
        self._ledger = ledger
        self._chance = chance
        self._most = most
        self._made = 0

    async def run(self, client: Client) -> None:
        answered = True
        while answered:
            answered = await self._step(client)
            await asyncio.sleep(self._chance.uniform(0, 0.05))

    async def _step(self, client: Client) -> bool:
        chance, ledger = self._chance, self._ledger
        own = {n: s for n, s in ledger.acknowledged.items() if s is not None and n.startswith(self._prefix + "-")}
        choice = chance.random()
        if not own or (len(own) < self._most and choice < 0.4):
            self._made += 1
            name, state = f"{self._prefix}-{self._made}", State(chance.randint(1, 5), "nginx:1.29")
            body = deployment(name, state.replicas, POLICY)
            return await ledger.write(name, state, client.create(DEPLOYMENTS, body))
        name, old = chance.choice(sorted(own.items()))
        if choice > 0.85:
            return await ledger.write(name, None, client.delete(DEPLOYMENTS, name, NAMESPACE))
        image = f"nginx:1.{chance.randint(29, 40)}" if choice > 0.7 else old.image
        # Never the same again: a write that changes nothing is answered with the version that is there.
        state = State(chance.choice([n for n in range(1, 6) if n != old.replicas]), image)
        container = {"name": "main", "image": state.image}
        change = {"spec": {"replicas": state.replicas, "template": {"spec": {"containers": [container]}}}}
        request = client.patch(DEPLOYMENTS, name, change, NAMESPACE, kind=Patch.STRATEGIC)
        return await ledger.write(name, state, request)


async def flat_out(name: str, ledger: Ledger[State], client: Client) -> None:
    """Count up in a ConfigMap without a pause until the server is gone."""
    number = 0
    if ledger.acknowledged.get(name) is None:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE}}
        if not await ledger.write(name, State(0), client.create(CONFIGMAPS, {**body, "data": {"n": "0"}})):
            return
    number = (ledger.acknowledged[name] or State(0)).replicas + 1
    while await ledger.write(
        name, State(number), client.patch(CONFIGMAPS, name, {"data": {"n": str(number)}}, NAMESPACE)
    ):
        number += 1
