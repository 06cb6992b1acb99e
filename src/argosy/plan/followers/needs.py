"""Needs: what a federated object, the leader, needs in the clusters it is placed in.

That is what its template names, everywhere; what the patches of one cluster bring in, in that cluster; and what its annotation
lists. What patches take out of the template in a cluster is still needed there: its pods of before may still run.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec
import orjson

from argosy.api import keys
from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.kube.podreferences import Reference, pod_references, references_at
from argosy.plan import fields
from argosy.plan.copies.patches import OverrideError, apply_patches
from argosy.plan.copies.placement import Patches, overrides_by_cluster
from argosy.plan.fields import Json
from argosy.plan.kinds.about import About, Target
from argosy.plan.kinds.kind import Kind
from argosy.plan.kinds.registry import kind_named, kind_of

__all__ = [
    "NOTHING",
    "Name",
    "Need",
    "Needs",
    "about_of",
    "is_about",
    "needs_of",
    "pod_labels_of",
    "references_of",
    "unreadable_followers",
    "waits_for",
]


class Name(NamedTuple):
    """An object of the leader's namespace."""

    group: str
    kind: str
    name: str


class Need(msgspec.Struct, frozen=True):
    #: None if everywhere the leader is placed.
    clusters: frozenset[str] | None = None
    #: Whether the leader waits for it.
    required: bool = True


#: Almost all needs are one of these.
_REQUIRED: Final = Need()
_OPTIONAL: Final = Need(required=False)


class Needs(msgspec.Struct, frozen=True):
    needed: Mapping[Name, Need] = {}
    #: What of it cannot be read; empty if all could.
    unclear: str = ""


NOTHING: Final = Needs()


#: Rights follow nobody: who may write a workload need not have the right to grant them in members.
_RIGHTS: Final = "rbac.authorization.k8s.io"
#: What the annotation may list, by group and kind.
_LISTABLE: Final = frozenset(
    {
        ("", "ConfigMap"),
        ("", "Secret"),
        ("", "PersistentVolumeClaim"),
        ("", "ServiceAccount"),
        ("", "Service"),
        ("networking.k8s.io", "Ingress"),
        ("autoscaling", "HorizontalPodAutoscaler"),
        ("policy", "PodDisruptionBudget"),
    }
)


class _Listed(msgspec.Struct, frozen=True):
    kind: str
    name: str
    group: str = ""


def needs_of(spec: Json, annotations: Mapping[str, str], config: FederatedTypeConfig) -> Needs:
    """`spec` and `annotations` are the federated object's."""
    template = spec.get("template") or {}
    everywhere = _named(references_of(template, config))
    unclear = []
    try:
        if _runs_pods(template, config):
            everywhere |= {Name(each.group, each.kind, each.name): True for each in _listed(annotations)}
    except msgspec.MsgspecError as error:
        unclear.append(_unreadable(error))
    needed = {name: _REQUIRED if required else _OPTIONAL for name, required in everywhere.items()}
    try:
        needed |= _brought_in(spec, template, everywhere, config)
    except OverrideError as error:
        unclear.append(f"overrides: {error}")
    needed = {name: need for name, need in needed.items() if name.group != _RIGHTS}
    return Needs(needed, "; ".join(unclear)) if needed or unclear else NOTHING


def _runs_pods(template: Json, config: FederatedTypeConfig) -> bool:
    """Who may write what runs pods reaches all that its namespace has for pods anyway."""
    return bool(kind_of(template).pod_spec or config.spec.followers.pod_specs)


def references_of(obj: Json, config: FederatedTypeConfig) -> Iterator[Reference]:
    """What an object names, by its kind and by the rules of its type config."""
    kind = kind_of(obj)
    if kind.pod_spec:
        yield from pod_references(fields.get(obj, kind.pod_spec, None))
    yield from kind.references(obj)
    rules = config.spec.followers
    for path in rules.pod_specs:
        yield from pod_references(fields.get(obj, path, None))
    for each in rules.references:
        yield from references_at(obj, each.path, each.group, each.kind)


