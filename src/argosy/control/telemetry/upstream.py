"""Metrics under KubeAdmiral's names, so that its dashboards and alerts keep working. docs/metrics.md has the table.

They are made from ours, and from what is cached, whenever somebody asks: nothing is counted twice. Durations are histograms:
their `_count` and `_sum` are those of KubeAdmiral's summaries; quantiles follow from the buckets.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client import Histogram
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from argosy.api import conditions
from argosy.api.clusters import FederatedCluster
from argosy.control.caches.informers import Caches
from argosy.control.policies.uses import PolicyUses
from argosy.control.telemetry.metrics import Metrics
from argosy.kube.quantity import QuantityError, parse

__all__ = ["UpstreamMetrics"]

_PREFIX: Final = "kubeadmiral_controller_manager_"
#: Our loops -> what KubeAdmiral calls the controllers that do their work.
_LOOPS: Final = {
    "federate": ("federate_controller",),
    "dispatch": ("sync",),
    "aggregate": ("status", "status_aggregator"),
    "migrate": ("auto_migration",),
    "clusters": ("federated_cluster_controller",),
}
_COUNTS: Final = "policy counts"


class UpstreamMetrics(Collector):
    def __init__(self, metrics: Metrics, caches: Caches, uses: PolicyUses):
        self._metrics = metrics
        self._caches = caches
        self._uses = uses

    def collect(self) -> Iterable[Metric]:
        yield from self._loops()
        yield from self._clusters()
        yield from self._references()
        yield self._member_errors()

    def _loops(self) -> Iterator[Metric]:
        for loop, names in _LOOPS.items():
            for name in names:
                latency, passes = _renamed(self._metrics.reconcile, loop, f"{_PREFIX}{name}_latency_seconds")
                yield latency
                yield _total(f"{_PREFIX}{name}_throughput", f"Passes of {name}.", passes)
        latency, passes = _renamed(self._metrics.reconcile, _COUNTS, f"{_PREFIX}policyrc_count_latency_seconds")
        yield latency
        yield _total(f"{_PREFIX}policyrc_count_controller_throughput", "Passes over policies.", passes)

    def _clusters(self) -> Iterator[Metric]:
        """One gauge for each of its columns, with all clusters."""
        gauges = {name: _gauge(name, text) for name, text in _CLUSTERS.items()}
        deletion = _gauge("cluster_deletion_state", "1 for a cluster that is leaving.", "status")
        for cluster in list(self._caches.clusters.values()):
            for name, value in _figures(cluster):
                if value is not None:
                    gauges[name].add_metric([cluster.name], value)
            deletion.add_metric([cluster.name, "deleting"], int(cluster.terminating))
        yield from gauges.values()
        yield deletion

    def _references(self) -> Iterator[Metric]:
        families = {
            kind: GaugeMetricFamily(
                f"{_PREFIX}{kind}_policy_reference_count",
                f"Objects that name the {kind} policy.",
                labels=["name", "namespace"],
            )
            for kind in ("propagation", "override")
        }
        for policy, count in self._uses.all():
            kind = "override" if "override" in policy.plural else "propagation"
            families[kind].add_metric([policy.name, policy.namespace], count)
        yield from families.values()

    def _member_errors(self) -> Metric:
        found = GaugeMetricFamily(
            f"{_PREFIX}member_operation_error",
            "Writes to members that failed.",
            labels=["cluster", "operation", "reason"],
        )
        for family in self._metrics.member_writes.collect():
            for sample in family.samples:
                labels = sample.labels
                if sample.name.endswith("_total") and labels["result"] != "ok":
                    found.add_metric([labels["cluster"], labels["operation"], labels["result"]], sample.value)
        return found


_CLUSTERS: Final = {
    "cluster_ready_state": "1 while the cluster is ready.",
    "cluster_offline_state": "1 while the cluster does not answer.",
    "cluster_joined_state": "1 while the cluster is a member.",
    "cluster_memory_allocatable_bytes": "Memory of the cluster's nodes.",
    "cluster_memory_available_bytes": "Memory that is not requested.",
    "cluster_cpu_allocatable_number": "CPUs of the cluster's nodes.",
    "cluster_cpu_available_number": "CPUs that are not requested.",
    "cluster_schedulable_nodes_total": "Nodes that take pods.",
}


def _figures(cluster: FederatedCluster) -> Iterator[tuple[str, float | None]]:
    for name in (conditions.READY, conditions.OFFLINE, conditions.JOINED):
        condition = cluster.condition(name)
        yield f"cluster_{name.lower()}_state", int(condition is not None and condition.status == "True")
    known = cluster.status.resources
    for resource, unit in (("memory", "bytes"), ("cpu", "number")):
        yield f"cluster_{resource}_allocatable_{unit}", _number(known.allocatable.get(resource))
        yield f"cluster_{resource}_available_{unit}", _number(known.available.get(resource))
    yield "cluster_schedulable_nodes_total", known.schedulable_nodes


def _number(quantity: object) -> float | None:
    try:
        return parse(str(quantity)).nanos / 1e9
    except QuantityError:
        return None


def _gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{_PREFIX}{name}", text, labels=["cluster_name", *labels])


def _total(name: str, text: str, value: float) -> Metric:
    """A counter by nature, but the library would append `_total` to the name of a counter."""
    found = GaugeMetricFamily(name, text)
    found.add_metric([], value)
    return found


def _renamed(histogram: Histogram, loop: str, name: str) -> tuple[HistogramMetricFamily, float]:
    """Of one loop, under that name; and how many passes it counts."""
    buckets, total, passes = [], 0.0, 0.0
    for family in histogram.collect():
        for sample in family.samples:
            if sample.labels.get("loop") != loop:
                continue
            if sample.name.endswith("_bucket"):
                buckets.append((sample.labels["le"], sample.value))
            elif sample.name.endswith("_sum"):
                total = sample.value
            elif sample.name.endswith("_count"):
                passes = sample.value
    found = HistogramMetricFamily(name, f"One pass of {loop}.")
    if buckets:
        found.add_metric([], buckets, total)
    return found, passes
