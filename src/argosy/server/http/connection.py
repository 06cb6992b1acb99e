"""One HTTP/1.1 connection: bytes to requests, responses to bytes, watches to chunked streams.

An asyncio protocol on llhttp's parser. One task per connection serves its requests in order, so pipelining needs nothing else.
Watch streams are written from callbacks: events since the last write go out as one chunk, piece by piece, and nothing is taken
from the watcher while the client is not reading (its bounded buffer then ends the watch). The task ends with the connection.
"""

import asyncio
import logging
import zlib
from collections import deque
from collections.abc import Iterator
from email.utils import formatdate
from http import HTTPStatus
from typing import TYPE_CHECKING, cast
from urllib.parse import parse_qsl

import httptools

from argosy.kube import chance, clock, warning
from argosy.kube.errors import ApiError
from argosy.kube.transport import Request, Response
from argosy.server import status
from argosy.server.auth.identity import User
from argosy.server.http.buffers import Share
from argosy.server.http.limits import time_limit
from argosy.server.watchcache.watcher import Reader, Watcher

if TYPE_CHECKING:
    from argosy.server.http.listener import Listener

__all__ = ["Connection"]

log = logging.getLogger(__name__)

GZIP_FROM = 128 * 1024
#: Larger responses are written piece by piece.
PIECE = 256 * 1024
#: The same for watches, which are many; and the limit of a connection's own buffers.
WATCH_PIECE = HIGH_WATER = 64 * 1024
#: Requests of one connection that may wait while one is served.
PIPELINE = 16
_REASONS = {code.value: f"HTTP/1.1 {code.value} {code.phrase}\r\n" for code in HTTPStatus}
#: Headers whose values may hold commas, and names in any language.
_IMPERSONATE = "impersonate-"


class _Incoming:
    """A request as it arrives."""

    __slots__ = ("body", "headers", "keep_alive", "method", "refusal", "size", "url", "user")

    def __init__(self) -> None:
        self.url = b""
        self.method = ""
        self.headers: dict[str, str] = {}
        self.body: bytes | bytearray = b""
        self.size = 0
        self.keep_alive = True
        #: The user, or the error response; decided as soon as the headers are there.
        self.user: User | None = None
        self.refusal: Response | None = None

    def request(self) -> Request:
        path, _, query = self.url.partition(b"?")
        pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True) if query else ()
        return Request(self.method, path.decode("latin-1"), pairs, self.headers, bytes(self.body))

    def add(self, body: bytes) -> None:
        """Usually it comes as a whole. Tiny pieces must not be kept one by one."""
        if not self.body:
            self.body = body
        elif isinstance(self.body, bytearray):
            self.body += body
        else:
            self.body = bytearray(self.body) + body


