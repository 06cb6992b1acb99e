"""Katalyst: resources of nodes beyond their allocatable, reclaimed from pods that do not use all they requested.

A member with Katalyst reports it per node in CustomNodeResources. Read only for clusters whose annotation
`kubeadmiral.io/cluster-resource-plugins` names the plugin, and only with `--enable-katalyst-support`.
"""

from collections.abc import Container, Mapping
from typing import Final

import msgspec

from argosy.api import keys
from argosy.api.clusters import ResourceList
from argosy.fleet.member import readable
from argosy.kube.objects import DecodeError, Metadata, decode
from argosy.kube.resource import Resource

__all__ = [
    "CUSTOM_NODE_RESOURCES",
    "KATALYST_RESOURCES",
    "PLUGIN",
    "RECLAIMED_MILLICPU",
    "CustomNodeResourceView",
    "NodeResources",
    "ResourcePluginsError",
    "asks_for_katalyst",
    "resource_plugins",
]

PLUGIN: Final = "node.katalyst.kubewharf.io"
RECLAIMED_MILLICPU: Final = "resource.katalyst.kubewharf.io/reclaimed_millicpu"
KATALYST_RESOURCES: Final = (
    RECLAIMED_MILLICPU,
    "resource.katalyst.kubewharf.io/reclaimed_memory",
    "resource.katalyst.kubewharf.io/net_bandwidth",
)
CUSTOM_NODE_RESOURCES: Final = Resource(
    PLUGIN, "v1alpha1", "customnoderesources", "CustomNodeResource", namespaced=False
)
_KNOWN_PLUGINS: Final = frozenset({PLUGIN})


class ResourcePluginsError(ValueError):
    """The annotation that names resource plugins cannot be read."""


def resource_plugins(annotations: Mapping[str, str], known: frozenset[str] = _KNOWN_PLUGINS) -> tuple[str, ...]:
    """The plugins that a cluster's annotation names, without unknown ones. Raises ResourcePluginsError."""
    text = annotations.get(keys.CLUSTER_RESOURCE_PLUGINS)
    if text is None:
        return ()
    try:
        named = decode(text.encode(), tuple[str, ...])
    except DecodeError as error:
        raise ResourcePluginsError(f"annotation {keys.CLUSTER_RESOURCE_PLUGINS}: {error}") from None
    return tuple(name for name in named if name in known)


def asks_for_katalyst(annotations: Mapping[str, str]) -> bool:
    """Whether a cluster's annotation names the plugin; an unreadable one names nothing."""
    try:
        return PLUGIN in resource_plugins(annotations)
    except ResourcePluginsError:
        return False


class _Amounts(msgspec.Struct, frozen=True):
    allocatable: ResourceList | None = None


class _Status(msgspec.Struct, frozen=True):
    resources: _Amounts = _Amounts()


class CustomNodeResourceView(msgspec.Struct, frozen=True):
    """The parts of a CustomNodeResource that count; it has the name of its node."""

    metadata: Metadata = Metadata()
    status: _Status = _Status()


class NodeResources:
    """The CustomNodeResources of one cluster, fed with every event of their watch."""

    def __init__(self) -> None:
        self._of_node: dict[str, dict[str, int]] = {}

    def set(self, node: str, view: CustomNodeResourceView | None) -> None:
        self._of_node.pop(node, None)
        if view is not None:
            self._of_node[node] = readable(view.status.resources.allocatable or {})

    def allocatable(self, nodes: Container[str]) -> dict[str, int]:
        """The sums over the nodes that count."""
        total: dict[str, int] = {}
        for node, amounts in self._of_node.items():
            if node in nodes:
                for resource, amount in amounts.items():
                    total[resource] = total.get(resource, 0) + amount
        return total
