"""One run: a script in a world, judged from its beginning to the silence at its end."""

import asyncio
import logging
import time
from typing import TextIO

import msgspec

from argosy.control.options import Options
from argosy.plan.brake.limits import Limits
from argosy.sim.spec import MemberSpec, NodePool
from tests.harness.federation import UNBRAKED
from tests.world.judge.converged import differences
from tests.world.judge.judge import Judge
from tests.world.judge.recount import miscounted
from tests.world.player import Player
from tests.world.script import MEMBERS, laid_out
from tests.world.steps import Mistake, Script
from tests.world.world import World, play

__all__ = ["Outcome", "converge", "run"]

#: Virtual seconds within which everything becomes well once faults have stopped: keys that failed wait for up to 60, a member
#: that was away counts as such for another 40, and replicas that were moved meanwhile are moved again every 30.
PATIENCE = 300.0
#: Seconds after that until the last timer has run. Then nothing was written for so many seconds, or soon will have been: replicas
#: that find no room are moved again every 30 s, until each cluster was tried.
SETTLED = 120.0
SILENCE = 90.0
CALM = 300.0
#: Seconds in which controllers that were restarted have looked at everything.
RESTARTED = 60.0
#: The brake as it is by default, but for a world with few sources, and for each shard of it.
BRAKED = Options(brake=Limits(deleted=2))
#: Between two looks, in virtual seconds: this costs nobody's time.
LOOK = 2.0


class Outcome(msgspec.Struct):
    failures: list[str]
    #: The hash of all that was said.
    digest: str
    requests: int
    #: Seconds in the world, and in ours.
    virtual: float
    real: float


def run(seed: str | int, script: Script, output: TextIO | None = None) -> Outcome:
    """Leaves everything where it stopped: for a process that ends with it."""
    judges: list[Judge] = []
    began = time.monotonic()

    async def judged(world: World) -> None:
        judge = Judge(world)
        judges.append(judge)
        logging.getLogger().addHandler(judge.log)
        before, mistake, after = _around_mistake(script)
        await Player(world).play(before)
        await converge(world, judge)
        if mistake is not None and not judge.failures:
            judge.untouched.begin(mistake.what)
            await Player(world).play(after)
            await converge(world, judge)
            judge.untouched.end()
        if not judge.failures:
            await asyncio.sleep(SETTLED)
            await _fall_silent(world, judge)
            for each in miscounted(world):
                judge.broken(each)
            judge.silent.begin()
            await _restart(world)
            await asyncio.sleep(RESTARTED)
        judge.failures += world.loop.errors

    layout = laid_out(str(seed))
    members = [MemberSpec(name, (NodePool(3, cpu=str(layout.cpu)),)) for name in MEMBERS]
    options = BRAKED if _around_mistake(script)[1] is not None else UNBRAKED
    world, _ = play(seed, judged, members=members, shards=layout.shards, options=options, output=output)
    return Outcome(
        judges[0].failures, world.trace.digest, world.trace.requests, world.loop.time(), time.monotonic() - began
    )


def _around_mistake(script: Script) -> tuple[Script, Mistake | None, Script]:
    """What is played until all is settled; the mistake; what is played from then on, by its own time."""
    for number, step in enumerate(script):
        if isinstance(step, Mistake):
            rest = (msgspec.structs.replace(each, at=each.at - step.at) for each in script[number:])
            return script[:number], step, tuple(rest)
    return script, None, ()


async def _fall_silent(world: World, judge: Judge) -> None:
    until = world.loop.time() + CALM
    while judge.silent.lasts() < SILENCE:
        if world.loop.time() > until:
            judge.broken(f"it does not end: {judge.silent.last}")
            return
        await asyncio.sleep(LOOK)


async def _restart(world: World) -> None:
    """The controllers. What was written is on record, so they write nothing."""
    for each in world.controllers:
        each.crash()
    for each in world.controllers:
        await each.start()


async def converge(world: World, judge: Judge) -> None:
    members = {name: member.disk for name, member in world.members.items()}
    until = world.loop.time() + PATIENCE
    while left := differences(world.plane.disk, members, judge.departures.since()):
        if world.loop.time() > until:
            for each in left:
                judge.broken(each)
            return
        await asyncio.sleep(LOOK)
