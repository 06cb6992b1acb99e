"""Kinds that come to the fleet together with their objects: nothing is piled up in the member that serves them first."""

import json
from collections.abc import AsyncIterator

import msgspec
import pytest_asyncio

from argosy.api import keys, resources
from argosy.kube import clock
from argosy.kube.resource import Resource
from tests.harness.definitions import CRDS, scaled_definition, scaled_type
from tests.harness.eventually import eventually, holds
from tests.harness.federation import QUICK, Federation
from tests.harness.user import weights

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
EQUAL = weights(m1=1, m2=1, m3=1)
NAME = "one-widgets.example.com"
#: Members are looked at as seldom as in production.
SELDOM = msgspec.structs.replace(QUICK, health_period=30.0)


@pytest_asyncio.fixture
async def fed() -> AsyncIterator[Federation]:
    async with Federation(members=3, timings=SELDOM) as made:
        await made.policy(**EQUAL)
        yield made


async def test_members_are_asked_soon_what_they_serve_when_they_got_a_definition(fed: Federation) -> None:
    await _propagate_definition(fed)
    begun = clock.monotonic()
    await _create_widget(fed)
    await eventually(lambda: _divided(fed, {"m1": 2, "m2": 2, "m3": 2}))
    assert clock.monotonic() - begun < 2 * SELDOM.kind_recheck + SELDOM.kind_patience


async def test_a_kind_that_came_to_one_member_is_awaited_in_the_others(fed: Federation) -> None:
    """Here nobody propagates the definition: it comes to each member by itself."""
    await fed.client.create(CRDS, scaled_definition(WIDGETS))
    await fed.client.create(resources.FEDERATED_TYPE_CONFIGS, scaled_type(WIDGETS))
    await _create_widget(fed)
    for name in fed.names:
        await fed.member(name).create(CRDS, scaled_definition(WIDGETS))
    # One of them is looked at, the others are not due for long.
    await fed.annotate(resources.FEDERATED_CLUSTERS, "m1", None, example="true")
    await eventually(lambda: _placed(fed))
    assert await _divided(fed, {"m1": 2, "m2": 2, "m3": 2})


async def test_a_member_that_does_not_get_the_kind_is_awaited_for_a_moment_and_named(fed: Federation) -> None:
    await fed.client.create(CRDS, scaled_definition(WIDGETS))
    await fed.client.create(resources.FEDERATED_TYPE_CONFIGS, scaled_type(WIDGETS))
    await _create_widget(fed)
    for name in ("m1", "m2"):
        await fed.member(name).create(CRDS, scaled_definition(WIDGETS))

    async def waiting() -> str | None:
        held = (await fed.federated(NAME))["metadata"]["annotations"].get(keys.HELD)
        found = json.loads(held) if held else {}
        told = found["message"] if found.get("reason") == "WaitingForKind" else ""
        return told if told and "m1" not in told and "m2" not in told else None

    await fed.annotate(resources.FEDERATED_CLUSTERS, "m1", None, example="true")
    message = await eventually(waiting)
    assert "for m3 to serve example.com/v1 Widget" in message
    begun = clock.monotonic()
    status = (await fed.federated(NAME))["status"]
    assert [each["reason"] for each in status["conditions"] if each["type"] == "Scheduled"] == ["WaitingForKind"]
    await eventually(lambda: _divided(fed, {"m1": 3, "m2": 3}))
    assert clock.monotonic() - begun < SELDOM.kind_patience + 1.0
    assert keys.HELD not in (await fed.federated(NAME))["metadata"]["annotations"]


async def test_a_kind_that_is_known_for_long_is_not_waited_for(fed: Federation) -> None:
    await fed.client.create(CRDS, scaled_definition(WIDGETS))
    await fed.client.create(resources.FEDERATED_TYPE_CONFIGS, scaled_type(WIDGETS))
    for name in ("m1", "m2"):
        await fed.member(name).create(CRDS, scaled_definition(WIDGETS))
    clusters = fed.inside.caches.clusters
    await eventually(lambda: all(_serves(clusters.get(name)) for name in ("m1", "m2")), timeout=60)
    await holds(lambda: not _serves(clusters.get("m3")), SELDOM.kind_patience + 1.0)
    begun = clock.monotonic()
    await _create_widget(fed)
    await eventually(lambda: _divided(fed, {"m1": 3, "m2": 3}))
    assert clock.monotonic() - begun < 1.0


async def test_a_member_that_gets_no_definition_is_not_waited_for(fed: Federation) -> None:
    await _propagate_definition(fed, placement=[{"cluster": "m1"}, {"cluster": "m2"}])
    await _create_widget(fed)

    async def placed() -> bool:
        held = (await fed.federated(NAME))["metadata"]["annotations"].get(keys.HELD, "")
        assert "m3" not in held
        return await _divided(fed, {"m1": 3, "m2": 3})

    await eventually(placed)


async def _propagate_definition(fed: Federation, **spec: object) -> None:
    everywhere = {
        "apiVersion": keys.API_VERSION,
        "kind": "ClusterPropagationPolicy",
        "metadata": {"name": "definitions"},
        "spec": {"schedulingMode": "Duplicate", **spec},
    }
    await fed.client.create(resources.CLUSTER_PROPAGATION_POLICIES, everywhere)
    labels = {keys.CLUSTER_PROPAGATION_POLICY_LABEL: "definitions"}
    await fed.client.create(CRDS, scaled_definition(WIDGETS, labels))
    await fed.client.create(resources.FEDERATED_TYPE_CONFIGS, scaled_type(WIDGETS))


async def _create_widget(fed: Federation) -> None:
    await eventually(lambda: fed.client.list(WIDGETS, "default"))
    metadata = {"name": "one", "namespace": "default", "labels": {keys.PROPAGATION_POLICY_LABEL: "policy"}}
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": {"replicas": 6}}
    await fed.client.create(WIDGETS, widget)
    await eventually(lambda: fed.federated(NAME))


async def _placed(fed: Federation) -> bool:
    return bool((await fed.federated(NAME))["spec"].get("placements"))


async def _divided(fed: Federation, replicas: dict[str, int]) -> bool:
    spec = (await fed.federated(NAME))["spec"]
    entries = [each for entry in spec.get("overrides") or () for each in entry["clusters"]]
    return {each["cluster"]: each["patches"][0]["value"] for each in entries} == replicas


def _serves(cluster: object) -> bool:
    return any(api.kind == "Widget" for api in cluster.status.api_resource_types)  # type: ignore[attr-defined]
