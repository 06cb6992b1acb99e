"""Gauges: values that no event changes, measured once a second: queues, ages, clusters, plugins, the lag of the event loop."""

import asyncio
from collections.abc import Iterable
from typing import Any

from argosy.control.context import ControllerContext
from argosy.control.wake import Loop
from argosy.kube import clock, timestamps

__all__ = ["measure"]


async def measure(context: ControllerContext, loops: Iterable[Loop[Any]]) -> None:
    """Run until cancelled. The lag is the delay beyond one second."""
    metrics = context.metrics
    while True:
        before = clock.monotonic()
        await asyncio.sleep(1.0)
        now = clock.monotonic()
        metrics.loop_lag.set(max(now - before - 1.0, 0.0))
        context.prober.judge_figures(now)
        for loop in loops:
            metrics.queue_length.labels(loop.name).set(len(loop.queue))
            metrics.queue_age.labels(loop.name).set(loop.queue.oldest_age())
        _watches(context)
        _silence(context)
        _plugins(context)
        _failover(context)
        snapshot = context.fleet.snapshot
        metrics.clusters.labels("joined").set(int(snapshot.joined.sum()))
        metrics.clusters.labels("ready").set(int(snapshot.ready.sum()))


def _watches(context: ControllerContext) -> None:
    """Of members that answer. What a member does not serve cannot be watched there."""
    answering = {cluster.name for cluster in context.caches.clusters.values() if cluster.silent_since is None}
    oldest: dict[str, float] = {}
    for (cluster, _), informer in context.collector.informers().items():
        if cluster in answering and not informer.is_unserved:
            oldest[cluster] = max(oldest.get(cluster, 0.0), informer.silent_for)
    context.metrics.watch_age.clear()  # clusters come and go
    for cluster, age in oldest.items():
        context.metrics.watch_age.labels(cluster).set(age)


def _silence(context: ControllerContext) -> None:
    now, silent = clock.now(), context.metrics.cluster_silent
    silent.clear()
    for cluster in context.caches.clusters.values():
        since = timestamps.parse(cluster.silent_since) if cluster.joined else None
        silent.labels(cluster.name).set(max((now - since).total_seconds(), 0.0) if since is not None else 0.0)


def _failover(context: ControllerContext) -> None:
    waiting = context.metrics.failover_waiting
    waiting.clear()
    for cluster, number in context.evictions.waiting.items():
        waiting.labels(cluster).set(number)


def _plugins(context: ControllerContext) -> None:
    workers = context.workers
    if workers is None:
        return
    for plugin in workers.plugins:
        context.metrics.plugin_silent.labels(plugin).set(plugin in workers.silent)
    for package, times in workers.ended.items():
        context.metrics.plugin_ended.labels(package).set(times)
