"""Item: one federated object in the hands of one pass of dispatch, with what is worked out once for all its clusters."""

from typing import Any, NamedTuple

import msgspec

from argosy.api import keys, resources
from argosy.api.types import FederatedObject, FederatedTypeConfig, PropagationEntry
from argosy.control.caches import Caches, SourceKey
from argosy.kube.objects import decode
from argosy.plan import placement
from argosy.plan.render import digest, template_digest

__all__ = ["FederatedKey", "Item", "item_of"]


class FederatedKey(NamedTuple):
    """A FederatedObject (namespaced) or ClusterFederatedObject."""

    namespaced: bool
    key: str

    def __str__(self) -> str:
        return f"{resources.federated_objects(self.namespaced).kind} {self.key}"


class Item(NamedTuple):
    key: FederatedKey
    federated: FederatedObject
    config: FederatedTypeConfig
    #: Key of the object in members, and of its source.
    member_key: str
    template_digest: str
    #: All patches by cluster are cut out of these.
    overrides: dict[str, Any]

    @property
    def annotations(self) -> dict[str, str]:
        return self.federated.metadata.annotations

    @property
    def source(self) -> SourceKey:
        return SourceKey(self.config.name, self.member_key)

    def patches(self, cluster: str) -> placement.Patches:
        return placement.overrides_for(self.overrides, cluster, self.config.spec.controllers)

    def digest(self, cluster: str) -> str:
        """Stands for everything that decides this cluster's copy."""
        return digest(self.template_digest, self.patches(cluster), self.annotations)

    def record(self, cluster: str) -> PropagationEntry | None:
        for entry in self.federated.status.clusters:
            if entry.cluster == cluster:
                return entry
        return None


def item_of(caches: Caches, key: FederatedKey) -> Item | None:
    """From the cache; None for one that is gone, or whose template nobody federates, or nobody may write."""
    raw = caches.federated[key.namespaced].raw(key.key)
    if raw is None:
        return None
    federated = decode(raw, FederatedObject)
    template = federated.spec.template
    config = caches.catalog.of_kind(str(template.get("apiVersion")), str(template.get("kind")))
    name = (template.get("metadata") or {}).get("name")
    if config is None or not name:
        return None
    if config.kind == "Namespace" and name in keys.PROTECTED_NAMESPACES:
        return None
    namespace = federated.metadata.namespace if config.namespaced else ""
    member_key = f"{namespace}/{name}" if namespace else str(name)
    overrides = {"overrides": msgspec.to_builtins(federated.spec.overrides)}
    return Item(key, federated, config, member_key, template_digest(template), overrides)
