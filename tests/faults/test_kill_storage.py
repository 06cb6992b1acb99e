"""A process that is killed while it writes loses nothing it acknowledged, and gives out no version twice."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

from argosy.server.storage.sqlite import SqliteStorage

WRITER = textwrap.dedent("""
    import asyncio, sys
    from pathlib import Path
    from argosy.server.storage.sqlite import SqliteStorage

    async def main(folder, prefix):
        storage = SqliteStorage(Path(folder))
        await storage.open(lambda changes: None, lambda writes, seconds: None)

        async def write(worker):
            number = 0
            while True:
                record = await storage.create(f"g/k/{prefix}-{worker}-{number}", lambda v: b"x%d" % v)
                print(record.key, record.version, flush=True)
                number += 1

        await asyncio.gather(*(write(worker) for worker in range(8)))

    asyncio.run(main(*sys.argv[1:]))
""")


def write_until_killed(folder: Path, turn: int, enough: int) -> list[str]:
    """The lines a writer printed, one an acknowledged write, until it was killed after `enough` of them."""
    command = [sys.executable, "-c", WRITER, str(folder), f"t{turn}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(enough)]
        os.kill(process.pid, signal.SIGKILL)
        return lines + process.stdout.read().splitlines()


async def test_acknowledged_writes_survive_sigkill(tmp_path: Path) -> None:
    chance = random.Random(7)
    acknowledged: dict[str, int] = {}
    for turn in range(5):
        for line in await asyncio.to_thread(write_until_killed, tmp_path, turn, chance.randint(20, 400)):
            key, _, version = line.strip().partition(" ")
            if version.isdigit():
                assert int(version) not in acknowledged.values(), "a version was used twice"
                acknowledged[key] = int(version)

    storage = SqliteStorage(tmp_path)
    stored = {r.key: r for r in await storage.open(lambda changes: None, lambda writes, seconds: None)}
    try:
        assert len(acknowledged) > 100
        for key, version in acknowledged.items():
            assert stored[key].version == version
            assert stored[key].value == b"x%d" % version
        versions = [record.version for record in stored.values()]
        assert len(set(versions)) == len(versions)
    finally:
        await storage.close()
