"""The HTTP transport against peers that misbehave in every way a network can. The peers are plain sockets, no Kubernetes."""

import asyncio
import base64
import gc
import ssl
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import aiohttp
import orjson
import pytest

from argosy.kube import warning
from argosy.kube.backoff import Backoff
from argosy.kube.config import ConfigError, Connection
from argosy.kube.credentials import Credential
from argosy.kube.errors import ApiError, Gone, NotFound, TransportError, Unauthorized
from argosy.kube.http import HttpTransport
from argosy.kube.transport import Event, Request
from tests.harness.eventually import eventually

Answer = bytes | None


class Peer:
    """Answers each request with the next scripted bytes; None cuts the connection.

    `hang`: say nothing at all. `open`: leave a stream open after its last chunk.
    """

    def __init__(self, *answers: Answer, hang: bool = False, open: bool = False) -> None:
        self.answers = list(answers)
        self.requests: list[bytes] = []
        self.hang = hang
        self.open = open
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                sizes = [
                    line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
                ]
                length = int(sizes[0]) if sizes else 0
                self.requests.append(head + await reader.readexactly(length))
                if self.hang:
                    await reader.read()
                answer = self.answers.pop(0) if self.answers else None
                if answer is None:
                    writer.transport.abort()
                    return
                writer.write(answer)
                await writer.drain()
                if b"content-length" not in answer.lower():
                    if not self.open:
                        return
                    await reader.read()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def ok(body: bytes = b"{}", code: str = "200 OK", headers: str = "") -> bytes:
    return f"HTTP/1.1 {code}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


