"""Defaults of pod specs: what kube-apiserver adds to a pod or a pod template.

Pure and in place. Admission's additions to pods (tolerations, priority, service account) are in `pods`.
"""

import re
from typing import Any

from argosy.kube.podresources import container_total, is_pod_level
from argosy.server.kinds.core.resource_lists import (
    canonical_quantity,
    canonical_resources,
    is_huge_page,
    is_overcommit_allowed,
)

__all__ = [
    "containers_of",
    "default_claim_spec",
    "default_pod",
    "default_pod_spec",
    "default_pod_template",
    "default_volume_source",
]

Object = dict[str, Any]

#: Go writes these only if true, so an explicit false is the same as an absent field.
_PLAIN_BOOLEANS = ("hostNetwork", "hostPID", "hostIPC")
_PLAIN_CONTAINER_BOOLEANS = ("stdin", "stdinOnce", "tty")

_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_DOMAIN = r"(?:[a-zA-Z0-9.-]+|\[[0-9a-fA-F:]+\])(?::[0-9]+)?/"
_TAG = r":(?P<tag>\w[\w.-]{0,127})"
_DIGEST = r"(?P<digest>@[A-Za-z][\w.+-]*:[0-9a-fA-F]{32,})"
_IMAGE = re.compile(rf"(?:{_DOMAIN})?{_COMPONENT}(?:/{_COMPONENT})*(?:{_TAG})?{_DIGEST}?", re.ASCII)

_VOLUMES_WITH_MODE = ("secret", "configMap", "downwardAPI", "projected")


def default_pod_template(template: Object) -> None:
    """Defaults of a pod template. Metadata and spec are always there, as Kubernetes writes them out."""
    template.setdefault("metadata", {})
    default_pod_spec(template.setdefault("spec", {}))


def default_pod_spec(spec: Object) -> None:
    """Defaults shared by pods and templates."""
    spec["dnsPolicy"] = spec.get("dnsPolicy") or "ClusterFirst"
    spec["restartPolicy"] = spec.get("restartPolicy") or "Always"
    spec["schedulerName"] = spec.get("schedulerName") or "default-scheduler"
    spec.setdefault("securityContext", {})
    spec.setdefault("terminationGracePeriodSeconds", 30)
    for key in _PLAIN_BOOLEANS:
        if spec.get(key) is False:
            del spec[key]
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    canonical_resources(spec.get("overhead"))
    _default_resources(spec.get("resources"))
    for container in containers_of(spec):
        _default_container(container)
    for volume in spec.get("volumes") or ():
        _default_volume(volume)


def default_pod(spec: Object) -> None:
    """Defaults of pods only: templates stay as written, and their pods get these."""
    spec.setdefault("enableServiceLinks", True)
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        resources = container["resources"]
        limits = resources.get("limits")
        if limits:
            resources["requests"] = {**limits, **(resources.get("requests") or {})}
        if spec.get("hostNetwork"):
            for port in container.get("ports") or ():
                port["hostPort"] = port.get("hostPort") or port.get("containerPort", 0)
    if spec.get("resources"):
        _default_pod_level(spec)


def _default_pod_level(spec: Object) -> None:
    """Defaults of pod-level resources that are partly set, taken from the containers."""
    resources: Object = spec["resources"]
    limits, requests = dict(resources.get("limits") or {}), dict(resources.get("requests") or {})
    if not limits and not requests:
        return
    for name, total in container_total(spec, "limits").items():
        if is_huge_page(name) and name not in requests:
            limits.setdefault(name, str(total))
    if limits:
        for name, total in container_total(spec, "requests").items():
            if name in ("cpu", "memory") and is_overcommit_allowed(name):
                requests.setdefault(name, str(total))
        requests = {**{name: value for name, value in limits.items() if is_pod_level(name)}, **requests}
        resources["limits"] = limits
    if requests:
        resources["requests"] = requests


def containers_of(spec: Object) -> list[Object]:
    """All containers of a spec, whatever list they are in."""
    lists = ("initContainers", "containers", "ephemeralContainers")
    return [container for name in lists for container in spec.get(name) or ()]


