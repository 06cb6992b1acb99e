"""Persistent volumes and the claims for them.

The protection finalizers that a full cluster adds are left out: this server does not have the controllers that would remove
them, and volumes could never be deleted.
"""

import copy
import posixpath
from collections.abc import Mapping
from typing import Any

from argosy.kube import names
from argosy.kube.quantity import parse_or_zero
from argosy.kube.schema import Schemas
from argosy.kube.timestamps import now
from argosy.server.fielderrors import FieldError, forbidden, invalid, not_supported, required, shown
from argosy.server.kinds.core.claims import VOLUME_MODES, access_modes, validate_claim_spec
from argosy.server.kinds.core.resource_lists import canonical_resources, is_native, validate_quantity
from argosy.server.kinds.pods import volumes as pod_volumes
from argosy.server.kinds.pods.defaults import default_claim_spec, default_volume_source
from argosy.server.kinds.pods.paths import no_backsteps
from argosy.server.kinds.pods.scheduling import validate_node_selector
from argosy.server.kinds.pods.warnings import source_warnings
from argosy.server.kinds.shared.builtin import BuiltinStrategy, declare
from argosy.server.kinds.shared.defaults import fill_condition_times
from argosy.server.kinds.shared.meta_rules import differences, dns_label, dns_subdomain, immutable, same
from argosy.server.registry import Kind, Object

__all__ = ["ClaimStrategy", "PersistentVolumeStrategy", "kinds"]

_RECLAIM_POLICIES = ["Delete", "Recycle", "Retain"]
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_RESIZE_STATES = [
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
]
_SECRETS = (
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
    "nodePublishSecretRef",
    "nodeExpandSecretRef",
)


def kinds(schemas: Schemas) -> list[Kind]:
    status = frozenset({"status"})
    return [
        declare(
            schemas,
            PersistentVolumeStrategy,
            "",
            "v1",
            "PersistentVolume",
            "persistentvolumes",
            namespaced=False,
            short_names=("pv",),
            subresources=status,
        ),
        declare(
            schemas,
            ClaimStrategy,
            "",
            "v1",
            "PersistentVolumeClaim",
            "persistentvolumeclaims",
            short_names=("pvc",),
            subresources=status,
        ),
    ]


class PersistentVolumeStrategy(BuiltinStrategy):
    validates_prefix = True
    generation = False

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        spec["persistentVolumeReclaimPolicy"] = spec.get("persistentVolumeReclaimPolicy") or "Retain"
        spec.setdefault("volumeMode", "Filesystem")
        canonical_resources(spec.get("capacity"))
        default_volume_source(spec)
        status = obj.setdefault("status", {})
        status["phase"] = status.get("phase") or "Pending"

    def prepare_create(self, obj: Object) -> None:
        since = obj["metadata"].get("creationTimestamp") or now()
        obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": since}

    def prepare_status(self, new: Object, old: Object) -> None:
        super().prepare_status(new, old)
        status, before = new.setdefault("status", {}), old.get("status") or {}
        since = before.get("lastPhaseTransitionTime")
        if status.get("phase") == before.get("phase"):
            if since and not status.get("lastPhaseTransitionTime"):
                status["lastPhaseTransitionTime"] = since
        elif status.get("lastPhaseTransitionTime") in (None, since):
            status["lastPhaseTransitionTime"] = now()

    def validate(self, obj: Object) -> list[FieldError]:
        return _validate_volume_spec(obj["spec"], "spec")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        spec, before = new["spec"], old["spec"]
        errors = self.validate(new)
        source, old_source = _source_of(spec), _source_of(before)
        if "csi" in source and "csi" in old_source and "controllerExpandSecretRef" not in old_source["csi"]:
            source = copy.deepcopy(source)
            source["csi"].pop("controllerExpandSecretRef", None)
        if not same(source, old_source):
            detail = "spec.persistentvolumesource is immutable after creation"
            change = f"{detail}\n- {shown(old_source)}\n+ {shown(source)}"
            errors.append(forbidden("spec.persistentvolumesource", change))
        errors += immutable(spec.get("volumeMode"), before.get("volumeMode"), "volumeMode")
        if before.get("nodeAffinity") is not None and not same(spec.get("nodeAffinity"), before["nodeAffinity"]):
            detail = "field is immutable, except for updating from beta label to GA"
            errors.append(invalid("nodeAffinity", spec.get("nodeAffinity"), detail))
        if before.get("volumeAttributesClassName") is not None and spec.get("volumeAttributesClassName") is None:
            detail = "update from non-nil value to nil is forbidden"
            errors.append(forbidden("spec.volumeAttributesClassName", detail))
        return errors

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        found = source_warnings(obj["spec"], "spec")
        if obj["spec"].get("persistentVolumeReclaimPolicy") == "Recycle":
            text = "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning."
            found.append(f"spec.persistentVolumeReclaimPolicy: {text}")
        return found


def _source_of(spec: Object) -> Object:
    return {name: spec[name] for name in _SOURCES if spec.get(name) is not None}