def stream(*chunks: bytes, end: bool = True) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = b"".join(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n" for chunk in chunks)
    return head + body + (b"0\r\n\r\n" if end else b"")


@asynccontextmanager
async def talking_to(peer: Peer, **options: object) -> AsyncIterator[HttpTransport]:
    server = await asyncio.start_server(peer.serve, "127.0.0.1", 0)
    peer.port = server.sockets[0].getsockname()[1]
    connection = Connection(server=f"http://127.0.0.1:{peer.port}", **options.pop("connection", {}))  # type: ignore[arg-type]
    transport = HttpTransport(connection, **options)  # type: ignore[arg-type]
    try:
        yield transport
    finally:
        await transport.close()
        server.close()


async def test_a_request_carries_path_query_token_and_body() -> None:
    peer = Peer(ok(b'{"a":1}', "201 Created", "X-Kind: y\r\n"))
    async with talking_to(peer, connection={"token": "secret"}, user_agent="test/1") as transport:
        request = Request("POST", "/api/v1/x", [("a", "b c"), ("a", "é=&")], {"Content-Type": "t/x"}, b"body")
        answer = await transport.send(request)
    assert (answer.status, answer.body, answer.headers["x-kind"]) == (201, b'{"a":1}', "y")
    head, _, body = peer.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /api/v1/x?a=b+c&a=%C3%A9%3D%26 HTTP/1.1\r\n")
    for line in (b"Authorization: Bearer secret", b"User-Agent: test/1", b"Content-Type: t/x"):
        assert line in head
    assert body == b"body"


async def test_too_many_requests_is_waited_out_for_every_verb() -> None:
    peer = Peer(
        ok(b"{}", "429 Too Many Requests", "Retry-After: 0\r\n"), ok(b"{}", "503 Down", "Retry-After: 0\r\n"), ok()
    )
    async with talking_to(peer) as transport:
        assert (await transport.send(Request("POST", "/x", body=b"b"))).status == 200
    assert len(peer.requests) == 3


async def test_a_wait_beyond_the_time_out_hands_the_answer_out() -> None:
    peer = Peer(ok(b"{}", "429 Too Many Requests", "Retry-After: 60\r\n"))
    async with talking_to(peer, timeout=5) as transport:
        answer = await transport.send(Request("GET", "/x"))
    assert (answer.status, len(peer.requests)) == (429, 1)


async def test_an_unavailable_server_that_says_no_more_is_not_asked_again() -> None:
    peer = Peer(ok(b"{}", "503 Down"), ok())
    async with talking_to(peer) as transport:
        assert (await transport.send(Request("GET", "/x"))).status == 503


async def test_a_read_is_tried_again_after_a_cut_connection() -> None:
    peer = Peer(None, None, ok())
    async with talking_to(peer) as transport:
        assert (await transport.send(Request("GET", "/x"))).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_write_whose_answer_was_lost_is_not_sent_twice(method: str) -> None:
    peer = Peer(None, ok())
    async with talking_to(peer) as transport:
        with pytest.raises(TransportError):
            await transport.send(Request(method, "/x", body=b"b"))
    assert len(peer.requests) == 1


async def test_nobody_listening_is_one_clear_line() -> None:
    transport = HttpTransport(Connection(server="http://127.0.0.1:1"), timeout=0.3)
    with pytest.raises(TransportError, match=r"http://127\.0\.0\.1:1: "):
        await transport.send(Request("POST", "/x"))
    await transport.close()


async def test_a_server_that_says_nothing_is_given_up_on() -> None:
    peer = Peer(hang=True)
    async with talking_to(peer) as transport:
        with pytest.raises(TransportError, match=r"no answer within 0\.05 s"):
            await transport.send(Request("GET", "/x", timeout=0.05))


async def test_who_ran_out_of_time_says_how_the_try_before_failed() -> None:
    peer = Peer(None)
    async with talking_to(peer) as transport:
        asked = asyncio.create_task(transport.send(Request("GET", "/x", timeout=2.0)))
        await eventually(lambda: peer.requests)
        peer.hang = True
        with pytest.raises(TransportError, match=r"no answer within 2 s; the try before failed: \S+"):
            await asked


async def test_redirects_are_not_followed() -> None:
    peer = Peer(ok(b"", "302 Found", "Location: http://127.0.0.1:1/\r\n"))
    async with talking_to(peer) as transport:
        assert (await transport.send(Request("GET", "/x"))).status == 302


async def test_a_list_is_cut_into_its_objects_bytes() -> None:
    body = b'{"kind":"XList","metadata":{"resourceVersion":"7","continue":"t","remainingItemCount":3},"items":[{"b" :1},{"a":2}]}'
    peer = Peer(ok(body), ok(b'{"kind":"XList","metadata":{"resourceVersion":"8"},"items":null}'))
    async with talking_to(peer) as transport:
        page = await transport.list(Request("GET", "/x"))
        empty = await transport.list(Request("GET", "/x"))
    assert (page.items, page.resource_version, page.continue_token, page.remaining) == (
        [b'{"b" :1}', b'{"a":2}'],
        "7",
        "t",
        3,
    )
    assert (empty.items, empty.resource_version, empty.continue_token) == ([], "8", "")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"<html>hello</html>", "it is an HTML page"),
        (b"hello", "JSON is malformed"),
        (b'{"ok":true}', "it has no kind"),
        (b'{"kind":"Table","rows":[]}', "its kind is 'Table'"),
    ],
)
async def test_what_is_no_list_is_not_taken_for_an_empty_one(body: bytes, why: str) -> None:
    async with talking_to(Peer(ok(body))) as transport:
        with pytest.raises(TransportError, match=f"/x did not answer a Kubernetes list: {why}"):
            await transport.list(Request("GET", "/x"))


async def test_errors_of_others_keep_their_code_and_are_one_line() -> None:
    page = b"<html><head><title>502 Bad\n Gateway</title></head></html>"
    async with talking_to(Peer(ok(page, "502 Bad"), ok(b"no\n such page", "404 Not Found"))) as transport:
        with pytest.raises(ApiError, match="an HTML page '502 Bad Gateway' instead of") as caught:
            await transport.list(Request("GET", "/x"))
        assert caught.value.code == 502
        with pytest.raises(ApiError, match="no such page") as caught:
            await transport.list(Request("GET", "/x"))
        # Who answers so knows nothing of Kubernetes, so it is no word about an object.
        assert not isinstance(caught.value, NotFound)


