"""watch: where it starts, what it tells, how it ends."""

import asyncio
import threading
from typing import Any

import orjson
import pytest

from argosy.server.embedded import EmbeddedServer
from argosy.server.watchcache import watcher
from argosy.server.watchcache.entry import Entry
from argosy.server.watchcache.selection import Selection
from tests.harness.eventually import PATIENCE
from tests.server.conftest import HttpClient

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


def lease(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}, "spec": {"holderIdentity": "me"}}


def told(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


async def next_event(stream: Any) -> dict[str, Any]:
    line = await asyncio.wait_for(stream.content.readline(), PATIENCE)
    event: dict[str, Any] = orjson.loads(line)
    return event


async def test_without_a_version_the_state_comes_first(client: HttpClient) -> None:
    await client.post(LEASES, lease("a"))
    await client.post(LEASES, lease("b"))
    async with client.stream(LEASES) as stream:
        assert told([await next_event(stream), await next_event(stream)]) == [("ADDED", "a"), ("ADDED", "b")]
        made = await client.post(LEASES, lease("c"))
        event = await next_event(stream)
        assert event == {"type": "ADDED", "object": made.body}
        changed = await client.patch(f"{LEASES}/c", {"spec": {"holderIdentity": "you"}})
        assert await next_event(stream) == {"type": "MODIFIED", "object": changed.body}
        await client.delete(f"{LEASES}/c")
        gone = await next_event(stream)
        assert gone["type"] == "DELETED"
        assert int(gone["object"]["metadata"]["resourceVersion"]) > int(changed.version)


async def test_from_a_version_only_what_came_after(client: HttpClient) -> None:
    first = await client.post(LEASES, lease("a"))
    await client.post(LEASES, lease("b"))
    await client.delete(f"{LEASES}/a")
    events = await client.watch(LEASES, resourceVersion=first.version, timeoutSeconds="1")
    assert told(events) == [("ADDED", "b"), ("DELETED", "a")]


async def test_a_watch_resumes_from_history_after_a_restart(tmp_path: Any) -> None:
    from tests.server.conftest import TOKENS

    before = EmbeddedServer(tmp_path, tokens=TOKENS)
    await before.start()
    async with HttpClient(before) as client:
        first = await client.post(LEASES, lease("a"))
        await client.patch(f"{LEASES}/a", {"metadata": {"labels": {"x": "y"}}})
        await client.post(LEASES, lease("b"))
    await before.stop()
    after = EmbeddedServer(tmp_path, tokens=TOKENS)
    await after.start()
    async with HttpClient(after) as client:
        events = await client.watch(LEASES, resourceVersion=first.version, timeoutSeconds="1")
        assert told(events) == [("MODIFIED", "a"), ("ADDED", "b")]
        selected = await client.watch(LEASES, resourceVersion=first.version, timeoutSeconds="1", labelSelector="x=y")
        assert told(selected) == [("ADDED", "a")]
    await after.stop()


async def test_a_version_that_is_forgotten_ends_with_an_error_event(server: EmbeddedServer, client: HttpClient) -> None:
    first = await client.post(LEASES, lease("a"))
    await client.post(LEASES, lease("b"))
    await server.server.store.compact(server.server.store.version)
    (event,) = await client.watch(LEASES, resourceVersion=first.version)
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
    assert event["object"]["message"].startswith(f"too old resource version: {first.version} (")


async def test_objects_enter_and_leave_a_selection(client: HttpClient) -> None:
    await client.post(LEASES, lease("a", team="x"))
    async with client.stream(LEASES, labelSelector="team=x") as stream:
        assert told([await next_event(stream)]) == [("ADDED", "a")]
        left = await client.patch(f"{LEASES}/a", {"metadata": {"labels": {"team": "y"}}})
        event = await next_event(stream)
        assert event["type"] == "DELETED"
        assert event["object"]["metadata"]["labels"] == {"team": "x"}
        assert event["object"]["metadata"]["resourceVersion"] == left.version
        await client.patch(f"{LEASES}/a", {"metadata": {"labels": {"other": "z"}}})
        await client.patch(f"{LEASES}/a", {"metadata": {"labels": {"team": "x"}}})
        assert told([await next_event(stream)]) == [("ADDED", "a")]
        await client.delete(f"{LEASES}/a")
        assert told([await next_event(stream)]) == [("DELETED", "a")]


async def test_initial_events_end_with_a_bookmark(client: HttpClient) -> None:
    await client.post(LEASES, lease("a"))
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    async with client.stream(LEASES, **query) as stream:
        assert told([await next_event(stream)]) == [("ADDED", "a")]
        mark = await next_event(stream)
        assert mark["type"] == "BOOKMARK"
        assert mark["object"]["kind"] == "Lease"
        assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert int(mark["object"]["metadata"]["resourceVersion"]) > 0
        await client.post(LEASES, lease("b"))
        assert told([await next_event(stream)]) == [("ADDED", "b")]


async def test_a_bookmark_comes_right_before_the_time_out(client: HttpClient) -> None:
    await client.post(LEASES, lease("a"))
    events = await client.watch(LEASES, timeoutSeconds="1", allowWatchBookmarks="true")
    assert [event["type"] for event in events] == ["ADDED", "BOOKMARK"]
    listed = await client.get(LEASES)
    assert int(events[-1]["object"]["metadata"]["resourceVersion"]) <= int(listed.version)


async def test_one_object_is_watched_by_name(client: HttpClient) -> None:
    await client.post(LEASES, lease("a"))
    await client.post(LEASES, lease("b"))
    assert told(await client.watch(LEASES, fieldSelector="metadata.name=b", timeoutSeconds="1")) == [("ADDED", "b")]


@pytest.mark.parametrize(
    ("query", "code", "text"),
    [
        ({"resourceVersion": "abc"}, 500, 'strconv.ParseUint: parsing "abc"'),
        ({"sendInitialEvents": "true"}, 422, "requires setting resourceVersionMatch to NotOlderThan"),
        ({"resourceVersionMatch": "Exact"}, 422, "forbidden for watch unless sendInitialEvents"),
        ({"labelSelector": "a in"}, 400, "unable to parse requirement"),
        ({"timeoutSeconds": "9" * 400}, 400, "value out of range"),
    ],
)
async def test_wrong_parameters_are_errors_not_streams(
    client: HttpClient, query: dict[str, str], code: int, text: str
) -> None:
    answer = await client.get(LEASES, watch="true", **query)
    assert answer.code == code
    assert text in answer.body["message"]


async def test_a_slow_watcher_is_cut_off_and_others_go_on(
    memory_server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "BUFFER", 10)
    local = memory_server.server
    from argosy.kube.transport import Request
    from argosy.server.embedded import ADMIN

    request = Request("GET", LEASES, (("watch", "true"),))
    reader = watcher.Reader(wake=lambda: None, cut=lambda: None)
    slow = await local.watch(request, ADMIN, reader)
    quick = await local.watch(request, ADMIN, reader)
    async with HttpClient(memory_server) as client:
        for number in range(20):
            await client.post(LEASES, lease(f"l{number}"))
            assert len(quick.take_events()) == 1
    assert slow.ended
    assert len(slow.take_events()) == 10
    assert slow.exhausted
    assert not quick.ended
    quick.close()


async def test_stopping_the_server_ends_streams(memory_server: EmbeddedServer) -> None:
    async with HttpClient(memory_server) as client, client.stream(LEASES) as stream:
        await client.post(LEASES, lease("a"))
        assert told([await next_event(stream)]) == [("ADDED", "a")]
        await memory_server.stop()
        assert await asyncio.wait_for(stream.content.read(), PATIENCE) == b""


async def test_a_watch_that_cannot_be_opened_is_answered_and_logged(
    memory_server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: object) -> None:
        raise OSError("the history cannot be read")

    monkeypatch.setattr(memory_server.server.store, "replay", fail)
    async with HttpClient(memory_server) as client:
        answer = await client.get(LEASES, watch="true")
    assert (answer.code, answer.body["reason"]) == (500, "InternalError")
    assert "the history cannot be read" in caplog.text


async def test_a_watch_that_ended_at_once_is_not_kept(memory_server: EmbeddedServer) -> None:
    before = set(memory_server.server.watchers)
    async with HttpClient(memory_server) as client:
        await client.post(LEASES, lease("a"))
        made = await client.post(LEASES, lease("b"))
        await memory_server.server.store.compact(int(made.version))
        for _ in range(3):
            assert [event["type"] for event in await client.watch(LEASES, resourceVersion="1")] == ["ERROR"]
    assert memory_server.server.watchers == before


async def test_a_long_past_is_judged_beside_the_loop_and_in_order(
    memory_server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    matches, run = Selection.matches, memory_server.server.offload.run

    def noted(self: Selection, entry: Entry) -> bool:
        threads.append(threading.get_ident())
        return matches(self, entry)

    async with HttpClient(memory_server) as client:
        first = await client.post(LEASES, lease("first"))
        for number in range(40):
            await client.post(LEASES, lease(f"a{number}", **({"k7": "x"} if number % 2 else {})))

        async def meanwhile(user: str, work: Any) -> Any:
            done = await run(user, work)
            await client.post(LEASES, lease(f"later-{len(threads)}"))
            return done

        monkeypatch.setattr(Selection, "matches", noted)
        monkeypatch.setattr(memory_server.server.offload, "run", meanwhile)
        selector = ",".join(f"!k{number}" for number in range(500))
        async with client.stream(LEASES, resourceVersion=first.version, labelSelector=selector) as stream:
            wanted = [*(f"a{number}" for number in range(0, 40, 2)), "later-40"]
            assert [(await next_event(stream))["object"]["metadata"]["name"] for _ in wanted] == wanted
    assert len(threads) == 41
    assert threading.get_ident() not in threads[:40]
