"""The built-in kinds: what is special about each when it is written, one module an API group (the core group has several)."""

from argosy.kube import schema
from argosy.server.kinds import (
    admission,
    apiextensions,
    apiregistration,
    apps,
    authentication,
    authorization,
    autoscaling,
    batch,
    certificates,
    coordination,
    core,
    discovery,
    events,
    flowcontrol,
    namespaces,
    networking,
    node,
    nodes,
    pods,
    policy,
    quotas,
    rbac,
    resource,
    scheduling,
    services,
    storage,
    volumes,
)
from argosy.server.kinds.builtin import BuiltinStrategy
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
