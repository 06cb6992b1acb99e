"""The informer against a peer that sends what no API server would. The peer is a plain socket, no Kubernetes."""

import asyncio
from typing import Any

import orjson
import pytest

from argosy.kube.backoff import Backoff
from argosy.kube.client import Client
from argosy.kube.informer import Informer
from argosy.kube.objects import Partial
from argosy.kube.resource import Resource
from tests.harness.eventually import eventually
from tests.unit.kube.test_http import Peer, ok, stream, talking_to

MAPS = Resource("", "v1", "configmaps", "ConfigMap")


def listed(version: str, *names: str) -> bytes:
    items: list[Any] = [{"metadata": {"name": name, "namespace": "n", "resourceVersion": "3"}} for name in names]
    return ok(orjson.dumps({"kind": "ConfigMapList", "metadata": {"resourceVersion": version}, "items": items}))


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"ADDED","object":{"metadata":{"name":"b","namespace":"n","resourceVersion":"6"}},"more":{"a":{}}}\n',
        b'{"type":"DELETED","object":{"metadata":{"name":"a","namespace":"n","resourceVersion":"6"}},"object":{}}\n',
        b'{"type":"DELETED","object":{"metadata":{"name":"a","namespace":"n","resourceVersion":"6"}}}}\n',
        b'{"type":"DELETED","object":[{}}\n',
        b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}},"more":{}}\n',
        b'{"type":"ADDED","object":{"metadata":{"name":"\xff","namespace":"n"}}}\n',
        b'{"type":"ADDED","object":{"metadata":{"name":"b"},"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}}\n",
    ],
    ids=lambda line: line[:24],
)
async def test_an_event_that_cannot_be_read_changes_nothing_and_a_list_goes_past_it(line: bytes) -> None:
    peer = Peer(listed("5", "a"), stream(line, end=False), listed("7", "a", "c"), open=True)
    async with talking_to(peer) as transport:
        informer = Informer(Client(transport), MAPS, Partial, backoff=Backoff(base=0.01, cap=0.05))
        seen: list[str] = []
        informer.add_handler(lambda change: seen.append(change.key if change.new is not None else f"-{change.key}"))
        task = asyncio.create_task(informer.run())
        try:
            await eventually(lambda: informer.lists == 2)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
    assert seen == ["n/a", "n/c"]
    assert informer.version == "7"
