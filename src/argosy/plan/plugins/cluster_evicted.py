"""ClusterEvicted: clusters that the user wants the object to leave until a given time."""

import msgspec

from argosy.fleet.snapshot import Fleet, Mask
from argosy.plan.failover.custom_migration import MigrationConfigError, in_force
from argosy.plan.scheduling.framework import Always, Filter, FrameworkError
from argosy.plan.scheduling.unit import Unit

REASON = "cluster(s) were evicted due to custom migration configuration"
REMEDY = "the time in the object's annotation kubeadmiral.io/migration-configuration must pass, or the cluster be removed from it"


def feasible(unit: Unit, fleet: Fleet) -> Mask:
    applied = unit.applied_migration
    if applied is None or not applied.unavailable_clusters:
        return fleet.everyone
    applied = msgspec.structs.replace(
        applied, unavailable_clusters=tuple(each for each in applied.unavailable_clusters if each.valid_until)
    )
    if unit.now is not None:
        try:
            applied = in_force(applied, unit.now)
        except MigrationConfigError as error:
            raise FrameworkError(str(error)) from None
    return ~fleet.mask_of(each.cluster for each in applied.unavailable_clusters)


FILTER = Filter("ClusterEvicted", feasible, Always(REASON), remedy=REMEDY)
