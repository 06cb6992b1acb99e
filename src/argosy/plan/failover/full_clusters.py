"""Full clusters: how long a cluster that could not run all pods of a workload counts as full for it.

While its figures show no room for one more pod, and longer if they did not tell the truth: pods may be stuck although the sum
over all nodes has room (no single node has, or affinity and taints forbid it). Forgetting the estimate when the stuck pods have
left would send them back, and so on forever. So what the figures showed while pods were stuck is remembered with the estimate
(`AutoMigrationInfo.tried`), and the cluster is tried again only if they show more than that. What is remembered only grows, so
in a cluster that does not change, no pod is tried twice. Pods of another shape start anew.
"""

from collections.abc import Callable, Mapping

import msgspec
import orjson

from argosy.fleet.member import CPU, Member, digest
from argosy.fleet.snapshot import MEMORY
from argosy.plan.failover.auto_migration import Estimate, migration_info
from argosy.plan.fields import Json, get
from argosy.plan.kinds.registry import kind_of
from argosy.plan.scheduling.unit import AutoMigrationInfo, ResourceRequest, request_of_template

__all__ = ["Figures", "has_room", "observed", "shape_of"]

Figures = dict[str, int]
"""Amounts by resource."""

#: The parts of a pod spec that have no say in where the pod fits, apart from the containers' requests and host ports.
_INSIDE = ("containers", "initContainers", "ephemeralContainers")


def observed(
    estimates: Mapping[str, Estimate | None],
    stored: AutoMigrationInfo,
    member: Callable[[str], Member | None],
    template: Json | None,
) -> AutoMigrationInfo:
    """The information scheduling reads, and what is to be remembered with it.

    `estimates` has every cluster the workload is placed in, None if it is unreachable. `template` is the workload; if it is not
    known, every estimate holds.
    """
    if template is None:
        return _remembered(
            migration_info(estimates, stored, stored.estimated_capacity.keys()), stored.tried, stored.shape
        )
    request, shape = request_of_template(template), shape_of(template)
    before = stored.tried if stored.shape == shape else {}
    full = {
        cluster
        for cluster in stored.estimated_capacity
        if (there := member(cluster)) is not None
        and _is_full(there, request, _shown(there, request, estimates.get(cluster)), before.get(cluster))
    }
    tried = dict(before)
    for cluster, seen in estimates.items():
        there = member(cluster)
        if seen is not None and seen.capacity is not None and there is not None:
            now, known = _shown(there, request, seen), before.get(cluster, {})
            tried[cluster] = {name: max(amount, known.get(name, amount)) for name, amount in now.items()}
    return _remembered(migration_info(estimates, stored, full), tried, shape)


def has_room(member: Member, request: ResourceRequest) -> bool:
    """Whether a pod might find room there, by the sum over all nodes. A pod without requests always might."""
    return all(amount <= member.available.get(name, 0) for name, amount in request.amounts.items())


def shape_of(template: Json) -> str:
    """Stands for all that decides where a pod of the workload fits."""
    path = kind_of(template).pod_spec
    spec = get(template, path, None) if path else None
    if not isinstance(spec, dict):
        return ""
    around = {name: part for name, part in spec.items() if name not in _INSIDE}
    shape = [around, _host_ports(spec), request_of_template(template).amounts]
    return format(digest(orjson.dumps(shape, option=orjson.OPT_SORT_KEYS).decode()), "016x")


def _is_full(member: Member, request: ResourceRequest, shown: Figures, tried: Figures | None) -> bool:
    if not member.ready or not has_room(member, request):
        return True
    return tried is not None and not any(amount > tried.get(name, 0) for name, amount in shown.items())


def _shown(member: Member, request: ResourceRequest, seen: Estimate | None) -> Figures:
    """How much the cluster's figures show for such pods in all: what is available, and what those pods of its own request that
    are there. So it does not change when they come and go.

    For pods without requests, the size of its schedulable nodes: that changes when nodes come, or lose a taint.
    """
    amounts = request.amounts
    if not amounts:
        return {name: member.allocatable.get(name, 0) for name in (CPU, MEMORY)}
    present = seen.scheduled + seen.waiting if seen is not None else 0
    return {name: member.available.get(name, 0) + present * amount for name, amount in amounts.items()}


def _remembered(info: AutoMigrationInfo, tried: Mapping[str, Figures], shape: str) -> AutoMigrationInfo:
    """Only with an estimate: without one, nothing was found out."""
    kept = {cluster: dict(sorted(tried[cluster].items())) for cluster in info.estimated_capacity if cluster in tried}
    return msgspec.structs.replace(info, tried=kept, shape=shape if kept else "")


def _host_ports(spec: Json) -> list[Json]:
    containers = [each for each in spec.get("containers") or () if isinstance(each, dict)]
    ports = [port for each in containers for port in each.get("ports") or () if isinstance(port, dict)]
    return [
        {name: port.get(name) for name in ("hostPort", "hostIP", "protocol")} for port in ports if port.get("hostPort")
    ]
