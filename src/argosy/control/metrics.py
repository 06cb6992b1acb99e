"""Metrics of the loops. One value made by the manager and handed to whoever measures; nothing registers itself."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

__all__ = ["Metrics"]

_PREFIX = "argosy"
_LATENCY = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30, 60, 120)


class Metrics:
    def __init__(self, registry: CollectorRegistry | None = None):
        self.registry = registry or CollectorRegistry()
        shared = {"namespace": _PREFIX, "registry": self.registry}
        self.propagation = Histogram(
            "propagation_seconds",
            "From a user's write until the last selected member holds the object.",
            ["type"],
            buckets=_LATENCY,
            **shared,
        )
        self.status_return = Histogram(
            "status_return_seconds",
            "From a user's write until the aggregated status covers it.",
            ["type"],
            buckets=_LATENCY,
            **shared,
        )
        self.reconcile = Histogram(
            "reconcile_seconds", "One pass of one loop over one key.", ["loop"], buckets=_LATENCY, **shared
        )
        self.failures = Counter("reconcile_failures", "Passes that will be tried again.", ["loop"], **shared)
        self.member_writes = Counter(
            "member_writes", "Writes sent to members.", ["cluster", "operation", "result"], **shared
        )
        self.control_writes = Counter(
            "control_plane_writes", "Writes to the control plane.", ["kind", "verb"], **shared
        )
        self.queue_length = Gauge("queue_length", "Keys ready to be worked on.", ["loop"], **shared)
        self.queue_age = Gauge(
            "queue_oldest_age_seconds", "How long the longest waiting key has been ready.", ["loop"], **shared
        )
        self.watch_age = Gauge(
            "watch_age_seconds", "Since the oldest watch heard anything, by cluster.", ["cluster"], **shared
        )
        self.loop_lag = Gauge("event_loop_lag_seconds", "How late the event loop runs what is due.", **shared)
        self.clusters = Gauge("clusters", "Members by state.", ["state"], **shared)
