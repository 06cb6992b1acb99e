"""The table of the controllers: complete, as the docs show it, and open for another loop."""

import asyncio
from pathlib import Path
from typing import Any

from argosy.api.shards import Shard
from argosy.control.caches.informers import SourceChange
from argosy.control.caches.objectkeys import SourceKey
from argosy.control.context import ControllerContext
from argosy.control.manager import Manager, loops_of
from argosy.control.options import Options
from argosy.control.scheduling.plugin_workers import PluginWorkers
from argosy.control.timings import Timings
from argosy.control.wake import Loop, Row, Signal, Wake, table
from argosy.kube.cache import Cache
from argosy.kube.queue import Result, WorkQueue
from tests.harness.eventually import eventually
from tests.harness.federation import QUICK, Federation
from tests.harness.virtual_server import connector

DOCS = Path(__file__).parents[2] / "docs" / "loops.md"


def rows_of(fed: Federation, options: Options = Options()) -> list[Row]:
    manager = Manager(fed.client, options=options, workers=PluginWorkers(Timings(), ()))
    return manager.subscriptions.rows


async def test_the_docs_show_the_table() -> None:
    async with Federation(0) as fed:
        rows = rows_of(fed, Options(katalyst=True))
        whole = table(rows)
        print(whole)
        of_shards = [row for row in rows_of(fed, Options(shard=Shard(1, 2))) if row not in rows]
        only_in_shards = table(of_shards)
        print(only_in_shards)
    text = DOCS.read_text()
    assert whole in text, "docs/loops.md is to hold the table above"
    assert only_in_shards in text, "... and the rows that shards have besides"


async def test_every_handler_is_a_row_of_the_table(monkeypatch: Any) -> None:
    """Whoever subscribes otherwise is found here."""
    added: list[str] = []
    for source in (Signal, Cache):
        plain = source.add_handler

        def counted(self: Any, handler: Any, plain: Any = plain) -> None:
            added.append(self.name)
            plain(self, handler)

        monkeypatch.setattr(source, "add_handler", counted)
    async with Federation(1, timings=QUICK) as fed:
        assert fed.manager is not None
        await fed.policy()
        await fed.deploy(replicas=1)
        await fed.eventually_replicas({"m1": 1})
        assert added == [row.source for row in fed.manager.subscriptions.rows]


class Remarkable(Loop[SourceKey]):
    """A loop as one more would be: its file, and a line where the others are."""

    name = "remarkable"
    workers = 1

    def __init__(self, shared: ControllerContext):
        self.queue: WorkQueue[SourceKey] = shared.queue()
        self.seen: list[SourceKey] = []
        self._caches = shared.caches

    def wakes(self) -> list[Wake[SourceChange, SourceKey]]:
        return [Wake(self._caches.source_changes, lambda told: [told.key], "it changed")]

    async def reconcile(self, key: SourceKey) -> Result | None:
        self.seen.append(key)
        return None


async def test_another_loop_is_its_own_file_and_one_line() -> None:
    async with Federation(1) as fed:
        await fed.stop_controllers()
        manager = Manager(
            fed.client,
            timings=QUICK,
            connect=connector(),
            loops=lambda shared: [*loops_of(shared), Remarkable(shared)],
        )
        (loop,) = (each for each in manager.loops if isinstance(each, Remarkable))
        running = asyncio.create_task(manager.run())
        try:
            await fed.configure("settings", {"a": "b"})
            await eventually(lambda: SourceKey("configmaps", "default/settings") in loop.seen)
            assert Row("remarkable", "source objects", "it changed", "at once") in manager.subscriptions.rows
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
