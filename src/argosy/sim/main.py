"""Runs `argosy sim`: a fleet of simulated members until cancelled. It prints nothing; `ready` is called when it serves."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from argosy.server import kubeconfig
from argosy.sim.fleet import SimulatedFleet
from argosy.sim.spec import MemberSpec, default_members
from argosy.sim.timings import Timings

__all__ = ["Options", "run"]


class Options(msgspec.Struct, frozen=True):
    #: How many members of the default series; `specs`, if given, replaces them.
    members: int = 3
    #: Nodes of each; None gives them unequal numbers.
    nodes: int | None = None
    data: Path | None = None
    base_port: int = 0
    #: Simulated seconds per real second.
    speed: float = 1.0
    specs: Sequence[MemberSpec] = ()
    #: Where to write the kubeconfig with a context for each member; by default `kubeconfig` in the data folder.
    kubeconfig: Path | None = None
    #: Start even if a member's store lacks acknowledged writes.
    accept_data_loss: bool = False


async def run(options: Options, ready: Callable[[SimulatedFleet], None] = lambda fleet: None) -> None:
    """Serve until cancelled, then shut down cleanly. Raises ValueError for invalid options."""
    if options.members < 1 and not options.specs:
        raise ValueError("a fleet needs at least one member")
    if options.speed <= 0:
        raise ValueError("the speed must be above 0")
    if options.base_port and not 0 < options.base_port <= 65535 - options.members:
        raise ValueError(f"{options.base_port} leaves no room for {options.members} ports")
    specs = options.specs or default_members(options.members, options.nodes)
    if options.data is not None:
        options.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    timings = Timings(speed=options.speed)
    fleet = SimulatedFleet(specs, options.data, options.base_port, timings, accept_data_loss=options.accept_data_loss)
    await fleet.start()
    try:
        path = options.kubeconfig or (options.data / "kubeconfig" if options.data is not None else None)
        if path is not None:
            kubeconfig.write(path, fleet.kubeconfig())
        ready(fleet)
        await asyncio.Event().wait()
    finally:
        await fleet.stop()
