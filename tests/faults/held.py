"""A control plane whose event loop is watched: `python -m tests.faults.held FOLDER`.

The same parts as `argosy up`, on one core, with thousands of objects in its store. Each callback of the loop is timed by the
processor time it took, so that a busy machine is nobody's fault, and told with the request it worked for. `GET /held` answers
with the longest of them, and with what kept a timer from its turn: a thread that holds the interpreter in one long call shows
there. How slow the machine is meanwhile is measured by a piece of work that is always the same.
"""

import asyncio
import contextvars
import gc
import os
import statistics
import sys
import threading
import time
import traceback
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import orjson

from argosy.cli.local import access, loop
from argosy.cli.local.controllers import IDENTITY, LocalControllers
from argosy.control.install.installer import install
from argosy.kube.transport import Request, Response
from argosy.server import kubeconfig
from argosy.server.auth.identity import User
from argosy.server.embedded import EmbeddedServer

__all__ = ["DOOMED", "MANY"]

#: Objects in the namespaces `many` and `doomed`.
MANY, DOOMED = 20_000, 1_000
#: How often the loop is looked at.
TICK = 0.002
#: How often the machine's speed is measured, and what the piece of work takes on the machine that the bars are for.
MEASURED_EVERY, REFERENCE = 0.2, 0.0018
_REQUEST: contextvars.ContextVar[str] = contextvars.ContextVar("request", default="")


class Holds:
    def __init__(self) -> None:
        self.callbacks: list[tuple[float, str]] = []
        self.late = 0.0
        self.collected = 0.0
        self.pieces: list[float] = []

    def watch_collections(self) -> None:
        """The collector of garbage holds everybody, whoever's allocation starts it."""
        began = 0.0

        def note(phase: str, info: dict[str, int]) -> None:
            nonlocal began
            if phase == "start":
                began = time.thread_time()
            else:
                self.collected = max(self.collected, time.thread_time() - began)

        gc.callbacks.append(note)

    def watch_callbacks(self) -> None:
        run = asyncio.Handle._run  # type: ignore[attr-defined]

        def timed(handle: Any) -> None:
            began = time.thread_time()
            run(handle)
            took = time.thread_time() - began
            if took > 0.01:
                request = handle._context.get(_REQUEST, "")
                self.callbacks.append((took, request or repr(handle._callback)[:300]))

        asyncio.Handle._run = timed  # type: ignore[attr-defined]

    async def watch_turns(self) -> None:
        """What was computed in this process while the timer was late, whoever did it."""
        ticked = [time.monotonic()]
        if os.environ.get("ARGOSY_TRACE"):
            threading.Thread(target=trace, args=(threading.get_ident(), ticked), daemon=True).start()
        while True:
            due, used = time.monotonic() + TICK, time.process_time()
            await asyncio.sleep(TICK)
            ticked[0] = time.monotonic()
            self.late = max(self.late, min(ticked[0] - due, time.process_time() - used))

    async def watch_speed(self) -> None:
        while True:
            await asyncio.sleep(MEASURED_EVERY)
            self.pieces.append(piece_of_work())

    def take(self) -> dict[str, Any]:
        longest = sorted(self.callbacks, reverse=True)[:10]
        callbacks = [{"seconds": took, "request": request} for took, request in longest]
        slower = statistics.median(self.pieces or [REFERENCE]) / REFERENCE
        found = {"callbacks": callbacks, "late": self.late, "collected": self.collected, "slower": slower}
        self.callbacks.clear()
        self.pieces.clear()
        self.late = self.collected = 0.0
        return found


def piece_of_work() -> float:
    """What handlers do all day: small objects made and looked up. Told is the processor time it took."""
    began = time.thread_time()
    table = {}
    for number in range(4_000):
        table[f"k{number}"] = [number, str(number)]
    sum(len(value) for value in table.values())
    return time.thread_time() - began


def trace(watched: int, ticked: list[float]) -> None:
    while True:
        time.sleep(0.01)
        late = time.monotonic() - ticked[0]
        if late > 0.04:
            frames = sys._current_frames()
            stacks = [(thread.name, frames.get(thread.ident or 0)) for thread in threading.enumerate()]
            for name, frame in stacks:
                if frame is not None and (thread_is(name, watched)):
                    told = "".join(traceback.format_stack(frame)[-5:])
                    print(f"{late * 1000:.0f} ms late, {name}:\n{told}", file=sys.stderr, flush=True)


def thread_is(name: str, watched: int) -> bool:
    return name == "MainThread" or name.startswith("offload")


async def main(folder: Path) -> None:
    holds = Holds()
    server = EmbeddedServer(folder / "plane")
    handle = server.server.handle

    async def named(request: Request, user: User) -> Response:
        _REQUEST.set(f"{request.method} {request.path[:200]} {request.headers.get('x-case', '')}")
        return await handle(request, user)

    async def held(request: Request, user: User) -> Response | None:
        if request.path != "/held":
            return None
        return Response(200, {"content-type": "application/json"}, orjson.dumps(holds.take()))

    server.server.handle = named  # type: ignore[method-assign]
    server.server.responders.insert(0, held)
    await server.start()
    await fill(server)
    await install(server.client(), lambda line: None, access.INSTALLATION)
    standing = LocalControllers(server.client(User(access.CONTROLLERS, ("system:authenticated",))))
    controllers = asyncio.create_task(standing.run())
    await standing.ready.wait()
    kubeconfig.write(folder / "kubeconfig", server.kubeconfig("argosy"))
    holds.watch_callbacks()
    holds.watch_collections()
    print(f"serving {server.url} as {IDENTITY}", flush=True)
    stop = asyncio.ensure_future(loop.stop_on_signals().wait())
    working = {controllers, asyncio.create_task(holds.watch_turns()), asyncio.create_task(holds.watch_speed())}
    await asyncio.wait({stop, *working}, return_when=asyncio.FIRST_COMPLETED)
    for task in working:
        task.cancel()
    await asyncio.wait(working)
    await server.stop()


async def fill(server: EmbeddedServer) -> None:
    """Straight into the store: it is not their making that is looked at."""
    for namespace, number in (("many", MANY), ("doomed", DOOMED)):
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        await server.client().request("POST", "/api/v1/namespaces", body=body)
        for start in range(0, number, 1000):
            numbers = range(start, min(start + 1000, number))
            await asyncio.gather(*(create(server, namespace, number) for number in numbers))


async def create(server: EmbeddedServer, namespace: str, number: int) -> None:
    name = f"map-{number}"
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": f"{namespace}-{number}",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"number": str(number % 100)},
    }
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": "x" * 700, "time": "12:30"}}

    def encode(version: int) -> bytes:
        metadata["resourceVersion"] = str(version)
        return orjson.dumps(obj)

    await server.server.store.create(f"core/configmaps/{namespace}/{name}", encode)


def run(work: Coroutine[Any, Any, None]) -> None:
    """As commands are run, but on asyncio's own loop, whose callbacks can be timed."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    loop.prepare()
    asyncio.run(work)


if __name__ == "__main__":
    run(main(Path(sys.argv[1])))
