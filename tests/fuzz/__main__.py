"""`python -m tests.fuzz --minutes M --seed N`: one run, its table, and 1 where anything was wrong."""

import argparse
import asyncio
import logging
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.plane import Plane
from tests.fuzz.requests import make
from tests.fuzz.run import Bars, Outcome, fuzz
from tests.fuzz.wire import Wire


def shown(outcome: Outcome) -> str:
    classes = ", ".join(f"{name}: {count}" for name, count in sorted(outcome.statuses.items()))
    livez = [
        f"{name} {outcome.percentile(share) * 1000:.1f}" for name, share in (("p50", 0.5), ("p99", 0.99), ("max", 1))
    ]
    memory = [outcome.before, outcome.peak, outcome.after]
    lines = [
        f"| requests | {sum(count for name, count in outcome.statuses.items() if name.endswith(('xx', 'none')))} |",
        f"| answers | {classes} |",
        f"| requests to the member that lies | {outcome.lies} |",
        f"| /livez, ms | {', '.join(livez)} of {len(outcome.livez)} |",
        f"| memory, MiB | before {memory[0] >> 20}, peak {memory[1] >> 20}, after {memory[2] >> 20} |",
        f"| failures | {len(outcome.failures)} |",
    ]
    return "\n".join([f"| seed {outcome.seed}, {outcome.seconds:g} s | |", "|---|---|", *lines])


async def again(seed: int, number: int, folder: Path) -> None:
    """One request on a control plane of its own, and the answer."""
    request = make(seed, number)
    print(request.shown())
    async with Plane(folder / "plane") as plane:
        for namespace in ("fuzz-0", "fuzz-1", "fuzz-2"):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            await plane.client.request("POST", "/api/v1/namespaces", body=body)
        wire = Wire(plane.port, plane.context())
        answer = await wire.send(request)
        await wire.close()
        print(f"{answer.status} after {answer.seconds * 1000:.0f} ms: {answer.body[:3000].decode('utf-8', 'replace')}")
        for text in plane.exceptions():
            print(text)


def _tell(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=None, help="repeats a run's requests; drawn where it is not given")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument(
        "--only", type=int, default=None, help="send this request of the seed alone, and show the answer"
    )
    parser.add_argument("--livez", type=float, default=100.0, help="milliseconds that 99 %% of /livez may take")
    parser.add_argument("--kept", type=float, default=10.0, help="per cent of memory that may be more than before")
    parser.add_argument(
        "--keep", type=Path, default=None, help="a folder for the control plane's state and log, to be kept"
    )
    arguments = parser.parse_args()
    logging.getLogger("argosy").setLevel(logging.CRITICAL)
    seed = random.randrange(10**6) if arguments.seed is None else arguments.seed
    with tempfile.TemporaryDirectory(prefix="argosy-fuzz-") as temporary:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if arguments.only is not None:
            asyncio.run(again(seed, arguments.only, folder))
            return 0
        print(f"seed {seed}, {arguments.minutes:g} minutes", flush=True)
        bars = Bars(livez=arguments.livez / 1000, kept=arguments.kept / 100)
        outcome = asyncio.run(fuzz(seed, arguments.minutes * 60, folder, bars, tell=_tell))
    for failure in outcome.failures:
        print(f"FAILED: {failure}")
    print(shown(outcome))
    return 1 if outcome.failures else 0


if __name__ == "__main__":
    sys.exit(main())
