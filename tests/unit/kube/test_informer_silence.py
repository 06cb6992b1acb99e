"""The informer and a server that does not answer: how long that lasts is known, and its end can be told from outside."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from argosy.kube import informer as informers
from argosy.kube.backoff import Backoff
from argosy.kube.client import Client
from argosy.kube.errors import ApiError, BadAnswer, TransportError
from argosy.kube.informer import Informer
from argosy.kube.objects import Partial
from argosy.kube.resource import Resource
from argosy.kube.transport import Event, Page, Request, Response
from tests.harness.eventually import eventually, holds

MAPS = Resource("", "v1", "configmaps", "ConfigMap")


class Moody:
    """A server with an error, or none. Streams are quiet, and end when the test says so."""

    name = "moody"

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.in_stream: Exception | None = None
        self.asked = 0
        self.streams = 0
        self.end = asyncio.Event()

    async def send(self, request: Request) -> Response:
        raise NotImplementedError

    async def list(self, request: Request) -> Page:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return Page([], "5")

    @asynccontextmanager
    async def watch(self, request: Request) -> AsyncIterator[AsyncIterator[Event]]:
        self.asked += 1
        if self.error is not None:
            raise self.error
        self.streams += 1
        yield self._events()

    async def _events(self) -> AsyncIterator[Event]:
        if self.in_stream is not None:
            error, self.in_stream = self.in_stream, None
            raise error
        await self.end.wait()
        self.end.clear()
        for _ in ():
            yield Event("", b"")

    async def close(self) -> None:
        pass


@asynccontextmanager
async def running(server: Moody, seldom: float = 3600.0) -> AsyncIterator[Informer[Partial]]:
    informer = Informer(Client(server), MAPS, Partial, backoff=Backoff(base=seldom, cap=seldom, jitter=0.0))
    task = asyncio.create_task(informer.run())
    try:
        yield informer
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture(autouse=True)
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informers, "STEADY", 0.05)


async def test_a_server_that_answers_others_is_tried_again_at_once() -> None:
    server = Moody()
    server.error = TransportError("connection refused")
    async with running(server) as informer:
        await eventually(lambda: informer.unreachable_for > 0)
        server.error = None
        informer.retry()
        await eventually(lambda: server.streams == 1)
        await eventually(lambda: not informer.unreachable_for)


@pytest.mark.parametrize("error", [ApiError(403, "Forbidden", "no", {}), BadAnswer("no JSON")])
async def test_errors_and_invalid_answers_keep_their_back_off(error: Exception) -> None:
    server = Moody()
    server.error = error
    async with running(server) as informer:
        await eventually(lambda: informer.last_error)
        assert not informer.unreachable_for, "it answers"
        asked = server.asked
        informer.retry()
        await holds(lambda: server.asked == asked, 0.2)


async def test_a_stream_that_is_open_for_a_moment_only_is_no_answer() -> None:
    server = Moody()
    async with running(server, 0.01) as informer:
        await eventually(lambda: server.streams)
        for _ in range(20):
            server.in_stream = TransportError("reset")
            server.end.set()
            await eventually(lambda: server.in_stream is None)
        assert informer.unreachable_for > 0
        await eventually(lambda: not informer.unreachable_for)


async def test_an_invalid_event_is_forgotten_once_a_stream_was_steady() -> None:
    """Not only while one is: they end all the time, and the next ones are young."""
    server = Moody()
    server.in_stream = BadAnswer("no JSON")
    async with running(server, 0.01) as informer:
        await eventually(lambda: informer.trouble == "no JSON")
        await eventually(lambda: informer.trouble is None)
        server.error = TransportError("connection refused")
        server.end.set()
        await eventually(lambda: informer.unreachable_for > 0)
        assert informer.trouble is None
