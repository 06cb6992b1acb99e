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
        self._request_children: dict[tuple[str, str, str, int], Counter] = {}
        self._duration_children: dict[tuple[str, str], Histogram] = {}

    def request(self, verb: str, group: str, resource: str, code: int, seconds: float) -> None:
        # Looking a child up by labels takes longer than counting; resources are a small set, so children are kept.
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
