"""What scenarios look at: roll-outs as `kubectl rollout status` judges them, pods that really run, what was not written."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from argosy.api import keys, resources
from argosy.kube.client import Patch
from argosy.kube.resource import Resource
from tests.harness.ground import World
from tests.harness.user import DEPLOYMENTS, PODS


async def eventually_rolled_out(world: World, replicas: int, name: str = "web") -> dict[str, Any]:
    """The source says so by kubectl's rule, and so many pods are Ready in the members. Returns the source."""

    async def done() -> dict[str, Any] | None:
        source = await world.source(name)
        return source if rolled_out(source) and await ready_pods(world, name) == replicas else None

    return await world.eventually(done, f"{name} is rolled out with {replicas} replicas")


def rolled_out(deployment: dict[str, Any]) -> bool:
    status = deployment.get("status") or {}
    wanted, updated = deployment["spec"]["replicas"], status.get("updatedReplicas", 0)
    return (
        status.get("observedGeneration", 0) >= deployment["metadata"]["generation"]
        and updated == wanted
        and status.get("replicas", 0) == updated
        and status.get("availableReplicas", 0) == updated
    )


async def pods_of(world: World, member: str, name: str = "web") -> list[dict[str, Any]]:
    return (await world.member(member).list(PODS, world.namespace, label_selector=f"app={name}")).items


async def ready_pods(world: World, name: str = "web") -> int:
    """In all members; those on their way out count as well until they are gone."""
    return sum([is_ready(pod) for member in world.names for pod in await pods_of(world, member, name)])


def is_ready(pod: dict[str, Any]) -> bool:
    return any(
        each["type"] == "Ready" and each["status"] == "True" for each in pod.get("status", {}).get("conditions") or ()
    )


async def images(world: World, name: str = "web", resource: Resource = DEPLOYMENTS) -> dict[str, str]:
    copies = await world.copies(name, resource)
    return {member: copy["spec"]["template"]["spec"]["containers"][0]["image"] for member, copy in copies.items()}


async def uids(world: World, name: str = "web", resource: Resource = DEPLOYMENTS) -> dict[str, str]:
    return {member: copy["metadata"]["uid"] for member, copy in (await world.copies(name, resource)).items()}


async def settled(world: World, name: str = "web-deployments.apps") -> dict[str, Any]:
    """The federated object, once it says that every cluster it is placed in has what it should have."""

    async def probe() -> dict[str, Any] | None:
        federated = await world.federated(name)
        status = federated.get("status") or {}
        if status.get("syncedGeneration") != federated["metadata"]["generation"]:
            return None
        return federated if all(each["status"] == "OK" for each in status.get("clusters") or ()) else None

    return await world.eventually(probe, f"{name} is settled")


async def quiet(probe: Any, seconds: float, patience: float) -> Any:
    """The probe's value once it has been the same for so long."""
    deadline = time.monotonic() + patience
    value, since = await probe(), time.monotonic()
    while time.monotonic() - since < seconds:
        assert time.monotonic() < deadline, "it never came to rest"
        await asyncio.sleep(0.1)
        now = await probe()
        if now != value:
            value, since = now, time.monotonic()
    return value


@asynccontextmanager
async def tainted(world: World, cluster: str, effect: str = "NoExecute") -> AsyncIterator[None]:
    """A cluster that work has to leave, or that gets none, as long as it is needed."""

    async def say(taints: list[dict[str, str]] | None) -> None:
        body = {"spec": {"taints": taints}}
        await world.client.patch(resources.FEDERATED_CLUSTERS, cluster, body, kind=Patch.MERGE)

    await say([{"key": "broken", "effect": effect}])
    try:
        yield
    finally:
        await say(None)
        clusters = world.ground.inside.caches.clusters
        await world.eventually(lambda: not clusters.get(cluster).spec.taints, "the controllers know that it is gone")


@asynccontextmanager
async def paused(world: World, cluster: str) -> AsyncIterator[None]:
    """A cluster that nothing is written to, as long as it is needed."""

    async def say(value: str | None) -> None:
        body = {"metadata": {"annotations": {keys.PAUSED: value}}}
        await world.client.patch(resources.FEDERATED_CLUSTERS, cluster, body, kind=Patch.MERGE)
        clusters = world.ground.inside.caches.clusters
        await world.eventually(
            lambda: clusters.get(cluster).metadata.annotations.get(keys.PAUSED) == value, "the controllers know it"
        )

    await say("true")
    try:
        yield
    finally:
        await say(None)
