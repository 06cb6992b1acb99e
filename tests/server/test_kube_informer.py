"""The informer against the embedded server: it follows, and survives every way a stream can end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from argosy.kube.backoff import Backoff
from argosy.kube.client import Client
from argosy.kube.errors import Gone
from argosy.kube.http import HttpTransport
from argosy.kube.informer import Change, Informer
from argosy.kube.objects import Partial
from argosy.kube.transport import Request
from argosy.server.embedded import EmbeddedServer
from tests.harness.eventually import PATIENCE, eventually
from tests.harness.relay import Relay
from tests.server.test_kube_client import MAPS, config_map, connection

FAST = Backoff(base=0.01, cap=0.05)
SELECTED = "app"


@pytest.fixture(params=["http", "local"])
async def kube(request: pytest.FixtureRequest, memory_server: EmbeddedServer) -> AsyncIterator[Client]:
    over_http = request.param == "http"
    made = Client(HttpTransport(connection(memory_server))) if over_http else memory_server.client()
    yield made
    await made.close()


@asynccontextmanager
async def informing(client: Client, **options: Any) -> AsyncIterator[Informer[Partial]]:
    informer = Informer(client, MAPS, Partial, label_selector=SELECTED, **{"backoff": FAST, **options})
    task = asyncio.create_task(informer.run())
    try:
        await asyncio.wait_for(informer.synced.wait(), PATIENCE)
        yield informer
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def names(informer: Informer[Partial]) -> list[str]:
    return sorted(informer.keys())


async def test_it_follows_what_happens(kube: Client) -> None:
    await kube.create(MAPS, config_map("before"))
    async with informing(kube, keep_raw=True) as informer:
        seen: list[tuple[str, bool, bool]] = []
        informer.add_handler(lambda change: seen.append((change.key, change.old is None, change.new is None)))
        await kube.create(MAPS, config_map("after"))
        await kube.patch(MAPS, "after", {"data": {"x": "1"}}, "default")
        await kube.delete(MAPS, "before", "default")
        await eventually(lambda: names(informer) == ["default/after"])
        assert seen == [
            ("default/before", True, False),
            ("default/after", True, False),
            ("default/after", False, False),
            ("default/before", False, True),
        ]
        assert b'"x":"1"' in (informer.raw("default/after") or b"")
        assert informer.lists == 1


async def test_pages_are_put_together(kube: Client) -> None:
    for number in range(5):
        await kube.create(MAPS, config_map(f"a{number}"))
    async with informing(kube, page=2) as informer:
        assert len(informer) == 5


async def test_own_writes_are_read_at_once(kube: Client) -> None:
    async with informing(kube) as informer:
        made = await kube.create(MAPS, config_map("a"), into=bytes)
        informer.remember(made)
        first = informer.get("default/a")
        assert first is not None
        versions: list[str] = []
        informer.add_handler(
            lambda change: versions.append(change.new.metadata.resource_version if change.new else "gone")
        )
        informer.remember(await kube.patch(MAPS, "a", {"data": {"x": "1"}}, "default", into=bytes))
        await kube.delete(MAPS, "a", "default")
        await eventually(lambda: versions[-1] == "gone")
        assert [int(version) for version in versions[:-1]] == sorted({int(version) for version in versions[:-1]})


async def test_a_watch_the_server_ends_is_resumed_without_a_new_list(kube: Client) -> None:
    async with informing(kube, liveness=1.3) as informer:
        watches = 0
        inner = kube.transport.watch

        def counted(request: Request) -> Any:
            nonlocal watches
            watches += 1
            return inner(request)

        kube.transport.watch = counted  # type: ignore[method-assign]
        await eventually(lambda: watches >= 1)
        await kube.create(MAPS, config_map("a"))
        await eventually(lambda: names(informer) == ["default/a"])
        assert informer.lists == 1
        await eventually(lambda: informer.last_error is None)


async def test_a_cut_connection_is_resumed_without_a_new_list(memory_server: EmbeddedServer) -> None:
    local = memory_server.client()
    async with Relay("127.0.0.1", memory_server.port) as relay:
        kube = Client(HttpTransport(connection(memory_server, port=relay.port)))
        async with informing(kube) as informer:
            for name in ("a", "b", "c"):
                relay.cut()
                await local.create(MAPS, config_map(name))
                await eventually(lambda name=name: f"default/{name}" in informer)
            assert informer.lists == 1
            assert names(informer) == ["default/a", "default/b", "default/c"]
        await kube.close()


async def test_a_silent_connection_is_noticed(memory_server: EmbeddedServer) -> None:
    local = memory_server.client()
    async with Relay("127.0.0.1", memory_server.port) as relay:
        kube = Client(HttpTransport(connection(memory_server, port=relay.port)))
        async with informing(kube, liveness=0.4) as informer:
            await local.create(MAPS, config_map("a"))
            await eventually(lambda: "default/a" in informer)
            relay.freeze()
            await local.create(MAPS, config_map("b"))
            await eventually(lambda: "default/b" in informer)
        await kube.close()


async def test_a_version_that_is_gone_is_listed_again_and_missed_deletions_are_told(kube: Client) -> None:
    await kube.create(MAPS, config_map("stays"))
    await kube.create(MAPS, config_map("goes"))
    inner = kube.transport.watch
    blocked = asyncio.Event()
    gate = asyncio.Event()

    @asynccontextmanager
    async def gone_once(request: Request) -> AsyncIterator[Any]:
        if not gate.is_set():
            blocked.set()
            await gate.wait()
            raise Gone(410, "Expired", "too old resource version", {})
        async with inner(request) as events:
            yield events

    kube.transport.watch = gone_once  # type: ignore[method-assign]
    async with informing(kube) as informer:
        changes: list[Change[Partial]] = []
        informer.add_handler(changes.append)
        await asyncio.wait_for(blocked.wait(), PATIENCE)
        await kube.delete(MAPS, "goes", "default")
        gate.set()
        await eventually(lambda: names(informer) == ["default/stays"])
        assert informer.lists == 2
        assert [(change.key, change.new is None) for change in changes[2:]] == [("default/goes", True)]


async def test_a_server_restored_from_a_backup_is_noticed(memory_server: EmbeddedServer) -> None:
    """The port the client knows is taken over by a server whose history is behind; it would never send an event."""
    kube, later = memory_server.client(), EmbeddedServer()
    await later.start()
    ahead = later.client()
    for number in range(30):
        await ahead.create(MAPS, config_map(f"a{number}"))
    await kube.create(MAPS, config_map("restored"))
    async with informing(ahead, liveness=1.3) as informer:
        assert len(informer) == 30
        informer.client = kube
        await eventually(lambda: names(informer) == ["default/restored"])
    await later.stop()


async def test_quiet_watches_do_not_list_everything_again(kube: Client) -> None:
    await kube.create(MAPS, config_map("a"))
    inner = kube.transport.watch
    watches = 0

    @asynccontextmanager
    async def quiet(request: Request) -> AsyncIterator[Any]:
        nonlocal watches
        watches += 1
        async with inner(request) as events:
            yield without_bookmarks(events)

    kube.transport.watch = quiet  # type: ignore[method-assign]
    async with informing(kube, liveness=1.3) as informer:
        await eventually(lambda: watches >= 4)
        assert informer.lists == 1
        await eventually(lambda: informer.last_error is None)


async def without_bookmarks(events: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for event in events:
        if event.type != "BOOKMARK":
            yield event


async def test_an_unreachable_server_deletes_nothing(memory_server: EmbeddedServer) -> None:
    local = memory_server.client()
    await local.create(MAPS, config_map("a"))
    async with Relay("127.0.0.1", memory_server.port) as relay:
        kube = Client(HttpTransport(connection(memory_server, port=relay.port), timeout=0.2))
        async with informing(kube) as informer:
            await memory_server._listener.close()  # type: ignore[union-attr]
            relay.cut()
            await eventually(lambda: informer.last_error is not None)
            assert names(informer) == ["default/a"]
            assert informer.has_synced
        await kube.close()


async def test_a_refused_informer_says_why_and_goes_on_trying(memory_server: EmbeddedServer) -> None:
    guest = Client(HttpTransport(connection(memory_server, "guest-token")))
    informer = Informer(guest, MAPS, Partial, backoff=FAST)
    task = asyncio.create_task(informer.run())
    await eventually(lambda: "forbidden" in (informer.last_error or ""))
    assert not informer.has_synced
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await guest.close()


async def test_an_outage_is_one_line_at_its_start_and_one_at_its_end(
    memory_server: EmbeddedServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Refused and silent in turn: the reasons alternate, the outage is one."""
    caplog.set_level("INFO", "argosy.kube.informer")
    async with Relay("127.0.0.1", memory_server.port) as relay:
        kube = Client(HttpTransport(connection(memory_server, port=relay.port), timeout=0.2, backoff=FAST))
        async with informing(kube, liveness=2.0) as informer:
            caplog.clear()
            for _ in range(2):
                relay.refuse()
                relay.cut()
                await eventually(lambda: "Connect" in (informer.last_error or ""))
                relay.heal()
                relay.silence()
                await eventually(lambda: "within" in (informer.last_error or ""))
            relay.heal()
            await eventually(lambda: informer.last_error is None)
        await kube.close()
    lines = [record.getMessage() for record in caplog.records]
    assert [line.startswith(f"watching configmaps of {relay.url}: ") for line in lines] == [True, True]
    assert "recovered after" in lines[1]


async def test_a_cancelled_informer_leaves_no_task_behind(kube: Client) -> None:
    before = asyncio.all_tasks()
    async with informing(kube):
        pass
    await eventually(lambda: asyncio.all_tasks() <= before)
