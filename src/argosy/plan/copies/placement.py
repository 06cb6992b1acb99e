"""Placements and overrides of a federated object: one entry per controller; and the clusters that may hold a copy.

A controller changes only its own entry; the others stay as they are. Clusters are sorted within an entry, an entry without
clusters is removed, a new entry is appended.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec
import orjson

from argosy.api import keys
from argosy.api.federated import FederatedStatus
from argosy.kube.objects import Metadata
from argosy.plan.metadata import without_annotations

__all__ = [
    "after_removal",
    "entry_of",
    "in_order",
    "is_placed_by",
    "may_hold_copies",
    "merged_overrides",
    "overrides_by_cluster",
    "overrides_for",
    "placed",
    "placed_by",
    "to_be_removed",
    "value_at",
    "with_overrides",
    "with_placement",
    "with_removals_noted",
]

Entries = Sequence[Mapping[str, Any]]
Patches = list[dict[str, Any]]


def placed(spec: Mapping[str, Any]) -> list[str]:
    """The effective placement: the union of all entries, sorted."""
    return sorted({name for entry in spec.get("placements") or () for name in _names(entry)})


def _names(entry: Mapping[str, Any]) -> list[str]:
    return [reference["cluster"] for reference in entry.get("placement") or ()]


def entry_of(spec: Mapping[str, Any], field: str, controller: str) -> Mapping[str, Any]:
    """A controller's entry of the placements or overrides; empty if it has none."""
    return next((each for each in spec.get(field) or () if each["controller"] == controller), {})


def is_placed_by(spec: Mapping[str, Any], controller: str) -> bool:
    """Whether this controller wants the object anywhere."""
    return any(entry["controller"] == controller and entry.get("placement") for entry in spec.get("placements") or ())


def placed_by(spec: Mapping[str, Any], controller: str) -> frozenset[str]:
    """Where this controller wants the object."""
    entries = (entry for entry in spec.get("placements") or () if entry["controller"] == controller)
    return frozenset(name for entry in entries for name in _names(entry))


def with_placement(spec: dict[str, Any], controller: str, clusters: Iterable[str]) -> dict[str, Any]:
    """The spec with this controller's placement replaced; the same spec where it has none and gets none."""
    placement = [{"cluster": name} for name in sorted(set(clusters))]
    entry = {"controller": controller, "placement": placement} if placement else None
    return _with_entry(spec, "placements", controller, entry)


def with_overrides(spec: dict[str, Any], controller: str, patches: Mapping[str, Patches]) -> dict[str, Any]:
    """The spec with this controller's overrides replaced; clusters without patches are left out."""
    clusters = [{"cluster": name, "patches": patches[name]} for name in sorted(patches) if patches[name]]
    entry = {"controller": controller, "clusters": clusters} if clusters else None
    return _with_entry(spec, "overrides", controller, entry)


def _with_entry(spec: dict[str, Any], field: str, controller: str, entry: dict[str, Any] | None) -> dict[str, Any]:
    before: Entries = spec.get(field) or ()
    if entry is None and not any(each["controller"] == controller for each in before):
        return spec
    entries: list[Any] = []
    found = False
    for each in before:
        if each["controller"] != controller:
            entries.append(each)
        elif entry is not None and not found:
            entries.append(entry)
            found = True
    if entry is not None and not found:
        entries.append(entry)
    result = {key: value for key, value in spec.items() if key != field}
    if entries:
        result[field] = entries
    return result


def merged_overrides(first: Mapping[str, Patches] | None, then: Mapping[str, Patches] | None) -> dict[str, Patches]:
    """Patches by cluster, those of `then` behind those of `first`."""
    result = {cluster: list(patches) for cluster, patches in (first or {}).items()}
    for cluster, patches in (then or {}).items():
        result.setdefault(cluster, []).extend(patches)
    return result


def overrides_for(spec: Mapping[str, Any], cluster: str, pipeline: Sequence[Sequence[str]]) -> Patches:
    """All patches for one cluster, in the pipeline's order of controllers; unknown controllers come last."""
    return [
        patch
        for entry in in_order(spec.get("overrides") or (), pipeline)
        for item in entry.get("clusters") or ()
        if item["cluster"] == cluster
        for patch in item.get("patches") or ()
    ]


def overrides_by_cluster(entries: Entries, pipeline: Sequence[Sequence[str]]) -> dict[str, Patches]:
    """All patches, for every cluster that has some."""
    found: dict[str, Patches] = {}
    for entry in in_order(entries, pipeline):
        for item in entry.get("clusters") or ():
            found.setdefault(item["cluster"], []).extend(item.get("patches") or ())
    return found


def value_at(patches: Iterable[Mapping[str, Any]], pointer: str) -> Any:
    """The value these patches leave at a JSON pointer; None if none of them sets it."""
    values = [patch.get("value") for patch in patches if patch.get("path") == pointer]
    return values[-1] if values else None


def in_order(entries: Entries, pipeline: Sequence[Sequence[str]]) -> Entries:
    """Entries in the pipeline's order of controllers, which following comes before; unknown controllers come last."""
    position = {keys.FOLLOWER_CONTROLLER: -1, **{name: index for index, step in enumerate(pipeline) for name in step}}
    return sorted(entries, key=lambda entry: position.get(entry["controller"], len(position)))


# Write ahead: a cluster leaves the placements only in the write that records it as to be removed.


def to_be_removed(annotations: Mapping[str, str]) -> list[str]:
    """Clusters whose copy has not been seen gone yet. An unreadable annotation counts as empty: status names them as well."""
    try:
        return msgspec.json.decode(annotations.get(keys.TO_BE_REMOVED, "[]"), type=list[str])
    except msgspec.MsgspecError:
        return []


def with_removals_noted(annotations: Mapping[str, str], before: Iterable[str], after: Iterable[str]) -> dict[str, str]:
    """The annotations to store together with the new placement."""
    noted = {*to_be_removed(annotations), *before}.difference(after)
    return _with_note(annotations, noted)


def after_removal(annotations: Mapping[str, str], absent: Iterable[str]) -> dict[str, str] | None:
    """The annotations once these clusters were seen to have no copy; None if none of them was recorded."""
    noted = to_be_removed(annotations)
    left = set(noted).difference(absent)
    return None if len(left) == len(noted) else _with_note(annotations, left)


def _with_note(annotations: Mapping[str, str], clusters: Iterable[str]) -> dict[str, str]:
    rest = without_annotations(annotations, keys.TO_BE_REMOVED)
    names = sorted(set(clusters))
    return {**rest, keys.TO_BE_REMOVED: orjson.dumps(names).decode()} if names else rest


class Placed(Protocol):
    """A federated object, or the part of it that a cache keeps."""

    @property
    def metadata(self) -> Metadata: ...
    @property
    def status(self) -> FederatedStatus: ...
    @property
    def placed(self) -> Collection[str]: ...


def may_hold_copies(federated: Placed) -> set[str]:
    """Every cluster that may have a copy of the object, whatever happened before: deletion must look at all of them."""
    return {
        *federated.placed,
        *to_be_removed(federated.metadata.annotations),
        *(entry.cluster for entry in federated.status.clusters),
    }