def _validate_volume_spec(spec: Object, path: str) -> list[FieldError]:
    modes, capacity = spec.get("accessModes") or [], spec.get("capacity") or {}
    errors = [] if modes else [required(f"{path}.accessModes")]
    errors += access_modes(modes, f"{path}.accessModes")
    if not capacity:
        errors.append(required(f"{path}.capacity"))
    if "storage" not in capacity or len(capacity) > 1:
        errors.append(not_supported(f"{path}.capacity", capacity or None, ["storage"]))
    for name, value in capacity.items():
        if parse_or_zero(value).nanos <= 0:
            errors.append(invalid(f"{path}.capacity[{name}]", value, "must be greater than zero"))
    policy = spec.get("persistentVolumeReclaimPolicy", "")
    if policy and policy not in _RECLAIM_POLICIES:
        errors.append(not_supported(f"{path}.persistentVolumeReclaimPolicy", policy, _RECLAIM_POLICIES))
    errors += _node_affinity(spec, f"{path}.nodeAffinity")
    errors += _volume_source(spec, path)
    if policy == "Recycle" and posixpath.normpath((spec.get("hostPath") or {}).get("path") or ".") == "/":
        detail = "may not be 'recycle' for a hostPath mount of '/'"
        errors.append(forbidden(f"{path}.persistentVolumeReclaimPolicy", detail))
    if spec.get("storageClassName"):
        errors += dns_subdomain(spec["storageClassName"], f"{path}.storageClassName")
    mode = spec.get("volumeMode")
    if mode is not None and mode not in VOLUME_MODES:
        errors.append(not_supported(f"{path}.volumeMode", mode, VOLUME_MODES))
    return errors + _attributes_class(spec, path)


def _node_affinity(spec: Object, path: str) -> list[FieldError]:
    affinity = spec.get("nodeAffinity")
    if affinity is None:
        return []
    if affinity.get("required") is None:
        return [required(f"{path}.required", "must specify required node constraints")]
    return validate_node_selector(affinity["required"], f"{path}.required")


def _volume_source(spec: Object, path: str) -> list[FieldError]:
    def local(source: Object, at: str) -> list[FieldError]:
        errors = _SOURCES["local"](source, at)
        if spec.get("nodeAffinity") is None:
            errors.append(required(f"{path}.nodeAffinity", "Local volume requires node affinity"))
        return errors

    return pod_volumes.validate_source(spec, path, {**_SOURCES, "local": local})


def _attributes_class(spec: Object, path: str) -> list[FieldError]:
    name, at = spec.get("volumeAttributesClassName"), f"{path}.volumeAttributesClassName"
    if name is None:
        return []
    errors = dns_subdomain(name, at) if name else [required(at, "an empty string is disallowed")]
    if spec.get("csi") is None:
        errors.append(required(f"{path}.csi", "has to be specified when using volumeAttributesClassName"))
    return errors


def _local(source: Object, path: str) -> list[FieldError]:
    return no_backsteps(source["path"], f"{path}.path") if source.get("path") else [required(f"{path}.path")]


def _csi(source: Object, path: str) -> list[FieldError]:
    errors = pod_volumes.csi_driver(source.get("driver", ""), f"{path}.driver")
    if not source.get("volumeHandle"):
        errors.append(required(f"{path}.volumeHandle"))
    for name in _SECRETS:
        if source.get(name) is not None:
            errors += _secret_ref(source[name], f"{path}.{name}")
    return errors


def _secret_ref(ref: Object, path: str) -> list[FieldError]:
    name, namespace = ref.get("name", ""), ref.get("namespace", "")
    errors = dns_subdomain(name, f"{path}.name") if name else [required(f"{path}.name")]
    return errors + (dns_label(namespace, f"{path}.namespace") if namespace else [required(f"{path}.namespace")])


_SOURCES: Mapping[str, pod_volumes.Rule] = {
    "hostPath": pod_volumes.host_path,
    "nfs": pod_volumes.nfs,
    "flocker": pod_volumes.flocker,
    "iscsi": pod_volumes.iscsi,
    "fc": pod_volumes.fibre_channel,
    "flexVolume": pod_volumes.flex_volume,
    "azureDisk": pod_volumes.azure_disk,
    "storageos": pod_volumes.storage_os,
    "local": _local,
    "csi": _csi,
    **{
        name: pod_volumes.required_fields(*fields)
        for name, fields in pod_volumes.REQUIRED_FIELDS.items()
        if name != "persistentVolumeClaim"
    },
}


