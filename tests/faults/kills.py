"""`python -m tests.faults.kills --count 200 --seed N`: an API server is killed under load, again and again, and nothing is lost.

Clients write to it without a pause and note what was acknowledged; a watcher notes every event it is sent, and goes on after each
kill from the last one it saw. The kills come in the middle of commits, of merges of the log, of compaction, of a start, while a
backup is made, and at any time. Afterwards: every acknowledged write is there, every one was seen by the watcher, no version was
used for two writes, and no start was refused.
"""

import argparse
import asyncio
import contextlib
import itertools
import logging
import random
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import msgspec
import orjson

from argosy.kube.client import Client
from argosy.kube.errors import ApiError, TransportError
from argosy.server.storage.copy import copy_store
from tests.faults.gauge import COMMIT, COMPACT, MERGE, START
from tests.faults.ledger import NAMESPACE, Ledger
from tests.faults.processes import Plane
from tests.harness.eventually import eventually
from tests.harness.federation import CONFIGMAPS

__all__ = ["Outcome", "kills"]

MOMENTS = ("commit", "merge", "compaction", "start", "backup", "any")
_GAUGED = {"commit": COMMIT, "merge": MERGE, "compaction": COMPACT, "start": START}
#: How many of them pass by before the one that is hit.
_COUNTDOWN = {"commit": (5, 60), "merge": (1, 4), "compaction": (1, 6), "start": (1, 1)}
WRITERS = 6


class Outcome(msgspec.Struct):
    seed: int
    kills: int = 0
    #: How many met what they were meant for, by moment.
    hits: Counter[str] = msgspec.field(default_factory=Counter)
    #: Kills that left clients without an answer.
    unanswered: int = 0
    acknowledged: int = 0
    events: int = 0
    resumed: int = 0
    backups: int = 0
    slowest_start: float = 0.0
    seconds: float = 0.0

    def __str__(self) -> str:
        hits = ", ".join(f"{self.hits[moment]} in {moment}" for moment in MOMENTS if moment in _GAUGED)
        return (
            f"{self.kills} kills (seed {self.seed}) in {self.seconds:.0f} s: {hits}, {self.hits['backup']} during a backup;"
            f" {self.unanswered} left clients unanswered\n"
            f"{self.acknowledged} writes acknowledged, 0 lost; {self.events} versions seen, 0 used twice;"
            f" a watch resumed {self.resumed} times without a gap; {self.backups} copies made meanwhile, all consistent;"
            f" serving again after {self.slowest_start:.1f} s at most"
        )


class Watcher:
    """One watch that never lists: it resumes from the last event it saw, however often it is cut off."""

    def __init__(self, since: str):
        self._since = since
        #: What each version was, and the versions in order.
        self.events: dict[int, tuple[str, str]] = {}
        self.resumed = -1

    async def run(self, client: Client) -> None:
        while True:
            with contextlib.suppress(TransportError):
                async with client.watch(CONFIGMAPS, NAMESPACE, resource_version=self._since) as events:
                    self.resumed += 1
                    async for event in events:
                        self._see(event.type, orjson.loads(event.object)["metadata"])
            await asyncio.sleep(0.02)

    def _see(self, kind: str, metadata: dict[str, str]) -> None:
        version = int(metadata["resourceVersion"])
        assert version > int(self._since), f"version {version} came after {self._since}"
        assert version not in self.events
        self._since = str(version)
        if kind != "BOOKMARK":
            self.events[version] = metadata["name"], kind

    @property
    def version(self) -> int:
        return int(self._since)


class Writer:
    """One client with ConfigMaps of its own, which it makes, changes and deletes without a pause until nobody answers."""

    def __init__(self, number: int, ledger: Ledger[str], chance: random.Random):
        self._prefix = f"w{number}-"
        self._ledger = ledger
        self._chance = chance
        self._made = 0

    async def run(self, client: Client) -> None:
        while await self._step(client):
            pass

    async def _step(self, client: Client) -> bool:
        ledger, chance = self._ledger, self._chance
        own = sorted(n for n, state in ledger.acknowledged.items() if state is not None and n.startswith(self._prefix))
        value = f"{self._made}-" + "x" * chance.choice((10, 10, 1000, 20_000))
        self._made += 1
        choice = chance.random()
        if len(own) < 5 or (len(own) < 20 and choice < 0.3):
            name = f"{self._prefix}{self._made}"
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE}}
            return await ledger.write(name, value, client.create(CONFIGMAPS, {**body, "data": {"v": value}}))
        name = chance.choice(own)
        if choice > 0.85:
            return await ledger.write(name, None, client.delete(CONFIGMAPS, name, NAMESPACE))
        return await ledger.write(name, value, client.patch(CONFIGMAPS, name, {"data": {"v": value}}, NAMESPACE))


