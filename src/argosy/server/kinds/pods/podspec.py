"""Pod specs and pod templates: their validation, and the defaults of `pod_defaults` under one name.

Shared by pods and by everything that has a template. Rules are split by concept into `containers`, `env`, `probes`,
`pod_volumes`, `pod_scheduling` and `pod_security`; this module walks the spec. Admission, and rules for updates, are in `pods`.
"""

import re
from collections.abc import Collection
from hashlib import sha256
from typing import Any

import orjson

from argosy.kube.podresources import container_total
from argosy.kube.quantity import parse_or_zero
from argosy.server.fielderrors import FieldError, duplicate, forbidden, invalid, not_found, not_supported, required
from argosy.server.kinds.core.resource_lists import is_huge_page, pod_resource_name, validate_requirements
from argosy.server.kinds.pods.annotations import validate_pod_annotations, validate_profiles_match
from argosy.server.kinds.pods.containers import image_without_spaces, validate_containers
from argosy.server.kinds.pods.defaults import default_pod, default_pod_spec, default_pod_template
from argosy.server.kinds.pods.scheduling import (
    validate_affinity,
    validate_scheduling_gates,
    validate_tolerations,
    validate_topology_spread,
)
from argosy.server.kinds.pods.security import containers_with_path, validate_os, validate_pod_security
from argosy.server.kinds.pods.volumes import validate_volumes
from argosy.server.kinds.shared.meta_rules import (
    MAX_INT32,
    annotations,
    dns_label,
    dns_subdomain,
    inclusive_range,
    ip,
    labels,
    one_of,
    qualified_name,
)

__all__ = [
    "default_pod",
    "default_pod_spec",
    "default_pod_template",
    "validate_pod_spec",
    "validate_pod_template",
    "validate_whole_pod",
]

Object = dict[str, Any]

RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_MAX_NAMESERVERS = 3
_MAX_SEARCHES = 32
_MAX_SEARCH_LENGTH = 2048
_MAX_HOSTNAME = 64
_MAX_SUBDOMAIN = 253
_SEARCH_LABEL = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH_PATH = rf"{_SEARCH_LABEL}(\.{_SEARCH_LABEL})*"
_SUBDOMAINS = ("serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName")

#: Specs found valid lately, by their digests: the pods of one workload, and its copies in many clusters, all have the same one.
#: Validation is a pure function of the spec and half of the cost of a write.
_VALID: set[tuple[bytes, tuple[str, ...], str]] = set()
_VALID_KEPT = 2048


def validate_pod_template(
    template: Object, path: str, *, restart_policies: Collection[str] = RESTART_POLICIES
) -> list[FieldError]:
    """Labels, annotations and spec of a template; a workload may allow fewer restart policies."""
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    errors = labels(metadata.get("labels"), f"{path}.labels")
    errors += annotations(metadata.get("annotations"), f"{path}.annotations")
    errors += validate_pod_annotations(metadata.get("annotations") or {}, spec, f"{path}.annotations")
    errors += validate_pod_spec(spec, f"{path}.spec")
    errors += _host_network_ports(spec, f"{path}.spec", every_port=False)
    errors += validate_profiles_match(metadata.get("annotations") or {}, spec, f"{path}.spec")
    if spec.get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        errors.append(forbidden(f"{path}.spec.ephemeralContainers", detail))
    policy = spec.get("restartPolicy", "")
    if policy not in restart_policies and restart_policies is not RESTART_POLICIES:
        errors.append(not_supported(f"{path}.spec.restartPolicy", policy, list(restart_policies)))
    return errors


def validate_whole_pod(pod: Object) -> list[FieldError]:
    """Annotations and spec of a pod object, with the rules that templates do not have."""
    metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    errors = validate_pod_annotations(metadata.get("annotations") or {}, spec, "metadata.annotations")
    errors += validate_pod_spec(spec, "spec", pod_name=metadata.get("name", ""))
    errors += _host_network_ports(spec, "spec", every_port=True)
    if not spec.get("serviceAccountName"):
        errors += _tokens_without_account(spec)
    for name in ("containers", "initContainers"):
        for i, container in enumerate(spec.get(name) or ()):
            errors += image_without_spaces(container, f"spec.{name}[{i}]")
    return errors


def validate_pod_spec(
    spec: Object, path: str, *, restart_policies: Collection[str] = RESTART_POLICIES, pod_name: str = ""
) -> list[FieldError]:
    """All errors in a defaulted pod spec."""
    known = (sha256(orjson.dumps(spec)).digest(), tuple(restart_policies), pod_name if spec.get("volumes") else "")
    if known in _VALID:
        return []
    errors = _pod_spec_errors(spec, path, restart_policies, pod_name)
    if not errors:
        if len(_VALID) >= _VALID_KEPT:
            _VALID.clear()
        _VALID.add(known)
    return errors


