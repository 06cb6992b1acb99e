"""Options: the parts of a test cluster. Values; `commands` makes the command lines."""

from collections.abc import Mapping, Sequence

import msgspec

from argosy.testing.binaries import VERSION

__all__ = ["API_SERVER", "CONTROL_PLANE", "Options"]


class Options(msgspec.Struct, frozen=True, kw_only=True):
    #: The Kubernetes version: one whose binaries are in the cache folder.
    version: str = VERSION
    #: Nodes whose pods become Running and Ready. Without any, neither kube-scheduler nor kwok is started.
    nodes: int = 2
    #: Capacity and allocatable of each node.
    capacity: Mapping[str, str] = msgspec.field(default_factory=lambda: {"cpu": "16", "memory": "64Gi", "pods": "250"})
    #: kube-controller-manager's --controllers; with none at all it is not started.
    controllers: Sequence[str] = ("*",)
    feature_gates: Mapping[str, bool] = {}
    #: Record every write in the audit log (`Cluster.audit`).
    audit: bool = False
    #: Let etcd wait for the disk: for benchmarks of durable writes. Tests do without.
    fsync: bool = False
    #: More arguments of kube-apiserver; one given here wins over ours.
    apiserver_arguments: Sequence[str] = ()

    @property
    def has_service_accounts(self) -> bool:
        """Whether each namespace gets a service account, without which pods are refused."""
        return "*" in self.controllers or "serviceaccount-controller" in self.controllers


#: A federation's control plane: nothing there runs the templates. Volumes and claims would get a finalizer that only a
#: controller removes which does not run there: they could never be deleted.
CONTROL_PLANE = Options(
    nodes=0,
    controllers=("namespace-controller", "garbage-collector-controller"),
    apiserver_arguments=("--disable-admission-plugins=StorageObjectInUseProtection",),
)
#: The API alone: namespaces, service accounts and aggregated roles as everywhere, and no other controller that changes a
#: test's objects.
API_SERVER = Options(
    nodes=0,
    controllers=(
        "namespace-controller",
        "garbage-collector-controller",
        "serviceaccount-controller",
        "root-ca-certificate-publisher-controller",
        "clusterrole-aggregation-controller",
    ),
)
