"""HTTP(S) transport: requests, lists and watches to an API server over the network, on aiohttp.

One connection pool per instance, opened with the first request and closed by `close`; watches do not count for the limit of
requests. It owns no task. Every network failure is a TransportError, everything the server says is a Response (or, from `list`
and `watch`, an ApiError). With a `Challenge`, every connection has answered it before anything else is sent.

Retries happen within the caller's timeout: a 429, and a 503 with Retry-After, for every verb, since the server did nothing; a
failed connection if nothing was sent or the verb changes nothing. A write whose response was lost is never sent twice. Getting
a credential does not count for the timeout: somebody may have to log in.

At most `AnswerLimits` are read of a response. An invalid response is a BadAnswer and not retried here; so is one with more
parts than can be parsed in time (`answers.crowd`). With a `longest_hold`, a 429 affects all requests: until its time is over
every request and watch waits a moment, or fails with 429.
"""

import asyncio
import logging
import math
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from urllib.parse import quote, urlencode

import aiohttp
import msgspec
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

from argosy.kube import chance, framing, pieces, warning
from argosy.kube.answers import DEFAULT, MOST_VALUES, SMALLEST_OBJECT, UNCOUNTED, AnswerLimits, Hold, crowd, values
from argosy.kube.backoff import Backoff
from argosy.kube.challenge import Challenge, Challenger, NotAnswered
from argosy.kube.config import Connection
from argosy.kube.credentials import ConfigError, Credential, bearer, token_expired
from argosy.kube.endpoints import EndpointRules, canonical
from argosy.kube.errors import AnswerTooLarge, BadAnswer, TransportError, from_response, retry_after_of
from argosy.kube.objects import UNREADABLE
from argosy.kube.ratelimit import TokenBucket
from argosy.kube.resolver import GuardedResolver
from argosy.kube.tls import client_context, expired, proxy_for, tls_failure
from argosy.kube.transport import Event, Page, Request, Response

__all__ = ["BROKEN", "HttpTransport", "describe"]

log = logging.getLogger(__name__)

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
CONNECT_TIMEOUT = 10.0
#: Below the idle timeouts of API servers and load balancers, so that a write rarely meets a connection just closed.
KEEPALIVE = 30.0
MAX_RETRIES = 8
#: The connection was not established, so the server cannot have seen the request.
NOTHING_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError)
MALFORMED = (aiohttp.ClientResponseError, HttpProcessingError)
#: What aiohttp raises when the network fails; a RuntimeError if a connection was closed under a reader.
BROKEN = (aiohttp.ClientError, HttpProcessingError, OSError, RuntimeError)
BACKOFF = Backoff(base=0.1, cap=5.0, jitter=0.5)
#: The longest wait of a request after a 429; beyond that it fails.
SHORT_HOLD = 1.0


class _ShardInfo(msgspec.Struct):
    selector: str = ""


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str | None = ""
    continue_token: str | None = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None
    shard_info: _ShardInfo | None = None


class _List(msgspec.Struct):
    kind: str = ""
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[msgspec.Raw] | None = None