def pod_labels_of(template: Json) -> dict[str, str] | None:
    """The labels of the pods an object runs; None if it runs none."""
    path = kind_of(template).pod_spec
    if not path:
        return None
    labels = fields.get(template, (*path[:-1], "metadata", "labels"), None)
    return labels if isinstance(labels, dict) else {}


def about_of(obj: Json, config: FederatedTypeConfig) -> About | None:
    """What an object is about: by its kind, or by the path that makes its type one of autoscalers."""
    path = config.metadata.annotations.get(keys.SCALE_TARGET_REF_PATH)
    if not path:
        return kind_of(obj).about(obj)
    target = fields.get(obj, path, None)
    if (
        not isinstance(target, dict)
        or not isinstance(target.get("kind"), str)
        or not isinstance(target.get("name"), str)
    ):
        return None
    return Target(str(target.get("apiVersion") or "").rpartition("/")[0], target["kind"], target["name"])


def is_about(config: FederatedTypeConfig) -> bool:
    """Whether objects of this type may be about others."""
    kind = kind_named(config.resource.group, config.kind)
    return keys.SCALE_TARGET_REF_PATH in config.metadata.annotations or kind.about is not Kind().about


def waits_for(annotations: Mapping[str, str]) -> list[str]:
    """What the object needs and does not exist, as `Kind namespace/name`; an unreadable note counts as none."""
    try:
        return msgspec.json.decode(annotations.get(keys.WAITS_FOR, "[]"), type=list[str])
    except msgspec.MsgspecError:
        return []


def unreadable_followers(annotations: Mapping[str, str]) -> str:
    """What is wrong with the annotation that lists followers; empty if nothing is."""
    try:
        _listed(annotations)
    except msgspec.MsgspecError as error:
        return _unreadable(error)
    return ""


def _unreadable(error: msgspec.MsgspecError) -> str:
    return f"annotation {keys.FOLLOWERS} is ignored: {error}"


def _listed(annotations: Mapping[str, str]) -> list[_Listed]:
    text = annotations.get(keys.FOLLOWERS)
    if not text:
        return []
    listed = msgspec.json.decode(text, type=list[_Listed])
    if not all(each.kind and each.name for each in listed):
        raise msgspec.ValidationError("an entry has no kind or no name")
    for each in listed:
        if (each.group, each.kind) not in _LISTABLE:
            raise msgspec.ValidationError(f"a {each.kind} of the group {each.group!r} cannot follow")
    return listed


def _named(references: Iterable[Reference]) -> dict[Name, bool]:
    """Whether each is required: one mention that is not optional is enough."""
    found: dict[Name, bool] = {}
    for each in references:
        name = Name(each.group, each.kind, each.name)
        found[name] = found.get(name, False) or not each.optional
    return found


def _brought_in(
    spec: Json, template: Json, everywhere: Mapping[Name, bool], config: FederatedTypeConfig
) -> dict[Name, Need]:
    """What is named only once a cluster's patches are applied. Raises OverrideError."""
    by_cluster = overrides_by_cluster(spec.get("overrides") or (), config.spec.controllers)
    same: dict[bytes, dict[Name, bool]] = {}
    clusters: dict[Name, set[str]] = {}
    required: dict[Name, bool] = {}
    for cluster, patches in by_cluster.items():
        telling = [patch for patch in patches if not _is_number(patch)]
        if not telling:
            continue
        key = orjson.dumps(telling, option=orjson.OPT_SORT_KEYS)
        if key not in same:
            same[key] = _named(references_of(_patched(template, patches), config))
        for name, waits in same[key].items():
            if name not in everywhere:
                clusters.setdefault(name, set()).add(cluster)
                required[name] = required.get(name, False) or waits
    return {name: Need(frozenset(there), required[name]) for name, there in clusters.items()}


def _patched(template: Json, patches: Patches) -> Json:
    return apply_patches(template, [patch for patch in patches if not _is_number(patch)])


def _is_number(patch: Mapping[str, Any]) -> bool:
    """Numbers name nothing: a division of replicas is not looked at."""
    value = patch.get("value")
    return (patch.get("op") or "replace") == "replace" and isinstance(value, int) and not isinstance(value, bool)
