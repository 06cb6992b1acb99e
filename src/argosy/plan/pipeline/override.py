"""Override: the step that makes an object differ from cluster to cluster.

The rules of the named policies apply in order, cluster by cluster, each to the result of the rules before. A cluster whose
rules cannot be applied keeps its copy as it is (`plan.copies.held_copies`); the others go on. Without one of the policies nobody
knows what is wanted anywhere, and the object is held as a whole.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from argosy.api import keys
from argosy.api.conditions import EventReason
from argosy.api.policies import OverridePolicy, TargetClusters
from argosy.fleet.member import Member
from argosy.kube.selectors import SelectorError, from_match
from argosy.plan.copies.held_copies import Refusal, held_copies, with_held_copies
from argosy.plan.copies.patches import OverrideError
from argosy.plan.copies.placement import Patches, entry_of, placed, with_overrides
from argosy.plan.fields import Json, equal
from argosy.plan.metadata import labels_of, without_annotations
from argosy.plan.overriders import record
from argosy.plan.overriders.record import Made
from argosy.plan.overriders.rule import rule_patches
from argosy.plan.pipeline.held import HeldReason
from argosy.plan.pipeline.inputs import PassInputs
from argosy.plan.pipeline.policy import override_refs
from argosy.plan.pipeline.state import State
from argosy.plan.scheduling.selection import SelectionError, terms_match

__all__ = ["Overrides", "override", "overrides", "rule_matches"]


class _Rule(NamedTuple):
    policy: int
    number: int


class Overrides(msgspec.Struct, frozen=True):
    """What policies make of an object in some clusters. A cluster has patches, or a refusal, or nothing at all."""

    patches: dict[str, Patches]
    #: Who made these patches.
    made: dict[str, tuple[Made, ...]]
    refusals: dict[str, Refusal]


def override(inputs: PassInputs, state: State) -> State:
    """The patches of the override policies that the source names, for every cluster it is placed in."""
    policies = []
    for ref in override_refs(labels_of(inputs.source), inputs.namespace):
        policy = inputs.override_policies.get(ref)
        if policy is None:
            kind = "OverridePolicy" if ref.namespace else "ClusterOverridePolicy"
            message = f"{kind} {ref.key} not found: what is wanted is not known in any cluster"
            event = EventReason.MATCH_OVERRIDE_POLICY_FAILED
            return state.stopping(HeldReason.OVERRIDE_POLICY_MISSING, message, event)
        policies.append(policy)
    where = placed(state.spec) if policies else ()
    members = [member for name in where if (member := inputs.fleet.member(name)) is not None]
    made = _with_kept(state, overrides(policies, state.spec["template"], members))
    spec = with_overrides(state.spec, keys.OVERRIDE_CONTROLLER, made.patches)
    annotations = without_annotations(with_held_copies(state.annotations, made.refusals), keys.OVERRIDES)
    if text := record.encode(made.made):
        annotations[keys.OVERRIDES] = text
    after = _telling_of_held(state, state.with_spec(spec).with_annotations(annotations))
    if not made.patches or equal(state.spec, spec):
        return after
    names = ", ".join(policy.metadata.name for policy in policies)
    return after.noting("Normal", EventReason.OVERRIDE_POLICY_APPLIED, f"overrides of {names} applied")


def _with_kept(state: State, made: Overrides) -> Overrides:
    """A held copy still has the patches it was written with: what these refer to is still needed there."""
    stored = entry_of(state.spec, "overrides", keys.OVERRIDE_CONTROLLER).get("clusters") or ()
    patches = {
        each["cluster"]: each["patches"] for each in stored if each["cluster"] in made.refusals and each.get("patches")
    }
    known = record.decode(state.annotations, stored)
    kept = {name: known.get(name, ()) for name in patches}
    return msgspec.structs.replace(made, patches={**made.patches, **patches}, made={**made.made, **kept})


def _telling_of_held(before: State, after: State) -> State:
    """Once: a pass with the same result adds no event."""
    held = held_copies(after.annotations)
    if not held or held == held_copies(before.annotations):
        return after
    return after.noting("Warning", EventReason.PARSE_OVERRIDE_POLICY_FAILED, held.message)


def overrides(policies: Sequence[OverridePolicy], template: Json, clusters: Iterable[Member]) -> Overrides:
    """Clusters that the same rules are for get the same, which is made once."""
    result = Overrides({}, {}, {})
    known: dict[tuple[_Rule, ...], list[tuple[Made, Patches]] | Refusal] = {}
    for cluster in clusters:
        rules, refusal = _rules_for(policies, cluster)
        if rules not in known:
            known[rules] = _made(policies, rules, template)
        made = known[rules] if refusal is None or isinstance(known[rules], Refusal) else refusal
        if isinstance(made, Refusal):
            result.refusals[cluster.name] = made
            continue
        patches = [patch for _, each in made for patch in each]
        if patches:
            result.patches[cluster.name] = patches
            result.made[cluster.name] = tuple(each for each, _ in made if each.patches)
    return result


def _rules_for(policies: Sequence[OverridePolicy], cluster: Member) -> tuple[tuple[_Rule, ...], Refusal | None]:
    """The rules that are for a cluster, up to the first of which that cannot be told."""
    found: list[_Rule] = []
    for index, policy in enumerate(policies):
        for number, rule in enumerate(policy.spec.override_rules):
            try:
                if rule_matches(rule.target_clusters, cluster.name, cluster.labels):
                    found.append(_Rule(index, number))
            except (OverrideError, SelectionError) as error:
                return tuple(found), Refusal(_named(policy), number, str(error))
    return tuple(found), None


def _made(
    policies: Sequence[OverridePolicy], rules: Iterable[_Rule], template: Json
) -> list[tuple[Made, Patches]] | Refusal:
    """What each rule makes, one after the other."""
    working, made = template, []
    for index, number in rules:
        policy = policies[index]
        try:
            patches, working = rule_patches(policy.spec.override_rules[number].overriders, working)
        except OverrideError as error:
            return Refusal(_named(policy), number, str(error))
        made.append((Made(_named(policy), number, len(patches)), patches))
    return made


def _named(policy: OverridePolicy) -> str:
    return f"{policy.kind} {policy.metadata.name}"


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
