"""Columns of the core group's kinds other than pods."""

from typing import Any

from argosy.kube.quantity import QuantityError, parse
from argosy.server.printers import pods
from argosy.server.printers.base import (
    NONE,
    UNKNOWN,
    UNSET,
    Object,
    Printer,
    age,
    at,
    columns,
    condition,
    labels,
    limited,
    name,
    printer,
    since,
)
from argosy.server.printers.workloads import containers_and_images

__all__ = ["PRINTERS", "addresses"]

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ACCESS = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def addresses(load_balancer: Any) -> str:
    """The addresses of a load balancer's status."""
    ingress = at(load_balancer, "ingress") or []
    return ",".join(sorted({entry.get("ip") or entry.get("hostname") or "" for entry in ingress} - {""}))


def _external_ip(service: Object) -> str:
    spec = service.get("spec") or {}
    external = spec.get("externalIPs") or []
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(external) or NONE
        case "LoadBalancer":
            found = addresses(at(service, "status", "loadBalancer"))
            return ",".join(([found] if found else []) + external) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName") or "")
    return UNKNOWN


def _port(port: Object) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port')}{node_port}/{port.get('protocol', 'TCP')}"


def _service(obj: Object) -> list[Any]:
    spec = obj.get("spec") or {}
    return [
        spec.get("type", ""),
        (spec.get("clusterIPs") or [NONE])[0],
        _external_ip(obj),
        ",".join(_port(port) for port in spec.get("ports") or ()) or NONE,
        labels(spec.get("selector")),
    ]


def _endpoints(obj: Object) -> list[Any]:
    found = []
    for subset in obj.get("subsets") or ():
        ips = [address.get("ip", "") for address in subset.get("addresses") or ()]
        ports = subset.get("ports") or ()
        if not ports:
            found += ips
        for port in ports:
            found += [f"[{ip}]:{port['port']}" if ":" in ip else f"{ip}:{port['port']}" for ip in ips]
    return [limited(found, 3, empty=NONE if not obj.get("subsets") else "")]


def _roles(node: Object) -> str:
    found = set()
    for key, value in (at(node, "metadata", "labels") or {}).items():
        if key.startswith(_ROLE_PREFIX):
            found.add(key.removeprefix(_ROLE_PREFIX))
        elif key == "kubernetes.io/role":
            found.add(value)
    return ",".join(sorted(found - {""})) or NONE


def _node_address(node: Object, kind: str) -> str:
    for address in at(node, "status", "addresses") or ():
        if address.get("type") == kind:
            return str(address.get("address"))
    return NONE


