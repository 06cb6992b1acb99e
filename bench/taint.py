"""A taint on one of three clusters with many Deployments: how soon the first of them moves, how long all take, what is written.

The control plane and the members are API servers alone, each a process of its own, and so are the controllers. Each Deployment
has one replica, so a third of them is in each cluster; no pods run. First a taint that moves nothing (NoSchedule), then one that
empties a cluster (NoExecute), then none again.
"""

import asyncio
import time
from typing import Any

from argosy.api import resources
from argosy.kube.informer import Change, Informer
from bench.ground import DEPLOYMENTS, Deployment, Ground
from bench.idle import at_rest, bare, each
from bench.phase import manifest
from bench.processes import run
from bench.report import Report, parser

OBJECTS = 10_000
_LEFT = "member-1"


class Written:
    """Writes of federated objects, without those of their status."""

    def __init__(self, ground: Ground) -> None:
        self.count = 0
        self._informer: Informer[Deployment] = Informer(ground.client, resources.federated_objects(True), Deployment)
        self._informer.add_handler(self._seen)

    async def watch(self) -> "asyncio.Task[None]":
        task = asyncio.create_task(self._informer.run())
        await self._informer.synced.wait()
        self.count = 0
        return task

    def _seen(self, change: Change[Any]) -> None:
        self.count += _content(change.old) != _content(change.new)


def _content(each: Deployment | None) -> Any:
    return (each.metadata.generation, each.metadata.annotations) if each is not None else None


async def tainted(ground: Ground, effect: str) -> None:
    taints = [{"key": "bench", "effect": effect}] if effect else None
    await ground.client.patch(resources.FEDERATED_CLUSTERS, _LEFT, {"spec": {"taints": taints}})


def placed(ground: Ground, name: str) -> bool:
    return bool(ground.present.get(name))


async def measure(objects: int) -> Report:
    report = Report("taint", {"objects": objects, "members": 3})
    async with bare(3) as ground:
        names = [f"web-{number}" for number in range(objects)]
        await each(names, lambda name: ground.client.create(DEPLOYMENTS, manifest(name, 1), into=bytes))
        await ground.until_all(names, lambda name: placed(ground, name))
        await at_rest(ground)
        written = Written(ground)
        watching = await written.watch()
        leaving = [name for name in names if _LEFT in ground.present[name]]

        before, spent = written.count, ground.cpu()
        await tainted(ground, "NoSchedule")
        await at_rest(ground)
        report.add("NoSchedule: federated objects written", written.count - before, "writes", "lower", 0)
        report.add("NoSchedule: CPU of the controllers", ground.cpu() - spent, "s", "lower")

        before, spent, started = written.count, ground.cpu(), time.perf_counter()
        await tainted(ground, "NoExecute")
        await ground.until(lambda: any(len(ground.present[name].keys() - {_LEFT}) for name in leaving))
        report.add("NoExecute: until the first is elsewhere", time.perf_counter() - started, "s", "lower", 2)
        await ground.until_all(leaving, lambda name: bool(ground.present[name].keys() - {_LEFT}))
        report.add("NoExecute: until all are elsewhere", time.perf_counter() - started, "s", "lower")
        await ground.until_all(leaving, lambda name: _LEFT not in ground.present[name])
        report.add("NoExecute: until the cluster is empty", time.perf_counter() - started, "s", "lower")
        await at_rest(ground)
        report.add("NoExecute: Deployments that had to move", len(leaving), "Deployments", "lower")
        # Each is written with its new placement, and once its old copy is gone.
        most = 2 * len(leaving)
        report.add("NoExecute: federated objects written", written.count - before, "writes", "lower", most)
        report.add("NoExecute: CPU of the controllers", ground.cpu() - spent, "s", "lower")

        before = written.count
        await tainted(ground, "")
        await at_rest(ground)
        report.add("no taint again: federated objects written", written.count - before, "writes", "lower", 0)
        watching.cancel()
    return report


async def main() -> None:
    arguments = parser(__doc__ or "").parse_args()
    report = await measure(500 if arguments.quick else OBJECTS)
    report.finish(arguments)


if __name__ == "__main__":
    run(main())