def _pod_spec_errors(spec: Object, path: str, restart_policies: Collection[str], pod_name: str) -> list[FieldError]:
    errors = []
    if spec.get("terminationGracePeriodSeconds") is None:
        errors.append(required(f"{path}.terminationGracePeriodSeconds"))
    volumes, wrong = validate_volumes(spec.get("volumes") or [], f"{path}.volumes", pod_name)
    errors += wrong
    errors += _resource_claims(spec.get("resourceClaims") or [], f"{path}.resourceClaims")
    errors += validate_containers(spec, path, volumes)
    if spec.get("resources") is not None:
        errors += _pod_resources(spec, f"{path}.resources")
    errors += one_of(spec.get("restartPolicy", ""), f"{path}.restartPolicy", list(restart_policies))
    errors += one_of(spec.get("dnsPolicy", ""), f"{path}.dnsPolicy", _DNS_POLICIES)
    errors += labels(spec.get("nodeSelector"), f"{path}.nodeSelector")
    errors += validate_pod_security(spec, path)
    errors += validate_affinity(spec.get("affinity") or {}, f"{path}.affinity")
    errors += _dns_config(spec, f"{path}.dnsConfig")
    for i, gate in enumerate(spec.get("readinessGates") or ()):
        errors += qualified_name(gate.get("conditionType", ""), f"{path}.readinessGates[{i}].conditionType")
    errors += validate_scheduling_gates(spec.get("schedulingGates") or [], f"{path}.schedulingGates")
    errors += validate_topology_spread(spec.get("topologySpreadConstraints") or [], f"{path}.topologySpreadConstraints")
    errors += _host_names(spec, path)
    for name in _SUBDOMAINS:
        if spec.get(name):
            errors += dns_subdomain(spec[name], f"{path}.{name}")
    if spec.get("activeDeadlineSeconds") is not None:
        at = f"{path}.activeDeadlineSeconds"
        errors += inclusive_range(spec["activeDeadlineSeconds"], at, 1, MAX_INT32)
    errors += validate_tolerations(spec.get("tolerations") or [], f"{path}.tolerations")
    errors += _host_aliases(spec.get("hostAliases") or [], f"{path}.hostAliases")
    if spec.get("preemptionPolicy") is not None:
        at = f"{path}.preemptionPolicy"
        errors += one_of(spec["preemptionPolicy"], at, ("PreemptLowerPriority", "Never"))
    if spec.get("overhead"):
        errors += validate_requirements({"limits": spec["overhead"]}, f"{path}.overhead")
    return errors + validate_os(spec, path) + _file_key_volumes(spec, path)


def _resource_claims(claims: list[Object], path: str) -> list[FieldError]:
    errors = []
    seen: set[str] = set()
    for i, claim in enumerate(claims):
        at, name = f"{path}[{i}]", claim.get("name", "")
        if not name:
            errors.append(required(f"{at}.name"))
        elif name in seen:
            errors.append(duplicate(f"{at}.name", name))
        else:
            errors += dns_label(name, f"{at}.name")
            seen.add(name)
        sources = [key for key in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(key) is not None]
        if len(sources) > 1:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            errors.append(invalid(at, claim, detail))
        if not sources:
            detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            errors.append(invalid(at, claim, detail))
        for key in sources:
            errors += dns_subdomain(claim[key], f"{at}.{key}")
    return errors


