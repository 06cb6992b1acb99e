"""What of the control plane a shard holds: its own objects, and the few of others' that its own depend on.

The API server sends every shard everything; what is not kept is dropped as it comes. Kinds of which a shard keeps nothing it
does not watch.
"""

from collections.abc import Callable

from argosy.api.shards import Shard
from argosy.api.types import FederatedTypeConfig
from argosy.kube.objects import Identity
from argosy.kube.resource import Resource

__all__ = ["NAMESPACES", "kept", "kept_federated", "watches_sources"]

Kept = Callable[[Identity], bool]
#: The type config of namespaces.
NAMESPACES = "namespaces"
_OF_NAMESPACE = f"-{NAMESPACES}"


def kept(shard: Shard, resource: Resource) -> Kept | None:
    """Of sources, policies, clusters and the like: those without a namespace concern everybody."""
    return None if shard.is_whole or not resource.namespaced else _own(shard)


def kept_federated(shard: Shard, namespaced: bool) -> Kept | None:
    """Of federated objects: also those of the own objects' namespaces, which shard 0 carries to the members."""
    if shard.is_whole:
        return None
    if namespaced:
        return _own(shard)
    return None if shard.owns_cluster_scoped else lambda metadata: _is_of_own_namespace(shard, metadata.name)


def watches_sources(shard: Shard, config: FederatedTypeConfig) -> bool:
    return config.namespaced or shard.owns_cluster_scoped


def _own(shard: Shard) -> Kept:
    return lambda metadata: shard.owns(metadata.namespace)


def _is_of_own_namespace(shard: Shard, federated_name: str) -> bool:
    return federated_name.endswith(_OF_NAMESPACE) and shard.owns(federated_name.removesuffix(_OF_NAMESPACE))