async def kills(count: int, seed: int, folder: Path) -> Outcome:
    """Raises AssertionError with what went wrong."""
    chance, outcome, began = random.Random(seed), Outcome(seed), time.monotonic()
    ledger, server = Versions(), Plane(folder, "tests.faults.target")
    try:
        await server.start()
        client = server.client()
        watcher = Watcher((await client.list(CONFIGMAPS, NAMESPACE)).resource_version)
        watching = asyncio.create_task(watcher.run(client))
        writers = [Writer(number, ledger, chance) for number in range(WRITERS)]
        moments = itertools.cycle(MOMENTS)
        while outcome.kills < count:
            moment = next(moments)
            await _kill(server, client, moment, writers, chance, outcome)
            outcome.unanswered += bool(ledger.open)
            started = time.monotonic()
            await server.start()
            outcome.slowest_start = max(outcome.slowest_start, time.monotonic() - started)
            listed = await client.list(CONFIGMAPS, NAMESPACE)
            found = {
                each["metadata"]["name"]: each["data"]["v"] for each in listed.items if "v" in each.get("data", {})
            }
            ledger.resolve(found)
            newest = max(int(each["metadata"]["resourceVersion"]) for each in listed.items)
            await eventually(
                lambda newest=newest: watcher.version >= newest or watching.done(), why="the watch resumed"
            )
            assert not watching.done(), watching.exception()
            ledger.compare(watcher)
        watching.cancel()
        await client.close()
    finally:
        server.kill()
        await server.killed(within=5)
    outcome.acknowledged, outcome.events, outcome.resumed = ledger.writes, len(watcher.events), watcher.resumed
    outcome.seconds = time.monotonic() - began
    return outcome


class Versions(Ledger[str]):
    """Also which version each acknowledged write got: no other write may have it."""

    def __init__(self) -> None:
        super().__init__()
        self.versions: dict[int, str] = {}

    def answered(self, name: str, version: int) -> None:
        assert version not in self.versions, f"{version} was given to {self.versions[version]} and to {name}"
        self.versions[version] = name

    def compare(self, watcher: Watcher) -> None:
        """Every acknowledged write was an event, and the event of its version was this write."""
        for version, name in self.versions.items():
            assert version in watcher.events, f"the watch missed version {version} of {name}"
            assert watcher.events[version][0] == name, (
                f"version {version} is of {name} and of {watcher.events[version]}"
            )


async def _kill(
    server: Plane, client: Client, moment: str, writers: list[Writer], chance: random.Random, outcome: Outcome
) -> None:
    backing_up: asyncio.Task[None] | None = None
    writing = [asyncio.create_task(writer.run(client)) for writer in writers]
    if moment in _GAUGED and moment != "start":
        server.gauge.arm(_GAUGED[moment], chance.randint(*_COUNTDOWN[moment]), chance.uniform(0.0, 1.1))
        await server.killed(within=10)
    else:
        await asyncio.sleep(chance.uniform(0.1, 0.6))
        if moment == "backup":
            backing_up = asyncio.create_task(_back_up(server, outcome))
            await asyncio.sleep(chance.uniform(0.0, 0.01))
        server.kill()
        await server.killed(within=5)
    await asyncio.gather(*writing)
    if backing_up is not None:
        outcome.hits["backup"] += not backing_up.done()
        await backing_up
    if moment in _GAUGED and moment != "start":
        outcome.hits[moment] += server.gauge.under_way(_GAUGED[moment]) > 0
    if moment == "start":
        # Killed once under load, and once more on the way up.
        outcome.kills += 1
        server.gauge.reset()
        server.gauge.arm(START, 1, 1.0)
        server.gauge.usual(START, chance.uniform(0.0, 0.02))
        await server.start_and_die()
        outcome.hits["start"] += server.gauge.under_way(START) > 0
    outcome.kills += 1


async def _back_up(server: Plane, outcome: Outcome) -> None:
    """A copy by another process than the server: it ends before or after the kill, and is whole."""

    def copied() -> None:
        target = server.folder / f"copy-{outcome.kills}.db"
        version = copy_store(server.folder / "data" / "store" / "store.db", target)
        with contextlib.closing(sqlite3.connect(target)) as copy:
            assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            assert copy.execute("SELECT max(version) FROM log").fetchone() == (version,)
        target.unlink()

    await asyncio.to_thread(copied)
    outcome.backups += 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.kills", description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=None, help="repeats a run's choices; drawn where it is not given")
    arguments = parser.parse_args()
    logging.getLogger("argosy").setLevel(logging.CRITICAL)  # watches that break are the point here
    seed = random.randrange(10**6) if arguments.seed is None else arguments.seed
    with tempfile.TemporaryDirectory(prefix="argosy-kills-") as folder:
        try:
            print(asyncio.run(kills(arguments.count, seed, Path(folder))))
        except (AssertionError, ApiError) as error:
            print(f"seed {seed}: {error}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
