"""Replacements: whether the replicas that take the place of those of a failed cluster run."""

from argosy.api.conditions import Propagation
from argosy.control.caches.informers import Caches
from argosy.control.caches.projection import as_object
from argosy.control.collect import Collector
from argosy.control.copies.item import Item
from argosy.plan.fields import number

__all__ = ["is_served_elsewhere"]


def is_served_elsewhere(item: Item, caches: Caches, collector: Collector) -> bool:
    """Whether the replacement replicas for those of a failed cluster run; a cluster that is back may still run them."""
    if not item.federated.placed:
        return False
    numbers = item.config.spec.path_definition
    if not numbers.replicas_spec or not numbers.available_replicas_status:
        return True
    for name in item.federated.placed:
        cluster, record = caches.clusters.get(name), item.record(name)
        found = collector.get(name, item.config.name, item.member_key)
        if cluster is None or not cluster.ready or found is None or record is None:
            return False
        if record.status != Propagation.OK or record.digest != item.digest(name):  # not written there yet
            return False
        copy = as_object(found)
        available, asked = number(copy, numbers.available_replicas_status), number(copy, numbers.replicas_spec)
        if asked is None or (available or 0) < asked:
            return False
    return True