def _node(obj: Object) -> list[Any]:
    ready = condition(obj, "Ready")
    status = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    if at(obj, "spec", "unschedulable"):
        status += ",SchedulingDisabled"
    info = at(obj, "status", "nodeInfo") or {}
    architecture = f" ({info['architecture']})" if info.get("architecture") else ""
    return [
        status,
        _roles(obj),
        info.get("kubeletVersion", ""),
        _node_address(obj, "InternalIP"),
        _node_address(obj, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        (info.get("kernelVersion") or UNKNOWN) + architecture,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _quantity(value: Any) -> str:
    if value is None:
        return "0"
    try:
        return parse(value).canonical()
    except QuantityError:
        return str(value)


def _modes(modes: Any) -> str:
    return ",".join(short for mode, short in _ACCESS.items() if mode in (modes or ()))


def _phase(obj: Object) -> str:
    return "Terminating" if at(obj, "metadata", "deletionTimestamp") else at(obj, "status", "phase") or ""


def _class(obj: Object) -> str:
    """The storage class; an annotation named it before the field did, and still comes first."""
    legacy = (at(obj, "metadata", "annotations") or {}).get("volume.beta.kubernetes.io/storage-class")
    return legacy if legacy is not None else at(obj, "spec", "storageClassName") or ""


def _volume(obj: Object) -> list[Any]:
    spec = obj.get("spec") or {}
    claim = spec.get("claimRef")
    return [
        _quantity(at(spec, "capacity", "storage")),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        _class(obj),
        spec.get("volumeAttributesClassName") or UNSET,
        at(obj, "status", "reason") or "",
        spec.get("volumeMode") or UNSET,
    ]


def _claim(obj: Object) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    bound = bool(spec.get("volumeName"))
    return [
        _phase(obj),
        spec.get("volumeName", ""),
        _quantity(at(status, "capacity", "storage")) if bound else "",
        _modes(status.get("accessModes")) if bound else "",
        _class(obj),
        spec.get("volumeAttributesClassName") or UNSET,
        spec.get("volumeMode") or UNSET,
    ]


def _quota(obj: Object) -> list[Any]:
    hard, used = at(obj, "status", "hard") or {}, at(obj, "status", "used") or {}
    requests: list[str] = []
    limits: list[str] = []
    for resource in sorted(hard):
        text = f"{resource}: {_quantity(used.get(resource))}/{_quantity(hard[resource])}"
        (limits if resource.startswith("limits.") else requests).append(text)
    return [", ".join(requests), ", ".join(limits)]


def _event_row(obj: Object, now: float) -> list[Any]:
    """Core Events and events.k8s.io Events are one object with other names for some fields."""
    first = obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp") or obj.get("eventTime")
    last = obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp") or first
    series = obj.get("series")
    count = obj.get("count") or obj.get("deprecatedCount") or 1
    if series:
        last, count = series.get("lastObservedTime"), series.get("count", 0)
    involved = obj.get("involvedObject") or obj.get("regarding") or {}
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    component = source.get("component") or obj.get("reportingComponent") or obj.get("reportingController") or ""
    instance = source.get("host") or obj.get("reportingInstance") or ""
    kind = (involved.get("kind") or "").lower()
    return [
        since(last, now),
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{involved['name']}" if involved.get("name") else kind,
        involved.get("fieldPath", ""),
        f"{component}, {instance}" if instance else component,
        (obj.get("message") or obj.get("note") or "").strip(),
        since(first, now),
        count,
        name(obj),
    ]


def _event_columns() -> Printer:
    wide = {"Subobject", "Source", "First Seen", "Count", "Name"}
    titles = ("Last Seen", "Type", "Reason", "Object", "Subobject", "Source", "Message", "First Seen", "Count", "Name")
    definitions = [columns(wide=[title])[0] if title in wide else columns(title)[0] for title in titles]
    return Printer(definitions, _event_row)


def _controller(obj: Object) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    counts = [spec.get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [*counts, *containers_and_images(spec.get("template")), labels(spec.get("selector"))]


def _template(obj: Object) -> list[Any]:
    return [*containers_and_images(obj.get("template")), labels(at(obj, "template", "metadata", "labels"))]


def _namespace_row(obj: Object, now: float) -> list[Any]:
    return [name(obj), at(obj, "status", "phase") or "", age(obj, now)]


EVENT = _event_columns()

PRINTERS: dict[str, Printer] = {
    **pods.PRINTERS,
    "ConfigMap": printer(
        ("Name", "Data", "Age"), lambda obj: [len(obj.get("data") or ()) + len(obj.get("binaryData") or ())]
    ),
    "Endpoints": printer(("Name", "Endpoints", "Age"), _endpoints),
    "Event": EVENT,
    "Namespace": Printer(columns("Name", "Status", "Age"), _namespace_row),
    "Node": printer(
        ("Name", "Status", "Roles", "Age", "Version"),
        _node,
        wide=("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"),
    ),
    "PersistentVolume": printer(
        ("Name", "Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim", "StorageClass",
         "VolumeAttributesClass", "Reason", "Age"),
        _volume,
        wide=("VolumeMode",),
    ),
    "PersistentVolumeClaim": printer(
        ("Name", "Status", "Volume", "Capacity", "Access Modes", "StorageClass", "VolumeAttributesClass", "Age"),
        _claim,
        wide=("VolumeMode",),
    ),
    "PodTemplate": printer(("Name", "Containers", "Images", "Pod Labels"), _template),
    "ReplicationController": printer(
        ("Name", "Desired:integer", "Current:integer", "Ready:integer", "Age"),
        _controller,
        wide=("Containers", "Images", "Selector"),
    ),
    "ResourceQuota": printer(("Name", "Request", "Limit", "Age"), _quota),
    "Secret": printer(("Name", "Type", "Data", "Age"), lambda obj: [obj.get("type", ""), len(obj.get("data") or ())]),
    "Service": printer(
        ("Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age"), _service, wide=("Selector",)
    ),
    "ServiceAccount": printer(("Name", "Age"), lambda obj: []),
}  # fmt: skip
