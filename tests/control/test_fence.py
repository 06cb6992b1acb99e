"""The fence: controllers whose lease is in doubt write nothing, neither to members nor to the control plane."""

import asyncio

import pytest

from argosy.control.fence import FenceLost, fenced
from argosy.control.manager import Manager
from argosy.kube.errors import NotFound
from tests.harness.eventually import eventually, holds
from tests.harness.federation import CONFIGMAPS, DEPLOYMENTS, Federation
from tests.harness.virtual_server import connector

OBJECT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}}


class Gate:
    """A fence that is lost on command."""

    def __init__(self) -> None:
        self.open = True
        self.refused = 0

    def check(self) -> None:
        if not self.open:
            self.refused += 1
            raise FenceLost("lost")


class FencedFederation(Federation):
    """One whose controllers ask a gate."""

    def __init__(self, members: int):
        super().__init__(members)
        self.gate = Gate()

    async def start_controllers(self) -> None:
        self._manager_client = self.plane.client()
        self.manager = Manager(self._manager_client, timings=self.timings, fence=self.gate, connect=connector())
        self._run = asyncio.create_task(self.manager.run())
        await eventually(self.manager.ready.is_set, why="controllers ready")

    async def version(self) -> str:
        """Of the whole control plane: any write moves it on."""
        return (await self.client.list(CONFIGMAPS, limit=1)).resource_version


async def test_reads_pass_and_writes_do_not() -> None:
    async with Federation(1) as fed:
        gate = Gate()
        client = fenced(fed.client, gate)
        await client.create(CONFIGMAPS, OBJECT)
        gate.open = False
        assert (await client.get(CONFIGMAPS, "c", "default"))["metadata"]["name"] == "c"
        assert (await client.list(CONFIGMAPS, "default")).items
        for write in (
            client.create(CONFIGMAPS, {**OBJECT, "metadata": {"name": "d", "namespace": "default"}}),
            client.patch(CONFIGMAPS, "c", {"data": {"a": "1"}}, "default"),
            client.update(CONFIGMAPS, OBJECT),
            client.delete(CONFIGMAPS, "c", "default"),
        ):
            with pytest.raises(FenceLost):
                await write
        found = await fed.client.get(CONFIGMAPS, "c", "default")
        assert "data" not in found
        with pytest.raises(NotFound):
            await fed.client.get(CONFIGMAPS, "d", "default")


async def test_nothing_is_written_anywhere_once_the_fence_is_lost() -> None:
    async with FencedFederation(2) as fed:
        await fed.policy(schedulingMode="Duplicate")
        await fed.deploy("web", 2)
        await fed.eventually_replicas({"m1": 2, "m2": 2})
        fed.gate.open = False
        await fed.scale("web", 5)
        await fed.deploy("other", 1)
        await fed.member("m2").delete(DEPLOYMENTS, "web", "default")
        await fed.client.delete(DEPLOYMENTS, "web", "default")
        version = await fed.version()

        async def untouched() -> bool:
            return (
                await fed.version() == version
                and await fed.replicas("web") == {"m1": 2}
                and await fed.replicas("other") == {}
            )

        await holds(untouched, 1.5)
        assert fed.gate.refused > 3, "it wanted to"

        # A new term starts with new eyes.
        await fed.stop_controllers()
        fed.gate.open = True
        await fed.start_controllers()
        await fed.eventually_replicas({})
        await fed.eventually_replicas({"m1": 1, "m2": 1}, "other")
        await eventually(lambda: _gone(fed), why="the deployment is gone")


async def _gone(fed: Federation) -> bool:
    return not await fed.exists(DEPLOYMENTS, "web", "default")
