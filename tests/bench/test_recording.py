"""The recorded Pods: the same bytes every time, and replayed as an API server would send them."""

import asyncio
from pathlib import Path

import orjson
import pytest

from argosy.kube.client import Client
from argosy.kube.config import Connection
from argosy.kube.http import HttpTransport
from argosy.kube.informer import Informer
from argosy.kube.objects import Partial
from argosy.kube.resource import Resource
from bench.client import replay
from bench.recording import pod, recording
from tests.harness.eventually import eventually

COUNT = 30


def test_a_recording_is_the_same_every_time_and_has_realistic_sizes(tmp_path: Path) -> None:
    first, second = recording(COUNT, tmp_path / "a"), recording(COUNT, tmp_path / "b")
    content = first.events.read_bytes()
    assert content == second.events.read_bytes()
    assert first.count == COUNT
    assert 4000 < first.mean_size < 5000
    starts, ends = first.positions[::2], first.positions[1::2]
    assert [orjson.loads(content[a:b]) for a, b in zip(starts, ends, strict=True)] == [pod(n) for n in range(COUNT)]


@pytest.mark.parametrize("way", ["watch", "list"])
async def test_replayed_pods_reach_a_cache_whole(tmp_path: Path, way: str) -> None:
    async with replay(recording(COUNT, tmp_path)) as urls:
        client = Client(HttpTransport(Connection(urls[way])))
        pods: Informer[Partial] = Informer(client, Resource("", "v1", "pods", "Pod"), Partial, keep_raw=True, page=7)
        running = asyncio.create_task(pods.run())
        try:
            await eventually(lambda: len(pods) == COUNT)
        finally:
            running.cancel()
            await client.close()
    expected = {f"{one['metadata']['namespace']}/{one['metadata']['name']}": one for one in map(pod, range(COUNT))}
    assert {key: orjson.loads(pods.raw(key) or b"") for key in pods.keys()} == expected  # noqa: SIM118
