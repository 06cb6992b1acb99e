"""Placements and overrides of a federated object: one entry per controller; and the clusters that may hold a copy.

A controller changes only its own entry; the others stay as they are. Clusters are sorted within an entry, an entry without
clusters is removed, a new entry is appended.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from argosy.api import keys
from argosy.api.federated import FederatedStatus
from argosy.kube.objects import Metadata
from argosy.plan.metadata import without_annotations

__all__ = [
    "Removal",
    "after_removal",
    "entry_of",
    "in_order",
    "is_placed_by",
    "may_hold_copies",
    "merged_overrides",
    "names_of",
    "overrides_by_cluster",
    "overrides_for",
    "placed",
    "placed_by",
    "removals",
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
    return sorted({name for entry in spec.get("placements") or () for name in names_of(entry)})


def names_of(entry: Mapping[str, Any]) -> list[str]:
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
    return frozenset(name for entry in entries for name in names_of(entry))


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


class Removal(msgspec.Struct, frozen=True, omit_defaults=True):
    """A copy that may be removed, and was not yet seen gone. Copies that are not noted are never removed."""

    cluster: str
    #: `plan.brake.cause`; empty in what earlier versions wrote.
    cause: str = ""
    since: str = ""


def removals(annotations: Mapping[str, str]) -> list[Removal]:
    """Copies that have not been seen gone yet. An unreadable annotation counts as empty: then nothing is removed, and the next
    pass notes anew what status names."""
    try:
        noted = msgspec.json.decode(annotations.get(keys.TO_BE_REMOVED, "[]"), type=list[str | Removal])
    except msgspec.MsgspecError:
        return []
    return [Removal(each) if isinstance(each, str) else each for each in noted]


def to_be_removed(annotations: Mapping[str, str]) -> list[str]:
    """The clusters of these copies."""
    return [each.cluster for each in removals(annotations)] if keys.TO_BE_REMOVED in annotations else []


def with_removals_noted(
    annotations: Mapping[str, str], causes: Mapping[str, str], after: Iterable[str], since: str
) -> dict[str, str]:
    """The annotations to store together with the new placement. `causes` says which copies go from now on, and why."""
    noted = {each.cluster: each for each in removals(annotations)}
    for cluster, cause in causes.items():
        noted.setdefault(cluster, Removal(cluster, cause, since))
    placed_there = set(after)
    return _with_notes(annotations, [each for each in noted.values() if each.cluster not in placed_there])


def after_removal(annotations: Mapping[str, str], absent: Iterable[str]) -> dict[str, str] | None:
    """The annotations once these clusters were seen to have no copy; None if none of them was recorded."""
    noted, gone = removals(annotations), set(absent)
    left = [each for each in noted if each.cluster not in gone]
    return None if len(left) == len(noted) else _with_notes(annotations, left)


def _with_notes(annotations: Mapping[str, str], noted: Iterable[Removal]) -> dict[str, str]:
    rest = without_annotations(annotations, keys.TO_BE_REMOVED)
    listed = sorted(noted, key=lambda each: each.cluster)
    return {**rest, keys.TO_BE_REMOVED: msgspec.json.encode(listed).decode()} if listed else rest


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
