"""Object references, as used by events, owners and others."""

from collections.abc import Mapping
from typing import Any

from argosy.kube.objects import Identity
from argosy.kube.resource import Resource

__all__ = ["object_reference", "reference_of", "reference_to"]


def object_reference(api_version: str, kind: str, name: str, uid: str, namespace: str | None = None) -> dict[str, str]:
    """Without a namespace or a uid, those fields are left out."""
    reference = {"apiVersion": api_version, "kind": kind, "name": name}
    if uid:
        reference["uid"] = uid
    return {**reference, "namespace": namespace} if namespace else reference


def reference_of(resource: Resource, metadata: Identity) -> dict[str, str]:
    """The reference to an object, from its projection."""
    return object_reference(resource.api_version, resource.kind, metadata.name, metadata.uid, metadata.namespace)


def reference_to(obj: Mapping[str, Any]) -> dict[str, str]:
    """The reference to a whole object."""
    metadata = obj["metadata"]
    return object_reference(
        obj["apiVersion"], obj["kind"], metadata["name"], metadata.get("uid", ""), metadata.get("namespace")
    )
