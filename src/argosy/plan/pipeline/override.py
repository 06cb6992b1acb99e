"""Override: the patches that make an object differ from cluster to cluster.

Rules of the named policies apply in order, cluster by cluster, each to what the ones before made of the template. So far
the JSON patch overrider is known; a rule with any other is an error on the object, never left out silently.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from argosy.api import keys
from argosy.api.policies import OverridePolicy, OverrideRule, TargetClusters
from argosy.fleet.member import Member
from argosy.kube import jsonpatch
from argosy.kube.selectors import SelectorError, from_match
from argosy.plan.copies.placement import Patches
from argosy.plan.fields import Json
from argosy.plan.metadata import annotations_of, is_string_map, labels_of
from argosy.plan.scheduling.selection import SelectionError, terms_match

__all__ = ["OverrideError", "apply_patches", "overrides", "rule_matches"]

#: In the order the API applies them; those without a function here are not served yet.
_KNOWN: Final = ("image", "command", "args", "envs", "annotations", "labels", "jsonpatch")
#: All of an object's metadata that may differ from cluster to cluster; the rest makes it the object it is.
_METADATA: Final = ("labels", "annotations", "finalizers")
_RBAC: Final = "rbac.authorization.k8s.io/"


class OverrideError(ValueError):
    """A rule or patch that cannot be carried out; the message names it."""


class _JsonPatchOverrider(msgspec.Struct, frozen=True):
    path: str
    operator: str = ""
    value: Any = None

    def patch(self) -> Json:
        """An API server drops a null value when it stores the patch, so none is written: absent means null anyway."""
        patch: Json = {"op": self.operator} if self.operator else {}
        patch["path"] = self.path
        return patch if self.value is None else {**patch, "value": self.value}


def overrides(policies: Sequence[OverridePolicy], template: Json, clusters: Iterable[Member]) -> dict[str, Patches]:
    """The patches by cluster, clusters without any left out. Raises OverrideError."""
    result = {cluster.name: _patches(policies, template, cluster) for cluster in clusters}
    return {name: patches for name, patches in result.items() if patches}


def _patches(policies: Sequence[OverridePolicy], template: Json, cluster: Member) -> Patches:
    working, patches = template, []
    for policy in policies:
        for number, rule in enumerate(policy.spec.override_rules):
            try:
                if not rule_matches(rule.target_clusters, cluster.name, cluster.labels):
                    continue
                made = _rule_patches(rule)
                working = apply_patches(working, [patch for patch in made if not _of_finalizers(patch)])
            except (OverrideError, SelectionError) as error:
                where = f"{policy.kind} {policy.metadata.name}, overrideRules[{number}], cluster {cluster.name}"
                raise OverrideError(f"{where}: {error}") from None
            patches += made
    return patches


def rule_matches(target: TargetClusters | None, name: str, labels: Mapping[str, str]) -> bool:
    """Whether a rule is for this cluster: all of its criteria must match, absent ones do. Raises on a wrong criterion."""
    if target is None:
        return True
    if target.clusters and name not in target.clusters:
        return False
    try:
        if not from_match(target.cluster_selector, None).matches(labels):
            return False
    except SelectorError as error:
        raise OverrideError(f"clusterSelector: {error}") from None
    return not target.cluster_affinity or terms_match(target.cluster_affinity, name, labels)


def _rule_patches(rule: OverrideRule) -> Patches:
    stated = {name: items for name, items in (rule.overriders or {}).items() if items}
    for name in stated:
        if name not in _KNOWN:
            raise OverrideError(f"unknown overrider {name!r}")
        if name != "jsonpatch":
            raise OverrideError(f"the overrider {name!r} is not supported yet; say it with jsonpatch")
    try:
        items = msgspec.convert(stated.get("jsonpatch") or [], list[_JsonPatchOverrider])
    except msgspec.ValidationError as error:
        raise OverrideError(f"jsonpatch: {error}") from None
    return [item.patch() for item in items]


def _of_finalizers(patch: Json) -> bool:
    """Finalizers are the member's; patches on them apply only when the member's object is rendered."""
    path: str = patch["path"]
    return path == "/metadata/finalizers" or path.startswith("/metadata/finalizers/")


def apply_patches(obj: Json, patches: Patches) -> Json:
    """The object with patches applied; an empty operation means replace. It stays the same object, and grants the same rights."""
    if not patches:
        return obj
    try:
        patched: Any = jsonpatch.apply(obj, [{**patch, "op": patch.get("op") or "replace"} for patch in patches])
    except jsonpatch.JsonPatchError as error:
        raise OverrideError(str(error)) from None
    _check_identity(obj, patched)
    metadata = patched["metadata"]
    if not is_string_map(metadata.get("labels")) or not is_string_map(metadata.get("annotations")):
        raise OverrideError("labels and annotations must stay maps of strings")
    if not _is_list_of_names(metadata.get("finalizers")):
        raise OverrideError("finalizers must stay a list of names")
    _check_marks(labels_of(obj), labels_of(patched))
    _check_marks(annotations_of(obj), annotations_of(patched))
    if str(obj.get("apiVersion")).startswith(_RBAC) and _rights(patched) != _rights(obj):
        raise OverrideError(f"what a {obj.get('kind')} grants, and to whom, cannot be overridden")
    return patched  # type: ignore[no-any-return]


def _check_identity(obj: Json, patched: Any) -> None:
    """Looked at in the result: what holds a name can be replaced as a whole, moved or copied over."""
    if not isinstance(patched, dict) or not isinstance(patched.get("metadata"), dict):
        raise OverrideError("an object and its metadata cannot be overridden as a whole")
    for field in ("apiVersion", "kind"):
        if patched.get(field) != obj.get(field):
            raise OverrideError(f"/{field} cannot be overridden")
    before, after = obj["metadata"], patched["metadata"]
    for field in sorted(before.keys() | after.keys()):
        if field not in _METADATA and before.get(field) != after.get(field):
            raise OverrideError(f"/metadata/{field} cannot be overridden")


def _check_marks(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    for key in sorted(keys.MARKS):
        if before.get(key) != after.get(key):
            raise OverrideError(f"{key} is the federation's own in members and cannot be overridden")


def _is_list_of_names(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(name, str) for name in value))


def _rights(obj: Json) -> Json:
    """What makes up a role or binding. Only its source was checked for whether its writer holds the rights it gives: in members
    the federation itself writes it, which may grant anything. Labels by which roles are put together count as well."""
    labels = {key: value for key, value in labels_of(obj).items() if key.startswith(_RBAC)}
    return {**{key: value for key, value in obj.items() if key != "metadata"}, "labels": labels}
