"""Survey: what each policy is for, how many objects it has, and what is wrong with that.

Put together from the policies and the federated objects alone: every object that a policy claims has one.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from argosy.api import keys
from argosy.api.federated import FederatedObject
from argosy.api.policies import OverridePolicy, PropagationPolicy
from argosy.api.selectors import ResourceSelector
from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.kube.selectors import SelectorError, from_label_selector
from argosy.plan.claims.claim import NamespaceLabels, Selectors, complaints, ref_of
from argosy.plan.claims.exclusions import Subject
from argosy.plan.metadata import annotations_of, labels_of
from argosy.plan.pipeline.held import HeldReason, held_of
from argosy.plan.pipeline.policy import PolicyRef, override_refs, propagation_ref

__all__ = ["PolicyReport", "survey"]

#: Policies that are named in one line of trouble.
_NAMED: Final = 3


class PolicyReport(msgspec.Struct, frozen=True, rename="camel"):
    """A policy, or one that objects name and that does not exist."""

    kind: str
    name: str
    namespace: str
    exists: bool
    #: Of a propagation policy; None for an override policy, which nothing selects by.
    priority: int | None
    #: What it selects, in words; empty if only labels name it.
    selects: tuple[str, ...]
    #: How many objects it has, and how many of them it selected.
    objects: int
    selected: int
    trouble: tuple[str, ...]


class _Found(msgspec.Struct):
    """What the objects say of one policy."""

    objects: int = 0
    selected: int = 0
    #: How many of those it selected are held, since it selects them no more or does not exist.
    held: int = 0
    #: One that names it.
    example: str = ""
    #: How many objects it gets that another policy selects as well, and the other way round.
    before: dict[PolicyRef, int] = {}
    after: dict[PolicyRef, int] = {}


def survey(
    policies: Sequence[PropagationPolicy],
    overrides: Sequence[OverridePolicy],
    federated: Iterable[FederatedObject],
    configs: Iterable[FederatedTypeConfig] | None,
    namespaces: NamespaceLabels,
) -> list[PolicyReport]:
    """Sorted by namespace, with cluster-scoped policies last. Without `configs` it is not told which kinds are not federated."""
    selectors = Selectors(policies)
    kinds = {(each.resource.group, each.kind) for each in configs} if configs is not None else None
    placing: dict[PolicyRef, _Found] = {}
    overriding: dict[PolicyRef, _Found] = {}
    for each in federated:
        _count(each, selectors, namespaces, placing, overriding)
    of_placing = {ref_of(each): each for each in policies}
    of_overriding = {PolicyRef(each.metadata.name, each.metadata.namespace): each for each in overrides}
    reports = [_report(ref, of_placing.get(ref), placing.get(ref, _Found()), kinds) for ref in of_placing | placing]
    reports += [
        _override(ref, ref in of_overriding, overriding.get(ref, _Found())) for ref in of_overriding | overriding
    ]
    return sorted(reports, key=lambda each: (not each.namespace, each.namespace, each.name, each.kind))


def _count(
    federated: FederatedObject,
    selectors: Selectors,
    namespaces: NamespaceLabels,
    placing: dict[PolicyRef, _Found],
    overriding: dict[PolicyRef, _Found],
) -> None:
    metadata, template = federated.metadata, federated.spec.template
    kind = str(template.get("kind") or "")
    subject = Subject(
        str(template.get("apiVersion") or "").rpartition("/")[0],
        kind,
        msgspec.structs.replace(
            metadata,
            name=str((template.get("metadata") or {}).get("name") or ""),
            labels=labels_of(template),
            annotations=annotations_of(template),
            owner_references=(),
        ),
    )
    text = f"{kind.lower()}/{subject.metadata.name}"
    for ref in override_refs(metadata.labels, metadata.namespace):
        found = overriding.setdefault(ref, _Found())
        found.objects, found.example = found.objects + 1, found.example or text
    ref_now = propagation_ref(metadata.labels, metadata.namespace)
    if ref_now is None:
        return
    found = placing.setdefault(ref_now, _Found())
    found.objects, found.example = found.objects + 1, found.example or text
    if keys.SELECTED_BY in metadata.annotations:
        held = held_of(metadata.annotations)
        found.selected += 1
        found.held += held is not None and held.reason in (HeldReason.NOT_SELECTED, HeldReason.POLICY_MISSING)
    for other in selectors.contenders(subject, namespaces):
        if other.ref != ref_now:
            found.before[other.ref] = found.before.get(other.ref, 0) + 1
            loser = placing.setdefault(other.ref, _Found())
            loser.after[ref_now] = loser.after.get(ref_now, 0) + 1


def _report(
    ref: PolicyRef, policy: PropagationPolicy | None, found: _Found, kinds: set[tuple[str, str]] | None
) -> PolicyReport:
    trouble = []
    if policy is None:
        trouble.append(f"does not exist: {_named(found)}")
    elif not found.objects and not found.after:
        trouble.append(
            "it has no object: none names it" + (" and it selects none" if policy.spec.resource_selectors else "")
        )
    if found.held:
        what = "that it selected" if policy is None else "that it selects no more"
        trouble.append(f"{_objects(found.held)} {what}: held, the copies stay as they are")
    trouble += _most(found.before, "gets {objects} that {policy} selects as well")
    trouble += _most(found.after, "{policy} gets {objects} that it selects, too")
    if policy is not None and kinds is not None:
        trouble += complaints(policy, kinds)
    return PolicyReport(
        kind=ref.kind,
        name=ref.name,
        namespace=ref.namespace,
        exists=policy is not None,
        priority=policy.spec.priority if policy is not None else None,
        selects=tuple(map(_selector, policy.spec.resource_selectors)) if policy is not None else (),
        objects=found.objects,
        selected=found.selected,
        trouble=tuple(trouble),
    )


def _override(ref: PolicyRef, exists: bool, found: _Found) -> PolicyReport:
    trouble = (
        ()
        if exists and found.objects
        else ("it has no object: none names it",)
        if exists
        else (f"does not exist: {_named(found)}",)
    )
    kind = "OverridePolicy" if ref.namespace else "ClusterOverridePolicy"
    return PolicyReport(kind, ref.name, ref.namespace, exists, None, (), found.objects, 0, trouble)


def _named(found: _Found) -> str:
    more = f" and {found.objects - 1} more" if found.objects > 1 else ""
    return f"{found.example}{more} {'name' if more else 'names'} it"


def _objects(number: int) -> str:
    return f"{number} object{'s' if number > 1 else ''}"


def _most(others: dict[PolicyRef, int], text: str) -> list[str]:
    order = sorted(others.items(), key=lambda each: (-each[1], each[0].key))
    told = [text.format(objects=_objects(number), policy=f"{ref.kind} {ref.key}") for ref, number in order[:_NAMED]]
    return [*told, f"so with {len(order) - _NAMED} more policies"] if len(order) > _NAMED else told


def _selector(selector: ResourceSelector) -> str:
    kind = "*" if selector.any_kind else selector.kind
    text = kind if selector.group in ("", "*") else f"{kind}.{selector.group}"
    text += f"/{selector.name}" if selector.name else ""
    for what, stated in (("", selector.label_selector), ("namespace ", selector.namespace_selector)):
        if stated:
            text += f" {what}{_labels(stated)}"
    return text


def _labels(stated: Mapping[str, Any]) -> str:
    try:
        return f"({from_label_selector(stated)})"
    except SelectorError:
        return "(invalid)"
