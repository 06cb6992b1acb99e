"""Claims for persistent volumes: the spec, shared by claims and by every template of one."""

from typing import Any

from argosy.kube.quantity import parse_or_zero
from argosy.server.fielderrors import FieldError, forbidden, invalid, not_supported, required
from argosy.server.kinds.core.resource_lists import validate_quantity
from argosy.server.kinds.shared.meta_rules import annotations, dns_label, dns_subdomain, label_selector, labels

__all__ = ["VOLUME_MODES", "access_modes", "validate_claim_spec", "validate_claim_template"]

Object = dict[str, Any]

ACCESS_MODES = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"]
VOLUME_MODES = ["Block", "Filesystem"]
_TEMPLATE_META = ("annotations", "labels")
#: Kubernetes shows an empty object here, not the value it means.
_UNSHOWN: Object = {}


def access_modes(modes: list[str], path: str) -> list[FieldError]:
    """Known modes, with ReadWriteOncePod only by itself."""
    errors = [not_supported(path, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    known = {mode for mode in modes if mode in ACCESS_MODES}
    if "ReadWriteOncePod" in known and len(known) > 1:
        errors.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return errors


def validate_claim_spec(spec: Object, path: str) -> list[FieldError]:
    modes = spec.get("accessModes") or []
    errors = [] if modes else [required(f"{path}.accessModes", "at least 1 access mode is required")]
    errors += label_selector(spec.get("selector"), f"{path}.selector")
    errors += access_modes(modes, f"{path}.accessModes")
    errors += _storage(spec, f"{path}.resources[storage]")
    for name in ("storageClassName", "volumeAttributesClassName"):
        if spec.get(name):
            errors += dns_subdomain(spec[name], f"{path}.{name}")
    mode = spec.get("volumeMode")
    if mode is not None and mode not in VOLUME_MODES:
        errors.append(not_supported(f"{path}.volumeMode", mode, VOLUME_MODES))
    return errors + _data_sources(spec, path)


def _storage(spec: Object, path: str) -> list[FieldError]:
    requests = (spec.get("resources") or {}).get("requests") or {}
    if "storage" not in requests:
        return [required(path)]
    asked = parse_or_zero(requests["storage"])
    if asked.nanos <= 0:
        return [invalid(path, str(asked), "must be greater than zero")]
    return validate_quantity("storage", requests["storage"], path)


def _data_sources(spec: Object, path: str) -> list[FieldError]:
    source, ref = spec.get("dataSource"), spec.get("dataSourceRef")
    errors = []
    if source is not None:
        errors += _data_source(source, f"{path}.dataSource")
    if ref is None:
        return errors
    errors += _data_source(ref, f"{path}.dataSourceRef")
    if ref.get("namespace"):
        errors += dns_label(ref["namespace"], f"{path}.dataSourceRef.namespace")
        if source is not None:
            detail = "may not be specified when dataSourceRef.namespace is specified"
            errors.append(invalid(path, _UNSHOWN, detail))
    elif source is not None and any(source.get(key) != ref.get(key) for key in ("apiGroup", "kind", "name")):
        errors.append(invalid(path, _UNSHOWN, "must match dataSourceRef"))
    return errors


def _data_source(source: Object, path: str) -> list[FieldError]:
    errors = [required(f"{path}.{name}") for name in ("name", "kind") if not source.get(name)]
    group = source.get("apiGroup") or ""
    if not group and source.get("kind") != "PersistentVolumeClaim":
        detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        errors.append(invalid(path, source.get("kind", ""), detail))
    if group:
        errors += dns_subdomain(group, f"{path}.apiGroup")
    return errors


def validate_claim_template(template: Object, path: str) -> list[FieldError]:
    """A template inside a pod's ephemeral volume: of its metadata only labels and annotations are used."""
    metadata = template.get("metadata") or {}
    errors = annotations(metadata.get("annotations"), f"{path}.metadata.annotations")
    errors += labels(metadata.get("labels"), f"{path}.metadata.labels")
    errors += [
        forbidden(f"{path}.metadata.{name}", "cannot be set")
        for name, value in metadata.items()
        if value and name not in _TEMPLATE_META
    ]
    return errors + validate_claim_spec(template.get("spec") or {}, f"{path}.spec")
