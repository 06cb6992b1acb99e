"""The keys of loops over objects: a source, and its federated object."""

from typing import NamedTuple

from argosy.api import resources
from argosy.api.names import federated_name
from argosy.kube.objects import join_key, split_key

__all__ = ["FederatedKey", "SourceKey"]


class FederatedKey(NamedTuple):
    """A FederatedObject (namespaced) or ClusterFederatedObject."""

    namespaced: bool
    key: str

    def __str__(self) -> str:
        return f"{resources.federated_objects(self.namespaced).kind} {self.key}"


class SourceKey(NamedTuple):
    """A source object, by the name of its type config and its own key."""

    type: str
    key: str

    @property
    def federated(self) -> FederatedKey:
        namespace, name = split_key(self.key)
        federated = federated_name(name, self.type)
        return FederatedKey(bool(namespace), join_key(namespace, federated))

    def __str__(self) -> str:
        return f"{self.type} {self.key}"
