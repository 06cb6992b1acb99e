"""The built-in kinds: what is special about each when it is written, one module or folder an API group.

The core group is in `core`, `pods` and `services`; what groups share is in `shared`.
"""

from argosy.kube import schema
from argosy.server.kinds import (
    admission,
    apiextensions,
    apiregistration,
    authentication,
    authorization,
    certificates,
    coordination,
    discovery,
    events,
    flowcontrol,
    node,
    policy,
    rbac,
    resource,
    scheduling,
    storage,
)
from argosy.server.kinds.apps import apps
from argosy.server.kinds.autoscaling import autoscaling
from argosy.server.kinds.batch import batch
from argosy.server.kinds.core import core, namespaces, nodes, quotas, volumes
from argosy.server.kinds.networking import networking
from argosy.server.kinds.pods import pods
from argosy.server.kinds.services import services
from argosy.server.kinds.shared.builtin import BuiltinStrategy
from argosy.server.registry import Kind

__all__ = ["builtin_kinds"]

_MODULES = (
    *(namespaces, pods, services, core, quotas, nodes, volumes),
    *(apps, batch, autoscaling, networking, policy, rbac, storage, scheduling, coordination, discovery, events),
    *(apiextensions, apiregistration, admission, certificates, flowcontrol, resource, node),
    *(authentication, authorization),
)


def builtin_kinds(minor: str | None = None) -> list[Kind]:
    """All built-in kinds of a Kubernetes minor version (the newest known by default); those it did not have are left out."""
    schemas = schema.load(minor)
    kinds = [kind for module in _MODULES for kind in module.kinds(schemas)]
    return [kind for kind in kinds if not _unknown(kind)]


def _unknown(kind: Kind) -> bool:
    return isinstance(kind.strategy, BuiltinStrategy) and kind.strategy.type is None