class ClaimStrategy(BuiltinStrategy):
    generation = False

    def default(self, obj: Object) -> None:
        default_claim_spec(obj.setdefault("spec", {}))
        status = obj.setdefault("status", {})
        status["phase"] = status.get("phase") or "Pending"
        fill_condition_times(obj, "lastProbeTime", "lastTransitionTime")

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"phase": "Pending"}
        _match_data_sources(obj["spec"], {})

    def prepare_update(self, new: Object, old: Object) -> None:
        super().prepare_update(new, old)
        _match_data_sources(new.setdefault("spec", {}), old["spec"])

    def validate(self, obj: Object) -> list[FieldError]:
        return validate_claim_spec(obj["spec"], "spec")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return self.validate(new) + _validate_claim_update(new, old)

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        status = new.get("status") or {}
        errors = [] if new["spec"].get("accessModes") else [required("Spec.accessModes")]
        for name, value in (status.get("capacity") or {}).items():
            if parse_or_zero(value).nanos < 0:
                detail = "must be a valid resource quantity"
                errors.append(invalid(f"status.capacity[{name}]", parse_or_zero(value).value(), detail))
        for name, state in (status.get("allocatedResourceStatuses") or {}).items():
            errors += _claim_resource(name, "status.allocatedResourceStatuses")
            if state not in _RESIZE_STATES:
                errors.append(not_supported("status.allocatedResourceStatuses", name, _RESIZE_STATES))
        for name, value in (status.get("allocatedResources") or {}).items():
            wrong = _claim_resource(name, "status.allocatedResources")
            errors += wrong or validate_quantity("storage", value, f"status.allocatedResources[{name}]")
        return errors


def _claim_resource(name: str, path: str) -> list[FieldError]:
    errors = [invalid(path, name, message) for message in names.qualified_name_errors(name)]
    if not errors and is_native(name) and name != "storage":
        errors.append(not_supported(path, name, ["storage"]))
    return errors


def _match_data_sources(spec: Object, before: Object) -> None:
    """dataSource and dataSourceRef mean the same, unless another namespace is named."""
    source, ref = spec.get("dataSource"), spec.get("dataSourceRef")
    # The older field always dropped unknown values, and still does.
    if source is not None and ref is None and "dataSource" not in before and not _is_claim_or_snapshot(source):
        del spec["dataSource"]
        return
    if source is not None and ref is None:
        spec["dataSourceRef"] = dict(source)
    elif ref is not None and source is None and not ref.get("namespace"):
        spec["dataSource"] = {key: value for key, value in ref.items() if key != "namespace"}


def _is_claim_or_snapshot(source: Object) -> bool:
    known = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))
    return (source.get("apiGroup") or "", source.get("kind")) in known


def _validate_claim_update(new: Object, old: Object) -> list[FieldError]:
    spec, before = copy.deepcopy(new["spec"]), copy.deepcopy(old["spec"])
    if not before.get("volumeName"):
        _copy(spec, before, "volumeName")
    errors = _storage_class(new, old, spec, before)
    if (new.get("status") or {}).get("phase") == "Bound":
        requests = (spec.get("resources") or {}).get("requests")
        if requests is not None:
            requests["storage"] = ((before.get("resources") or {}).get("requests") or {}).get("storage")
        _copy(before, spec, "volumeAttributesClassName")
    if not same(spec, before):
        detail = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        )
        errors.append(forbidden("spec", f"{detail}\n{differences(spec, before)}"))
    errors += _shrinking(new, old)
    errors += immutable(new["spec"].get("volumeMode"), old["spec"].get("volumeMode"), "volumeMode")
    return errors + _attributes_class_change(new, old)


def _copy(source: Object, target: Object, name: str) -> None:
    target.pop(name, None)
    if name in source:
        target[name] = source[name]


def _storage_class(new: Object, old: Object, spec: Object, before: Object) -> list[FieldError]:
    """A claim may get its class later, and may move it from the old annotation to the field; `spec` is set back."""
    given = (new["metadata"].get("annotations") or {}).get(_BETA_CLASS)
    annotated = (old["metadata"].get("annotations") or {}).get(_BETA_CLASS)
    name, old_name = spec.get("storageClassName"), before.get("storageClassName")
    if annotated is not None and old_name is None and name == annotated and given in (None, annotated):
        spec.pop("storageClassName", None)
        return []
    errors = []
    if (given or "") != (annotated or ""):
        errors.append(invalid(f"metadata.annotations.{_BETA_CLASS}", given or "", "field is immutable"))
    if name is not None and old_name is None and annotated in (None, name):
        spec.pop("storageClassName", None)
    return errors


def _shrinking(new: Object, old: Object) -> list[FieldError]:
    size, old_size = _storage_request(new), _storage_request(old)
    capacity = parse_or_zero(((old.get("status") or {}).get("capacity") or {}).get("storage", "0"))
    if not size < old_size or size > capacity:
        return []
    return [forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")]


def _storage_request(claim: Object) -> Any:
    return parse_or_zero(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage", "0"))


def _attributes_class_change(new: Object, old: Object) -> list[FieldError]:
    name = new["spec"].get("volumeAttributesClassName")
    current = (old.get("status") or {}).get("currentVolumeAttributesClassName")
    if name == old["spec"].get("volumeAttributesClassName") or current is None or name:
        return []
    what = "nil" if name is None else "empty string"
    detail = f"update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil"
    return [forbidden("spec.volumeAttributesClassName", detail)]
