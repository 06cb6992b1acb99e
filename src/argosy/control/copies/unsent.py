"""Unsent: what is reported of an object while nothing may be sent: its present state, and that it is not the desired one."""

from argosy.api.conditions import Propagation
from argosy.api.types import FederatedCluster
from argosy.control.collect import Collector
from argosy.control.copies.item import Item
from argosy.control.copies.operations import Applied
from argosy.kube.informer import Informer
from argosy.plan.copies import placement

__all__ = ["unsent", "unsent_anywhere"]


def unsent(item: Item, cluster: str, collector: Collector) -> Applied:
    """For a cluster that is paused or not connected. What is known to be gone there is not as recorded."""
    record = item.record(cluster)
    if cluster not in item.federated.placed:
        return Applied(Propagation.WAITING_FOR_REMOVAL)
    if why := item.held.why(cluster):
        return Applied(Propagation.APPLY_OVERRIDES_FAILED, held=why)
    if record is None:
        return Applied(Propagation.PENDING_CREATE)
    kind = item.config.name
    if collector.synced(cluster, kind) and collector.get(cluster, kind, item.member_key) is None:
        return Applied(Propagation.PENDING_CREATE)
    if record.status == Propagation.APPLY_OVERRIDES_FAILED:
        # Of overrides that are refused no more, the record may still tell, and perhaps nothing was ever written.
        return Applied(Propagation.OK if record.digest == item.digest(cluster) else Propagation.PENDING_CREATE)
    if record.digest in ("", item.digest(cluster)):  # KubeAdmiral records none
        return Applied(Propagation(record.status))
    kept = record.status == Propagation.OK
    return Applied(Propagation.PENDING_CREATE if kept else Propagation(record.status))


def unsent_anywhere(item: Item, members: Informer[FederatedCluster], collector: Collector) -> dict[str, Applied]:
    """For an object that is paused, or all of whose clusters are. Clusters that left the federation are done with."""
    concerned = sorted(placement.may_hold_copies(item.federated))
    return {name: unsent(item, name, collector) if name in members else Applied(None) for name in concerned}
