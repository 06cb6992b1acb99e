"""The connection to one member: its transport can be exchanged while in use, and it remembers refusals and failures.

New credentials make a new transport. Running requests and watches end on the old transport, which is closed after the last of
them; new ones use the new transport. So informers keep their caches and no write is interrupted.
"""

import asyncio
import math
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager

from argosy.kube import clock
from argosy.kube.errors import ApiError, BadAnswer, TransportError, from_response
from argosy.kube.transport import Event, Page, Request, Response, Transport

__all__ = ["MemberConnection"]

#: The wording of authorizers; other 403 answers (a quota, an admission webhook) are about the object.
_NO_RIGHT = re.compile(r"cannot \w+ (resource|path) ")
#: Refused requests are retried sooner than this, so an older refusal is over.
_REMEMBERED = 150.0
#: A member that was away loads its roles after it begins to answer: for so long its refusals are not its word yet.
_SETTLING = 15.0
_MOST = 50


class _Line:
    """One transport, and how many requests and watches use it."""

    def __init__(self, transport: Transport):
        self.transport = transport
        self._used = 0

    @property
    def idle(self) -> bool:
        return not self._used

    @contextmanager
    def using(self) -> Iterator[None]:
        self._used += 1
        try:
            yield
        finally:
            self._used -= 1


class MemberConnection:
    """A `Transport` over other transports, one at a time."""

    def __init__(
        self,
        member: str,
        transport: Transport,
        *,
        on_rejected: Callable[[], None] = lambda: None,
        on_turn: Callable[[], None] = lambda: None,
    ):
        """`on_turn` is called when the member stops or begins to answer, see `failing`."""
        self.name = f"member {member}"
        self._line = _Line(transport)
        self._retired: dict[_Line, None] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._on_rejected = on_rejected
        self._on_turn = on_turn
        #: Whether the last request or watch failed without an answer. (One that was cancelled proves nothing.)
        self.failing = False
        #: When it began to answer again, after a failure.
        self._returned = -math.inf
        #: Whether the last answer was 401.
        self.rejected = False
        #: (method, path without names) -> the server's message, and when it was last received.
        self._refusals: dict[tuple[str, str], tuple[str, float]] = {}

    def refusals(self) -> list[str]:
        """Missing rights, in the server's words: which verb on which resource."""
        limit = clock.monotonic() - _REMEMBERED
        return sorted({message for message, heard in self._refusals.values() if heard >= limit})

    def exchange(self, transport: Transport) -> None:
        """Use this transport from now on."""
        old, self._line = self._line, _Line(transport)
        self.rejected = self.failing = False
        self._refusals.clear()
        self._retired[old] = None
        self._close_if_idle(old)

    async def send(self, request: Request) -> Response:
        with self._used() as line, self._failures(line):
            response = await line.transport.send(request)
        if line is self._line:
            self._note(request, response)
        return response

    async def list(self, request: Request) -> Page:
        with self._used() as line, self._failures(line):
            try:
                page = await line.transport.list(request)
            except ApiError as error:
                if line is self._line:
                    self._note_error(request, error)
                raise
        if line is self._line:
            self._accepted(request)
        return page

    def watch(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        return self._watch(request)

    @asynccontextmanager
    async def _watch(self, request: Request) -> AsyncIterator[AsyncIterator[Event]]:
        with self._used() as line, self._failures(line):
            try:
                async with line.transport.watch(request) as events:
                    if line is self._line:
                        self._accepted(request)
                    yield events
            except ApiError as error:
                if line is self._line:
                    self._note_error(request, error)
                raise

    async def close(self) -> None:
        for line in (self._line, *self._retired):
            await line.transport.close()
        self._retired.clear()
        if self._closing:
            await asyncio.wait(self._closing)

    @contextmanager
    def _used(self) -> Iterator[_Line]:
        line = self._line
        try:
            with line.using():
                yield line
        finally:
            self._close_if_idle(line)

    @contextmanager
    def _failures(self, line: _Line) -> Iterator[None]:
        try:
            yield
        except BadAnswer:
            raise
        except TransportError:
            if line is self._line:
                self._turn(failing=True)
            raise

    def _turn(self, *, failing: bool) -> None:
        if self.failing != failing:
            self.failing = failing
            if not failing:
                self._returned = clock.monotonic()
            self._on_turn()

    def _close_if_idle(self, line: _Line) -> None:
        if line.idle and line in self._retired:
            self._retired.pop(line)
            task = asyncio.ensure_future(line.transport.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def _note(self, request: Request, response: Response) -> None:
        if response.status in (401, 403):
            self._note_error(request, from_response(response.status, response.headers, response.body))
        else:
            self._accepted(request)

    def _note_error(self, request: Request, error: ApiError) -> None:
        self._turn(failing=False)
        if error.code == 401:
            if not self.rejected:
                self.rejected = True
                self._on_rejected()
        elif error.code == 403 and _NO_RIGHT.search(error.message):
            self.rejected = False
            if clock.monotonic() - self._returned < _SETTLING:
                return
            self._refusals.pop(_asked(request), None)
            while len(self._refusals) >= _MOST:  # the oldest
                del self._refusals[next(iter(self._refusals))]
            self._refusals[_asked(request)] = (error.message, clock.monotonic())
        elif error.code < 500:
            self._accepted(request)

    def _accepted(self, request: Request) -> None:
        self._turn(failing=False)
        self.rejected = False
        if self._refusals:
            self._refusals.pop(_asked(request), None)


def _asked(request: Request) -> tuple[str, str]:
    """The request without the object's name: /api/v1/namespaces/x/pods/y is /api/v1/namespaces/x/pods."""
    parts = request.path.split("/")
    start = 3 if parts[1:2] == ["api"] else 4
    if parts[start : start + 1] == ["namespaces"] and len(parts) > start + 2:
        start += 2
    watch = ("watch", "true") in request.query or ("watch", "1") in request.query
    several = len(parts) == start + 1 and request.method == "GET"
    verb = "watch" if watch else "list" if several else request.method
    return verb, "/".join(parts[: start + 1])
