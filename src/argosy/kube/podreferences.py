"""Pod references: the objects of its own namespace that a pod names and needs.

A pod's spec names ConfigMaps, Secrets, claims and a ServiceAccount in many places; all of them are read here. What is not of the
expected shape is passed over: API servers check the kinds they know, and nobody checks others.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

__all__ = [
    "Reference",
    "container_references",
    "named",
    "pod_references",
    "references_at",
    "values_at",
    "volume_references",
]


class Reference(NamedTuple):
    """An object of the same namespace. An optional one is not waited for where it does not exist."""

    group: str
    kind: str
    name: str
    optional: bool = False


#: Each namespace of each cluster has its own, made by the cluster itself.
_EVERYBODYS: Final = frozenset({("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")})
#: Volumes that name a Secret: the field of the volume, and the path of the name below it.
_SECRETS_OF_VOLUMES: Final = (
    ("azureFile", ("secretName",)),
    ("cephfs", ("secretRef", "name")),
    ("cinder", ("secretRef", "name")),
    ("csi", ("nodePublishSecretRef", "name")),
    ("flexVolume", ("secretRef", "name")),
    ("iscsi", ("secretRef", "name")),
    ("rbd", ("secretRef", "name")),
    ("scaleIO", ("secretRef", "name")),
    ("storageos", ("secretRef", "name")),
)


def named(kind: str, name: Any, optional: Any = False, group: str = "") -> Iterator[Reference]:
    """The reference, if this is a name, and not one of an object that every cluster has of its own."""
    if isinstance(name, str) and name and (kind, name) not in _EVERYBODYS:
        yield Reference(group, kind, name, optional is True)


def pod_references(spec: Any) -> Iterator[Reference]:
    """What a pod with this spec needs. One object may come several times."""
    for each in _items(spec, "imagePullSecrets"):
        # An image may be public after all: kubelets try without.
        yield from named("Secret", each.get("name"), optional=True)
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for container in _items(spec, field):
            yield from container_references(container)
    for volume in _items(spec, "volumes"):
        yield from volume_references(volume)
    account = _at(spec, ("serviceAccountName",)) or _at(spec, ("serviceAccount",))
    yield from named("ServiceAccount", account)


def container_references(container: Any) -> Iterator[Reference]:
    """What the environment of a container needs."""
    for each in _items(container, "envFrom"):
        yield from _of_sources(each, "configMapRef", "secretRef")
    for each in _items(container, "env"):
        yield from _of_sources(each.get("valueFrom"), "configMapKeyRef", "secretKeyRef")


def _of_sources(holder: Any, config_map: str, secret: str) -> Iterator[Reference]:
    for kind, field in (("ConfigMap", config_map), ("Secret", secret)):
        yield from named(kind, _at(holder, (field, "name")), _at(holder, (field, "optional")))


def volume_references(volume: Any) -> Iterator[Reference]:
    """What a volume needs before it can be mounted."""
    yield from named("Secret", _at(volume, ("secret", "secretName")), _at(volume, ("secret", "optional")))
    yield from named("ConfigMap", _at(volume, ("configMap", "name")), _at(volume, ("configMap", "optional")))
    yield from named("PersistentVolumeClaim", _at(volume, ("persistentVolumeClaim", "claimName")))
    for each in _items(volume.get("projected"), "sources"):
        yield from _of_sources(each, "configMap", "secret")
    for field, path in _SECRETS_OF_VOLUMES:
        if field in volume:
            yield from named("Secret", _at(volume, (field, *path)))


def references_at(obj: Any, path: str, group: str, kind: str) -> Iterator[Reference]:
    """The names at a dotted path, as `values_at` has it."""
    yield from (found for value in values_at(obj, path) for found in named(kind, value, group=group))


def values_at(node: Any, path: str) -> Iterator[Any]:
    """The values at a dotted path; `[*]` behind a field means each item of the list there."""
    if not path:
        yield node
        return
    step, _, rest = path.partition(".")
    name = step.removesuffix("[*]")
    child = node.get(name) if isinstance(node, dict) else None
    if name == step:
        yield from values_at(child, rest)
    elif isinstance(child, list):
        for item in child:
            yield from values_at(item, rest)


def _items(holder: Any, field: str) -> Iterator[dict[str, Any]]:
    found = holder.get(field) if isinstance(holder, dict) else None
    for each in found if isinstance(found, list) else ():
        if isinstance(each, dict):
            yield each


def _at(node: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        if not isinstance(node, dict):
            return None
        node = node.get(step)
    return node
