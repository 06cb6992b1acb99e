"""Mistakes planted in the product, each of which the world has to find: `python -m tests.world.mutants [NAME ...]`.

A mistake is a change of one function, made in a process of its own. For each the first seed that fails is searched, and its
script shrunk; the table at the end is for docs/testing.md. Ends with 1 if one is not found.
"""

import argparse
import asyncio
import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from argosy.api.federated import FederatedObject
from argosy.api.shards import Shard
from argosy.control import fence
from argosy.control.aggregate import Aggregate
from argosy.control.brake import deletions, removals
from argosy.control.brake.removals import Answer, Judgement, Removals
from argosy.control.collect import Collector
from argosy.control.copies import item
from argosy.control.copies.operations import Operations
from argosy.control.copies.pause import Pause
from argosy.control.members import health
from argosy.control.scheduling.reservations import ReservedFleet
from argosy.kube import clock
from argosy.kube.cache import Cache, Relist
from argosy.kube.client import Client
from argosy.kube.lease import LeaderElector
from argosy.plan.copies.held_copies import HeldCopies
from argosy.plan.pipeline import run as pipeline
from argosy.server.storage.base import Encode, Record
from argosy.server.watchcache.store import Store
from tests.world.isolated import isolated, together
from tests.world.mistaken import mistaken
from tests.world.script import written
from tests.world.shrink import alike, shrunk
from tests.world.steps import Script, dump
from tests.world.world import prepare

__all__ = ["MUTANTS"]

ROOT = Path(__file__).parents[2]
SEEDS = 500
#: To shrink a script.
TRIES = 60


def no_fence() -> None:
    """No fence before a send."""

    async def send(self: Any, request: Any) -> Any:
        return await self._transport.send(request)

    fence._Fenced.send = send  # type: ignore[method-assign]


def wrong_clock() -> None:
    """A lease deadline on a clock that stands still while the machine sleeps."""
    made = LeaderElector.__init__

    def init(self: LeaderElector, *arguments: Any, **options: Any) -> None:
        made(self, *arguments, **{**options, "clock": clock.monotonic})

    LeaderElector.__init__ = init  # type: ignore[method-assign]


def unconditional_delete() -> None:
    """A delete without uid and resourceVersion."""
    delete = Client.delete

    async def careless(self: Client, *arguments: Any, **options: Any) -> Any:
        return await delete(self, *arguments, **{**options, "uid": None, "resource_version": None})

    Client.delete = careless  # type: ignore[method-assign]


def no_note() -> None:
    """A cluster leaves the placements without the note of its removal."""
    pipeline.with_removals_noted = lambda annotations, *arguments: dict(annotations)  # type: ignore[assignment]


def forgets_own_writes() -> None:
    """A stale cache is read after an own write."""
    Cache.remember = lambda self, raw, origin="": None  # type: ignore[method-assign]


def any_404() -> None:
    """A 404 of anything, and of any cluster, is taken for absence."""

    async def believed(self: Operations, member: Any) -> None:
        pass

    Operations._take_absence = lambda self, *arguments: None  # type: ignore[method-assign]
    Operations._confirm = believed  # type: ignore[method-assign]


def no_pause() -> None:
    """A pause is ignored."""
    Pause.fleet = lambda self: False  # type: ignore[method-assign]
    Pause.cluster = lambda self, cluster: False  # type: ignore[method-assign]
    Pause.object = lambda self, annotations: False  # type: ignore[method-assign]


def lost_at_relist() -> None:
    """What is missing in a list anew stays in the cache."""
    Relist._gone = lambda self: iter(())  # type: ignore[method-assign]


def unsynced_status() -> None:
    """A status is merged from a cache that is not synced."""
    synced, seen = Collector.synced, Aggregate._seen

    def anyway(self: Aggregate, key: Any, config: Any, federated: FederatedObject) -> Any:
        Collector.synced = lambda self, cluster, type: True  # type: ignore[method-assign]
        try:
            return seen(self, key, config, federated)
        finally:
            Collector.synced = synced  # type: ignore[method-assign]

    Aggregate._seen = anyway  # type: ignore[method-assign]


def no_reservations() -> None:
    """Reservations are forgotten after a restart."""
    changed = ReservedFleet._federated_changed

    def later(self: ReservedFleet, change: Any) -> None:
        if change.old is not None:
            changed(self, change)

    ReservedFleet._federated_changed = later  # type: ignore[method-assign]


