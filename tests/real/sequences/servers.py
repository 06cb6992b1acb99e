"""Both servers of a duel, each knowing the sequences' custom resources."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from argosy.kube import config
from argosy.server.embedded import ADMIN, EmbeddedServer
from tests.real.sequences.subjects import DEFINITIONS
from tests.server.replay import Server, connected

__all__ = ["both"]

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_PATIENCE = 30.0


@asynccontextmanager
async def both(stock: config.Connection) -> AsyncIterator[tuple[Server, Server]]:
    """The embedded server, a fresh one, over HTTPS; and the stock one."""
    token = secrets.token_urlsafe()
    started = EmbeddedServer(tokens={token: ADMIN})
    await started.start()
    try:
        here = config.Connection(started.url, started.authority.certificate, token=token)
        async with connected(here, embedded=True) as embedded, connected(stock, embedded=False) as real:
            await asyncio.gather(_define(embedded), _define(real))
            try:
                yield embedded, real
            finally:
                for definition in DEFINITIONS:
                    await real.json("DELETE", f"{_DEFINITIONS}/{definition['metadata']['name']}")
    finally:
        await started.stop()


async def _define(server: Server) -> None:
    deadline = time.monotonic() + _PATIENCE
    for definition in DEFINITIONS:
        answer = await server.json("POST", _DEFINITIONS, definition)
        assert answer.code in (201, 409), str(answer)
        spec = definition["spec"]
        path = f"/apis/{spec['group']}/v1/{spec['names']['plural']}"
        while (await server.json("GET", path)).code != 200:
            assert time.monotonic() < deadline, f"{path} is not served"
            await asyncio.sleep(0.05)
