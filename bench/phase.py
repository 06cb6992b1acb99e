"""Phase: one change of many Deployments on a ground: when each was asked for, and when it had arrived everywhere."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from argosy.api import keys
from bench.ground import DEPLOYMENTS, Ground
from bench.report import percentile


def manifest(name: str, replicas: int, image: str = "nginx:1.29") -> dict[str, Any]:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {keys.PROPAGATION_POLICY_LABEL: "bench"},
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [
                        {"name": "main", "image": image, "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}}}
                    ]
                },
            },
        },
    }


def creation(ground: Ground, name: str) -> Callable[[], Any]:
    """Asks for a Deployment with one replica a member."""
    return lambda: ground.client.create(DEPLOYMENTS, manifest(name, len(ground.names)), into=bytes)


class Phase:
    def __init__(self, ground: Ground):
        self.ground = ground
        self.asked: dict[str, float] = {}
        self.arrived: dict[str, float] = {}

    async def run(
        self, work: dict[str, Any], done: Callable[[str], bool], rate: float | None = None
    ) -> dict[str, float]:
        """`work` maps a Deployment to the coroutine function that asks for its change."""
        ground = self.ground
        cpu, started = ground.cpu(), time.perf_counter()
        watcher = asyncio.create_task(self._watch(set(work), done))
        async with asyncio.TaskGroup() as tasks:
            for number, (name, ask) in enumerate(work.items()):
                if rate is not None:
                    await asyncio.sleep(max(0.0, started + number / rate - time.perf_counter()))
                self.asked[name] = time.perf_counter()
                tasks.create_task(ask())
        await watcher
        seconds = time.perf_counter() - started
        latencies = [self.arrived[name] - self.asked[name] for name in work]
        return {
            "seconds": seconds,
            "rate": len(work) / seconds,
            "p50": percentile(latencies, 0.50) * 1000,
            "p99": percentile(latencies, 0.99) * 1000,
            "cpu": (ground.cpu() - cpu) * 1000 / len(work),
        }

    async def _watch(self, waiting: set[str], done: Callable[[str], bool]) -> None:
        async with asyncio.timeout(600):
            while waiting:
                self.ground.changed.clear()
                now = time.perf_counter()
                for name in [name for name in waiting if done(name)]:
                    waiting.discard(name)
                    self.arrived[name] = now
                if waiting:
                    await self.ground.changed.wait()
                    await asyncio.sleep(0.002)
