"""Memory that a burst took goes back to the system, burst after burst."""

import asyncio
import contextlib

import pytest

from argosy.kube import memory
from tests.harness.eventually import eventually

MB = 1024 * 1024


def burst() -> list[bytes]:
    """60 MB, of which one piece in thirty is kept: the free ones lie between used ones."""
    pieces = [bytes(4000) for _ in range(60 * MB // 4000)]
    return pieces[::30]


@pytest.mark.skipif(memory._glibc() is None, reason="only glibc can be told to")
async def test_what_a_burst_took_is_given_back_also_the_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "PERIOD", 0.01)
    tending = asyncio.create_task(memory.tend())
    await asyncio.sleep(0)
    try:
        for _ in range(3):
            before = memory.resident()
            kept = burst()
            taken = memory.resident()
            assert taken - before > 30 * MB
            await eventually(lambda before=before: memory.resident() - before < 15 * MB)
            del kept
    finally:
        tending.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await tending
