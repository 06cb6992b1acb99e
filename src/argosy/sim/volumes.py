"""Persistent volumes and their claims: which class a claim has, which volume suits it, and what is provisioned for it. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from argosy.kube import quantity
from argosy.kube.selectors import SelectorError, from_label_selector

__all__ = [
    "DEFAULT_CLASS",
    "SELECTED_NODE",
    "Standing",
    "best_volume",
    "claims_of",
    "class_of",
    "default_class",
    "is_provisioned",
    "is_reserved_for",
    "provisioned",
    "reserve",
    "select_node",
    "standard_class",
    "standing",
    "take",
    "waits_for_pod",
]

Object = dict[str, Any]

#: Where the scheduler tells for which node a volume is wanted.
SELECTED_NODE = "volume.kubernetes.io/selected-node"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_BETA_DEFAULT_CLASS = "storageclass.beta.kubernetes.io/is-default-class"
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_BOUND_BY_US = {"pv.kubernetes.io/bound-by-controller": "yes"}
_COMPLETED = {"pv.kubernetes.io/bind-completed": "yes"}
#: Of classes without provisioning.
NO_PROVISIONER = "kubernetes.io/no-provisioner"
_PROVISIONER = "argosy.sim/volumes"


def claims_of(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """The claims that a pod mounts, by name."""
    named = (volume.get("persistentVolumeClaim") for volume in spec.get("volumes") or ())
    return tuple(claim["claimName"] for claim in named if claim)


def standard_class() -> Object:
    """The default class of a simulated cluster: as in kind and k3s, volumes are made when a pod wants them."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "standard", "annotations": {DEFAULT_CLASS: "true"}},
        "provisioner": _PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def default_class(classes: Iterable[Object]) -> str | None:
    """Of several default classes the newest counts, then the first by name."""
    found = [each for each in classes if _is_default(each)]
    found.sort(key=lambda each: str(each["metadata"]["name"]))
    found.sort(key=lambda each: str(each["metadata"].get("creationTimestamp", "")), reverse=True)
    return found[0]["metadata"]["name"] if found else None


def _is_default(each: Object) -> bool:
    annotations = each["metadata"].get("annotations") or {}
    return any(annotations.get(key) == "true" for key in (DEFAULT_CLASS, _BETA_DEFAULT_CLASS))


def class_of(obj: Mapping[str, Any]) -> str | None:
    """The class of a claim or volume. "" is one, too: that of volumes nobody provisions; None of a claim: the default one."""
    annotation = (obj["metadata"].get("annotations") or {}).get(_BETA_CLASS)
    found: str | None = annotation if annotation is not None else obj["spec"].get("storageClassName")
    return found


def waits_for_pod(storage_class: Mapping[str, Any] | None) -> bool:
    return storage_class is not None and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"


class Standing(NamedTuple):
    """What the claims of a pod mean for its scheduling."""

    #: Why it cannot be scheduled.
    problem: str = ""
    #: The claims that want to know the node first.
    undecided: tuple[str, ...] = ()
    #: Whether something is about to happen, of which there will be an event.
    soon: bool = False


