"""The informer against a peer that sends what no API server would. The peer is a plain socket, no Kubernetes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from argosy.kube import client as clients
from argosy.kube.backoff import Backoff
from argosy.kube.client import Client
from argosy.kube.errors import BadAnswer, Gone
from argosy.kube.informer import Informer
from argosy.kube.objects import Partial
from argosy.kube.resource import Resource
from argosy.kube.transport import Event, Page, Request
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


def large(name: str, version: int = 3) -> bytes:
    """Of 10,000 bytes, some more as it is kept."""
    metadata = {"name": name, "namespace": "n", "uid": name, "resourceVersion": f"{version}"}
    return orjson.dumps({"metadata": {**metadata, "annotations": {"a": "x" * 10_000}}})


class Flood:
    """A server whose every answer is within all limits, and of which there is no end: while it lasts, lists have ever new
    objects, and no end, and watches bring ever new objects."""

    name = "flood"

    def __init__(self, lists: bool, watches: bool, cuts: int = 0) -> None:
        self.lists, self.watches, self.cuts = lists, watches, cuts
        self.sent = 0
        self.asked = 0

    def another(self) -> bytes:
        self.sent += 1
        return large(f"f-{self.sent}", self.sent + 3)

    async def list(self, request: Request) -> Page:
        self.asked += 1
        if not self.lists:
            if any(
                name == "continue" for name, _ in request.query
            ):  # the list that was under way is none of this server's
                raise Gone(410, "Expired", "too old", {})
            return Page([large("a"), large("b", 4)], f"{self.sent + 5}")
        if self.cuts and self.asked % self.cuts == 0:
            raise BadAnswer("cut off")
        return Page([self.another() for _ in range(10)], "5", continue_token=f"{self.sent}")

    @asynccontextmanager
    async def watch(self, request: Request) -> AsyncIterator[AsyncIterator[Event]]:
        async def events() -> AsyncIterator[Event]:
            if not self.watches:
                await asyncio.Event().wait()
            while self.watches:
                yield Event("ADDED", self.another())
                await asyncio.sleep(0)
            raise Gone(410, "Expired", "too old", {})

        yield events()

    async def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("lists", "watches", "cuts"),
    [(True, False, 0), (False, True, 0), (True, False, 3)],
    ids=["a list", "a watch", "lists that are cut off"],
)
async def test_what_is_held_is_bounded_and_goes_when_the_server_is_itself_again(
    lists: bool, watches: bool, cuts: int
) -> None:
    flood: Any = Flood(lists, watches, cuts)
    informer = Informer(Client(flood), MAPS, Partial, backoff=Backoff(base=0.01, cap=0.02), most_bytes=1_000_000)
    most: list[int] = []
    told: list[str] = []
    informer.add_handler(lambda change: most.append(informer.held) or told.append(informer.trouble or ""))
    task = asyncio.create_task(informer.run())
    try:
        await eventually(lambda: flood.sent > 2000)
        assert max(most) < 2_100_000
        assert cuts or "the objects take more than 1000000 bytes" in told
        flood.lists = flood.watches = False
        await eventually(lambda: informer.keys() == ["n/a", "n/b"])
        await eventually(lambda: informer.has_synced)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_what_is_kept_with_its_bytes_is_not_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("argosy.kube.informer.MOST_BYTES", 1000)
    flood: Any = Flood(lists=False, watches=False)
    informer = Informer(Client(flood), MAPS, Partial, keep_raw=True)
    task = asyncio.create_task(informer.run())
    try:
        await eventually(lambda: len(informer) == 2)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_list_that_is_read_at_once_is_bounded_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "MOST_BYTES", 1_000_000)
    flood: Any = Flood(lists=True, watches=False)
    with pytest.raises(BadAnswer, match="takes more than 1000000 bytes"):
        await Client(flood).list(MAPS, into=Partial)
    assert flood.sent < 150
