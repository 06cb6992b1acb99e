"""An API server made to be killed: `python -m tests.faults.target FOLDER PORT READY_FD`.

Its log is merged and its history compacted far more often than usual, and both, like its start and its commits, are counted on a
gauge that says when to die. It writes its port to the descriptor once it serves.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from argosy.cli.local.loop import run
from argosy.server import kubeconfig
from argosy.server.embedded import EmbeddedServer
from argosy.server.storage import epoch, sqlite
from tests.faults.gauge import COMMIT, COMPACT, MERGE, START, Gauge

MERGE_AFTER = 100
SLICE = 20
#: Soon used up, so that many are reserved under load.
RESERVE = 1000


def counted(gauge: Gauge, what: int, work: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        begun = gauge.begin(what)
        result = work(*arguments)
        gauge.end(what, begun)
        return result

    return call


def last_start(path: Path, version: int) -> int:
    """The version at the start before this one, and note this one's: watches have come further than that."""
    before = int(path.read_text()) if path.exists() else 0
    path.write_text(str(version))
    return before


async def compact(storage: sqlite.SqliteStorage, version: int) -> None:
    """Once clients write again."""
    started = storage.version
    while storage.version == started:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    await storage.compact(version)


async def main(folder: Path, port: int, ready: int) -> None:
    gauge = Gauge(folder / "gauge")
    sqlite.MERGE_AFTER, sqlite.SLICE, epoch.RESERVE = MERGE_AFTER, SLICE, RESERVE
    server = EmbeddedServer(folder / "data", port=port)
    storage: Any = server.server.store.storage
    for what, name in ((COMMIT, "_commit"), (MERGE, "_merge"), (COMPACT, "_forget"), (START, "_open")):
        setattr(storage, name, counted(gauge, what, getattr(storage, name)))
    await server.start()
    kubeconfig.write(folder / "kubeconfig", server.kubeconfig("plane"))
    before = last_start(folder / "last-start", storage.version)
    os.write(ready, b"%d\n" % server.port)
    await compact(storage, before)
    await asyncio.Event().wait()


if __name__ == "__main__":
    run(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
