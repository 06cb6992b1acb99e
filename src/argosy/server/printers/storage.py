"""Columns of storage.k8s.io."""

from typing import Any

from argosy.server.printers.base import NONE, UNSET, Object, Printer, age, at, columns, name, printer

__all__ = ["STORAGE"]

_DEFAULT = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


def _storage_class(obj: Object, now: float) -> list[Any]:
    annotations = at(obj, "metadata", "annotations") or {}
    default = " (default)" if any(annotations.get(key) == "true" for key in _DEFAULT) else ""
    return [
        name(obj) + default,
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy") or "Delete",
        obj.get("volumeBindingMode") or "Immediate",
        bool(obj.get("allowVolumeExpansion")),
        age(obj, now),
    ]


def _driver(obj: Object) -> list[Any]:
    spec = obj.get("spec") or {}
    requests = spec.get("tokenRequests")
    return [
        spec.get("attachRequired", True),
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        UNSET if requests is None else ",".join(request.get("audience", "") for request in requests),
        bool(spec.get("requiresRepublish")),
        ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
    ]


def _attachment(obj: Object) -> list[Any]:
    spec = obj.get("spec") or {}
    volume = at(spec, "source", "persistentVolumeName") or ""
    return [spec.get("attacher", ""), volume, spec.get("nodeName", ""), bool(at(obj, "status", "attached"))]


STORAGE: dict[str, Printer] = {
    "CSIDriver": printer(
        ("Name", "AttachRequired:boolean", "PodInfoOnMount:boolean", "StorageCapacity:boolean", "TokenRequests",
         "RequiresRepublish:boolean", "Modes", "Age"),
        _driver,
    ),
    "CSINode": printer(("Name", "Drivers:integer", "Age"), lambda obj: [len(at(obj, "spec", "drivers") or ())]),
    "StorageClass": Printer(
        columns("Name", "Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", "Age"),
        _storage_class,
    ),
    "VolumeAttachment": printer(("Name", "Attacher", "PV", "Node", "Attached:boolean", "Age"), _attachment),
    "VolumeAttributesClass": printer(("Name", "DriverName", "Age"), lambda obj: [obj.get("driverName", "")]),
}  # fmt: skip
