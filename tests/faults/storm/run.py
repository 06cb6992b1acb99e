"""One storm from beginning to end: prepare, rage, heal, converge, judge."""

import asyncio
import contextlib
import re
import time
from collections import Counter

import msgspec

from argosy.kube.client import Client
from tests.faults.storm.intruder import Intruder
from tests.faults.storm.judge import Held, Judge, told
from tests.faults.storm.plan import Fault, plan
from tests.faults.storm.stage import Stage
from tests.faults.storm.survey import Survey
from tests.faults.storm.tenants import NAMESPACE, Journal, Tenant
from tests.faults.storm.witness import Witness
from tests.harness.user import NAMESPACES
from tests.real.controllers import writes

__all__ = ["CONVERGENCE", "Outcome", "storm"]

#: Back-off is a minute at most, after which everything must have been tried again.
CONVERGENCE = 240.0
#: Where a line of a log begins.
_ENTRY = re.compile(r"^(?=\d{4}-\d\d-\d\dT)", re.MULTILINE)
_MODES = ("Divide", "Duplicate", "Divide")


class Outcome(msgspec.Struct):
    violations: list[str]
    #: What the audit logs have about the objects concerned.
    lines: list[str]
    table: list[tuple[str, str, float]]


async def storm(stage: Stage, seed: int, seconds: float, convergence: float = CONVERGENCE) -> Outcome:
    journal, witness = Journal(), Witness(stage.client)
    await stage.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    tenants = [
        Tenant(f"t{number}", mode, stage.client, stage.names, journal, seed) for number, mode in enumerate(_MODES, 1)
    ]
    for tenant in tenants:
        await tenant.prepare()
    async with contextlib.AsyncExitStack() as stack:
        members: dict[str, Client] = {}
        for name, cluster in stage.clusters.items():
            members[name] = cluster.client(user_agent="storm", timeout=20.0)
            stack.push_async_callback(members[name].close)
        intruder = Intruder(members, seed)
        watching = asyncio.create_task(witness.run())
        supervising = asyncio.create_task(stage.supervise())
        for task in (watching, supervising):
            stack.callback(task.cancel)
        weather = Weather(stage)
        over = asyncio.Event()
        clients = [asyncio.create_task(each.run(over)) for each in (*tenants, intruder)]
        await weather.rage(plan(seed, stage.letter, stage.names, seconds), seconds)
        over.set()
        healed = time.monotonic()
        problems = [str(end) for end in await asyncio.gather(*clients, return_exceptions=True) if end is not None]
        survey = Survey(stage.client, members, journal)
        differences = await _converged(survey, healed + convergence)
        took = time.monotonic() - healed
        judge = Judge(journal, witness, weather.happened)
        judge.deletions(stage.clusters)
        judge.placements()
        if stage.stock_plane is not None:
            judge.leaders(writes({"": stage.stock_plane, **stage.clusters}))
        logs = stage.clusters if stage.stock_plane is None else {"plane": stage.stock_plane, **stage.clusters}
        told_of = told(logs, [text.partition(" ")[0].rstrip(":") for text in (*differences, *judge.violations)])
        violations = [*problems, *weather.problems, *differences, *judge.violations, *_tracebacks(stage)]
        return Outcome(
            violations, told_of, _table(journal, weather, intruder, survey, judge, witness, took, stage.restarts)
        )


class Weather:
    """Faults, as planned; one at a time for each target, several at once for all of them."""

    def __init__(self, stage: Stage):
        self._stage = stage
        self.happened: list[Held] = []
        self.skipped = 0
        self.problems: list[str] = []

    async def rage(self, faults: list[Fault], seconds: float) -> None:
        """All of it is over, and everything healed, when this returns."""
        begun = time.monotonic()
        under_way: list[asyncio.Task[None]] = []
        for fault in faults:
            await asyncio.sleep(max(0.0, begun + fault.at - time.monotonic()))
            under_way.append(asyncio.create_task(self._inflict(fault)))
        await asyncio.sleep(max(0.0, begun + seconds - time.monotonic()))
        for end in await asyncio.gather(*under_way, return_exceptions=True):
            if end is not None:
                self.problems.append(f"a fault could not be healed: {end!r}")

    async def _inflict(self, fault: Fault) -> None:
        target = await self._stage.target(fault.target)
        if target is None or target.busy:
            self.skipped += 1
            return
        target.busy = True
        begun = time.time()
        await target.begin(fault.kind)
        await asyncio.sleep(fault.seconds)
        await target.end(fault.kind)
        self.happened.append(Held(target.name, fault.kind, begun, time.time()))
        target.busy = False


async def _converged(survey: Survey, deadline: float) -> list[str]:
    """What still differs when the time is over."""
    while True:
        differences = await survey.differences()
        if not differences or time.monotonic() > deadline:
            return differences
        await asyncio.sleep(0.5)


def _tracebacks(stage: Stage) -> list[str]:
    """In the logs of our own processes, but for what uvloop says of a connection that was reset in the middle of TLS."""
    found = []
    for name, log in stage.logs().items():
        entries = _ENTRY.split(log)
        ours = [each for each in entries if "Traceback" in each and "Fatal error on SSL protocol" not in each]
        found += [f"{name} has a traceback in its log: {each[:3000]}" for each in ours[:3]]
    return found


def _table(
    journal: Journal,
    weather: Weather,
    intruder: Intruder,
    survey: Survey,
    judge: Judge,
    witness: Witness,
    took: float,
    restarts: int,
) -> list[tuple[str, str, float]]:
    faults = Counter(f"{_role(held.target)} {held.kind}" for held in weather.happened)
    rows: list[tuple[str, str, float]] = [("faults", kind, count) for kind, count in sorted(faults.items())]
    rows.append(("faults", "left out, the target being gone already", weather.skipped))
    rows.append(("tenants", "writes acknowledged", journal.writes))
    rows.append(("tenants", "writes unanswered", journal.unanswered))
    rows += [("intruder", what, count) for what, count in sorted(intruder.done.items())]
    rows += [("deletes", reason, count) for reason, count in sorted(judge.deletes.items())]
    rows += [("controllers", what, count) for what, count in sorted(judge.writes.items())]
    rows.append(("controllers", "terms of leaders", judge.terms))
    rows.append(("controllers", "ended by themselves", restarts))
    rows.append(("witness", "lists of federated objects", witness.objects.lists))
    rows.append(("end", "copies, each as rendered", survey.copies))
    rows.append(("end", "seconds from the last fault to convergence", round(took, 1)))
    return rows


def _role(target: str) -> str:
    return target if target == "plane" else "controllers" if target.startswith("controllers") else "member"