class HttpTransport:
    """A `Transport` to one API server. Raises ConfigError if the connection's certificates are invalid."""

    def __init__(
        self,
        connection: Connection,
        *,
        qps: float = 500.0,
        burst: int = 1000,
        timeout: float = 30.0,
        max_connections: int = 64,
        user_agent: str = "argosy",
        backoff: Backoff = BACKOFF,
        challenge: Challenge | None = None,
        endpoints: EndpointRules | None = None,
        limits: AnswerLimits = DEFAULT,
        longest_hold: float = 0.0,
    ) -> None:
        """`endpoints` are the rules for a server named by a user."""
        if endpoints is not None and (refusal := endpoints.refusal(connection.server)):
            raise ConfigError(f"{connection.server}: {refusal}")
        try:
            self._base = canonical(connection.server)
        except ValueError as error:
            raise ConfigError(f"{connection.server!r}: {error}") from None
        self.connection = connection
        self._timeout = timeout
        self._bucket = TokenBucket(qps, burst)
        self._slots = asyncio.Semaphore(max_connections)
        self._backoff = backoff
        self._challenge = challenge
        self._endpoints = endpoints
        self._limits = limits
        self._hold = Hold(longest_hold)
        self._headers = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": user_agent}
        if connection.token:
            self._headers["Authorization"] = bearer(connection.token, self._base)
        self._certificate = (connection.client_certificate, connection.client_key)
        self._ssl = client_context(connection, *self._certificate) if self._base.startswith("https:") else None
        self._proxy = proxy_for(connection)
        self._session: aiohttp.ClientSession | None = None
        self._closed = False
        self._list_decoder = msgspec.json.Decoder(_List)

    @property
    def name(self) -> str:
        return self._base

    async def send(self, request: Request) -> Response:
        response = await self._send(request, self._limits.object)
        self._count(response.body, request.path)
        return response

    async def _send(self, request: Request, limit: int) -> Response:
        headers = await self._headers_for(request)
        timeout = request.timeout if request.timeout is not None else self._timeout
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        failures, failed = 0, ""
        renewed = False
        while True:
            if (told := await self._held()) is not None:
                return told
            try:
                async with asyncio.timeout_at(deadline):
                    await self._bucket.acquire()
                    async with self._slots:
                        answer = await self._answer(request, headers, limit)
            except BROKEN as error:
                _without_frames(error)
                if _malformed(error):
                    raise BadAnswer(f"{self._base}: {request.path} did not answer in HTTP: {_shown(error)}") from None
                if isinstance(error, TimeoutError) and not isinstance(error, aiohttp.ClientError):
                    before = f"; the try before failed: {failed}" if failed else ""
                    raise TransportError(f"{self._base}: no answer within {timeout:g} s{before}") from None
                if request.guard is not None:  # the guard may have ended the attempt
                    request.guard()
                failures += 1
                delay = self._backoff.delay(failures)
                may_retry = (request.method in SAFE or isinstance(error, NOTHING_SENT)) and not _hopeless(error)
                failed = describe(error)
                if not may_retry or failures > MAX_RETRIES or loop.time() + delay >= deadline:
                    raise TransportError(f"{self._base}: {failed}") from error
            else:
                if answer.status == 401:
                    if self.connection.credentials is None or renewed:
                        return self._explained(answer, headers)
                    renewed = True
                    asked = loop.time()
                    headers = await self._headers_for(request, refresh=True)
                    deadline += loop.time() - asked
                    continue
                if not _asks_to_wait(answer):
                    return answer
                failures += 1
                delay = (retry_after_of(answer.headers) or self._backoff.delay(failures)) * (1 + 0.1 * chance.random())
                self._hold.ask(delay)
                longest = SHORT_HOLD if self._hold.heeded else deadline - loop.time()
                if failures > MAX_RETRIES or delay >= longest:
                    return answer
            await asyncio.sleep(delay)

    async def _held(self) -> Response | None:
        """Wait until the server may be asked; if that takes long, the 429 that it would return."""
        remaining = self._hold.remaining()
        if remaining > SHORT_HOLD:
            message = f"the server asked to wait {remaining:.0f} more seconds"
            status = {
                "kind": "Status",
                "apiVersion": "v1",
                "status": "Failure",
                "reason": "TooManyRequests",
                "code": 429,
            }
            headers = {"retry-after": f"{math.ceil(remaining)}"}
            return Response(429, headers, msgspec.json.encode({**status, "message": message}))
        if remaining > 0:
            await asyncio.sleep(remaining)
        return None

    async def list(self, request: Request) -> Page:
        response = await self._send(request, self._limits.page)
        if response.status >= 300:
            self._count(response.body, request.path)
            raise from_response(response.status, response.headers, response.body)
        if len(response.body) > UNCOUNTED and values(response.body) > MOST_VALUES:
            raise AnswerTooLarge(f"{self._base}: {request.path} answered a page of more than {MOST_VALUES} values")
        try:
            found = self._list_decoder.decode(response.body)
        except UNREADABLE as error:
            why = "it is an HTML page" if response.body.lstrip()[:1] == b"<" else str(error)
            raise BadAnswer(f"{self._base}: {request.path} did not answer a Kubernetes list: {why}") from None
        # Any other JSON would pass for an empty list, and an empty list deletes.
        if not found.kind.endswith("List"):
            kind = f"its kind is {found.kind[:60]!r}" if found.kind else "it has no kind"
            raise BadAnswer(f"{self._base}: {request.path} did not answer a Kubernetes list: {kind}")
        items = found.items or []
        if len(response.body) > UNCOUNTED:
            if len(response.body) < len(items) * SMALLEST_OBJECT:
                raise BadAnswer(f"{self._base}: {request.path} answered {len(items)} items, too small for objects")
            for item in items:
                if len(item) > UNCOUNTED:
                    self._count(bytes(item), request.path)
        return Page(
            # A Raw is a view that keeps the whole body alive; with a copy one object can outlive the page.
            items=[bytes(item) for item in items],
            resource_version=found.metadata.resource_version or "",
            continue_token=found.metadata.continue_token or "",
            remaining=found.metadata.remaining_item_count,
            shard_selector=found.metadata.shard_info.selector if found.metadata.shard_info else "",
            warnings=warning.texts(response.headers.get("warning", "")),
        )

    def watch(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        return self._watch(request)

    @asynccontextmanager
    async def _watch(self, request: Request) -> AsyncIterator[AsyncIterator[Event]]:
        response = await self._open_watch(request)
        events = self._events(response)
        try:
            yield events
        finally:
            # Closed, not released: the rest of the stream is not needed and the connection cannot be reused.
            response.close()
            await events.aclose()

    async def _open_watch(self, request: Request) -> aiohttp.ClientResponse:
        timeout = request.timeout if request.timeout is not None else self._timeout
        renewed = False
        while True:
            headers = await self._headers_for(request, refresh=renewed)
            if (told := await self._held()) is not None:
                raise from_response(told.status, told.headers, told.body)
            try:
                async with asyncio.timeout(timeout):
                    await self._bucket.acquire()
                    try:
                        response = await self._open(request, headers)
                    except NotAnswered as error:
                        answer = self._refused(error)
                    else:
                        if response.status < 300:
                            return self._readable(response)
                        async with response:
                            body = await self._read(response, self._limits.object)
                            self._count(body, request.path)
                            answer = Response(response.status, _headers_of(response), body)
            except BROKEN as error:
                _without_frames(error)
                if _malformed(error):
                    raise BadAnswer(f"{self._base}: the watch was not answered in HTTP: {_shown(error)}") from None
                if isinstance(error, TimeoutError) and not isinstance(error, aiohttp.ClientError):
                    raise TransportError(f"{self._base}: the watch was not opened within {timeout:g} s") from None
                raise TransportError(f"{self._base}: the watch was not opened: {describe(error)}") from error
            if answer.status == 429:
                self._hold.ask(retry_after_of(answer.headers) or self._backoff.delay(1))
            if answer.status != 401 or self.connection.credentials is None or renewed:
                answer = self._explained(answer, headers)
                raise from_response(answer.status, answer.headers, answer.body)
            renewed = True

    async def _events(self, response: aiohttp.ClientResponse) -> AsyncGenerator[Event, None]:
        lines = framing.Lines(self._limits.object)
        try:
            async for chunk in response.content.iter_any():
                for line in lines.feed(chunk):
                    self._count(line, "the watch")
                    yield framing.event(line)
        except BROKEN as error:
            _without_frames(error)
            raise TransportError(f"{self._base}: the watch broke: {describe(error)}") from error

    async def _read(self, response: aiohttp.ClientResponse, limit: int) -> bytes:
        chunks = []
        size = self._readable(response).content_length or 0
        if size <= limit:
            size = 0
            async for chunk in response.content.iter_any():
                size += len(chunk)
                if size > limit:
                    break
                chunks.append(chunk)
            else:
                return b"".join(chunks)
        response.close()
        raise AnswerTooLarge(f"{self._base}: {response.url.path} answered more than {limit} bytes")

    def _count(self, body: bytes, what: str) -> None:
        if most := crowd(body):
            raise BadAnswer(f"{self._base}: {what} answered an object of {most}")

    def _readable(self, response: aiohttp.ClientResponse) -> aiohttp.ClientResponse:
        encoding = response.headers.get("Content-Encoding", "identity")
        if encoding != "identity":
            response.close()
            raise BadAnswer(f"{self._base}: {response.url.path} answered in the encoding {encoding[:40]!r}, unasked")
        return response

    async def _headers_for(self, request: Request, *, refresh: bool = False) -> dict[str, str]:
        headers = {**self._headers, **request.headers}
        if self.connection.credentials is not None:
            try:
                self._use(await self.connection.credentials(refresh=refresh), headers)
            except ConfigError as error:
                raise TransportError(str(error)) from error
        return headers

    async def _answer(self, request: Request, headers: dict[str, str], limit: int) -> Response:
        try:
            async with await self._open(request, headers) as response:
                return Response(response.status, _headers_of(response), await self._read(response, limit))
        except NotAnswered as error:
            return self._refused(error)

    def _refused(self, error: NotAnswered) -> Response:
        if error.refused:
            return error.answer
        raise TransportError(f"{self._base}: {error}") from None

    async def _open(self, request: Request, headers: dict[str, str]) -> aiohttp.ClientResponse:
        if self._closed:
            raise TransportError(f"{self._base}: the transport is closed")
        if request.guard is not None:
            request.guard()
        return await self._sessions().request(
            request.method,
            URL(self._url(request), encoded=True),
            data=_body_of(request),
            headers=headers,
            ssl=self._ssl if self._ssl is not None else True,
            server_hostname=self.connection.tls_server_name or None,
            proxy=self._proxy,
            # A redirect would send the credentials to its target; an API server sends none.
            allow_redirects=False,
        )

    def _url(self, request: Request) -> str:
        url = self._base + quote(request.path, safe="/:@!$&'()*+,;=~")
        return f"{url}?{urlencode(list(request.query))}" if request.query else url

    def _use(self, credential: Credential, headers: dict[str, str]) -> None:
        if credential.authorization:
            headers["Authorization"] = credential.authorization
        certificate = (credential.client_certificate, credential.client_key)
        if certificate[0] and certificate != self._certificate and self._ssl is not None:
            self._ssl = client_context(self.connection, *certificate)
            self._certificate = certificate

    def _explained(self, answer: Response, headers: Mapping[str, str]) -> Response:
        """A 401 does not tell its reason; if the reason can be seen here, it is added."""
        if answer.status != 401:
            return answer
        if when := token_expired(headers.get("Authorization", "")):
            reason = f"the token expired on {when:%Y-%m-%d %H:%M:%S} UTC"
        elif when := expired(self._certificate[0]):
            reason = f"the client certificate expired on {when:%Y-%m-%d %H:%M:%S} UTC"
        else:
            return answer
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Unauthorized", "code": 401}
        return Response(401, answer.headers, msgspec.json.encode({**status, "message": f"Unauthorized: {reason}"}))

    def _sessions(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=pieces.whole(self._pool()),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT),
                read_bufsize=2**18,
                # Compression was not requested, and a few bytes may expand to any size.
                auto_decompress=False,
            )
            # aiohttp would resend PUT and DELETE after a broken connection; `send` decides whether that is safe.
            self._session._retry_connection = False
        return self._session

    def _pool(self) -> aiohttp.TCPConnector:
        # A proxy resolves names itself, and the proxy's own address is the operator's choice.
        rules = self._endpoints if self._proxy is None else None
        resolver = GuardedResolver(rules) if rules is not None else None
        if self._challenge is not None:
            return Challenger(self._base, self._challenge, resolver=resolver, keepalive_timeout=KEEPALIVE)
        return aiohttp.TCPConnector(limit=0, resolver=resolver, keepalive_timeout=KEEPALIVE)

    async def close(self) -> None:
        """Close every connection; requests and watches in progress end with a TransportError."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()


class _Guarded(aiohttp.BytesPayload):
    """A body that is sent, together with the buffered head of the request, only if the guard still agrees: opening a
    connection takes time, and so does every turn of the event loop."""

    def __init__(self, body: bytes, guard: Callable[[], None]) -> None:
        super().__init__(body)
        self._guard = guard

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        self._guard()
        await super().write_with_length(writer, content_length)


def _body_of(request: Request) -> aiohttp.BytesPayload | bytes | None:
    if not request.body or request.guard is None:
        return request.body or None
    return _Guarded(request.body, request.guard)


def _headers_of(response: aiohttp.ClientResponse) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in response.headers.items():
        name = name.lower()
        # Several headers of one name are one list, as with warnings.
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _asks_to_wait(answer: Response) -> bool:
    return answer.status == 429 or (answer.status == 503 and retry_after_of(answer.headers) is not None)


def _without_frames(error: BaseException | None) -> None:
    """aiohttp's streams and connections keep the error they failed with, whose frames refer to them: reference cycles that hold
    all that was read, in a process that rarely collects cycles. So only the text of the error is kept."""
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


def _malformed(error: Exception) -> bool:
    """Whether the response is not HTTP. A proxy's refusal is valid HTTP."""
    return isinstance(error, MALFORMED) and not isinstance(error, aiohttp.ClientHttpProxyError)


def _shown(error: Exception) -> str:
    """aiohttp appends the bytes that it could not parse to its message."""
    return str(getattr(error, "message", "") or error).strip().split("\n")[0][:200]


def _hopeless(error: Exception) -> bool:
    """Whether a retry is useless: an invalid certificate or a proxy's refusal stays."""
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return error.status < 500
    return isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError)


def describe(error: Exception) -> str:
    """The error in the words of the operating system or TLS; aiohttp's own text shows its internals."""
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy refused to connect: {error.status} {error.message}".rstrip()
    cause: Exception = error
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        cause = error.certificate_error
    elif isinstance(error, aiohttp.ClientConnectorError):
        cause = error.os_error
    if isinstance(cause, ssl.SSLError):
        return tls_failure(cause)
    reason = getattr(cause, "strerror", None) if isinstance(cause, OSError) else None
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return f"the proxy cannot be reached: {reason or cause}"
    return str(reason or cause) or type(error).__name__
