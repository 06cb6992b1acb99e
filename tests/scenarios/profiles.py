"""A profile and a webhook in it: they choose the clusters, and a change of either is followed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from argosy.api import keys, resources
from argosy.kube.client import Patch
from argosy.kube.resource import Resource
from tests.harness.ground import World
from tests.harness.webhook import webhook_server
from tests.scenarios.seen import settled

__all__ = ["test_a_webhook_in_a_profile_chooses_the_clusters_and_its_changes_are_followed"]

WEBHOOKS, PROFILES = resources.SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS, resources.SCHEDULING_PROFILES


@pytest.mark.real_time("webhooks are asked over HTTP")
async def test_a_webhook_in_a_profile_chooses_the_clusters_and_its_changes_are_followed(world: World) -> None:
    name = world.namespace
    async with webhook_server() as server:
        server.behaviour["rejected"] = ["m2"]
        spec = {"payloadVersions": ["v1alpha1"], "urlPrefix": server.url, "filterPath": "/filter", "httpTimeout": "30s"}
        plugins = {"filter": {"enabled": [{"name": name, "type": "Webhook"}]}}
        async with there(world, WEBHOOKS, spec), there(world, PROFILES, {"plugins": plugins}):
            await world.policy(schedulingMode="Duplicate", schedulingProfile=name)
            await world.deploy(replicas=1)
            await world.eventually_replicas({"m1": 1, "m3": 1})
            assert server.calls["filter"] == 3
            await settled(world)  # a write of ours that conflicts is decided again, and asked about again
            server.behaviour["rejected"] = ["m1"]
            await world.client.patch(WEBHOOKS, name, {"spec": {"filterPath": "/v2/filter"}}, kind=Patch.MERGE)
            await world.eventually_replicas({"m2": 1, "m3": 1})
            assert server.calls["/v2/filter"] == 3
            await world.client.patch(PROFILES, name, {"spec": {"plugins": None}}, kind=Patch.MERGE)
            await world.eventually_replicas({"m1": 1, "m2": 1, "m3": 1})

            async def registered() -> bool:
                events = await world.events("WebhookRegistered")
                return any(event["involvedObject"]["name"] == name for event in events)

            await world.eventually(registered, "an event says that the webhook is known")


@asynccontextmanager
async def there(world: World, resource: Resource, spec: dict[str, Any]) -> AsyncIterator[None]:
    """An object without a namespace, named after the world's, as long as it is needed."""
    metadata = {"name": world.namespace}
    body = {"apiVersion": keys.API_VERSION, "kind": resource.kind, "metadata": metadata, "spec": spec}
    await world.client.create(resource, body)
    try:
        yield
    finally:
        await world.client.delete(resource, world.namespace)
