"""Events against the embedded server: counted, folded, limited; never in the way."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from argosy.kube.client import Client
from argosy.kube.events import COMBINED, EVENTS, Correlator, EventRecorder, Occurrence
from argosy.server.embedded import EmbeddedServer
from tests.harness.eventually import PATIENCE

DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web", "uid": "u"}


@asynccontextmanager
async def recording(client: Client, **options: Any) -> AsyncIterator[EventRecorder]:
    recorder = EventRecorder(client, "tester", instance="here", **options)
    task = asyncio.create_task(recorder.run())
    try:
        yield recorder
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def written(client: Client, namespace: str = "default") -> list[dict[str, Any]]:
    return (await client.list(EVENTS, namespace, field_selector="source=tester")).items


async def test_an_event_says_what_happened_to_what(memory_server: EmbeddedServer) -> None:
    kube = memory_server.client()
    async with recording(kube) as recorder:
        recorder.event(DEPLOYMENT, "Normal", "Placed", "placed on three clusters")
        await asyncio.wait_for(recorder.flush(), PATIENCE)
    [event] = await written(kube)
    assert event["involvedObject"] == DEPLOYMENT
    assert (event["type"], event["reason"], event["message"]) == ("Normal", "Placed", "placed on three clusters")
    assert (event["count"], event["source"], event["reportingInstance"]) == (1, {"component": "tester"}, "here")
    assert event["metadata"]["name"].startswith("web.")


async def test_the_same_event_again_counts_up(memory_server: EmbeddedServer) -> None:
    kube = memory_server.client()
    async with recording(kube) as recorder:
        for _ in range(5):
            recorder.event({**DEPLOYMENT, "resourceVersion": str(_)}, "Warning", "Failed", "no room")
        await asyncio.wait_for(recorder.flush(), PATIENCE)
        [event] = await written(kube)
        assert event["count"] == 5
        await kube.delete_collection(EVENTS, "default")
        recorder.event(DEPLOYMENT, "Warning", "Failed", "no room")
        await asyncio.wait_for(recorder.flush(), PATIENCE)
    [event] = await written(kube)
    assert event["count"] == 1, "the server had forgotten it"


async def test_events_of_objects_without_a_namespace_go_to_default(memory_server: EmbeddedServer) -> None:
    kube = memory_server.client()
    async with recording(kube) as recorder:
        recorder.event({"apiVersion": "v1", "kind": "Node", "name": "n"}, "Normal", "Seen", "x" * 3000)
        await asyncio.wait_for(recorder.flush(), PATIENCE)
    [event] = await written(kube)
    assert event["metadata"]["namespace"] == "default"
    assert len(event["message"]) == 1024


@pytest.mark.parametrize(
    "name",
    ["system:node", "Reader", "a" * 253, "a" * 229 + "-" + "b" * 10, "--odd--", "café"],
    ids=lambda name: name[:12],
)
async def test_an_object_of_any_name_has_events_of_its_own(memory_server: EmbeddedServer, name: str) -> None:
    kube = memory_server.client()
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": name}
    async with recording(kube) as recorder:
        for reason in ("Placed", "Moved", "Moved"):
            recorder.event(role, "Normal", reason, "to three clusters")
        await asyncio.wait_for(recorder.flush(), PATIENCE)
        assert recorder.dropped == 0
    events = (await kube.list(EVENTS, "default", field_selector=f"involvedObject.name={name}")).items
    assert sorted((event["reason"], event["count"]) for event in events) == [("Moved", 2), ("Placed", 1)]


async def test_a_refused_event_is_only_counted(memory_server: EmbeddedServer) -> None:
    kube = memory_server.client()
    async with recording(kube) as recorder:
        recorder.event({**DEPLOYMENT, "namespace": "nowhere"}, "Normal", "Placed", "x")
        recorder.event(DEPLOYMENT, "Normal", "Placed", "y")
        await asyncio.wait_for(recorder.flush(), PATIENCE)
        assert recorder.dropped == 1
    assert [event["message"] for event in await written(kube)] == ["y"]


async def test_a_full_queue_drops_instead_of_waiting(memory_server: EmbeddedServer) -> None:
    recorder = EventRecorder(memory_server.client(), "tester", capacity=2)
    for number in range(5):
        recorder.event(DEPLOYMENT, "Normal", "Placed", str(number))
    assert recorder.dropped == 3


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def occurrence(message: str, name: str = "web") -> Occurrence:
    return Occurrence((("kind", "Deployment"), ("name", name)), "Normal", "Placed", message)


def test_many_similar_events_are_folded_until_it_is_quiet_again() -> None:
    clock = Clock()
    correlator = Correlator(clock)
    messages = [found.message for n in range(13) if (found := correlator.correlate(occurrence(str(n))))]
    assert messages[:10] == [str(n) for n in range(10)]
    assert messages[10:] == [f"{COMBINED}{n}" for n in range(10, 13)]
    clock.now += 601
    quiet = correlator.correlate(occurrence("later"))
    assert quiet is not None
    assert quiet.message == "later"


def test_each_object_has_a_budget_of_its_own() -> None:
    clock = Clock()
    correlator = Correlator(clock)
    passed = [correlator.correlate(occurrence("same")) is not None for _ in range(30)]
    assert passed == [True] * 25 + [False] * 5
    assert correlator.correlate(occurrence("same", "other")) is not None
    clock.now += 300
    assert correlator.correlate(occurrence("same")) is not None
    assert correlator.correlate(occurrence("same")) is None
