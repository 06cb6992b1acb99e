"""Subresources that are views of the stored object, and what may be written through each of them."""

from argosy.kube.schema import Type
from argosy.server.app import Views
from argosy.server.kinds.certificates import ApprovalStrategy
from argosy.server.kinds.pods.pods import EphemeralContainersStrategy, ResizeStrategy
from argosy.server.registry import Registry

__all__ = ["views"]

_REQUESTS = ("certificates.k8s.io", "certificatesigningrequests")


def views(registry: Registry) -> Views:
    pod = _type(registry, "", "pods")
    return {
        ("", "pods", "ephemeralcontainers"): EphemeralContainersStrategy(pod),
        ("", "pods", "resize"): ResizeStrategy(pod),
        (*_REQUESTS, "approval"): ApprovalStrategy(_type(registry, *_REQUESTS)),
    }


def _type(registry: Registry, group: str, plural: str) -> Type | None:
    kind = registry.find(group, "v1", plural)
    return getattr(kind.strategy, "type", None) if kind is not None else None
