"""KatalystResourcesExist: requests for Katalyst's resources need a cluster that has some. What runs there stays."""

import numpy as np

from argosy.fleet.katalyst import KATALYST_RESOURCES
from argosy.fleet.snapshot import Fleet, Mask
from argosy.plan.scheduling.framework import Always, Filter
from argosy.plan.scheduling.unit import Unit

REASON = "Katalyst resource does not exist"
REMEDY = "Katalyst in the cluster, and its plugin in the cluster's annotation kubeadmiral.io/cluster-resource-plugins"


def feasible(unit: Unit, fleet: Fleet) -> Mask:
    if not any(unit.request.scalars.get(resource) for resource in KATALYST_RESOURCES):
        return fleet.everyone
    present: Mask = np.logical_or.reduce([fleet.reports(resource) for resource in KATALYST_RESOURCES])
    return present | fleet.mask_of(unit.current)


FILTER = Filter("KatalystResourcesExist", feasible, Always(REASON), remedy=REMEDY)
