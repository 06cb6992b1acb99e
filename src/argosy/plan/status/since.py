"""Since: what changed after an object was scheduled, and schedules it again. Then its placement, however well it runs, is not the
last word."""

from argosy.api import keys
from argosy.api.clusters import FederatedCluster
from argosy.api.federated import FederatedObject
from argosy.api.policies import PropagationPolicy

__all__ = ["changed_since", "policy_vanished_since"]


def changed_since(
    federated: FederatedObject, policy: PropagationPolicy | None, clusters: tuple[FederatedCluster, ...]
) -> str:
    """In words; empty if nothing did. By the same rules as in scheduling, as far as they need no more than clusters and policy: a
    change that the policy defers does not count, nor one of the clusters that leaves the object where it is. Without a policy
    nothing is known."""
    annotations = federated.metadata.annotations
    stored = annotations.get(keys.SCHEDULING_TRIGGERS)
    if policy is None or not stored or annotations.get(keys.NO_SCHEDULING):
        return ""
    # Here, because it needs numpy, which takes longer to load than the rest of a report takes.
    from argosy.fleet.snapshot import Fleet
    from argosy.plan.failover.failover import all_failed, trusting
    from argosy.plan.scheduling.triggers import Record, outer_difference, read_record, verdict
    from argosy.plan.scheduling.wakeups import Wakeups

    then = read_record(stored)
    if not isinstance(then, Record):
        return ""
    fleet = Fleet.of(clusters).discovered_only()
    difference = outer_difference(then, policy, fleet)
    if not verdict(difference, policy.spec).schedule:
        return ""
    if difference.stable or difference.content:
        return "its policy changed"
    # A decision that changed nothing is not on record; nor is what nobody else takes over from a failed cluster.
    believed = Wakeups(trusting(fleet, all_failed(fleet)))
    placed = frozenset(federated.placement_of(keys.GLOBAL_SCHEDULER))
    return "clusters changed" if believed.surely_moves(policy, annotations, placed) else ""


def policy_vanished_since(federated: FederatedObject) -> bool:
    """Of an object that no policy is in force for: whether one was when it was scheduled."""
    from argosy.plan.scheduling.triggers import policy_then

    return bool(federated.placed) and bool(policy_then(federated.metadata.annotations.get(keys.SCHEDULING_TRIGGERS)))