def standing(
    names: Sequence[str], claims: Mapping[str, Object | None], classes: Mapping[str, Object], default: str | None
) -> Standing:
    """Of the claims a pod names; those in `claims` that do not exist are None."""
    undecided, soon = [], False
    for name in names:
        claim = claims[name]
        if claim is None:
            return Standing(f'persistentvolumeclaim "{name}" not found')
        if claim["metadata"].get("deletionTimestamp"):
            return Standing(f'persistentvolumeclaim "{name}" is being deleted')
        if (claim.get("status") or {}).get("phase") == "Lost":
            return Standing(f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume')
        if (claim.get("status") or {}).get("phase") == "Bound":
            continue
        wanted = class_of(claim)
        if wanted is None:
            if default is None:
                return Standing("pod has unbound immediate PersistentVolumeClaims")
            soon = True
        elif waits_for_pod(classes.get(wanted)):
            undecided.append(name)
        else:
            return Standing("pod has unbound immediate PersistentVolumeClaims")
    return Standing(undecided=tuple(undecided), soon=soon)


def best_volume(claim: Object, volumes: Iterable[Object]) -> Object | None:
    """The volume reserved for a claim, else the smallest free one that suits it."""
    best: tuple[int, str, Object] | None = None
    for volume in volumes:
        if volume["metadata"].get("deletionTimestamp"):
            continue
        if is_reserved_for(volume, claim):
            return volume
        if volume["spec"].get("claimRef") or not _suits(claim, volume):
            continue
        candidate = (_size(volume["spec"].get("capacity")), str(volume["metadata"]["name"]), volume)
        if best is None or candidate[:2] < best[:2]:
            best = candidate
    return best[2] if best is not None else None


def _suits(claim: Object, volume: Object) -> bool:
    wanted, spec = claim["spec"], volume["spec"]
    try:
        selector = from_label_selector(wanted["selector"]) if wanted.get("selector") else None
    except SelectorError:
        return False
    return (
        (class_of(volume) or "") == (class_of(claim) or "")
        and set(wanted.get("accessModes") or ()) <= set(spec.get("accessModes") or ())
        and (wanted.get("volumeMode") or "Filesystem") == (spec.get("volumeMode") or "Filesystem")
        and _size(spec.get("capacity")) >= _size((wanted.get("resources") or {}).get("requests"))
        and (selector is None or selector.matches(volume["metadata"].get("labels") or {}))
    )


def _size(amounts: Mapping[str, str] | None) -> int:
    return int(quantity.parse_or_zero((amounts or {}).get("storage", "0")).nanos)


def is_reserved_for(volume: Object, claim: Object) -> bool:
    """Whether a volume names this claim. A user who reserves one does not know the uid."""
    found, metadata = volume["spec"].get("claimRef"), claim["metadata"]
    if not found:
        return False
    same = (found.get("namespace"), found.get("name")) == (metadata["namespace"], metadata["name"])
    return same and found.get("uid", "") in ("", metadata["uid"])


def reserve(volume: Object, claim: Object) -> None:
    """Have a volume name its claim. Whether a user chose it is noted, as in Kubernetes."""
    if not volume["spec"].get("claimRef"):
        _annotate(volume, _BOUND_BY_US)
    volume["spec"]["claimRef"] = _reference(claim)


def _reference(claim: Object) -> Object:
    metadata = claim["metadata"]
    named = {key: metadata[key] for key in ("name", "namespace", "uid", "resourceVersion")}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **named}


def take(claim: Object, volume: Object) -> None:
    """Have a claim name its volume, and show what it got."""
    if not claim["spec"].get("volumeName"):
        _annotate(claim, _BOUND_BY_US)
        claim["spec"]["volumeName"] = volume["metadata"]["name"]
    _annotate(claim, _COMPLETED)
    shown = {"accessModes": volume["spec"]["accessModes"], "capacity": volume["spec"]["capacity"]}
    claim["status"] = {**(claim.get("status") or {}), "phase": "Bound", **shown}


def provisioned(claim: Object, storage_class: Object) -> Object:
    """The volume that is made for a claim."""
    spec, name = claim["spec"], f"pvc-{claim['metadata']['uid']}"
    made: Object = {
        "capacity": {"storage": spec["resources"]["requests"]["storage"]},
        "accessModes": spec["accessModes"],
        "claimRef": _reference(claim),
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
        "storageClassName": storage_class["metadata"]["name"],
        "volumeMode": spec.get("volumeMode") or "Filesystem",
        "hostPath": {"path": f"/simulated/{name}", "type": "DirectoryOrCreate"},
    }
    if storage_class.get("mountOptions"):
        made["mountOptions"] = storage_class["mountOptions"]
    annotations = {_PROVISIONED_BY: storage_class["provisioner"]}
    metadata = {"name": name, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": made}


def is_provisioned(volume: Object) -> bool:
    """Whether it was made for a claim, and nobody keeps it after that."""
    mine = _PROVISIONED_BY in (volume["metadata"].get("annotations") or {})
    return mine and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete"


def select_node(claim: Object, node: str) -> bool:
    """Note for which node a volume is wanted; False if that is decided already."""
    if SELECTED_NODE in (claim["metadata"].get("annotations") or {}):
        return False
    _annotate(claim, {SELECTED_NODE: node})
    return True


def _annotate(obj: Object, wanted: Mapping[str, str]) -> None:
    obj["metadata"]["annotations"] = {**(obj["metadata"].get("annotations") or {}), **wanted}
