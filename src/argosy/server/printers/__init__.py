"""What `kubectl get` shows of built-in kinds: kube-apiserver's columns, one file per family of API groups."""

from argosy.server.printers import control, core, network, storage, workloads
from argosy.server.printers.base import NAME, Column, Printer, at, name

__all__ = ["builtin_printer"]

_BY_GROUP: dict[str, dict[str, Printer]] = {
    "": core.PRINTERS,
    "admissionregistration.k8s.io": control.ADMISSION,
    "apiregistration.k8s.io": control.API_REGISTRATION,
    "apps": workloads.APPS,
    "autoscaling": workloads.AUTOSCALING,
    "batch": workloads.BATCH,
    "certificates.k8s.io": control.CERTIFICATES,
    "coordination.k8s.io": control.COORDINATION,
    "discovery.k8s.io": network.DISCOVERY,
    "events.k8s.io": {"Event": core.EVENT},
    "flowcontrol.apiserver.k8s.io": control.FLOW_CONTROL,
    "networking.k8s.io": network.NETWORKING,
    "node.k8s.io": control.NODE,
    "policy": workloads.POLICY,
    "rbac.authorization.k8s.io": control.RBAC,
    "resource.k8s.io": control.DEVICES,
    "scheduling.k8s.io": control.SCHEDULING,
    "storage.k8s.io": storage.STORAGE,
}

#: Kinds without columns of their own show their creation time.
_PLAIN = Printer(
    [NAME, Column("Created At", "date", description="When the object was created.")],
    lambda obj, now: [name(obj), at(obj, "metadata", "creationTimestamp")],
)


def builtin_printer(group: str, kind: str) -> Printer:
    return _BY_GROUP.get(group, {}).get(kind, _PLAIN)
