"""Events expire an hour after they were last written."""

from argosy.server.embedded import EmbeddedServer
from argosy.server.lifecycle.expiry import EventExpiry
from tests.server.conftest import HttpClient

EVENTS = "/api/v1/namespaces/default/events"


async def test_events_go_an_hour_after_their_last_write(memory_server: EmbeddedServer) -> None:
    involved = {"kind": "Pod", "name": "p", "namespace": "default"}
    expiry = EventExpiry(memory_server.server.store, seconds=3600)
    async with HttpClient(memory_server) as client:
        for name in ("old", "renewed"):
            made = await client.post(EVENTS, {"metadata": {"name": name}, "involvedObject": involved, "reason": "r"})
            assert made.code == 201, made.raw
        assert await expiry.sweep(now=0) == 0
        await client.patch(f"{EVENTS}/renewed", {"count": 2})
        assert await expiry.sweep(now=1800) == 0
        assert await expiry.sweep(now=3600) == 1
        assert (await client.get(f"{EVENTS}/old")).code == 404
        assert (await client.get(f"{EVENTS}/renewed")).code == 200
        assert await expiry.sweep(now=5400) == 1
