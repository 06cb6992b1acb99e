"""Warnings about pods and pod templates: accepted, but probably a mistake. They are returned in headers."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

from argosy.kube.quantity import parse_or_zero
from argosy.server.kinds.apps.workloads import name_warnings
from argosy.server.kinds.pods.security import containers_with_path

__all__ = ["pod_warnings", "source_warnings", "template_warnings", "workload_warnings"]

Object = dict[str, Any]

_OLD_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_OLD_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}


def pod_warnings(spec: Object) -> list[str]:
    """For the spec of a pod."""
    return list(_all(spec, "spec"))


def template_warnings(template: Object | None, path: str) -> list[str]:
    """For the pods of a template at `path`."""
    return list(_all((template or {}).get("spec") or {}, f"{path}.spec"))


def workload_warnings(obj: Object, old: Object | None, path: str) -> list[str]:
    """For a workload's name when it is new, and for its pod template at `path` with every generation."""
    if old is not None and obj["metadata"].get("generation") == old["metadata"].get("generation"):
        return []
    template: Any = obj
    for name in path.split("."):
        template = (template or {}).get(name)
    return (name_warnings(obj) if old is None else []) + template_warnings(template, path)


def _all(spec: Object, path: str) -> Iterator[str]:
    return chain(_placement(spec, path), _volumes(spec, path), _repeated(spec, path), _containers(spec, path))


def _placement(spec: Object, path: str) -> Iterator[str]:
    for key in spec.get("nodeSelector") or ():
        if key in _OLD_LABELS:
            yield f"{path}.nodeSelector[{key}]: {_OLD_LABELS[key]}"
    for i, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        at, key = f"{path}.topologySpreadConstraints[{i}]", constraint.get("topologyKey", "")
        if key in _OLD_LABELS:
            yield f"{at}.topologyKey: {key} is {_OLD_LABELS[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{at}.labelSelector: a null labelSelector results in matching no pod"
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        text = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{path}.terminationGracePeriodSeconds: {text}"


def _volumes(spec: Object, path: str) -> Iterator[str]:
    for i, volume in enumerate(spec.get("volumes") or ()):
        yield from source_warnings(volume, f"{path}.volumes[{i}]")


def source_warnings(volume: Object, path: str) -> list[str]:
    """For the source of a volume, of a pod or a persistent one."""
    found = [(name, text) for name, text in _OLD_VOLUMES.items() if name in volume]
    return [f"{path}.{'storageOS' if name == 'storageos' else name}: {text}" for name, text in found]


def _repeated(spec: Object, path: str) -> Iterator[str]:
    for field, name in (("hostAliases", "ip"), ("imagePullSecrets", "name")):
        seen: set[str] = set()
        for i, item in enumerate(spec.get(field) or ()):
            value = item.get(name, "")
            if value in seen:
                yield f'{path}.{field}[{i}].{name}: duplicate {name} "{value}"'
            seen.add(value)
            if field == "imagePullSecrets" and not value:
                yield f'{path}.{field}[{i}].name: invalid empty name ""'


def _containers(spec: Object, path: str) -> Iterator[str]:
    ports: list[tuple[Object, str]] = []
    for container, at in containers_with_path(spec, path):
        yield from _fractions(container, at)
        yield from _hidden_variables(container, at)
        for i, port in enumerate(container.get("ports") or ()):
            where = f"{at}.ports[{i}]"
            yield from _conflicting_ports(port, where, ports)
            ports.append((port, where))


def _fractions(container: Object, path: str) -> Iterator[str]:
    for side in ("limits", "requests"):
        values = (container.get("resources") or {}).get(side) or {}
        for name in ("memory", "ephemeral-storage"):
            if name in values and parse_or_zero(values[name]).milli() % 1000:
                text = f'fractional byte value "{values[name]}" is invalid, must be an integer'
                yield f"{path}.resources.{side}[{name}]: {text}"


def _hidden_variables(container: Object, path: str) -> Iterator[str]:
    """A variable may refer to an earlier one of its name; otherwise the earlier one has no effect."""
    seen: set[str] = set()
    for i, variable in enumerate(container.get("env") or ()):
        name, value = variable.get("name", ""), variable.get("value", "")
        reference = f"$({name})"
        if name in seen and (value == reference or reference not in value):
            yield f'{path}.env[{i}]: hides previous definition of "{name}", which may be dropped when using apply'
        seen.add(name)


def _conflicting_ports(port: Object, path: str, others: list[tuple[Object, str]]) -> Iterator[str]:
    for other, at in others:
        if any(port.get(key) != other.get(key) for key in ("containerPort", "protocol")):
            continue
        host, other_host = port.get("hostPort") or 0, other.get("hostPort") or 0
        if host == other_host and port.get("hostIP", "") == other.get("hostIP", ""):
            yield f"{path}: duplicate port definition with {at}"
        elif not host or not other_host:
            yield f"{path}: overlapping port definition with {at}"
        elif host == other_host and bool(port.get("hostIP")) != bool(other.get("hostIP")):
            yield f"{path}: dangerously ambiguous port definition with {at}"
    named = next((at for other, at in others if port.get("name") and other.get("name") == port["name"]), None)
    if named is not None:
        text = f"services and probes that select ports by name will use {named}"
        yield f'{path}: duplicate port name "{port["name"]}" with {named}, {text}'
