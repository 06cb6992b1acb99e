"""The server's own loops: one that would spin burns no core and keeps nobody waiting, one that hangs fails /livez."""

import asyncio
import logging
import re

import pytest

from argosy.kube.queue import Result
from argosy.server.embedded import EmbeddedServer
from argosy.server.lifecycle.loop import Loop
from argosy.server.trusted import StoreEvent
from tests.harness.eventually import eventually
from tests.server.conftest import HttpClient

MAPS = "/api/v1/namespaces/default/configmaps"


class _Spins(Loop):
    """Each run is the reason for the next one."""

    name = "a loop that spins"
    runs = 0

    def observe(self, event: StoreEvent) -> None:
        return

    async def reconcile(self, key: str) -> Result | None:
        self.runs += 1
        self.queue.add(key)
        return None


class _Hangs(_Spins):
    name = "a loop that hangs"
    patience = 0.05

    async def reconcile(self, key: str) -> Result | None:
        await asyncio.Event().wait()
        return None


async def test_a_loop_that_spins_is_counted_and_everybody_is_answered(memory_server: EmbeddedServer) -> None:
    loop = _Spins(memory_server.trusted, memory_server.server.metrics.spinning)
    loop.start()
    loop.queue.add("a")
    async with HttpClient(memory_server) as client:

        async def counted() -> bool:
            return b'apiserver_loop_spinning_total{loop="a loop that spins"}' in (await client.get("/metrics")).raw

        await eventually(counted)
        assert (await client.post(MAPS, {"metadata": {"name": "a"}})).code == 201
        assert (await client.get("/livez")).raw == b"ok"
    assert loop.runs < 1200


async def test_a_loop_that_hangs_fails_livez(memory_server: EmbeddedServer, caplog: pytest.LogCaptureFixture) -> None:
    loop = _Hangs(memory_server.trusted, memory_server.server.metrics.spinning)
    loop.start()
    loop.queue.add("default/web")
    async with HttpClient(memory_server) as client:

        async def failed() -> bool:
            return (await client.get("/livez")).code == 500

        with caplog.at_level(logging.ERROR):
            await eventually(failed)
            await eventually(failed)
        told = [record.getMessage() for record in caplog.records if "a loop that hangs" in record.getMessage()]
        (text,) = told
        pattern = r"livez: the check a loop that hangs fails: a loop that hangs has been at default/web for \d+ s"
        assert re.fullmatch(pattern, text)
