"""The built-in kinds: the special rules for writes of each kind, one module or folder per API group.

The core group is in `core`, `pods` and `services`; shared parts are in `shared`.
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
    """All built-in kinds of a Kubernetes minor version (by default the newest known), without later kinds."""
    schemas = schema.load(minor)
    kinds = [kind for module in _MODULES for kind in module.kinds(schemas)]
    return [kind for kind in kinds if not _unknown(kind)]


def _unknown(kind: Kind) -> bool:
    return isinstance(kind.strategy, BuiltinStrategy) and kind.strategy.type is None
