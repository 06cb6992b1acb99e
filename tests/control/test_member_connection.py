"""The way to a member: lines are exchanged under way, and what was refused is remembered as long as it is."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson
import pytest

from argosy.control.members.connection import MemberConnection
from argosy.kube.errors import Forbidden, TransportError
from argosy.kube.transport import Event, Page, Request, Response

PODS = Request("GET", "/api/v1/namespaces/shop/pods/a")
LIST = Request("GET", "/apis/apps/v1/deployments")
WATCH = Request("GET", "/api/v1/pods", [("watch", "true")])
NO_RIGHT = 'pods "a" is forbidden: User "x" cannot get resource "pods" in API group "" in the namespace "shop"'


def answer(code: int, message: str = "") -> Response:
    body = {"kind": "Status", "status": "Failure", "code": code, "message": message, "details": None}
    return Response(code, {}, orjson.dumps(body))


class Line:
    """A transport whose answers the test decides, and which answers when the test lets it."""

    name = "a line"

    def __init__(self, code: int = 200, message: str = ""):
        self.answer = answer(code, message)
        self.gate = asyncio.Event()
        self.gate.set()
        self.closed = False
        self.requests = 0

    async def send(self, request: Request) -> Response:
        self.requests += 1
        await self.gate.wait()
        if self.closed:
            raise TransportError("cut short")
        return self.answer

    async def list(self, request: Request) -> Page:
        if (await self.send(request)).status == 403:
            raise Forbidden(
                403, "Forbidden", 'deployments.apps is forbidden: User "x" cannot list resource "deployments"', {}
            )
        return Page([], "1")

    @asynccontextmanager
    async def watch(self, request: Request) -> AsyncIterator[AsyncIterator[Event]]:
        async def events() -> AsyncIterator[Event]:
            await self.gate.wait()
            if self.closed:
                raise TransportError("cut short")
            yield Event("ADDED", b"{}")

        self.requests += 1
        yield events()

    async def close(self) -> None:
        self.closed = True


async def turn() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_what_is_under_way_ends_on_the_old_line_and_the_rest_takes_the_new_one():
    old, new = Line(), Line()
    old.gate.clear()
    link = MemberConnection("m1", old)
    request = asyncio.create_task(link.send(PODS))
    await turn()
    link.exchange(new)
    assert (await link.send(PODS)).status == 200
    assert not old.closed
    old.gate.set()
    assert (await request).status == 200
    await turn()
    assert (old.requests, new.requests) == (1, 1)
    assert old.closed
    assert not new.closed


async def test_a_watch_goes_on_over_the_old_line_until_it_ends():
    old = Line()
    old.gate.clear()
    link = MemberConnection("m1", old)
    async with link.watch(WATCH) as events:
        link.exchange(Line())
        await turn()
        assert not old.closed
        old.gate.set()
        assert [event.type async for event in events] == ["ADDED"]
    await turn()
    assert old.closed


async def test_a_line_that_nobody_uses_is_closed_at_once_and_closing_closes_all():
    lines = [Line(), Line(), Line()]
    link = MemberConnection("m1", lines[0])
    link.exchange(lines[1])
    await turn()
    assert lines[0].closed
    lines[1].gate.clear()
    hanging = asyncio.create_task(link.send(PODS))
    await turn()
    link.exchange(lines[2])
    await link.close()
    assert all(line.closed for line in lines)
    lines[1].gate.set()
    with pytest.raises(TransportError):
        await hanging


async def test_a_missing_right_is_remembered_until_it_is_there():
    line = Line(403, NO_RIGHT)
    link = MemberConnection("m1", line)
    await link.send(PODS)
    assert link.refusals() == [NO_RIGHT]
    line.answer = answer(200)
    await link.send(Request("DELETE", PODS.path))
    assert link.refusals() == [NO_RIGHT]
    await link.send(Request("GET", "/api/v1/namespaces/shop/pods/b"))
    assert link.refusals() == []


async def test_a_list_that_is_refused_is_remembered_as_one():
    line = Line(403)
    link = MemberConnection("m1", line)
    with pytest.raises(Forbidden):
        await link.list(LIST)
    assert len(link.refusals()) == 1
    line.answer = answer(200)
    await link.list(LIST)
    assert link.refusals() == []


@pytest.mark.parametrize("words", ["exceeded quota: pods, requested: 1", "admission webhook denied the request"])
async def test_what_is_wrong_with_an_object_is_no_missing_right(words):
    link = MemberConnection("m1", Line(403, words))
    await link.send(PODS)
    assert link.refusals() == []


async def test_credentials_that_are_refused_are_told_once_and_forgotten_with_their_line():
    told: list[str] = []
    link = MemberConnection("m1", Line(401, "Unauthorized"), on_rejected=lambda: told.append("m1"))
    await link.send(PODS)
    await link.send(PODS)
    assert link.rejected
    assert told == ["m1"]
    link.exchange(Line())
    assert not link.rejected


async def test_an_old_lines_answer_says_nothing_about_the_new_one():
    old = Line(401, "Unauthorized")
    old.gate.clear()
    link = MemberConnection("m1", old)
    request = asyncio.create_task(link.send(PODS))
    await turn()
    link.exchange(Line())
    old.gate.set()
    await request
    assert not link.rejected


async def test_it_is_told_when_the_member_stops_and_begins_to_answer_and_only_then():
    turns = []
    line = Line()
    connection = MemberConnection("m1", line, on_turn=lambda: turns.append(connection.failing))
    await connection.send(PODS)
    assert turns == []
    line.closed = True
    for _ in range(3):
        with pytest.raises(TransportError):
            await connection.send(PODS)
    assert turns == [True]
    line.closed = False
    line.answer = answer(403, NO_RIGHT)
    await connection.send(PODS)
    await connection.send(PODS)
    assert turns == [True, False], "an error is an answer"


async def test_a_watch_that_breaks_is_told_as_well():
    turns = []
    line = Line()
    connection = MemberConnection("m1", line, on_turn=lambda: turns.append(connection.failing))
    line.closed = True

    async def follow() -> None:
        async with connection.watch(WATCH) as events:
            async for _ in events:
                pass

    with pytest.raises(TransportError):
        await follow()
    assert turns == [True]


async def test_what_is_refused_right_after_a_return_is_not_the_members_word_yet() -> None:
    line = Line(403, NO_RIGHT)
    connection = MemberConnection("m1", line)
    await connection.send(PODS)
    assert connection.refusals() == [NO_RIGHT]
    line.answer = answer(200)
    await connection.send(PODS)
    line.closed = True
    with pytest.raises(TransportError):
        await connection.send(PODS)
    line.closed, line.answer = False, answer(403, NO_RIGHT)
    await connection.send(PODS)
    assert connection.refusals() == [], "its roles may be loading"
    await asyncio.sleep(16.0)
    await connection.send(PODS)
    assert connection.refusals() == [NO_RIGHT]
