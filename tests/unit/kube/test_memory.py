"""Memory that a burst took goes back to the system, burst after burst. In a process of its own: others have holes to fill."""

import subprocess
import sys

import pytest

from argosy.kube import memory

BURSTS = """
import asyncio, time
from argosy.kube import memory

MB = 1024 * 1024
memory.PERIOD = 0.01

def burst():
    '''60 MB, of which one piece in thirty is kept: the free ones lie between used ones.'''
    pieces = [bytes(4000) for _ in range(60 * MB // 4000)]
    return pieces[::30]

async def main():
    memory.keep_together()
    tending = asyncio.create_task(memory.tend())
    await asyncio.sleep(0)
    for _ in range(3):
        before = memory.resident()
        kept = burst()
        assert memory.resident() - before > 30 * MB
        deadline = time.monotonic() + 60
        while memory.resident() - before > 15 * MB:
            assert time.monotonic() < deadline, memory.resident() - before
            await asyncio.sleep(0.01)
        del kept
    tending.cancel()

asyncio.run(main())
"""


@pytest.mark.skipif(memory._glibc() is None, reason="only glibc can be told to")
def test_what_a_burst_took_is_given_back_also_the_second_time() -> None:
    done = subprocess.run([sys.executable, "-c", BURSTS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
