"""A control plane in a process of its own, made to be killed: `python -m tests.faults.plane FOLDER PORT READY_FD`.

The same parts as `argosy up` on a data folder, with shorter waits, and with commits and writes to members counted on a gauge.
The members are somebody else's and survive it. It writes its port to the descriptor once it is ready.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from argosy.cli import access
from argosy.cli.loop import run
from argosy.control.connect import Connector, http_connector
from argosy.control.install import install
from argosy.control.manager import Manager
from argosy.fleet.credentials import Connection
from argosy.kube.client import Client
from argosy.kube.transport import Event, Page, Request, Response, Transport
from argosy.server import kubeconfig
from argosy.server.embedded import EmbeddedServer
from argosy.server.identity import User
from argosy.server.storage.sqlite import SqliteStorage
from tests.faults.gauge import COMMIT, SEND, Gauge
from tests.harness.federation import QUICK


def count_commits(storage: SqliteStorage, gauge: Gauge) -> None:
    commit = storage._commit

    def counted(rows: list[Any]) -> None:
        begun = gauge.begin(COMMIT)
        commit(rows)
        gauge.end(COMMIT, begun)

    storage._commit = counted  # type: ignore[method-assign]


class CountedTransport:
    """Counts what is written; reads pass by."""

    def __init__(self, inner: Transport, gauge: Gauge):
        self._inner = inner
        self._gauge = gauge

    async def send(self, request: Request) -> Response:
        if request.method == "GET":
            return await self._inner.send(request)
        begun = self._gauge.begin(SEND)
        try:
            return await self._inner.send(request)
        finally:
            self._gauge.end(SEND, begun)

    async def list(self, request: Request) -> Page:
        return await self._inner.list(request)

    def watch(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        return self._inner.watch(request)

    async def close(self) -> None:
        await self._inner.close()


def counted(connect: Connector, gauge: Gauge) -> Connector:
    def connected(name: str, connection: Connection) -> Client:
        return Client(CountedTransport(connect(name, connection).transport, gauge))

    return connected


async def main(folder: Path, port: int, ready: int) -> None:
    gauge = Gauge(folder / "gauge")
    server = EmbeddedServer(folder / "data", port=port)
    storage = server.server.store.storage
    assert isinstance(storage, SqliteStorage)
    count_commits(storage, gauge)
    await server.start()
    await install(server.client())
    await access.grant(server.client())
    client = server.client(User(access.CONTROLLERS, ("system:authenticated",)))
    manager = Manager(client, timings=QUICK, connect=counted(http_connector(), gauge))
    controllers = asyncio.create_task(manager.run())
    await manager.ready.wait()
    kubeconfig.write(folder / "kubeconfig", server.kubeconfig("plane"))
    os.write(ready, b"%d\n" % server.port)
    await controllers


if __name__ == "__main__":
    run(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
