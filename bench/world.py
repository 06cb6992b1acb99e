"""How fast a federation runs on virtual time: three members, 50 workloads, two candidates for leader, a fault every ten seconds.

Users act as often as things go wrong. The world, its judge and its trace are those of `make world`. Time counts from the first
step of the script, which creates the workloads, to the last; what follows it (until all is well again, and then silent) is only
judged. All seeds run one after the other, each in a process of its own.
"""

import asyncio
import logging
import multiprocessing
import resource
import time
from collections.abc import Iterator

import msgspec

from bench.report import Report, parser, percentile
from tests.world import steps
from tests.world.judge.judge import Judge
from tests.world.player import Player
from tests.world.run import converge
from tests.world.script import written
from tests.world.steps import Script, Step
from tests.world.world import World, play, prepare

WORKLOADS = 50
#: Virtual seconds between two faults, and between two things that users do.
PAUSE = 10.0
FAULTS = (
    steps.Crash,
    steps.Restore,
    steps.Stop,
    steps.Suspend,
    steps.Cut,
    steps.Lose,
    steps.Refuse,
    steps.Slow,
    steps.Impostor,
    steps.Gap,
    steps.SetClock,
    steps.FillDisk,
)


class Run(msgspec.Struct):
    #: Of the script, in virtual seconds and in seconds of the processor.
    virtual: float
    cpu: float
    #: Of the processor, until the world was open.
    opening: float
    requests: int
    turns: int
    memory_mib: float
    failures: list[str]


def scenario(seed: int, seconds: float) -> Script:
    """The steps are those of other seeds, at other times."""
    opening = [step for step in written(str(seed), workloads=WORKLOADS) if step.at == 0.0]
    later = list(_later(seed, seconds))
    return (*opening, *sorted(later, key=lambda step: step.at))


def _later(seed: int, seconds: float) -> Iterator[Step]:
    drawn = _drawn(seed)
    faults, users = (step for step in drawn if isinstance(step, FAULTS)), _drawn(seed)
    users = (step for step in users if not isinstance(step, FAULTS))
    for number in range(1, int(seconds / PAUSE)):
        yield msgspec.structs.replace(next(faults), at=number * PAUSE)
        yield msgspec.structs.replace(next(users), at=(number + 0.5) * PAUSE)


def _drawn(seed: int) -> Iterator[Step]:
    """As many as are wanted."""
    part = 0
    while True:
        part += 1
        yield from (step for step in written(f"{seed}/{part}", workloads=WORKLOADS) if step.at > 0.0)


def measured(seed: int, seconds: float) -> Run:
    """In a process of its own."""
    logging.getLogger().addHandler(logging.NullHandler())
    script = scenario(seed, seconds)
    runs: list[Run] = []
    began = time.process_time()

    async def work(world: World) -> None:
        judge = Judge(world)
        logging.getLogger().addHandler(judge.log)
        opened, start, requests, turns = time.process_time(), world.loop.time(), world.trace.requests, world.loop.turns
        playing = asyncio.ensure_future(Player(world).play(script))
        await asyncio.sleep(seconds)
        cpu = time.process_time() - opened
        run = Run(
            virtual=world.loop.time() - start,
            cpu=cpu,
            opening=opened - began,
            requests=world.trace.requests - requests,
            turns=world.loop.turns - turns,
            memory_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            failures=judge.failures,
        )
        await playing
        await converge(world, judge)
        run.failures += world.loop.errors
        runs.append(run)

    play(seed, work)
    return runs[0]


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--seeds", type=int, help="5 unless told otherwise")
    options.add_argument("--first", type=int, default=1, help="the first of them")
    options.add_argument("--seconds", type=float, help="virtual ones of each script: 600 unless told otherwise")
    arguments = options.parse_args()
    count = arguments.seeds or (2 if arguments.quick else 5)
    seconds = arguments.seconds or (200.0 if arguments.quick else 600.0)
    seeds = range(arguments.first, arguments.first + count)
    report = Report(
        "world", {"members": 3, "workloads": WORKLOADS, "controllers": 2, "pause": PAUSE, "seconds": seconds}
    )
    prepare()
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        runs = [pool.apply(measured, (seed, seconds)) for seed in seeds]
    virtual, cpu = sum(run.virtual for run in runs), sum(run.cpu for run in runs)
    report.add("virtual seconds a second of one core", virtual / cpu, "", bar=300)
    report.add("... with the slowest seed", min(run.virtual / run.cpu for run in runs), "")
    report.add("... with the median seed", percentile([run.virtual / run.cpu for run in runs], 0.5), "")
    report.add("requests a virtual second", sum(run.requests for run in runs) / virtual, "")
    report.add("processor time a request, all included", cpu / sum(run.requests for run in runs) * 1e6, "µs", "lower")
    report.add("turns of the loop a virtual second", sum(run.turns for run in runs) / virtual, "")
    report.add("processor time until a world is open", sum(run.opening for run in runs) / count * 1e3, "ms", "lower")
    report.add("most memory", max(run.memory_mib for run in runs), "MiB", "lower")
    for seed, run in zip(seeds, runs, strict=True):
        for failure in run.failures:
            print(f"seed {seed}: {failure}")
    report.add("failures that the judge found", sum(len(run.failures) for run in runs), "", "lower", bar=0)
    report.finish(arguments)


if __name__ == "__main__":
    main()
