"""Manager: all controllers, assembled in the order of the data flow, started and stopped together.

Everything the loops share is in the context. Loops declare what wakes them (`wake`), and the manager subscribes them. A new
loop is a file of its own and a line in `loops_of`.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from argosy.control.aggregate import Aggregate
from argosy.control.brake.loop import BrakeLoop
from argosy.control.clusters import Clusters
from argosy.control.context import ControllerContext
from argosy.control.dispatch import Dispatch
from argosy.control.failover import Failover
from argosy.control.federate import Federate
from argosy.control.fence import Fence
from argosy.control.members.connect import Connector
from argosy.control.migrate import Migrate
from argosy.control.options import Options
from argosy.control.permissions import Permissions
from argosy.control.policies.counts import PolicyCounts
from argosy.control.refusals import Refusals
from argosy.control.release import Release
from argosy.control.runner import LoopRunner
from argosy.control.scheduling.plugin_workers import PluginWorkers
from argosy.control.sharding.connections import ClusterConnections
from argosy.control.telemetry.gauges import measure
from argosy.control.telemetry.metrics import Metrics
from argosy.control.timings import Timings
from argosy.control.typeconfigs import TypeConfigs
from argosy.control.wake import Loop, Subscriptions
from argosy.kube.client import Client
from argosy.plan.plugins import IN_TREE
from argosy.plan.scheduling.profile import Registry

__all__ = ["Manager", "loops_of"]


def loops_of(shared: ControllerContext) -> list[Loop[Any]]:
    """All loops, in the order of the data flow. A loop is given the loops it calls; the others reach it by signals."""
    owner = shared.options.shard.owns_cluster_scoped
    migrate = Migrate.of(shared)
    federate = Federate.of(shared, migrate)
    dispatch = Dispatch.of(shared)
    refusals = Refusals.of(shared)
    return [
        # Every shard connects to every member; only the owner of the clusters writes about them.
        Clusters.of(shared) if owner else ClusterConnections.of(shared),
        migrate,
        federate,
        BrakeLoop.of(shared),
        dispatch,
        refusals,
        Aggregate.of(shared, refusals, busy=lambda: len(federate.queue) + len(dispatch.queue) > 0),
        Release.of(shared),
        PolicyCounts.of(shared),
        *([Failover.of(shared), Permissions.of(shared), TypeConfigs.of(shared)] if owner else []),
    ]


class Manager:
    """All controllers of one control plane. `run` until cancelled; `ready` is set once every cache has synced."""

    def __init__(
        self,
        client: Client,
        *,
        options: Options = Options(),
        timings: Timings = Timings(),
        metrics: Metrics | None = None,
        fence: Fence | None = None,
        connect: Connector | None = None,
        plugins: Registry = IN_TREE,
        workers: PluginWorkers | None = None,
        loops: Callable[[ControllerContext], Iterable[Loop[Any]]] = loops_of,
    ):
        """`workers` provide the plugins of Python packages and run them; their creator closes them."""
        self.metrics = metrics or Metrics()
        self.ready = asyncio.Event()
        self.context = ControllerContext(client, options, timings, self.metrics, fence, connect, plugins, workers)
        self.loops = list(loops(self.context))
        self.subscriptions = Subscriptions(self.context.states, self.loops, timings.sweep)
        self._runner = LoopRunner(self.context)

    async def run(self) -> None:
        """Run until cancelled."""
        tasks = self.context.tasks
        try:
            await self.context.start()
            for loop in self.loops:
                self._runner.start(loop)
            for name, sweeper in self.subscriptions.sweepers.items():
                tasks.start(f"sweep for {name}", sweeper.run)
            tasks.start("measure", lambda: measure(self.context, self.loops))
            self.ready.set()
            await asyncio.Event().wait()  # `problems` reports parts that die; only cancellation ends this
        finally:
            self.ready.clear()
            await self.stop()

    def problems(self) -> list[str]:
        """Parts that died or make no progress, and other problems that need a restart, for the health check."""
        dead = [f"{name}: {why}" for name, why in self.context.tasks.failures.items()]
        workers = self.context.workers
        return dead + self._runner.problems() + (workers.problems() if workers is not None else [])

    def notes(self) -> list[str]:
        """Problems that need no restart of ours: external plugins that do not answer, and shards that are missing."""
        silent = self.context.workers.silent if self.context.workers is not None else {}
        missing = self.context.others.missing if self.context.others is not None else []
        return [*(f"plugin {name!r} {why}" for name, why in sorted(silent.items())), *missing]

    async def stop(self) -> None:
        await self.context.tasks.close()
        self.subscriptions.close()
        for loop in self.loops:
            await loop.close()
        await self.context.close()
