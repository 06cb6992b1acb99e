"""Intruder: somebody with rights in the members, who edits and deletes copies there behind the federation's back."""

import asyncio
import random
from collections import Counter
from typing import Any

from argosy.api import keys
from argosy.kube.client import Client
from argosy.kube.errors import ApiError, TransportError
from tests.faults.storm.tenants import NAMESPACE
from tests.harness.user import CONFIGMAPS, DEPLOYMENTS

__all__ = ["Intruder"]

_MANAGED = f"{keys.MANAGED_LABEL}=true"


class Intruder:
    """Its clients give up soon: a member that is away is another one's turn."""

    def __init__(self, members: dict[str, Client], seed: int):
        self._members = members
        self._chance = random.Random(f"{seed} intruder")
        self.done: Counter[str] = Counter()

    async def run(self, over: asyncio.Event) -> None:
        while not over.is_set():
            try:
                async with asyncio.timeout(5):
                    await self._step(self._members[self._chance.choice(list(self._members))])
            except (ApiError, TransportError, TimeoutError):
                self.done["failed"] += 1
            await asyncio.sleep(self._chance.uniform(0.3, 1.5))

    async def _step(self, member: Client) -> None:
        resource = self._chance.choice((DEPLOYMENTS, DEPLOYMENTS, CONFIGMAPS))
        copies = (await member.list(resource, NAMESPACE, label_selector=_MANAGED)).items
        if not copies:
            return
        name = self._chance.choice(copies)["metadata"]["name"]
        what = self._chance.choice(("edit", "edit", "label", "delete"))
        if what == "delete":
            await member.delete(resource, name, NAMESPACE, propagation="Background")
        elif what == "label":
            await member.patch(resource, name, {"metadata": {"labels": {"intruder": "was-here"}}}, NAMESPACE)
        elif resource is CONFIGMAPS:
            await member.patch(resource, name, {"data": {"value": "drifted", "more": "drifted"}}, NAMESPACE)
        else:
            drift: dict[str, Any] = self._chance.choice(({"replicas": 77}, {"paused": True}, {"minReadySeconds": 99}))
            await member.patch(resource, name, {"spec": drift}, NAMESPACE)
        self.done[what] += 1
