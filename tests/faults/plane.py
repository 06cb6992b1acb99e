"""A control plane in a process of its own, made to be killed: `python -m tests.faults.plane FOLDER PORT READY_FD`.

The same parts as `argosy up` on a data folder, with shorter waits, and with commits and writes to members counted on a gauge.
The members are somebody else's and survive it. It writes its port to the descriptor once it is ready.
"""

import asyncio
import os
import sys
import threading
import time
import traceback
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from argosy.cli.local import access
from argosy.cli.local.loop import run
from argosy.control.install.installer import install
from argosy.control.manager import Manager
from argosy.control.members.connect import Connector, http_connector
from argosy.fleet.credentials import Connection
from argosy.kube.challenge import Challenge
from argosy.kube.client import Client
from argosy.kube.transport import Event, Page, Request, Response, Transport
from argosy.server import kubeconfig
from argosy.server.auth.identity import User
from argosy.server.embedded import EmbeddedServer
from argosy.server.storage.sqlite import SqliteStorage
from tests.faults.gauge import COMMIT, SEND, Gauge
from tests.harness.federation import QUICK

#: How often the event loop is looked at.
TICK = 0.002


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
    def connected(name: str, connection: Connection, challenge: Challenge | None) -> Client:
        return Client(CountedTransport(connect(name, connection, challenge).transport, gauge))

    return connected


async def measure_holds(gauge: Gauge) -> None:
    """How long other callbacks kept this one from running, as far as they computed: a busy machine is not their fault.

    With ARGOSY_TRACE=1 the log has the stacks of what took long.
    """
    ticks = [time.monotonic()]
    if os.environ.get("ARGOSY_TRACE"):
        threading.Thread(target=trace, args=(threading.get_ident(), ticks), daemon=True).start()
    while True:
        due, used = time.monotonic() + TICK, time.thread_time()
        await asyncio.sleep(TICK)
        ticks[0] = time.monotonic()
        gauge.held(min(ticks[0] - due, time.thread_time() - used))


def trace(loop_thread: int, ticks: list[float]) -> None:
    while True:
        time.sleep(0.01)
        late = time.monotonic() - ticks[0]
        if late > 0.03:
            stack = "".join(traceback.format_stack(sys._current_frames()[loop_thread])[-4:])
            print(f"the loop is held for {late * 1000:.0f} ms\n{stack}", file=sys.stderr, flush=True)


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
    measuring = asyncio.create_task(measure_holds(gauge))
    kubeconfig.write(folder / "kubeconfig", server.kubeconfig("plane"))
    os.write(ready, b"%d\n" % server.port)
    await asyncio.wait({controllers, measuring}, return_when=asyncio.FIRST_COMPLETED)


if __name__ == "__main__":
    run(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
