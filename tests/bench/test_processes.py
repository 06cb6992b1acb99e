"""What a benchmark starts ends with it."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.harness.eventually import eventually

BENCHMARK = """
import asyncio, pathlib, sys, tempfile
from bench.processes import argosy, child, pid_of, run

async def main():
    with tempfile.TemporaryDirectory(dir=sys.argv[1]) as folder:
        server = argosy("server", pathlib.Path(folder), "server", "--data", folder, "--port", "0")
        try:
            load = await child("bench.load")
            print(pid_of(server), load.pid, folder, flush=True)
            await asyncio.Event().wait()
        finally:
            await server.stop()

run(main())
"""


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.skipif(sys.platform != "linux", reason="the parent-death signal is Linux's")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
async def test_a_benchmark_that_is_ended_leaves_nothing_running(tmp_path: Path, number: signal.Signals) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", BENCHMARK, str(tmp_path), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        server, load, folder = (await process.stdout.readline()).split()
        assert _runs(int(server))
        assert _runs(int(load))
        process.send_signal(number)
        await process.communicate()
        await eventually(lambda: not _runs(int(server)) and not _runs(int(load)))
        # Nobody is left to remove it after SIGKILL.
        assert number == signal.SIGKILL or not os.path.exists(folder)  # noqa: ASYNC240
    finally:
        if process.returncode is None:
            process.kill()