def any_namespace() -> None:
    """A shard acts on another's namespace."""
    owns = Shard.owns

    def careless(self: Shard, namespace: str) -> bool:
        # What is in no namespace decides who probes members, and that stays as it is.
        return bool(namespace) or owns(self, namespace)

    Shard.owns = careless  # type: ignore[method-assign]


def ignores_held_copies() -> None:
    """A copy is written although its override cannot be applied."""
    item.held_copies = lambda annotations: HeldCopies()  # type: ignore[assignment]


def early_acknowledgement() -> None:
    """A write is acknowledged before it is durable."""
    replace, late = Store.replace, set[asyncio.Future[Record]]()

    async def careless(self: Store, key: str, expected: int, encode: Encode, *, urgent: bool = False) -> Record:
        late.add(asyncio.ensure_future(replace(self, key, expected, encode, urgent=urgent)))
        version = self.storage.version + 1
        return Record(key, version, encode(version))

    Store.replace = careless  # type: ignore[method-assign]


def deaf() -> None:
    """A member that does not answer counts as heard of."""
    health.unheard = lambda contact, why="": contact  # type: ignore[assignment]


def no_brake() -> None:
    """Nothing is too much at once."""
    removals.exceeded = lambda *arguments: False
    deletions.is_mass_deletion = lambda *arguments: False


def late_brake() -> None:
    """What a pass takes away is judged after it was stored."""
    ask = Removals.ask

    def late(self: Removals, *arguments: Any, **options: Any) -> Answer:
        ask(self, *arguments, **options)
        return Answer(Judgement.GO)

    Removals.ask = late  # type: ignore[method-assign]


#: Found by worlds in which somebody makes a mistake that would take most copies away.
MISTAKEN = frozenset({"no_brake", "late_brake"})

MUTANTS: dict[str, Callable[[], None]] = {
    each.__name__: each
    for each in (
        no_fence,
        wrong_clock,
        unconditional_delete,
        no_note,
        forgets_own_writes,
        any_404,
        no_pause,
        lost_at_relist,
        unsynced_status,
        no_reservations,
        any_namespace,
        ignores_held_copies,
        early_acknowledgement,
        deaf,
        no_brake,
        late_brake,
    )
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.world.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(MUTANTS)}")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="tried at most (default: %(default)s)")
    parser.add_argument("--one", action="store_true", help="in this process")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - MUTANTS.keys():
        parser.error(f"no such mutant: {', '.join(sorted(unknown))}")
    if arguments.one:
        return _search(arguments.names[0], arguments.seeds)
    codes = [_apart(name, arguments.seeds) for name in arguments.names or MUTANTS]
    return max(codes)


def _apart(name: str, seeds: int) -> int:
    command = [sys.executable, "-m", "tests.world.mutants", "--one", name, "--seeds", str(seeds)]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def _search(name: str, seeds: int) -> int:
    """One row of the table: the mistake, the seed that finds it, how long its script is, and what the judge says."""
    prepare()  # without the mistake
    MUTANTS[name]()
    told = (MUTANTS[name].__doc__ or name).rstrip(".")
    writes = mistaken if name in MISTAKEN else written
    scripts = ((seed, writes(str(seed))) for seed in itertools.count(1))
    for seed, outcome in together(itertools.islice(scripts, seeds), os.cpu_count() or 1):
        if outcome.failures and outcome.failures[0].startswith("Traceback"):
            # The judge did not find this: the mistake broke the world itself.
            print(f"| {told} | BROKE the world | | {outcome.failures[0]} |", flush=True)
            return 1
        if outcome.failures and _passes_without(seed, mistakes=name in MISTAKEN):
            script = _shortened(seed, writes(str(seed)), outcome.failures)
            failures = isolated(seed, script).failures
            print(f"| {told} | {seed} | {len(script)} | {failures[0]} |\n{dump(script)}\n", flush=True)
            return 0
    print(f"| {told} | NOT FOUND in {seeds} seeds | | |", flush=True)
    return 1


def _passes_without(seed: int, *, mistakes: bool) -> bool:
    """Whether it is the mistake that this seed finds."""
    command = [sys.executable, "-m", "tests.world", "--seed", str(seed), *(["--mistakes"] if mistakes else [])]
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True).returncode == 0


def _shortened(seed: int, script: Script, failures: list[str]) -> Script:
    return shrunk(script, lambda script: alike(failures, isolated(seed, script).failures), TRIES)


if __name__ == "__main__":
    sys.exit(main())
