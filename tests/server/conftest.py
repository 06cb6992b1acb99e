"""A real embedded server over HTTPS on a free loopback port, and clients for it.

`server` runs on both storages; tests that need one only ask for `memory_server`. Each test has a server of its own.
"""

import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from multidict import CIMultiDictProxy

from argosy.server.auth.identity import User
from argosy.server.embedded import ADMIN, EmbeddedServer
from tests.harness.eventually import PATIENCE

TOKENS = {"admin-token": ADMIN, "guest-token": User("guest", ("guests",))}


class Answer:
    """One whole answer; `body` is decoded where it is JSON."""

    def __init__(self, code: int, headers: CIMultiDictProxy[str], raw: bytes):
        self.code = code
        self.headers = headers
        self.raw = raw

    @property
    def body(self) -> Any:
        return orjson.loads(self.raw)

    @property
    def warnings(self) -> list[str]:
        return list(self.headers.getall("warning", []))

    @property
    def version(self) -> str:
        return str(self.body["metadata"]["resourceVersion"])


class HttpClient:
    """Raw HTTP, so that tests see what any client would."""

    def __init__(self, server: EmbeddedServer, token: str = "admin-token"):
        self.url = server.url
        self._trust = ssl.create_default_context(cadata=server.authority.certificate.decode())
        self._headers = {"authorization": f"Bearer {token}"}
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "HttpClient":
        connector = aiohttp.TCPConnector(ssl=self._trust)
        self._session = aiohttp.ClientSession(self.url, connector=connector, headers=self._headers)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()

    async def send(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None, **query: str
    ) -> Answer:
        assert self._session is not None
        data = body if isinstance(body, bytes) or body is None else orjson.dumps(body)
        sent = {"content-type": "application/json"} | dict(headers or {}) if data is not None else headers
        async with self._session.request(method, path, data=data, headers=sent, params=query or None) as response:
            return Answer(response.status, response.headers, await response.read())

    async def get(self, path: str, headers: Mapping[str, str] | None = None, **query: str) -> Answer:
        return await self.send("GET", path, None, headers, **query)

    async def post(self, path: str, body: Any, headers: Mapping[str, str] | None = None, **query: str) -> Answer:
        return await self.send("POST", path, body, headers, **query)

    async def put(self, path: str, body: Any, headers: Mapping[str, str] | None = None, **query: str) -> Answer:
        return await self.send("PUT", path, body, headers, **query)

    async def patch(self, path: str, body: Any, form: str = "merge-patch", **query: str) -> Answer:
        return await self.send("PATCH", path, body, {"content-type": f"application/{form}+json"}, **query)

    async def delete(self, path: str, body: Any = None, **query: str) -> Answer:
        return await self.send("DELETE", path, body, **query)

    async def watch(self, path: str, **query: str) -> list[dict[str, Any]]:
        """All events until the server ends the stream: give a timeoutSeconds."""
        answer = await self.get(path, watch="true", **query)
        assert answer.code == 200, answer.raw
        return [orjson.loads(line) for line in answer.raw.splitlines()]

    def stream(self, path: str, **query: str) -> Any:
        """An open watch; iterate over `.content` for its lines."""
        assert self._session is not None
        return self._session.get(path, params={"watch": "true", **query})


async def until(
    ask: Callable[[], Awaitable[Answer]], holds: Callable[[Answer], bool], seconds: float = PATIENCE
) -> Answer:
    """Ask again until the answer is as wanted."""
    deadline = time.monotonic() + seconds
    answer = await ask()
    while not holds(answer):
        assert time.monotonic() < deadline, f"still not so: {answer.raw!r}"
        answer = await ask()
    return answer


@pytest.fixture(params=["memory", "sqlite"])
async def server(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    started = EmbeddedServer(tmp_path / "data" if request.param == "sqlite" else None, tokens=TOKENS)
    await started.start()
    yield started
    await started.stop()


@pytest.fixture
async def memory_server() -> AsyncIterator[EmbeddedServer]:
    started = EmbeddedServer(tokens=TOKENS)
    await started.start()
    yield started
    await started.stop()


@pytest.fixture
async def client(server: EmbeddedServer) -> AsyncIterator[HttpClient]:
    async with HttpClient(server) as opened:
        yield opened
