"""Override: the step that makes an object differ from cluster to cluster.

The rules of the named policies apply in order, cluster by cluster, each to the result of the rules before. Only the JSON
patch overrider is supported; a rule with any other is an error on the object.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from argosy.api import keys
from argosy.api.conditions import EventReason
from argosy.api.policies import OverridePolicy, OverrideRule, TargetClusters
from argosy.fleet.member import Member
from argosy.kube.selectors import SelectorError, from_match
from argosy.plan.copies.patches import OverrideError, apply_patches
from argosy.plan.copies.placement import Patches, placed, with_overrides
from argosy.plan.fields import Json, equal
from argosy.plan.metadata import labels_of
from argosy.plan.pipeline.held import HeldReason
from argosy.plan.pipeline.inputs import PassInputs
from argosy.plan.pipeline.policy import override_refs
from argosy.plan.pipeline.state import State
from argosy.plan.scheduling.selection import SelectionError, terms_match

__all__ = ["override", "overrides", "rule_matches"]

#: In the order the API applies them; those without a function here are not supported yet.
_KNOWN: Final = ("image", "command", "args", "envs", "annotations", "labels", "jsonpatch")


def override(inputs: PassInputs, state: State) -> State:
    """The patches of the override policies that the source names, for every cluster it is placed in."""
    policies = []
    for ref in override_refs(labels_of(inputs.source), inputs.namespace):
        policy = inputs.override_policies.get(ref)
        if policy is None:
            kind = "OverridePolicy" if ref.namespace else "ClusterOverridePolicy"
            message = f"{kind} {ref.key} not found"
            event = EventReason.MATCH_OVERRIDE_POLICY_FAILED
            return state.stopping(HeldReason.OVERRIDE_POLICY_MISSING, message, event)
        policies.append(policy)
    where = placed(state.spec) if policies else ()
    members = [member for name in where if (member := inputs.fleet.member(name)) is not None]
    try:
        patches = overrides(policies, state.spec["template"], members)
    except OverrideError as error:
        return state.stopping(HeldReason.OVERRIDES_INVALID, str(error), EventReason.PARSE_OVERRIDE_POLICY_FAILED)
    spec = with_overrides(state.spec, keys.OVERRIDE_CONTROLLER, patches)
    after = state.with_spec(spec)
    if not patches or equal(state.spec, spec):
        return after
    names = ", ".join(policy.metadata.name for policy in policies)
    return after.noting("Normal", EventReason.OVERRIDE_POLICY_APPLIED, f"overrides of {names} applied")


class _JsonPatchOverrider(msgspec.Struct, frozen=True):
    path: str
    operator: str = ""
    value: Any = None

    def patch(self) -> Json:
        """An API server drops a null value when it stores the patch, so null is left out: absent means null anyway."""
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
    """Whether a rule is for this cluster: all its criteria must match, absent ones match. Raises on a wrong criterion."""
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
            raise OverrideError(f"the overrider {name!r} is not supported yet; use jsonpatch")
    try:
        items = msgspec.convert(stated.get("jsonpatch") or [], list[_JsonPatchOverrider])
    except msgspec.ValidationError as error:
        raise OverrideError(f"jsonpatch: {error}") from None
    return [item.patch() for item in items]


def _of_finalizers(patch: Json) -> bool:
    """Finalizers belong to the member: patches on them apply only when the member's object is rendered."""
    path: str = patch["path"]
    return path == "/metadata/finalizers" or path.startswith("/metadata/finalizers/")