async def test_a_path_kubernetes_does_not_serve_is_not_found() -> None:
    async with talking_to(Peer(ok(b"404 page not found\n", "404 Not Found"))) as transport:
        with pytest.raises(NotFound):
            await transport.list(Request("GET", "/x"))


async def test_several_headers_of_one_name_are_kept() -> None:
    warnings = 'Warning: 299 - "one"\r\nWarning: 299 - "two, \\"quoted\\""\r\n'
    async with talking_to(Peer(ok(b"{}", headers=warnings))) as transport:
        answer = await transport.send(Request("GET", "/x"))
    assert warning.texts(answer.headers["warning"]) == ("one", 'two, "quoted"')


async def events_of(transport: HttpTransport) -> list[Event]:
    async with transport.watch(Request("GET", "/x", [("watch", "true")])) as events:
        return [event async for event in events]


async def test_a_watch_gives_events_however_they_are_cut() -> None:
    peer = Peer(stream(b'{"type":"ADDED","obj', b'ect":{"a":1}}\n{"type":"DELETED","object":{}}\n'))
    async with talking_to(peer) as transport:
        assert await events_of(transport) == [Event("ADDED", b'{"a":1}'), Event("DELETED", b"{}")]


GONE = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}\n'


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (stream(GONE), Gone),
        (ok(b'{"kind":"Status","code":410,"reason":"Expired"}', "410 Gone"), Gone),
        (stream(b"garbage\n"), TransportError),
        (stream(b'{"type":"ADDED","object":{}}\n', end=False), TransportError),
        (None, TransportError),
    ],
)
async def test_a_watch_that_ends_badly_says_how(answer: Answer, error: type[Exception]) -> None:
    async with talking_to(Peer(answer)) as transport:
        with pytest.raises(error):
            await events_of(transport)


