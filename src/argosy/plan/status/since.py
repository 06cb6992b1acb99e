"""Since: whether clusters changed after an object was scheduled, in a way that schedules it again. Then its placement, however
well it runs, is not the last word."""

from argosy.api import keys
from argosy.api.clusters import FederatedCluster
from argosy.api.federated import FederatedObject
from argosy.api.policies import PropagationPolicy

__all__ = ["is_to_be_scheduled_anew"]


def is_to_be_scheduled_anew(
    federated: FederatedObject, policy: PropagationPolicy | None, clusters: tuple[FederatedCluster, ...]
) -> bool:
    """By the same rules as in scheduling, as far as they need no more than clusters and policy: a change that the policy defers
    does not count, nor one that leaves the object where it is. Without a policy nothing is known."""
    annotations = federated.metadata.annotations
    stored = annotations.get(keys.SCHEDULING_TRIGGERS)
    if policy is None or not stored or annotations.get(keys.NO_SCHEDULING):
        return False
    # Here, because it needs numpy, which takes longer to load than the rest of a report takes.
    from argosy.fleet.snapshot import Fleet
    from argosy.plan.failover.failover import all_failed, trusting
    from argosy.plan.scheduling.triggers import Difference, Record, read_record, verdict
    from argosy.plan.scheduling.wakeups import Wakeups

    then = read_record(stored)
    if not isinstance(then, Record):
        return False
    fleet = Fleet.of(clusters).discovered_only()
    if not verdict(Difference(fleet=fleet.hashes.reading(then.reads).since(then.clusters)), policy.spec).schedule:
        return False
    # A decision that changed nothing is not on record; nor is what nobody else takes over from a failed cluster.
    believed = Wakeups(trusting(fleet, all_failed(fleet)))
    return believed.surely_moves(policy, annotations, frozenset(federated.placement_of(keys.GLOBAL_SCHEDULER)))
