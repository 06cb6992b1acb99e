"""Metrics of the server, in a registry of its own (several servers may run in one process)."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from argosy.kube.transport import Response

__all__ = ["Metrics"]


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "apiserver_request_total",
            "Requests by verb, resource and code.",
            ["verb", "group", "resource", "code"],
            registry=self.registry,
        )
        self._durations = Histogram(
            "apiserver_request_duration_seconds",
            "Time from the whole request to its answer; watches are not in it.",
            ["verb", "resource"],
            buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60),
            registry=self.registry,
        )
        self.watchers = Gauge("apiserver_longrunning_requests", "Watches that are open.", registry=self.registry)
        self.watch_bytes = Gauge(
            "apiserver_watch_buffer_bytes", "What waits in memory for the readers of watches.", registry=self.registry
        )
        self.watches_cut_off = Counter(
            "apiserver_watches_cut_off_total",
            "Watches that were ended because too much waited for readers that do not read.",
            registry=self.registry,
        )
        self.connections = Gauge("apiserver_connections", "Connections that are open.", registry=self.registry)
        self.connections_refused = Counter(
            "apiserver_connections_refused_total",
            "Connections that were ended to keep within their number: idle ones for a new one, and new ones.",
            ["which"],
            registry=self.registry,
        )
        self.in_flight = Gauge(
            "apiserver_current_inflight_requests", "Requests being answered, watches apart.", registry=self.registry
        )
        self.objects = Gauge("apiserver_resource_objects", "Objects stored.", ["resource"], registry=self.registry)
        self.batch_writes = Histogram(
            "apiserver_storage_batch_writes",
            "Writes in one commit.",
            buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 1024),
            registry=self.registry,
        )
        self.batch_seconds = Histogram(
            "apiserver_storage_batch_duration_seconds",
            "Time one commit took, disk included.",
            buckets=(0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5),
            registry=self.registry,
        )
        self.spinning = Counter(
            "apiserver_loop_spinning_total",
            "Runs of the server's own loops that were put off because their key came up again and again.",
            ["loop"],
            registry=self.registry,
        )
        self.loop_held = Counter(
            "argosy_event_loop_held_seconds_total",
            "Time in which the event loop did not turn for so long that nobody was answered.",
            registry=self.registry,
        )
        self.offload_waiting = Gauge(
            "apiserver_offload_waiting", "Work of large requests that waits for a thread.", registry=self.registry
        )
        self.offload_running = Gauge(
            "apiserver_offload_running", "Work of large requests that threads are at.", registry=self.registry
        )
        self.offload_waited = Histogram(
            "apiserver_offload_wait_duration_seconds",
            "Time work of large requests waited for a thread.",
            buckets=(0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30),
            registry=self.registry,
        )
        self.offload_worked = Histogram(
            "apiserver_offload_duration_seconds",
            "Time a thread took for work of a large request.",
            buckets=(0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30),
            registry=self.registry,
        )
        self.offload_refused = Counter(
            "apiserver_offload_rejected_total",
            "Large requests answered with 429 because too many waited for a thread.",
            registry=self.registry,
        )
        self.held = Histogram(
            "apiserver_request_loop_hold_seconds",
            "Computing time for which requests kept the event loop from everybody else, where it was 5 ms or more.",
            buckets=(0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 5, 30),
            registry=self.registry,
        )
        self.storage_full = Gauge(
            "apiserver_storage_full",
            "1 while the disk is full and only deletions are accepted.",
            registry=self.registry,
        )
        self._request_children: dict[tuple[str, str, str, int], Counter] = {}
        self._duration_children: dict[tuple[str, str], Histogram] = {}

    def request(self, verb: str, group: str, resource: str, code: int, seconds: float) -> None:
        # Looking up a child by labels takes longer than counting; resources are a small set, so children are cached.
        key = verb, group, resource, code
        counter = self._request_children.get(key)
        if counter is None:
            counter = self._request_children[key] = self._requests.labels(verb, group, resource, str(code))
        counter.inc()
        histogram = self._duration_children.get((verb, resource))
        if histogram is None:
            histogram = self._duration_children[verb, resource] = self._durations.labels(verb, resource)
        histogram.observe(seconds)

    def batch(self, writes: int, seconds: float) -> None:
        self.batch_writes.observe(writes)
        self.batch_seconds.observe(seconds)

    def respond(self) -> Response:
        return Response(200, {"content-type": CONTENT_TYPE_LATEST}, generate_latest(self.registry))
