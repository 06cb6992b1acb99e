"""Installation: everything a control plane must have before the controllers can work, as manifests, in order of creation."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from argosy.api import crds, keys, rights, typeconfigs
from argosy.api.admission import caveats, guard, protection
from argosy.api.typeconfigs import FederatedTypeConfig

__all__ = ["Manifests", "manifests", "namespace"]


class Manifests(msgspec.Struct, frozen=True):
    definitions: list[dict[str, Any]]
    namespace: dict[str, Any]
    rights: list[dict[str, Any]]
    guard: list[dict[str, Any]]
    type_configs: list[dict[str, Any]]
    #: Last: the stock type configs, too, have fields for others than Argosy.
    caveats: list[dict[str, Any]]

    def all(self) -> list[dict[str, Any]]:
        return [*self.definitions, self.namespace, *self.rights, *self.guard, *self.type_configs, *self.caveats]


def manifests(
    others: Iterable[FederatedTypeConfig] = (), subjects: Sequence[dict[str, str]] = (rights.SERVICE_ACCOUNT,)
) -> Manifests:
    """`others` are type configs besides the stock ones; `subjects` run the controllers."""
    stock = typeconfigs.manifests()
    configs = [*(msgspec.convert(each, FederatedTypeConfig) for each in stock), *others]
    return Manifests(
        crds.manifests(),
        namespace(),
        rights.manifests(configs, subjects),
        [*guard.manifests(subjects), *protection.manifests()],
        stock,
        caveats.manifests(configs, subjects),
    )


def namespace() -> dict[str, Any]:
    metadata = {"name": keys.SYSTEM_NAMESPACE, "annotations": {keys.NO_FEDERATED_RESOURCE: "true"}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