def _default_container(container: Object) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = _pull_policy(container.get("image") or "")
    container["terminationMessagePath"] = container.get("terminationMessagePath") or "/dev/termination-log"
    container["terminationMessagePolicy"] = container.get("terminationMessagePolicy") or "File"
    _default_resources(container.setdefault("resources", {}))
    for key in _PLAIN_CONTAINER_BOOLEANS:
        if container.get(key) is False:
            del container[key]
    for port in container.get("ports") or ():
        port["protocol"] = port.get("protocol") or "TCP"
    for mount in container.get("volumeMounts") or ():
        if mount.get("readOnly") is False:
            del mount["readOnly"]
    for variable in container.get("env") or ():
        if variable.get("value") == "":
            del variable["value"]
        source = variable.get("valueFrom") or {}
        _default_field_ref(source.get("fieldRef"))
        _default_divisor(source.get("resourceFieldRef"))
        if "fileKeyRef" in source:
            source["fileKeyRef"].setdefault("optional", False)
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if name in container:
            _default_probe(container[name])
    lifecycle = container.get("lifecycle") or {}
    for name in ("postStart", "preStop"):
        _default_http_get((lifecycle.get(name) or {}).get("httpGet"))


def _pull_policy(image: str) -> str:
    """Always for the tag `latest`, given or implied; an unreadable reference counts as having another tag."""
    match = _IMAGE.fullmatch(image)
    if match is None:
        return "IfNotPresent"
    tag = match["tag"] or ("" if match["digest"] else "latest")
    return "Always" if tag == "latest" else "IfNotPresent"


def _default_probe(probe: Object) -> None:
    for key, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        probe[key] = probe.get(key) or value
    _default_http_get(probe.get("httpGet"))
    if "grpc" in probe:
        probe["grpc"].setdefault("service", "")


def _default_http_get(action: Object | None) -> None:
    if action is not None:
        action["path"] = action.get("path") or "/"
        action["scheme"] = action.get("scheme") or "HTTP"


def _default_field_ref(ref: Object | None) -> None:
    if ref is not None:
        ref["apiVersion"] = ref.get("apiVersion") or "v1"


def _default_divisor(ref: Object | None) -> None:
    if ref is not None:
        ref["divisor"] = canonical_quantity(ref.get("divisor", "0"))


def _default_resources(resources: Object | None) -> None:
    if resources:
        canonical_resources(resources.get("limits"))
        canonical_resources(resources.get("requests"))


def _default_volume(volume: Object) -> None:
    if not any(isinstance(source, dict) for source in volume.values()):
        volume["emptyDir"] = {}
    for name in _VOLUMES_WITH_MODE:
        if name in volume:
            volume[name].setdefault("defaultMode", 0o644)
    default_volume_source(volume)
    if "emptyDir" in volume and "sizeLimit" in volume["emptyDir"]:
        volume["emptyDir"]["sizeLimit"] = canonical_quantity(volume["emptyDir"]["sizeLimit"])
    if "image" in volume and not volume["image"].get("pullPolicy"):
        volume["image"]["pullPolicy"] = _pull_policy(volume["image"].get("reference") or "")
    for item in (volume.get("downwardAPI") or {}).get("items") or ():
        _default_downward_file(item)
    for source in (volume.get("projected") or {}).get("sources") or ():
        for item in (source.get("downwardAPI") or {}).get("items") or ():
            _default_downward_file(item)
        if "serviceAccountToken" in source:
            source["serviceAccountToken"].setdefault("expirationSeconds", 3600)
    claim = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if claim is not None:
        claim.setdefault("metadata", {})
        default_claim_spec(claim.setdefault("spec", {}))


def default_volume_source(volume: Object) -> None:
    """Defaults of the sources pods and persistent volumes have in common."""
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")
    if "iscsi" in volume:
        volume["iscsi"].setdefault("iscsiInterface", "default")
    if "rbd" in volume:
        _default_rbd(volume["rbd"])
    if "azureDisk" in volume:
        _default_azure_disk(volume["azureDisk"])
    if "scaleIO" in volume:
        volume["scaleIO"].setdefault("storageMode", "ThinProvisioned")
        volume["scaleIO"].setdefault("fsType", "xfs")


def _default_downward_file(item: Object) -> None:
    _default_field_ref(item.get("fieldRef"))
    _default_divisor(item.get("resourceFieldRef"))


def _default_rbd(rbd: Object) -> None:
    for key, value in (("pool", "rbd"), ("user", "admin"), ("keyring", "/etc/ceph/keyring")):
        rbd[key] = rbd.get(key) or value


def _default_azure_disk(disk: Object) -> None:
    for key, value in (("cachingMode", "ReadWrite"), ("kind", "Shared"), ("fsType", "ext4"), ("readOnly", False)):
        disk.setdefault(key, value)


def default_claim_spec(spec: Object) -> None:
    """Defaults of a claim's spec, of its own or in a template."""
    spec.setdefault("volumeMode", "Filesystem")
    for name in ("dataSource", "dataSourceRef"):
        if name in spec:
            spec[name].setdefault("apiGroup", None)
    _default_resources(spec.get("resources"))
