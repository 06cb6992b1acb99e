"""Which objects of the control plane a shard keeps: its own, and the few others that its own depend on.

The API server sends everything to every shard; the rest is dropped on arrival. A kind of which a shard keeps nothing is not
watched.
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
    """For sources, policies, clusters and the like: all shards keep those without a namespace."""
    return None if shard.is_whole or not resource.namespaced else _own(shard)


def kept_federated(shard: Shard, namespaced: bool) -> Kept | None:
    """For federated objects: also those of its own objects' namespaces, which shard 0 propagates."""
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
