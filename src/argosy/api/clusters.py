"""FederatedCluster: a member cluster, as typed values decoded from its JSON."""

from collections.abc import Sequence

import msgspec

from argosy.api.conditions import CLUSTER_NOT_REACHABLE, JOINED, OFFLINE, READY, RESPONDING
from argosy.kube.objects import Metadata

__all__ = [
    "APIResource",
    "ClusterCondition",
    "ClusterResources",
    "ClusterSpec",
    "ClusterStatus",
    "FederatedCluster",
    "LocalSecretReference",
    "ResourceList",
    "Taint",
]

#: Quantities as written: text, or a bare number where a client sent one.
ResourceList = dict[str, str | int | float]


class Taint(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    key: str = ""
    effect: str = ""
    value: str = ""
    time_added: str | None = None


class LocalSecretReference(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""


class ClusterSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    api_endpoint: str = ""
    insecure: bool = False
    use_service_account: bool = False
    secret_ref: LocalSecretReference = LocalSecretReference()
    taints: tuple[Taint, ...] = ()


class ClusterCondition(msgspec.Struct, frozen=True, rename="camel"):
    type: str
    status: str
    last_probe_time: str | None = None
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class ClusterResources(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    schedulable_nodes: int | None = None
    allocatable: ResourceList = {}
    available: ResourceList = {}


class APIResource(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One API resource a member serves; `scope` is Namespaced or Cluster."""

    version: str
    kind: str
    plural_name: str = ""
    scope: str = ""
    group: str = ""


class ClusterStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    conditions: tuple[ClusterCondition, ...] = ()
    resources: ClusterResources = ClusterResources()
    api_resource_types: tuple[APIResource, ...] = ()
    join_performed: bool = False
    kubernetes_version: str = ""
    last_heard_time: str | None = None


class FederatedCluster(msgspec.Struct, frozen=True, rename="camel"):
    metadata: Metadata
    spec: ClusterSpec = ClusterSpec()
    status: ClusterStatus = ClusterStatus()

    def condition(self, type: str) -> ClusterCondition | None:
        return _condition(self.status.conditions, type)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def joined(self) -> bool:
        return self._is_true(JOINED)

    @property
    def ready(self) -> bool:
        return self._is_true(READY)

    @property
    def answers(self) -> bool:
        """Whether it may be written to: it is ready, or was not only because nobody answered, and somebody does again.

        That it is ready, and gets what is new, is told once it has answered for a while.
        """
        ready, responding = self.condition(READY), self.condition(RESPONDING)
        if ready is None or ready.status == "True" or responding is None:
            return self.ready
        return responding.status == "True" and ready.reason == CLUSTER_NOT_REACHABLE[0]

    @property
    def offline(self) -> bool:
        return self._is_true(OFFLINE)

    @property
    def silent_since(self) -> str | None:
        """When the member was heard of last, if that is too long ago; None while it answers."""
        condition = self.condition(RESPONDING)
        if condition is None or condition.status != "False":
            return None
        return condition.last_transition_time

    @property
    def terminating(self) -> bool:
        return bool(self.metadata.deletion_timestamp)

    def _is_true(self, type: str) -> bool:
        condition = self.condition(type)
        return condition is not None and condition.status == "True"


def _condition(conditions: Sequence[ClusterCondition], type: str) -> ClusterCondition | None:
    for condition in conditions:
        if condition.type == type:
            return condition
    return None
