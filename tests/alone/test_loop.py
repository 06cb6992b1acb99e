"""The event loop of the control plane stays free while large lists are read, watches run and many objects are reconciled.

`ARGOSY_LOAD=full` does it with 10,000 objects and 500 Deployments; ARGOSY_TRACE=1 leaves the stacks of what took long in the
control plane's log.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from argosy.api import resources
from argosy.kube.client import Client
from tests.faults.ledger import NAMESPACE, POLICY, Ledger
from tests.faults.processes import Plane, SimulatedMembers
from tests.faults.test_kill import prepare
from tests.harness.eventually import eventually
from tests.harness.federation import CONFIGMAPS, DEPLOYMENTS, deployment

OBJECTS, RECONCILED, WATCHES = (10_000, 500, 20) if os.environ.get("ARGOSY_LOAD") == "full" else (2_000, 100, 10)
#: What is aimed at is 20 ms. A list without pages is put together in one piece, and all that is ready in one turn of the loop
#: counts as one hold here, so the bar is what a client would notice.
LONGEST = 0.5


@pytest.mark.slow
async def test_nothing_holds_the_loop(tmp_path: Path) -> None:
    plane = Plane(tmp_path / "plane")
    async with SimulatedMembers(tmp_path / "members", 3, speed=20) as members:
        try:
            await plane.start()
            client = plane.client()
            await prepare(client, members, Ledger())
            await in_parallel(OBJECTS, lambda number: client.create(CONFIGMAPS, config_map(number)))
            print(f"after {OBJECTS} writes: {plane.gauge.longest_hold * 1000:.0f} ms")
            watching = [asyncio.create_task(watch(client)) for _ in range(WATCHES)]
            listing = asyncio.create_task(lists(client))
            await in_parallel(
                RECONCILED, lambda number: client.create(DEPLOYMENTS, deployment(f"d-{number}", 3, POLICY))
            )
            await eventually(lambda: all_synced(client), timeout=60, why="all are in the members")
            for task in (listing, *watching):
                task.cancel()
            await asyncio.wait({listing, *watching})
            print(f"with lists, watches and {RECONCILED} Deployments: {plane.gauge.longest_hold * 1000:.0f} ms")
            assert plane.gauge.longest_hold < LONGEST
            await client.close()
        finally:
            plane.kill()


def config_map(number: int) -> dict[str, object]:
    metadata = {"name": f"map-{number}", "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": "x" * 1000}}


async def in_parallel(number: int, work: Callable[[int], Awaitable[object]]) -> None:
    numbers = iter(range(number))

    async def worker() -> None:
        for each in numbers:
            await work(each)

    await asyncio.gather(*(worker() for _ in range(16)))


async def lists(client: Client) -> None:
    while True:
        whole = await client.request("GET", f"/api/v1/namespaces/{NAMESPACE}/configmaps")
        assert len(whole) > OBJECTS * 1000
        async for _ in client.pages(CONFIGMAPS, NAMESPACE, limit=500):
            await asyncio.sleep(0)


async def watch(client: Client) -> None:
    """From the beginning: every object there is, then what changes."""
    async with client.watch(CONFIGMAPS, NAMESPACE) as events:
        async for _ in events:
            pass


async def all_synced(client: Client) -> bool:
    listed = await client.list(resources.FEDERATED_OBJECTS, NAMESPACE)
    synced = [o for o in listed.items if (o.get("status") or {}).get("syncedGeneration") == o["metadata"]["generation"]]
    return len(synced) >= RECONCILED