class Connection(asyncio.Protocol):
    def __init__(self, listener: "Listener"):
        self._listener = listener
        self._limits = listener.server.limits
        self._parser: httptools.HttpRequestParser | None = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._certificate: bytes | None = None
        self._incoming: _Incoming | None = None
        self._head_bytes = 0
        self._waiting: deque[_Incoming] = deque()
        self._arrived: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._watcher: Watcher | None = None
        self._watch_done: asyncio.Future[None] | None = None
        self._pumping = False
        #: The rest of the chunk being sent.
        self._chunk: deque[bytes | memoryview] = deque()
        self._paused = False
        #: Data that waits for the client (a watcher counts its own), the response being sent, and what the client sent.
        self._unsent = Share(listener.server.store.buffers, self.abort)
        self._sending = 0
        self._received = Share(listener.received, self.abort)
        self._closing = False
        self._broken = False
        #: The last response: sent after those to the earlier requests.
        self._refusal: bytes | None = None
        self._answering = False
        #: Since when we wait for the client, on the monotonic clock, and for how long we do.
        self._waits_since = clock.monotonic()
        self._patience = self._limits.receive_seconds

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(HIGH_WATER)
        self._waits_since = clock.monotonic()  # the time for a request begins after the TLS handshake
        tls = transport.get_extra_info("ssl_object")
        if tls is not None:
            self._certificate = tls.getpeercert(binary_form=True)
        self._task = asyncio.get_running_loop().create_task(self._run())
        if not self._listener.began(self):
            self._refuse_with(status.too_many_requests("too many connections are open, please try again later"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._closing = True
        self._parser = None  # it refers to the connection, and a server rarely collects cycles
        self._listener.ended(self)
        self._unsent.close()
        self._received.close()
        self._waiting.clear()
        if self._watcher is not None:
            self._watcher.drop()
        self._end_watch()
        self._notify()

    def data_received(self, data: bytes) -> None:
        parser = self._parser
        if self._broken or self._transport is None or parser is None:
            return
        if self._incoming is None or self._incoming.method == "":
            self._head_bytes += len(data)
            if self._head_bytes > self._limits.header_bytes + self._limits.body_bytes:
                self._refuse(431, "the request's header is too large")
                return
        try:
            parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._waiting.pop()  # the request itself, which is complete
            self._refuse(501, "upgrading the connection is not supported: there is no node behind this server")
        except httptools.HttpParserError as error:
            self._refuse(*_why(error))

    def pause_writing(self) -> None:
        self._paused = True
        self._wait_for_client(self._limits.receive_seconds)
        if self._watcher is None and self._transport is not None:
            self._unsent.hold(self._transport.get_write_buffer_size() + self._sending)

    def resume_writing(self) -> None:
        self._paused = False
        self._unsent.hold(0)
        self._wait_for_client(self._limits.idle_seconds)
        if self._watcher is not None:
            self._tell_unsent(self._watcher)
            self._schedule_pump()
        self._notify()

    # What the parser calls.

    def on_message_begin(self) -> None:
        self._incoming = _Incoming()
        self._head_bytes = 0
        self._listener.busy(self)
        if not self._paused:
            self._wait_for_client(self._limits.receive_seconds)

    def on_url(self, url: bytes) -> None:
        assert self._incoming is not None
        self._incoming.url += url
        if len(self._incoming.url) > self._limits.header_bytes:
            raise _TooMuch(431, "the request's path and query are too large")

    def on_header(self, name: bytes, value: bytes) -> None:
        incoming = self._incoming
        assert incoming is not None
        incoming.size += len(name) + len(value)
        if incoming.size > self._limits.header_bytes:
            raise _TooMuch(431, "the request's header is too large")
        key = name.decode("latin-1").lower()
        whose = key.startswith(_IMPERSONATE)
        text = value.decode("utf-8", "replace") if whose else value.decode("latin-1")
        if key in incoming.headers:
            text = incoming.headers[key] + ("\n" if whose else ",") + text
        incoming.headers[key] = text

    def on_headers_complete(self) -> None:
        incoming = self._incoming
        assert incoming is not None
        assert self._parser is not None
        incoming.method = self._parser.get_method().decode("latin-1")
        incoming.keep_alive = self._parser.should_keep_alive()
        incoming.size = 0
        length = incoming.headers.get("content-length", "")
        if length.isdigit() and int(length) > self._limits.body_bytes:
            raise _TooMuch(413, "")
        try:
            incoming.user = self._listener.server.authenticate(incoming.headers, self._certificate, incoming.request)
        except ApiError as error:
            incoming.refusal = status.as_response(error)
        expected = incoming.headers.get("expect", "").lower() == "100-continue" and incoming.refusal is None
        if expected and not self._waiting and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        incoming = self._incoming
        assert incoming is not None
        incoming.size += len(body)
        if incoming.size > self._limits.body_bytes:
            raise _TooMuch(413, "")
        if incoming.refusal is None:  # nothing is kept for unauthenticated clients
            incoming.add(body)
            self._received.hold(self._received.waiting + len(body))

    def on_message_complete(self) -> None:
        assert self._incoming is not None
        self._waiting.append(self._incoming)
        self._incoming = None
        if len(self._waiting) >= PIPELINE and self._transport is not None:
            self._transport.pause_reading()
        self._notify()

    # Answering.

    async def _run(self) -> None:
        try:
            while not self._closing:
                if self._refusal is not None and not self._waiting:
                    self._write(self._refusal)
                    self.close()
                    return
                # Responses do not pile up: while the client reads none, none is written.
                if not self._waiting or self._paused:
                    self._arrived = asyncio.get_running_loop().create_future()
                    await self._arrived
                    continue
                incoming = self._waiting.popleft()
                self._received.hold(self._received.waiting - len(incoming.body))
                if len(self._waiting) == PIPELINE - 1 and self._transport is not None:
                    self._transport.resume_reading()
                self._answering = True
                await self._answer(incoming)
                self._answering = False
                if not incoming.keep_alive or self._listener.closing:
                    self.close()
                elif not self._paused and self._incoming is None:
                    self._wait_for_client(self._limits.idle_seconds)
                    if not self._waiting:
                        self._listener.idle(self)
        except Exception:
            log.exception("a connection failed")
            self.abort()

    async def _answer(self, incoming: _Incoming) -> None:
        request = incoming.request()
        server = self._listener.server
        if incoming.user is None:
            response = incoming.refusal or status.as_response(status.unauthorized())
        else:
            try:
                if server.is_watch(request):
                    await self._watch(request, incoming.user)
                    return
                response = await self._handle(request, incoming.user)
            except ApiError as error:
                response = status.as_response(error)
        if len(response.body) >= GZIP_FROM and "gzip" in request.headers.get("accept-encoding", ""):
            response = await _gzipped(response)
        head = self._head(response, keep_alive=incoming.keep_alive)
        if request.method == "HEAD":
            self._write(head)
        elif len(response.body) <= PIECE:
            self._write(head + response.body)
        else:
            await self._send_in_pieces(head, response.body)

    async def _handle(self, request: Request, user: User) -> Response:
        server = self._listener.server
        write = request.method not in ("GET", "HEAD")
        server.in_flight.enter(write=write, priority="/leases/" in request.path)
        try:
            async with time_limit(self._limits.request_seconds):
                return await server.handle(request, user)
        finally:
            server.in_flight.leave(write=write)

    async def _send_in_pieces(self, head: bytes, body: bytes) -> None:
        """Writes as fast as the client reads: a slow client shows that it is alive, and a dead one holds no more than this."""
        self._write(head)
        self._sending = len(body)  # all of it is held until its last piece is written
        view = memoryview(body)
        for start in range(0, len(body), PIECE):
            while self._paused and self._transport is not None:
                self._arrived = asyncio.get_running_loop().create_future()
                await self._arrived
            self._write(view[start : start + PIECE])
            await asyncio.sleep(0)  # encrypting a piece takes time, and others wait
        self._sending = 0

    def _write(self, data: bytes | memoryview) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def _head(self, response: Response, *, keep_alive: bool) -> bytes:
        lines = [_REASONS.get(response.status) or f"HTTP/1.1 {response.status} \r\n"]
        for name, value in response.headers.items():
            if name == "warning":
                lines += [f"warning: {text}\r\n" for text in warning.lines(value)]
            else:
                lines.append(f"{name}: {value}\r\n")
        lines.append(f"content-length: {len(response.body)}\r\ncache-control: no-cache, private\r\ndate: {_date()}\r\n")
        if not keep_alive or self._listener.closing:
            lines.append("connection: close\r\n")
        lines.append("\r\n")
        return "".join(lines).encode()

    async def _watch(self, request: Request, user: User) -> None:
        server = self._listener.server
        server.in_flight.enter_watch()
        try:
            # Between once and twice the limit, so that streams opened together do not all end together.
            longest = self._limits.watch_seconds * chance.uniform(1, 2)
            async with time_limit(self._limits.request_seconds):
                # A client that was cut off reads nothing, not even an end.
                reader = Reader(wake=self._schedule_pump, cut=self.abort)
                watcher = await server.watch(request, user, reader, longest)
            await self._stream(watcher)
        finally:
            server.in_flight.leave_watch()

    async def _stream(self, watcher: Watcher) -> None:
        """Write a watch until it ends, or the client disconnects."""
        try:
            if self._transport is None:
                return
            head = f"{_REASONS[200]}content-type: application/json\r\ntransfer-encoding: chunked\r\n"
            self._transport.write(f"{head}cache-control: no-cache, private\r\ndate: {_date()}\r\n\r\n".encode())
            self._watcher = watcher
            self._watch_done = asyncio.get_running_loop().create_future()
            self._schedule_pump()
            await self._watch_done
        finally:
            watcher.drop()
            self._chunk.clear()
            self._watcher = self._watch_done = None

    def _schedule_pump(self) -> None:
        # Events that are committed in the same turn of the loop go out together.
        if not self._pumping:
            self._pumping = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        self._pumping = False
        watcher, transport = self._watcher, self._transport
        if watcher is None or transport is None or self._paused:
            return
        if not self._chunk:
            frames = watcher.take_frames()
            if frames:
                self._chunk.extend(_chunk(frames))
        if self._chunk:
            transport.write(self._chunk.popleft())
            self._tell_unsent(watcher)
            self._schedule_pump()
        elif watcher.exhausted:
            transport.write(b"0\r\n\r\n")
            self._end_watch()

    def _tell_unsent(self, watcher: Watcher) -> None:
        if self._transport is not None:
            watcher.unsent(self._transport.get_write_buffer_size())

    def _end_watch(self) -> None:
        if self._watch_done is not None and not self._watch_done.done():
            self._watch_done.set_result(None)

    def _notify(self) -> None:
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    def _refuse(self, code: int, message: str) -> None:
        """Respond to an invalid request, and close: the beginning of the next one is unknown."""
        self._refuse_with(status.too_large(self._limits.body_bytes) if code == 413 else status.plain(code, message))

    def _refuse_with(self, error: ApiError) -> None:
        self._broken = True
        response = status.as_response(error)
        self._refusal = self._head(response, keep_alive=False) + response.body
        self._notify()

    # Ending.

    @property
    def busy(self) -> bool:
        return bool(self._waiting) or self._answering

    def overdue(self, now: float) -> bool:
        """Whether the client has kept us waiting too long: to read a response, to finish a request, or to send the next."""
        if self.busy and not self._paused and not self._closing:
            return False
        return now - self._waits_since > self._patience

    def _wait_for_client(self, patience: float) -> None:
        self._waits_since = clock.monotonic()
        self._patience = patience

    def end(self) -> None:
        """The server stops: finish what is in progress, then close."""
        if self._watcher is not None:
            self._watcher.close()
        elif not self.busy:
            self.close()

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._wait_for_client(self._limits.receive_seconds)
        self._notify()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        self._closing = True
        self._notify()
        if self._transport is not None:
            self._transport.abort()


def _chunk(frames: list[bytes]) -> Iterator[bytes | memoryview]:
    """One chunk of a stream in pieces. Large frames are shared between connections, and are not copied."""
    size = sum(map(len, frames))
    if size <= 2 * WATCH_PIECE:
        yield b"%x\r\n%b\r\n" % (size, b"".join(frames))
        return
    yield b"%x\r\n" % size
    for frame in frames:
        view = memoryview(frame)
        for start in range(0, len(frame), WATCH_PIECE):
            yield view[start : start + WATCH_PIECE]
    yield b"\r\n"


class _TooMuch(Exception):
    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code = code


def _why(error: httptools.HttpParserError) -> tuple[int, str]:
    """The code and the message. Called outside of the frame that fed the parser, to which the cause refers."""
    cause = error.__context__
    return (cause.code, str(cause)) if isinstance(cause, _TooMuch) else (400, "the request is not valid HTTP")


async def _gzipped(response: Response) -> Response:
    def compress() -> bytes:
        packer = zlib.compressobj(1, zlib.DEFLATED, 31)
        return packer.compress(response.body) + packer.flush()

    body = await asyncio.to_thread(compress)
    headers = {**response.headers, "content-encoding": "gzip", "vary": "Accept-Encoding"}
    return Response(response.status, headers, body)


class _Clock:
    """The date header changes once a second; formatting it takes longer than the rest of a small response's head."""

    def __init__(self) -> None:
        self.second = 0
        self.text = ""

    def __call__(self) -> str:
        second = int(clock.time())
        if second != self.second:
            self.second = second
            self.text = formatdate(second, usegmt=True)
        return self.text


_date = _Clock()
