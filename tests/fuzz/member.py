"""The member that lies at random: each second another lie about something, and the truth in between."""

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import orjson

from tests.fuzz import mutate
from tests.harness.liar import STREAM, Asked, Liar, Tell, chunk, head, pours, raw, says

__all__ = ["lie_about", "lies"]

_ABOUT = (
    r"GET /apis/apps/v1/deployments", r"GET /api/v1/configmaps", r"GET /api/v1/nodes", r"GET /api/v1/pods", r"WATCH .*",
    r"WATCH /api/v1/pods", r"GET /apis", r"GET /api", r"GET /healthz", r"GET .*/namespaces/.*/.*/.*", r"PUT .*", r"POST .*",
    r"PATCH .*", r"DELETE .*", r".*", r"GET .*",
)  # fmt: skip
_CODES = (200, 200, 201, 204, 301, 400, 401, 403, 404, 409, 410, 422, 429, 500, 502, 503, 504, 999)
_WAITS = ("0", "1", "-1", "1000000000", "NaN", "soon", "")


def lie_about(rng: random.Random) -> tuple[str, Tell]:
    return rng.choice(_ABOUT), _lie(rng)


def _lie(rng: random.Random) -> Tell:
    how = rng.random()
    if how < 0.55:
        return _mutating(rng)
    if how < 0.7:
        return says(mutate.odd_json(rng), rng.choice(_CODES), {"Retry-After": rng.choice(_WAITS)})
    if how < 0.85:
        return _eventful(rng)
    if how < 0.9:
        return pours(rng.choice((STREAM, head(200, 2**40))), rng.choice((chunk(b"x" * 2**18), b"1\r\n{\r\n" * 2000)))
    return raw(
        rng.choice((b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 500, b"\x00" * 5000, b"HTTP/1.1 200 OK\r\n\r\n{}", STREAM))
    )


def _mutating(rng: random.Random) -> Tell:
    """The truth with something wrong about it, another thing each time."""

    async def tell(asked: Asked) -> AsyncIterator[bytes]:
        status, body = await asked.truth()
        try:
            value = orjson.loads(body)
        except orjson.JSONDecodeError:
            value = body.decode("utf-8", "replace")
        changed = mutate.encoded(rng, mutate.mutated(rng, value))
        if rng.random() < 0.1:
            changed = mutate.broken(rng, changed)
        yield head(status, len(changed)) + changed

    return tell


def _eventful(rng: random.Random) -> Tell:
    """A watch of nonsense, or of something like sense."""
    identity = {"name": "f1", "namespace": "fuzz-0", "uid": "u", "resourceVersion": "5"}
    labels = {"kubeadmiral.io/managed": "true"}
    copy = {"kind": "Deployment", "metadata": {**identity, "labels": labels}, "spec": {"replicas": 1}, "status": {}}
    template = orjson.dumps(copy)

    async def tell(asked: Asked) -> AsyncIterator[bytes]:
        yield STREAM
        for _ in range(rng.choice((1, 5, 200))):
            event: Any = {
                "type": rng.choice(("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "X")),
                "object": orjson.loads(template),
            }
            line = mutate.encoded(rng, mutate.mutated(rng, event)) + b"\n"
            yield chunk(mutate.broken(rng, line) if rng.random() < 0.05 else line)
            await asyncio.sleep(0)
        if rng.random() < 0.5:
            yield chunk(b"")

    return tell


async def lies(liar: Liar, seed: int) -> None:
    """Until cancelled."""
    number = 0
    while True:
        number += 1
        rng = random.Random(f"{seed}/lie/{number}")
        about, tell = lie_about(rng)
        with liar.lying(about, tell):
            liar.cut()
            await asyncio.sleep(rng.uniform(0.3, 1.5))
        await asyncio.sleep(rng.choice((0.1, 0.5, 2.0)))
