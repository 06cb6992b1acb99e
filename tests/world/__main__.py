"""Play worlds, and shrink what fails: `python -m tests.world --seeds 100`, `--seed 7`, `--minutes 2`, `--script FILE --seed 7`;
with `--mistakes`, worlds where somebody makes a mistake that would take most copies away.

Fresh seeds follow from the time. When all were played, those that failed are shrunk to short scripts, which are printed with the
command that plays them.
"""

import argparse
import itertools
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.world.isolated import isolated, together
from tests.world.mistaken import mistaken
from tests.world.run import Outcome
from tests.world.script import written
from tests.world.shrink import alike, shrunk
from tests.world.steps import Script, dump, load

#: Failures that are shrunk; more of them are only counted.
MOST = 3
#: Worlds between two words of how far it is.
TOLD = 100


def main() -> int:
    arguments = _arguments()
    logging.getLogger().addHandler(logging.NullHandler())
    writes = mistaken if arguments.mistakes else written
    if arguments.seed is not None:
        script = load(arguments.script.read_text()) if arguments.script else writes(str(arguments.seed))
        outcome = isolated(arguments.seed, script, arguments.trace)
        print(_told(arguments.seed, script, outcome))
        return 1 if outcome.failures else 0
    return _many(_seeds(arguments), arguments.jobs, writes)


def _many(seeds: Iterator[int], jobs: int, writes: Callable[[str], Script]) -> int:
    began, played, virtual, real = time.monotonic(), 0, 0.0, 0.0
    failed: dict[int, Outcome] = {}
    for seed, outcome in together(((seed, writes(str(seed))) for seed in seeds), jobs):
        played, virtual, real = played + 1, virtual + outcome.virtual, real + outcome.real
        if outcome.failures:
            failed[seed] = outcome
            print(_told(seed, writes(str(seed)), outcome), flush=True)
        if not played % TOLD:
            print(f"{played} worlds, {len(failed)} failed, the last with seed {seed}", file=sys.stderr, flush=True)
    seconds = time.monotonic() - began
    print(f"{played} worlds in {seconds:.0f} s: {virtual / max(real, 0.001):.0f} virtual seconds a second and core")
    if failed:
        print(f"{len(failed)} failed: {', '.join(map(str, failed))}", flush=True)
    for seed, outcome in itertools.islice(failed.items(), MOST):
        _shrink(seed, writes(str(seed)), outcome)
    return 1 if failed else 0


def _shrink(seed: int, written: Script, outcome: Outcome) -> None:
    script = shrunk(written, lambda script: alike(outcome.failures, isolated(seed, script).failures))
    path = Path(f"world-{seed}.jsonl")
    path.write_text(dump(script) + "\n")
    print(f"seed {seed} fails with {len(script)} steps:\n{dump(script)}")
    print("\n".join(isolated(seed, script).failures))
    print(f"again: python -m tests.world --seed {seed} --script {path}", flush=True)


def _told(seed: int, script: Script, outcome: Outcome) -> str:
    speed = outcome.virtual / max(outcome.real, 0.001)
    head = f"seed {seed}: {len(script)} steps, {outcome.requests} requests, {outcome.virtual:.0f} s at {speed:.0f} a second"
    return "\n  ".join([f"{head}, {outcome.digest[:16]}", *outcome.failures])


def _seeds(arguments: argparse.Namespace) -> Iterator[int]:
    first = arguments.first if arguments.first is not None else int(time.time()) * 1000
    numbers = itertools.count(first)
    if arguments.minutes is None:
        return itertools.islice(numbers, arguments.seeds)
    until = time.monotonic() + arguments.minutes * 60
    return itertools.takewhile(lambda _: time.monotonic() < until, numbers)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.world", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, help="play this one alone")
    parser.add_argument("--script", type=Path, help="... with the steps of this file")
    parser.add_argument("--trace", type=Path, help="... and write down everything that is said")
    parser.add_argument("--mistakes", action="store_true", help="of everybody's copies")
    parser.add_argument("--seeds", type=int, default=100, help="how many (default: %(default)s)")
    parser.add_argument("--first", type=int, help="the first of them (default: by the time)")
    parser.add_argument("--minutes", type=float, help="play for so long instead")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="at a time (default: %(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
