"""What federated objects cost while nothing happens: memory of the controllers for each, and CPU over a quiet minute.

The control plane and two members are API servers alone, each a process of its own, and so are the controllers. The Deployments
are in both members, which report them as rolled out; no pods run. Memory is what the controllers' process has more than after its
first few Deployments.
"""

import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

from argosy.kube import config
from argosy.kube.client import Client, Patch
from argosy.testing.component import Component
from argosy.testing.ports import free_ports
from bench.ground import DEPLOYMENTS, Ground, installed
from bench.phase import creation
from bench.processes import argosy, run, until
from bench.report import Report, parser

OBJECTS = 10_000
#: Loaded before the first measurement: code, schemas, connections.
FIRST = 100
_AT_ONCE = 64
_QUIET = 60.0
#: It rests if it takes less than this part of a core for so long. If it never does, it is measured as it is.
_LITTLE, _LOOK = 0.02, 10.0
_PATIENCE = 180.0


@contextlib.asynccontextmanager
async def bare(members: int, *, embedded: bool = False) -> AsyncIterator[Ground]:
    """API servers alone. With `embedded` the control plane's is in one process with the controllers: `argosy up`."""
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="argosy-bench-")))

        async def server(name: str, command: str = "server") -> tuple[Component, config.Connection]:
            component = argosy(name, folder / name, command, "--data", str(folder / name / "data"), "--port", "0")
            stack.push_async_callback(component.stop)
            kubeconfig = folder / name / "data" / "kubeconfig"
            await until(component, kubeconfig.exists)
            return component, config.load(str(kubeconfig), "argosy")

        controllers, plane = await server("plane", "up" if embedded else "server")
        connections = {f"member-{n}": (await server(f"member-{n}"))[1] for n in range(1, members + 1)}
        if not embedded:
            controllers = argosy(
                *("controllers", folder / "controllers", "controllers", "--install"),
                *("--kubeconfig", str(folder / "plane" / "data" / "kubeconfig"), "--port", str(free_ports(1)[0])),
            )
            stack.push_async_callback(controllers.stop)
        ground = Ground(plane, connections, controllers)
        stack.push_async_callback(ground.close)
        await installed(ground)
        await ground.join(connections)
        await ground.watch()
        await ground.create_policy()
        yield ground


async def federated(ground: Ground, names: list[str]) -> None:
    """Created, in all members, reported there as rolled out, and so by the control plane."""
    await each(names, lambda name: creation(ground, name)())
    await ground.until_all(names, ground.everywhere)
    for client in ground.members.values():
        await each(names, lambda name, client=client: report_ready(client, name))

    await ground.until_all(names, lambda name: ground.reported(name, len(ground.names)))


async def each(names: Iterable[str], act: Callable[[str], Awaitable[Any]]) -> None:
    waiting = iter(names)

    async def worker() -> None:
        for name in waiting:
            await act(name)

    await asyncio.gather(*(worker() for _ in range(_AT_ONCE)))


async def report_ready(client: Client, name: str) -> None:
    """As the deployment controller of a member does."""
    told = {"lastUpdateTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    conditions = [
        {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable", "message": "", **told},
        {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable", "message": "", **told},
    ]
    counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 1)
    status = {"status": {"observedGeneration": 1, **counts, "conditions": conditions}}
    await client.patch(DEPLOYMENTS, name, status, "default", kind=Patch.MERGE, subresource="status")


async def at_rest(ground: Ground) -> float:
    """Until nothing is written but heartbeats, and what came last has been looked at. Returns the seconds that took."""

    async def own() -> int:
        return await ground.version() - ground.heartbeats

    started = time.monotonic()
    while time.monotonic() - started < _PATIENCE:
        before, spent = await own(), ground.cpu()
        await asyncio.sleep(_LOOK)
        if await own() == before and ground.cpu() - spent < _LITTLE * _LOOK:
            break
    return time.monotonic() - started


async def measure(objects: int, seconds: float) -> Report:
    report = Report("idle", {"objects": objects, "members": 2, "seconds": seconds})
    async with bare(2) as ground:
        names = [f"web-{number}" for number in range(FIRST + objects)]
        await federated(ground, names[:FIRST])
        await at_rest(ground)
        first = ground.resident()
        await federated(ground, names[FIRST:])
        resting = await at_rest(ground)
        before = ground.cpu()
        await asyncio.sleep(seconds)
        spent = ground.cpu() - before
        report.add("controllers: memory for each", (ground.resident() - first) * 1024 / objects, "KiB", "lower", 12)
        report.add("controllers: CPU while nothing happens", 100 * spent / seconds, "% of a core", "lower", 1)
        report.add("seconds until they were at rest", resting, "s", "lower")
        report.add("controllers resident, first", first, "MiB", "lower")
        report.add("controllers resident, at the end", ground.resident(), "MiB", "lower")
        report.add("controllers resident, peak", ground.peak(), "MiB", "lower")
    return report


async def main() -> None:
    arguments = parser(__doc__ or "").parse_args()
    objects, seconds = (500, 10.0) if arguments.quick else (OBJECTS, _QUIET)
    report = await measure(objects, seconds)
    report.finish(arguments)


if __name__ == "__main__":
    run(main())