async def test_closing_ends_a_watch_and_leaves_nothing_behind() -> None:
    peer = Peer(stream(b'{"type":"ADDED","object":{}}\n', end=False), open=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        async with talking_to(peer) as transport:
            before = asyncio.all_tasks()
            async with transport.watch(Request("GET", "/x")) as events:
                assert (await anext(events)).type == "ADDED"
                await transport.close()
                with pytest.raises(TransportError):
                    await anext(events)
            with pytest.raises(TransportError, match="closed"):
                await transport.send(Request("GET", "/x"))
            assert asyncio.all_tasks() <= before
        gc.collect()


@pytest.mark.parametrize("watch", [False, True])
async def test_answers_that_break_leave_no_circles_behind(watch: bool) -> None:
    """aiohttp's streams and connections keep their error: with its frames it would hold them, and what they have read."""
    beginning = stream(b'{"type":"ADDED","object":{"a":"' + b"x" * 10_000, end=False)
    async with talking_to(Peer(*[beginning] * 8), backoff=Backoff(base=0.01, cap=0.05)) as transport:
        gc.collect()
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            with pytest.raises(TransportError):
                await (events_of(transport) if watch else transport.send(Request("GET", "/x")))
            await asyncio.sleep(0.05)
            gc.collect()
            assert not [found for found in gc.garbage if isinstance(found, Exception | aiohttp.ClientResponse)]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()


class Rotating:
    def __init__(self) -> None:
        self.refreshed = 0

    async def __call__(self, *, refresh: bool = False) -> Credential:
        self.refreshed += refresh
        return Credential(authorization=f"Bearer token-{self.refreshed}")


async def test_a_refused_credential_is_renewed_once() -> None:
    provider = Rotating()
    peer = Peer(ok(b"{}", "401 Unauthorized"), ok(), ok(b"{}", "401 Unauthorized"), ok(b"{}", "401 Unauthorized"))
    async with talking_to(peer, connection={"credentials": provider}) as transport:
        assert (await transport.send(Request("POST", "/x"))).status == 200
        assert (await transport.send(Request("POST", "/x"))).status == 401
    tokens = [line for request in peer.requests for line in request.split(b"\r\n") if line.startswith(b"Authorization")]
    assert tokens == [b"Authorization: Bearer token-%d" % n for n in (0, 1, 1, 2)]


class Slow:
    """Somebody has to log in first."""

    async def __call__(self, *, refresh: bool = False) -> Credential:
        await asyncio.sleep(0.3)
        return Credential(authorization="Bearer late")


async def test_getting_a_credential_is_not_part_of_the_time_out() -> None:
    peer = Peer(ok(), ok(b"{}", "401 Unauthorized"), ok())
    async with talking_to(peer, connection={"credentials": Slow()}, timeout=0.2) as transport:
        assert (await transport.send(Request("GET", "/x"))).status == 200
        assert (await transport.send(Request("GET", "/x"))).status == 200


def token(**claims: object) -> str:
    parts = [base64.urlsafe_b64encode(orjson.dumps(part)).decode().rstrip("=") for part in ({"alg": "none"}, claims)]
    return ".".join([*parts, "signature"])


async def test_a_refused_token_that_has_expired_is_told_so() -> None:
    refusal = b'{"kind":"Status","code":401,"reason":"Unauthorized","message":"Unauthorized"}'
    for given, says in [
        (token(exp=1_000_000_000), "expired on 2001-09-09"),
        (token(exp=1e15), "Unauthorized"),
        ("a.b.c", "Unauthorized"),
    ]:
        async with talking_to(Peer(ok(refusal, "401 Unauthorized")), connection={"token": given}) as transport:
            with pytest.raises(Unauthorized, match=says):
                await transport.list(Request("GET", "/x"))


async def test_requests_keep_to_the_rate() -> None:
    peer = Peer(*[ok() for _ in range(4)])
    async with talking_to(peer, qps=50, burst=1) as transport:
        loop = asyncio.get_running_loop()
        started = loop.time()
        await asyncio.gather(*(transport.send(Request("GET", "/x")) for _ in range(4)))
        assert loop.time() - started >= 0.055


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Connection("https://x", ca_data=b"nonsense"),
        lambda: Connection("https://x", client_certificate=b"a", client_key=b"b"),
        lambda: Connection("https://x", client_certificate=b"a"),
        lambda: Connection("https://x", token="sec\nret"),
        lambda: Connection("https://x", proxy="socks5://user:secret@p:1"),
    ],
)
def test_bad_certificates_and_proxies_are_refused_in_one_line(wrong: Callable[[], Connection]) -> None:
    with pytest.raises(ConfigError) as caught:
        HttpTransport(wrong())
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_secrets_are_not_in_what_is_printed() -> None:
    shown = repr(Connection("https://x", token="s3cret", client_key=b"s3cret")) + repr(Credential("s3cret"))
    assert "s3cret" not in shown


def test_insecure_skips_verification_only_when_asked() -> None:
    assert HttpTransport(Connection("https://x"))._ssl.verify_mode == ssl.CERT_REQUIRED  # type: ignore[union-attr]
    assert HttpTransport(Connection("https://x", insecure=True))._ssl.verify_mode == ssl.CERT_NONE  # type: ignore[union-attr]


class Guard:
    """Agrees so many times."""

    def __init__(self, times: int) -> None:
        self.times = times

    def __call__(self) -> None:
        self.times -= 1
        if self.times < 0:
            raise TransportError("not any more")


async def test_a_guard_is_asked_again_with_every_try_and_ends_the_request() -> None:
    peer = Peer(ok(code="429 Too Many Requests", headers="Retry-After: 0\r\n"), ok())
    async with talking_to(peer) as transport:
        with pytest.raises(TransportError, match="not any more"):
            await transport.send(Request("POST", "/x", body=b"{}", guard=Guard(2)))
    assert len(peer.requests) == 1


async def test_a_guard_that_gives_way_while_the_connection_is_opened_keeps_everything_back() -> None:
    peer = Peer(ok(), ok())
    async with talking_to(peer) as transport:
        with pytest.raises(TransportError, match="not any more"):
            await transport.send(Request("POST", "/x", body=b"{}", guard=Guard(1)))
        assert (await transport.send(Request("POST", "/y", body=b"{}", guard=Guard(2)))).status == 200
    assert [request.split()[1] for request in peer.requests] == [b"/y"]
