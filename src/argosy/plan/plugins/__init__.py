"""The plugins that come with the scheduler, and the set that runs unless a profile says otherwise."""

from argosy.api import keys
from argosy.plan.plugins import (
    api_resources,
    cluster_affinity,
    cluster_evicted,
    cluster_ready,
    cluster_resources_balanced_allocation,
    cluster_resources_fit,
    cluster_resources_least_allocated,
    cluster_resources_most_allocated,
    cluster_terminating,
    katalyst_resources_exist,
    max_cluster,
    placement_filter,
    priority_sort,
    taint_toleration,
)
from argosy.plan.plugins.replicas import aggregated, cluster_capacity_weight, preference_bin_pack, webster
from argosy.plan.plugins.rules import (
    compute_power,
    cost,
    failure_domain,
    locality,
    spread_constraints,
    workload_affinity,
)
from argosy.plan.scheduling.framework import Profile
from argosy.plan.scheduling.profile import Registry

__all__ = ["DEFAULT_PROFILE", "IN_TREE"]

#: KubeAdmiral's come first, in its order. The plugins after them serve rules that KubeAdmiral's policies do not have, and do
#: nothing if a policy has none.
DEFAULT_PROFILE = Profile(
    filters=(
        api_resources.FILTER,
        taint_toleration.FILTER,
        placement_filter.FILTER,
        cluster_affinity.FILTER,
        cluster_ready.FILTER,
        cluster_terminating.FILTER,
        cluster_evicted.FILTER,
        katalyst_resources_exist.FILTER,
        spread_constraints.FILTER,
        workload_affinity.FILTER,
        cost.FILTER,
        failure_domain.FILTER,
    ),
    scores=(
        taint_toleration.SCORE,
        cluster_resources_balanced_allocation.SCORE,
        cluster_resources_least_allocated.SCORE,
        cluster_affinity.SCORE,
        workload_affinity.SCORE,
        compute_power.SCORE,
        cost.SCORE,
        locality.SCORE,
        failure_domain.SCORE,
    ),
    selects=(priority_sort.SELECT, spread_constraints.SELECT, max_cluster.SELECT),
    replicas={
        keys.SPREAD: cluster_capacity_weight.REPLICAS,
        keys.BINPACK: preference_bin_pack.REPLICAS,
        keys.AGGREGATED: aggregated.REPLICAS,
        keys.WEBSTER: webster.REPLICAS,
    },
    shared_as="default",
)

IN_TREE = Registry(
    filters={plugin.name: plugin for plugin in (*DEFAULT_PROFILE.filters, cluster_resources_fit.FILTER)},
    scores={plugin.name: plugin for plugin in (*DEFAULT_PROFILE.scores, cluster_resources_most_allocated.SCORE)},
    selects={plugin.name: plugin for plugin in DEFAULT_PROFILE.selects},
    replicas={plugin.name: plugin for plugin in DEFAULT_PROFILE.replicas.values()},
)
