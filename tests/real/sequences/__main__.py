"""Run sequences on both servers and print what differs.

    python -m tests.real.sequences --seed 7 --steps 40             # one sequence
    python -m tests.real.sequences --seed 1 --count 500            # seeds 1 to 500
    python -m tests.real.sequences --families --count 50           # about owners, also in circles
    python -m tests.real.sequences --replay FILE                   # the steps of a record, one JSON object a line

A stock API server is started for it, unless --kubeconfig names one.
"""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from argosy.kube import config
from argosy.testing import API_SERVER, BinariesMissing, StartError, clusters
from tests.real.sequences.duel import Difference, duel, shrunk
from tests.real.sequences.families import family
from tests.real.sequences.generator import sequence
from tests.real.sequences.servers import both
from tests.real.sequences.steps import Step
from tests.real.sequences.subjects import SUBJECTS
from tests.server.replay import Server


@asynccontextmanager
async def _connection(kubeconfig: str | None) -> AsyncIterator[config.Connection]:
    if kubeconfig is not None:
        yield config.load(kubeconfig)
        return
    async with clusters(1, API_SERVER) as (cluster,):
        yield cluster.connection()


async def _main(arguments: argparse.Namespace) -> int:
    subjects = [one for one in SUBJECTS if not arguments.kind or one.plural in arguments.kind]
    seeds = range(arguments.seed, arguments.seed + arguments.count)
    runs = {
        f"seed {seed}": family(seed, arguments.steps)
        if arguments.families
        else sequence(seed, arguments.steps, subjects)
        for seed in seeds
    }
    if arguments.replay:
        lines = arguments.replay.read_bytes().splitlines()
        runs = {arguments.replay.name: [msgspec.json.decode(line, type=Step) for line in lines if line.strip()]}
    async with _connection(arguments.kubeconfig) as connection, both(connection) as (embedded, stock):
        found = await _run(embedded, stock, runs, arguments)
    steps = sum(map(len, runs.values()))
    print(f"{len(runs)} sequences, {steps} steps, {len(found)} differences")
    return 1 if found else 0


async def _run(
    embedded: Server, stock: Server, runs: dict[str, list[Step]], arguments: argparse.Namespace
) -> list[Difference]:
    found: list[Difference] = []
    waiting = iter(runs.items())

    async def worker() -> None:
        for name, steps in waiting:
            if len(found) >= arguments.most:
                return
            difference = await duel(embedded, stock, steps)
            if difference is None:
                continue
            if not arguments.whole:
                difference = await shrunk(embedded, stock, difference)
            found.append(difference)
            print(f"=== {name}\n{difference}\n", flush=True)

    await asyncio.gather(*(worker() for _ in range(arguments.workers)))
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=40, help="the length of a sequence")
    parser.add_argument("--count", type=int, default=1, help="how many seeds, one after the other")
    parser.add_argument("--families", action="store_true", help="about owners and their dependents")
    parser.add_argument("--kind", action="append", help="only about this resource; may be repeated")
    parser.add_argument("--kubeconfig", help="the stock API server to ask")
    parser.add_argument("--replay", type=Path, help="a file of steps instead")
    parser.add_argument("--whole", action="store_true", help="print the whole sequence, not the fewest steps")
    parser.add_argument("--most", type=int, default=1000, help="stop after so many differences")
    parser.add_argument("--workers", type=int, default=3, help="sequences at a time")
    try:
        sys.exit(asyncio.run(_main(parser.parse_args())))
    except (config.ConfigError, BinariesMissing, StartError) as error:
        sys.exit(str(error))