def _pod_resources(spec: Object, path: str) -> list[FieldError]:
    """Pod-level resources: of few kinds, and sufficient for the containers."""
    resources = spec["resources"]
    if (spec.get("os") or {}).get("name") == "windows":
        return [forbidden(path, "may not be set for a windows pod")]
    errors = []
    if resources.get("claims") is not None:
        errors.append(forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level"))
    errors += validate_requirements(resources, path, name_rule=pod_resource_name)
    for name, needed in container_total(spec, "requests").items():
        asked = (resources.get("requests") or {}).get(name)
        if asked is not None and needed > parse_or_zero(asked):
            detail = f"must be greater than or equal to aggregate container requests of {needed}"
            errors.append(invalid(f"{path}.requests[{name}]", asked, detail))
    limits = resources.get("limits") or {}
    for name, needed in container_total(spec, "limits").items():
        if is_huge_page(name) and name in limits and needed > parse_or_zero(limits[name]):
            detail = f"must be greater than or equal to aggregate container limits of {needed}"
            errors.append(invalid(f"{path}.limits[{name}]", limits[name], detail))
    for i, container in enumerate(spec.get("containers") or ()):
        for name, limit in ((container.get("resources") or {}).get("limits") or {}).items():
            if name in limits and parse_or_zero(limit) > parse_or_zero(limits[name]):
                detail = f"must be less than or equal to pod limits of {limits[name]}"
                errors.append(invalid(f"{path}.containers[{i}][{name}].limits", limit, detail))
    return errors


def _host_network_ports(spec: Object, path: str, *, every_port: bool) -> list[FieldError]:
    if not spec.get("hostNetwork"):
        return []
    errors = []
    for i, container in enumerate(spec.get("containers") or ()):
        for j, port in enumerate(container.get("ports") or ()):
            host = port.get("hostPort") or 0
            if (every_port or host) and host != port.get("containerPort", 0):
                at = f"{path}.containers[{i}].ports[{j}].hostPort"
                errors.append(invalid(at, host, "must match `containerPort` when `hostNetwork` is true"))
    return errors


def _dns_config(spec: Object, path: str) -> list[FieldError]:
    config = spec.get("dnsConfig")
    servers = (config or {}).get("nameservers") or []
    if spec.get("dnsPolicy") == "None":
        if config is None:
            return [required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not servers:
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [required(f"{path}.nameservers", detail)]
    if config is None:
        return []
    errors = []
    if len(servers) > _MAX_NAMESERVERS:
        detail = f"must not have more than {_MAX_NAMESERVERS} nameservers"
        errors.append(invalid(f"{path}.nameservers", servers, detail))
    for i, server in enumerate(servers):
        errors += ip(server, f"{path}.nameservers[{i}]")
    searches = config.get("searches") or []
    if len(searches) > _MAX_SEARCHES:
        detail = f"must not have more than {_MAX_SEARCHES} search paths"
        errors.append(invalid(f"{path}.searches", searches, detail))
    if len(" ".join(searches)) > _MAX_SEARCH_LENGTH:
        detail = f"must not have more than {_MAX_SEARCH_LENGTH} characters (including spaces) in the search list"
        errors.append(invalid(f"{path}.searches", searches, detail))
    for i, search in enumerate(searches):
        if search != ".":
            errors += _search_path(search.removesuffix("."), f"{path}.searches[{i}]")
    for i, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            errors.append(required(f"{path}.options[{i}]", "must not be empty"))
    return errors


def _search_path(search: str, path: str) -> list[FieldError]:
    """A domain whose labels may contain underscores, unlike other names."""
    if len(search) > _MAX_SUBDOMAIN:
        return [invalid(path, search, f"must be no more than {_MAX_SUBDOMAIN} characters")]
    if re.fullmatch(_SEARCH_PATH, search):
        return []
    detail = (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', "
        "and must start and end with an alphanumeric character "
        f"(e.g. 'example.com', regex used for validation is '{_SEARCH_PATH}')"
    )
    return [invalid(path, search, detail)]


def _host_names(spec: Object, path: str) -> list[FieldError]:
    errors = []
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            errors += dns_label(spec[name], f"{path}.{name}")
    override, at = spec.get("hostnameOverride"), f"{path}.hostnameOverride"
    if override is None:
        return errors
    if spec.get("setHostnameAsFQDN"):
        errors.append(forbidden(at, "may not be specified when setHostnameAsFQDN is true"))
    if spec.get("hostNetwork"):
        errors.append(forbidden(at, "may not be specified when hostNetwork is true"))
    if len(override) > _MAX_HOSTNAME:
        errors.append(FieldError("FieldValueTooLong", at, "", f"may not be more than {_MAX_HOSTNAME} bytes"))
    return errors + dns_subdomain(override, at)


def _host_aliases(aliases: list[Object], path: str) -> list[FieldError]:
    errors = []
    for i, alias in enumerate(aliases):
        errors += ip(alias.get("ip", ""), f"{path}[{i}].ip")
        for j, hostname in enumerate(alias.get("hostnames") or ()):
            errors += dns_subdomain(hostname, f"{path}[{i}].hostnames[{j}]")
    return errors


def _file_key_volumes(spec: Object, path: str) -> list[FieldError]:
    """Variables read from files need an emptyDir of the pod."""
    volumes = {volume.get("name"): volume for volume in spec.get("volumes") or ()}
    errors = []
    for container, at in containers_with_path(spec, path):
        for i, variable in enumerate(container.get("env") or ()):
            ref = (variable.get("valueFrom") or {}).get("fileKeyRef")
            if ref is None:
                continue
            name, where = ref.get("volumeName", ""), f"{at}.env[{i}].valueFrom.fileKeyRef.volumeName"
            if name not in volumes:
                errors.append(not_found(where, name))
            elif volumes[name].get("emptyDir") is None:
                errors.append(invalid(where, name, "referenced volume must be of type emptyDir"))
    return errors


def _tokens_without_account(spec: Object) -> list[FieldError]:
    return [
        forbidden(
            f"spec.volumes[{i}].projected.sources[{j}].serviceAccountToken",
            "must not be specified when serviceAccountName is not set",
        )
        for i, volume in enumerate(spec.get("volumes") or ())
        for j, source in enumerate((volume.get("projected") or {}).get("sources") or ())
        if source.get("serviceAccountToken") is not None
    ]
