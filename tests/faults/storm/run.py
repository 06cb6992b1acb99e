"""One storm from beginning to end: prepare, rage, heal, converge, judge."""

import asyncio
import contextlib
import re
import time
from collections import Counter

from argosy.cli.client.brake import HeldObject, held_objects, release
from argosy.kube.client import Client
from tests.faults.storm.intruder import Intruder
from tests.faults.storm.judge import Judge, told
from tests.faults.storm.plan import PLANE, plan
from tests.faults.storm.report import Outcome, Row
from tests.faults.storm.stage import Stage
from tests.faults.storm.survey import Survey
from tests.faults.storm.tenants import NAMESPACE, Journal, Tenant
from tests.faults.storm.weather import Weather
from tests.faults.storm.witness import Witness
from tests.harness.user import NAMESPACES
from tests.real.controllers import writes

__all__ = ["CONVERGENCE", "storm"]

#: Back-off is a minute at most, after which everything must have been tried again.
CONVERGENCE = 240.0
#: Seconds between two looks.
_LOOK = 0.5
#: Where a line of a log begins.
_ENTRY = re.compile(r"^(?=\d{4}-\d\d-\d\dT)", re.MULTILINE)
_MODES = ("Divide", "Duplicate", "Divide")


async def storm(stage: Stage, seed: int, seconds: float, convergence: float = CONVERGENCE) -> Outcome:
    journal, witness, weather = Journal(), Witness(stage.client), Weather(stage)
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
        for work in (witness.run(), stage.supervise()):
            stack.callback(asyncio.create_task(work).cancel)
        over = asyncio.Event()
        clients = [asyncio.create_task(each.run(over)) for each in tenants]
        clients.append(asyncio.create_task(intruder.run(over)))
        await weather.rage(plan(seed, stage.letter, stage.names, seconds), seconds)
        over.set()
        healed = time.monotonic()
        problems = [repr(end) for end in await asyncio.gather(*clients, return_exceptions=True) if end is not None]
        survey = Survey(stage.client, members, journal)
        differences, confirmed = await _converged(survey, stage.client, healed + convergence)
        took = time.monotonic() - healed
    judge = _judged(stage, Judge(journal, witness, weather.happened))
    rows = [
        *_happened(weather),
        Row("tenants", "writes acknowledged", journal.writes),
        Row("tenants", "writes unanswered", journal.unanswered),
        *_counted("intruder", intruder.done),
        *_counted("deletes", judge.deletes),
        *_counted("controllers", judge.writes),
        Row("controllers", "terms of leaders", judge.terms),
        Row("controllers", "ended by themselves", stage.restarts),
        Row("end", "removals confirmed that the brake held", confirmed),
        Row("end", "copies, each as rendered", survey.copies),
        Row("end", "seconds from the last fault to convergence", round(took, 1)),
    ]
    concerned = [text.partition(" ")[0].rstrip(":") for text in (*differences, *judge.violations)]
    return Outcome(
        [*problems, *weather.problems, *differences, *judge.violations, *_tracebacks(stage)],
        told(stage.audited, concerned),
        rows,
        judge.terms,
    )


def _judged(stage: Stage, judge: Judge) -> Judge:
    judge.deletions(stage.clusters)
    judge.placements()
    if stage.stock_plane is not None:
        judge.leaders(writes(stage.audited))
    return judge


async def _converged(survey: Survey, client: Client, deadline: float) -> tuple[list[str], int]:
    """What still differs when the time is over. What the brake holds was meant, so it is confirmed: for so many objects."""
    confirmed: set[HeldObject] = set()
    while True:
        differences = await survey.differences()
        if not differences or time.monotonic() > deadline:
            return differences, len(confirmed)
        held = set(await held_objects(client))
        if held - confirmed:
            await release(client, "confirmed", held)
            confirmed |= held
        await asyncio.sleep(_LOOK)


def _tracebacks(stage: Stage) -> list[str]:
    """In the logs of our own processes, but for what uvloop says of a connection that was reset in the middle of TLS."""
    found = []
    for name, log in stage.logs().items():
        entries = _ENTRY.split(log)
        ours = [each for each in entries if "Traceback" in each and "Fatal error on SSL protocol" not in each]
        found += [f"{name} has a traceback in its log: {each[:3000]}" for each in ours[:3]]
    return found


def _happened(weather: Weather) -> list[Row]:
    return [
        *_counted("faults", Counter(f"{_role(held.target)} {held.kind}" for held in weather.happened)),
        Row("faults", "left out, the target being gone already", weather.skipped),
    ]


def _counted(part: str, counts: Counter[str]) -> list[Row]:
    return [Row(part, what, count) for what, count in sorted(counts.items())]


def _role(target: str) -> str:
    return PLANE if target == PLANE else "controllers" if target.startswith("controllers") else "member"
