"""Trying a plugin: test clusters, and decisions over them, without real clusters."""

from collections.abc import Iterable, Mapping
from typing import Any

from argosy.api.clusters import (
    APIResource,
    ClusterCondition,
    ClusterResources,
    ClusterSpec,
    ClusterStatus,
    FederatedCluster,
    ResourceList,
    Taint,
)
from argosy.api.conditions import JOINED, READY
from argosy.api.profiles import Plugin, PluginConfig, Plugins, PluginSet, SchedulingProfileSpec
from argosy.fleet.snapshot import Fleet
from argosy.kube.objects import Metadata
from argosy.plan.plugins import DEFAULT_PROFILE
from argosy.plan.scheduling.framework import Filter, Profile, Score, Select
from argosy.plan.scheduling.profile import InProcess, Registry, merge_profile
from argosy.plan.scheduling.schedule import Decision, schedule
from argosy.plan.scheduling.unit import Unit
from argosy.plugins.guard import guarded

__all__ = ["cluster", "try_out"]

DEPLOYMENT = ("apps", "v1", "Deployment")


def cluster(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    allocatable: ResourceList | None = None,
    available: ResourceList | None = None,
    taints: Iterable[Taint] = (),
    serves: Iterable[tuple[str, str, str]] = (DEPLOYMENT,),
    ready: bool = True,
) -> FederatedCluster:
    """A joined member. All its allocatable resources are available unless `available` says otherwise."""
    amounts = allocatable or {}
    conditions = ((JOINED, "True"), (READY, str(ready)))
    return FederatedCluster(
        Metadata(name=name, labels=dict(labels or {}), annotations=dict(annotations or {})),
        ClusterSpec(taints=tuple(taints)),
        ClusterStatus(
            conditions=tuple(ClusterCondition(type, status) for type, status in conditions),
            resources=ClusterResources(allocatable=amounts, available=amounts if available is None else available),
            api_resource_types=tuple(APIResource(version, kind, group=group) for group, version, kind in serves),
        ),
    )


def try_out(
    unit: Unit,
    fleet: Fleet | Iterable[FederatedCluster],
    *plugins: InProcess,
    arguments: Mapping[str, Any] | None = None,
    alone: bool = False,
) -> Decision:
    """The decision with these plugins after the built-in ones; with `alone`, without the built-in filters, scores and selects.

    `arguments` are a profile's pluginConfig, by name. Raises PluginError if a profile would be refused.
    """
    registry = Registry().with_plugins(map(guarded, plugins), "tried out")
    off = PluginSet(disabled=(Plugin("*"),)) if alone else PluginSet()
    sets = {}
    for point, kind in (("filter", Filter), ("score", Score), ("select", Select)):
        enabled = tuple(Plugin(plugin.name) for plugin in plugins if isinstance(plugin, kind))
        sets[point] = PluginSet(enabled, off.disabled)
    replicas = tuple(Plugin(name) for name in registry.replicas)
    configs = tuple(PluginConfig(name, args) for name, args in (arguments or {}).items())
    wanted = SchedulingProfileSpec(Plugins(**sets, replicas=PluginSet(replicas)), configs)
    profile: Profile = merge_profile(DEFAULT_PROFILE, registry, wanted)
    return schedule(unit, fleet if isinstance(fleet, Fleet) else Fleet.of(fleet), profile)
