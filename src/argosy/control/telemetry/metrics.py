"""Metrics of the loops. One value, created by the manager and passed to all that measure; nothing registers itself."""

from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from argosy.control.telemetry.scheduling import SchedulingMetrics

__all__ = ["Metrics"]

_LATENCY = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30, 60, 120)


class Metrics:
    def __init__(self, registry: CollectorRegistry | None = None):
        self.registry = registry or CollectorRegistry()
        histogram = partial(Histogram, namespace="argosy", registry=self.registry, buckets=_LATENCY)
        counter = partial(Counter, namespace="argosy", registry=self.registry)
        gauge = partial(Gauge, namespace="argosy", registry=self.registry)

        self.propagation = histogram(
            "propagation_seconds", "From a user's write until the last selected member holds the object.", ["type"]
        )
        self.status_return = histogram(
            "status_return_seconds", "From a user's write until the aggregated status covers it.", ["type"]
        )
        self.reconcile = histogram("reconcile_seconds", "One pass of one loop over one key.", ["loop"])
        self.spinning = counter(
            "loop_spinning", "Passes that were put off because their key came up again and again.", ["loop"]
        )
        self.failures = counter("reconcile_failures", "Passes that will be tried again.", ["loop"])
        self.member_writes = counter("member_writes", "Writes sent to members.", ["cluster", "operation", "result"])
        self.identity_mismatches = counter(
            "member_identity_mismatches", "Times another cluster answered in a member's place.", ["cluster"]
        )
        self.refused = counter("refused", "Federated objects of which nothing is sent to members.", ["reason"])
        self.held_removals = gauge(
            "held_removals",
            "Copies that would be taken away with too many others, and stay until confirmed.",
            ["cause"],
        )
        self.failover_waiting = gauge(
            "failover_waiting", "Objects that wait for their turn to leave a failed cluster.", ["cluster"]
        )
        self.failover_suspended = gauge(
            "failover_suspended", "1 while so many clusters are unready that nothing leaves those that failed."
        )
        self.control_writes = counter("control_plane_writes", "Writes to the control plane.", ["kind", "verb"])
        self.queue_length = gauge("queue_length", "Keys ready to be worked on.", ["loop"])
        self.queue_age = gauge("queue_oldest_age_seconds", "How long the longest waiting key has been ready.", ["loop"])
        self.watch_age = gauge("watch_age_seconds", "Since the oldest watch on a cluster heard anything.", ["cluster"])
        self.cluster_silent = gauge(
            "cluster_silent_seconds",
            "Since a member that does not answer was heard of; 0 while it answers.",
            ["cluster"],
        )
        self.shard_missing = gauge("shard_missing", "1 for another shard whose lease nobody holds.", ["shard"])
        self.loop_lag = gauge("event_loop_lag_seconds", "How late the event loop runs what is due.")
        self.plugin = histogram(
            "plugin_seconds", "One question to a remote plugin (a webhook, a Python package).", ["plugin", "result"]
        )
        self.plugin_silent = gauge("plugin_silent", "1 for a Python plugin that gave no answer last time.", ["plugin"])
        self.plugin_ended = gauge(
            "plugin_processes_ended", "How often a Python package's process ended or had to be ended.", ["package"]
        )
        self.scheduling = SchedulingMetrics(self.registry)
        self.clusters = gauge("clusters", "Members by state.", ["state"])
