"""`python -m tests.faults.storm --ground b|c --seed N --minutes M`: one storm, its table, and 1 where anything was wrong."""

import argparse
import asyncio
import logging
import random
import sys
import tempfile
from pathlib import Path

from argosy.testing import BinariesMissing, clusters
from tests.faults.storm.report import Outcome, shown
from tests.faults.storm.run import CONVERGENCE, storm
from tests.faults.storm.stage import MEMBER, stage
from tests.real.controllers import PLANE

MEMBERS = 3


async def run(ground: str, seed: int, seconds: float, convergence: float, folder: Path) -> Outcome:
    async with clusters(MEMBERS, MEMBER) as members:
        if ground == "b":
            async with stage(None, members, folder) as made:
                return await storm(made, seed, seconds, convergence)
        async with clusters(1, PLANE) as (plane,), stage(plane, members, folder) as made:
            return await storm(made, seed, seconds, convergence)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.storm", description=__doc__)
    parser.add_argument("--ground", choices=("b", "c"), default="c", help="embedded or stock control plane")
    parser.add_argument("--seed", type=int, default=None, help="repeats a storm's plan; drawn where it is not given")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument(
        "--keep", type=Path, default=None, help="a folder for the logs of our own processes, to be kept"
    )
    parser.add_argument("--convergence", type=float, default=CONVERGENCE, help="seconds until all must be well again")
    arguments = parser.parse_args()
    # Watches that break are the point here.
    logging.getLogger("argosy").setLevel(logging.CRITICAL)
    seed = random.randrange(10**6) if arguments.seed is None else arguments.seed
    print(f"ground ({arguments.ground}), seed {seed}, {arguments.minutes:g} minutes", flush=True)
    with tempfile.TemporaryDirectory(prefix="argosy-storm-") as temporary:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            print(f"error: {folder} is not empty: a storm needs a folder of its own")
            return 2
        try:
            outcome = asyncio.run(run(arguments.ground, seed, arguments.minutes * 60, arguments.convergence, folder))
        except BinariesMissing as error:
            print(f"error: {error}")
            return 2
    print(shown(outcome))
    return 1 if outcome.violations else 0


if __name__ == "__main__":
    sys.exit(main())
