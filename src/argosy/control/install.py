"""Install: what a control plane must hold before the controllers can work: CRDs, the system namespace, the stock type configs.

Safe to run at every start: what is there and right is not written, what users changed in type configs stays.
"""

from collections.abc import Callable
from typing import Any

from argosy.api import crds, keys, resources, typeconfigs
from argosy.control.join import NAMESPACES
from argosy.kube.client import Client
from argosy.kube.errors import AlreadyExists, NotFound
from argosy.kube.resource import Resource

__all__ = ["install"]

_CRDS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)


async def install(client: Client, progress: Callable[[str], None] = lambda line: None) -> None:
    """Create what is missing, bring CRDs up to this version."""
    for manifest in crds.manifests():
        if await _ensure_crd(client, manifest):
            progress(f"installed {manifest['metadata']['name']}")
    await _create_if_missing(client, NAMESPACES, _namespace())
    for manifest in typeconfigs.manifests():
        if await _create_if_missing(client, resources.FEDERATED_TYPE_CONFIGS, manifest):
            progress(f"installed type config {manifest['metadata']['name']}")


async def _ensure_crd(client: Client, manifest: dict[str, Any]) -> bool:
    name = manifest["metadata"]["name"]
    try:
        found = await client.get(_CRDS, name)
    except NotFound:
        await client.create(_CRDS, manifest)
        return True
    wanted = {**found, "spec": {**found["spec"], **manifest["spec"]}}
    if wanted == found:
        return False
    await client.update(_CRDS, wanted)
    return True


async def _create_if_missing(client: Client, resource: Resource, manifest: dict[str, Any]) -> bool:
    try:
        await client.get(resource, manifest["metadata"]["name"])
        return False
    except NotFound:
        pass
    try:
        await client.create(resource, manifest)
    except AlreadyExists:
        return False
    return True


def _namespace() -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": keys.SYSTEM_NAMESPACE}}
