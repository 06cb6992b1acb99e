"""Metrics of scheduling under KubeAdmiral's names, so that its dashboards and alerts keep working.

Durations are histograms: their `_count` and `_sum` are those of KubeAdmiral's summaries; quantiles follow from the buckets.
Plugins are timed from outside, in a copy of the profile: decisions have no clock.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from argosy.kube import clock
from argosy.plan.scheduling.framework import Filter, Profile, Remote, Replicas, Score, Select
from argosy.plan.scheduling.schedule import Decision

__all__ = ["ClusterChanged", "FTCChanged", "FedObjChanged", "PolicyChanged", "SchedulingMetrics"]

FedObjChanged = "FedObjChanged"
PolicyChanged = "PolicyChanged"
ClusterChanged = "ClusterChanged"
FTCChanged = "FTCChanged"

_PREFIX = "kubeadmiral_controller_manager"
_NO_PROFILE = "default-scheduler"
_SHORT = (0.00001, 0.00003, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10)
_FILTER, _SCORE, _SELECT, _REPLICAS = "Filter", "Score", "SelectClusters", "Replicas"
_PROFILES_KEPT = 64


class SchedulingMetrics:
    def __init__(self, registry: CollectorRegistry):
        histogram = partial(Histogram, namespace=_PREFIX, registry=registry, buckets=_SHORT)
        counter = partial(Counter, namespace=_PREFIX, registry=registry)
        # A counter by nature, but the library would append `_total` to the name of a counter.
        self.throughput = Gauge(
            "scheduler_throughput", "Passes of scheduling that ended.", namespace=_PREFIX, registry=registry
        )
        self.latency = histogram("scheduler_latency_seconds", "One pass of scheduling over one object.")
        self.incoming = counter(
            "queue_incoming_federated_object_total", "Objects that were to be looked at, by what changed.", ["event"]
        )
        self.attempts = counter("schedule_attempts_total", "Decisions, by how they ended.", ["profile", "result"])
        self.attempt = histogram("scheduling_attempt_duration_seconds", "One decision.", ["profile", "result"])
        self.extension_point = histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "All plugins of an extension point, in one decision that had to ask them.",
            ["extension_point", "profile", "status"],
        )
        self.plugin = histogram(
            "scheduler_plugin_execution_duration_seconds",
            "One filter plugin, in one decision that had to ask it, over all clusters.",
            ["extension_point", "plugin", "status"],
        )
        self._timed: dict[int, tuple[Profile, Profile]] = {}
        self._spent: dict[str, float] = {}
        self._started = 0.0

    def start(self) -> None:
        """A pass begins. It ends before the next one begins: nothing in it waits."""
        self._spent.clear()
        self._started = clock.monotonic()

    def end(self, decision: Decision | None, profile: str) -> None:
        """A pass ended, with or without a decision."""
        seconds = clock.monotonic() - self._started
        self.latency.observe(seconds)
        self.throughput.inc()
        if decision is None:
            return
        profile = profile or _NO_PROFILE
        result = "error" if _failed(decision) else "scheduled"
        self.attempts.labels(profile, result).inc()
        self.attempt.labels(profile, result).observe(seconds)
        status = "Error" if _failed(decision) else "Success"
        for point, spent in self._spent.items():
            self.extension_point.labels(point, profile, status).observe(spent)

    def timed(self, profile: Profile) -> Profile:
        """The same plugins, timed. Remote plugins are not: the pass does not wait for them."""
        known = self._timed.get(id(profile))
        if known is None or known[0] is not profile:
            if len(self._timed) >= _PROFILES_KEPT:
                self._timed.clear()
            known = self._timed[id(profile)] = (profile, self._measured(profile))
        return known[1]

    def _measured(self, profile: Profile) -> Profile:
        return msgspec.structs.replace(
            profile,
            filters=tuple(self._filter(plugin) for plugin in profile.filters),
            scores=tuple(self._score(plugin) for plugin in profile.scores),
            selects=tuple(self._select(plugin) for plugin in profile.selects),
            replicas={name: self._replicas(plugin) for name, plugin in profile.replicas.items()},
        )

    def _filter(self, plugin: Filter | Remote) -> Filter | Remote:
        if isinstance(plugin, Remote):
            return plugin
        observed = self.plugin.labels(_FILTER, plugin.name, "Success").observe
        return plugin._replace(feasible=self._watch(_FILTER, plugin.feasible, observed))

    def _score(self, plugin: Score | Remote) -> Score | Remote:
        return plugin if isinstance(plugin, Remote) else plugin._replace(score=self._watch(_SCORE, plugin.score))

    def _select(self, plugin: Select | Remote) -> Select | Remote:
        return plugin if isinstance(plugin, Remote) else plugin._replace(select=self._watch(_SELECT, plugin.select))

    def _replicas(self, plugin: Replicas | Remote) -> Replicas | Remote:
        if isinstance(plugin, Remote):
            return plugin
        return plugin._replace(divide=self._watch(_REPLICAS, plugin.divide))

    def _watch(
        self, point: str, run: Callable[..., Any], observed: Callable[[float], None] | None = None
    ) -> Callable[..., Any]:
        spent = self._spent

        def watched(*arguments: Any) -> Any:
            started = clock.monotonic()
            try:
                return run(*arguments)
            finally:
                seconds = clock.monotonic() - started
                spent[point] = spent.get(point, 0.0) + seconds
                if observed is not None:
                    observed(seconds)

        return watched


def _failed(decision: Decision) -> bool:
    """Whether some plugin failed. That no cluster fits is a decision as well."""
    nothing_fits = decision.filtered is not None and not decision.filtered.feasible.any()
    return decision.unschedulable and not nothing_fits
