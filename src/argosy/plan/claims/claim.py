"""Claim: which of the policies that select an object gets it.

The object's own label wins; then, of the policies that select it, the one with the highest priority, a namespaced one before a
cluster-scoped one, the more specific one, the first by name. A policy is as specific as the most specific of its selectors that
match: one with a name before one with labels, a kind, an API group, labels of namespaces, nothing at all; what comes next counts
if that is equal.

`Selectors` holds policies by what they select, so that an object is only compared with those of its own namespace and kind.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from argosy.api.policies import PropagationPolicy
from argosy.api.selectors import ANY, ResourceSelector
from argosy.kube.selectors import LabelSelector, SelectorError, from_label_selector
from argosy.plan.claims.exclusions import WITH_ITS_KIND_ONLY, Subject, excluded, excluded_kind, like_the_systems_own
from argosy.plan.pipeline.policy import PolicyRef, propagation_ref

__all__ = ["Claim", "Contender", "NamespaceLabels", "Selectors", "Specificity", "complaints", "ref_of"]

#: The labels of namespaces by name; one that is missing is not known, and no selector of namespaces matches it.
NamespaceLabels = Mapping[str, Mapping[str, str]]
_RBAC: Final = "rbac.authorization.k8s.io"


class Specificity(NamedTuple):
    """What a selector states, the most specific first. Greater is more specific."""

    name: bool = False
    labels: bool = False
    kind: bool = False
    api_version: bool = False
    namespaces: bool = False

    @property
    def text(self) -> str:
        words = ("name", "labels", "kind", "API group", "namespace")
        return " and ".join(word for word, stated in zip(words, self, strict=True) if stated) or "wildcard"


class Contender(msgspec.Struct, frozen=True):
    """A policy that selects an object."""

    ref: PolicyRef
    priority: int
    specificity: Specificity

    @property
    def order(self) -> tuple[int, bool, tuple[bool, ...], str]:
        """The first gets the object."""
        return -self.priority, not self.ref.namespace, tuple(not each for each in self.specificity), self.ref.name


class Claim(msgspec.Struct, frozen=True):
    """The policy that gets an object, why, and which others would."""

    ref: PolicyRef
    by_label: bool
    why: str
    #: In the order in which they would get it.
    others: tuple[PolicyRef, ...] = ()


class _Selector(msgspec.Struct, frozen=True):
    """One item of a policy's resourceSelectors, ready to be compared."""

    name: str
    labels: LabelSelector | None
    namespaces: LabelSelector | None
    any_kind: bool
    specificity: Specificity

    def selects(self, subject: Subject, namespaces: NamespaceLabels) -> bool:
        if not self.may_select(subject):
            return False
        if self.namespaces is None:
            return True
        known = namespaces.get(subject.metadata.namespace)
        return known is not None and self.namespaces.matches(known)

    def may_select(self, subject: Subject) -> bool:
        """Whatever labels its namespace has."""
        metadata = subject.metadata
        if self.name and self.name != metadata.name:
            return False
        if self.labels is not None and not self.labels.matches(metadata.labels):
            return False
        return not (self.any_kind and (subject.group, subject.kind) in WITH_ITS_KIND_ONLY)


#: Namespace (empty for cluster-scoped policies), group and kind, each of the latter two possibly `*`.
_Place = tuple[str, str, str]


class Selectors:
    """The policies that select, by what they do. Not for several threads."""

    def __init__(self, policies: Iterable[PropagationPolicy] = ()) -> None:
        self._priorities: dict[PolicyRef, int] = {}
        self._places: dict[PolicyRef, set[_Place]] = {}
        #: Those that look at the labels of namespaces.
        self._by_namespace: set[PolicyRef] = set()
        self._at: dict[_Place, dict[PolicyRef, tuple[_Selector, ...]]] = {}
        for policy in policies:
            self.put(policy)

    def __len__(self) -> int:
        return len(self._places)

    @property
    def look_at_namespaces(self) -> bool:
        """Whether the labels of namespaces decide anything."""
        return bool(self._by_namespace)

    def put(self, policy: PropagationPolicy) -> None:
        """A policy that is new or changed."""
        ref = ref_of(policy)
        self.drop(ref)
        found: dict[_Place, list[_Selector]] = {}
        for each in policy.spec.resource_selectors:
            try:
                selector = _compiled(each, cluster_wide=not ref.namespace)
            except SelectorError:
                continue  # it selects nothing; `complaints` tells of it
            kind = ANY if each.any_kind else each.kind
            found.setdefault((ref.namespace, each.group, kind), []).append(selector)
        if not found:
            return
        self._priorities[ref] = policy.spec.priority
        self._places[ref] = set(found)
        if any(each.namespaces is not None for selectors in found.values() for each in selectors):
            self._by_namespace.add(ref)
        for place, selectors in found.items():
            # The most specific first: the first that matches says how specific the policy is.
            selectors.sort(key=lambda each: each.specificity, reverse=True)
            self._at.setdefault(place, {})[ref] = tuple(selectors)

    def drop(self, ref: PolicyRef) -> None:
        self._priorities.pop(ref, None)
        self._by_namespace.discard(ref)
        for place in self._places.pop(ref, ()):
            del self._at[place][ref]
            if not self._at[place]:
                del self._at[place]

    def selects_kind(self, group: str, kind: str) -> bool:
        """Whether any policy may select objects of this kind."""
        return any(a in (ANY, group) and b in (ANY, kind) for _, a, b in self._at)

    def needs_namespace(self, subject: Subject) -> bool:
        """Whether the labels of its namespace have a say in who gets an object."""
        if not subject.metadata.namespace or not self._by_namespace or excluded(subject):
            return False
        if propagation_ref(subject.metadata.labels, subject.metadata.namespace) is not None:
            return False
        found = (each for place in _places_of(subject) for each in self._at.get(place, {}).values())
        return any(
            each.namespaces is not None and each.may_select(subject) for selectors in found for each in selectors
        )

    def contenders(self, subject: Subject, namespaces: NamespaceLabels) -> list[Contender]:
        """The policies that select this object; the first gets it."""
        if not self._at:
            return []
        found: dict[PolicyRef, Specificity] = {}
        for place in _places_of(subject):
            for ref, selectors in self._at.get(place, {}).items():
                best = next((each.specificity for each in selectors if each.selects(subject, namespaces)), None)
                if best is not None and (ref not in found or best > found[ref]) and not _keeps_off(ref, best, subject):
                    found[ref] = best
        if not found or excluded(subject):
            return []
        every = (Contender(ref, self._priorities[ref], specificity) for ref, specificity in found.items())
        return sorted(every, key=lambda each: each.order)

    def claim(self, subject: Subject, namespaces: NamespaceLabels) -> Claim | None:
        """None if nothing claims the object."""
        contenders = self.contenders(subject, namespaces)
        own = propagation_ref(subject.metadata.labels, subject.metadata.namespace)
        if own is not None:
            return Claim(own, True, "its own label names it", tuple(each.ref for each in contenders if each.ref != own))
        if not contenders:
            return None
        first, *others = contenders
        why = _why(first, others[0]) if others else f"selected by {first.specificity.text}"
        return Claim(first.ref, False, why, tuple(each.ref for each in others))


def ref_of(policy: PropagationPolicy) -> PolicyRef:
    return PolicyRef(policy.metadata.name, policy.metadata.namespace)


def complaints(policy: PropagationPolicy, federated: Container[tuple[str, str]]) -> list[str]:
    """Why some of a policy's selectors select nothing; `federated` are the kinds with a type config, by their groups."""
    found = []
    for number, each in enumerate(policy.spec.resource_selectors):
        if why := _complaint(each, policy.metadata.namespace, federated):
            found.append(f"spec.resourceSelectors[{number}] selects nothing: {why}")
    return found


def _complaint(selector: ResourceSelector, namespace: str, federated: Container[tuple[str, str]]) -> str:
    try:
        _compiled(selector, cluster_wide=not namespace)
    except SelectorError as error:
        return str(error)
    if namespace and selector.group == _RBAC:
        return "a policy of a namespace gives no rights in members"
    if selector.any_kind or selector.group == ANY:
        return ""
    if why := excluded_kind(selector.group, selector.kind):
        return why
    known = (selector.group, selector.kind) in federated
    return "" if known else f"{selector.kind} is not federated, no FederatedTypeConfig names it"


def _compiled(selector: ResourceSelector, *, cluster_wide: bool) -> _Selector:
    labels, namespaces = selector.label_selector, selector.namespace_selector if cluster_wide else None
    stated = Specificity(
        name=bool(selector.name),
        labels=_states(labels),
        kind=not selector.any_kind,
        api_version=selector.group != ANY,
        namespaces=_states(namespaces),
    )
    return _Selector(
        selector.name,
        from_label_selector(labels) if stated.labels else None,
        from_label_selector(namespaces) if stated.namespaces else None,
        selector.any_kind,
        stated,
    )


def _states(selector: Mapping[str, object] | None) -> bool:
    return bool(selector and (selector.get("matchLabels") or selector.get("matchExpressions")))


def _places_of(subject: Subject) -> Iterator[_Place]:
    namespace = subject.metadata.namespace
    for where in (namespace, "") if namespace else ("",):
        for group in (subject.group, ANY):
            yield where, group, subject.kind
            yield where, group, ANY


def _keeps_off(ref: PolicyRef, selector: Specificity, subject: Subject) -> bool:
    """What a policy of this scope leaves alone.

    Whoever may write policies in a namespace need not be allowed to give rights there; and a fleet's policy is not meant for
    what Kubernetes itself runs, unless it names the very object.
    """
    if ref.namespace:
        return subject.group == _RBAC
    return like_the_systems_own(subject) and not (selector.name and selector.kind)


def _why(first: Contender, second: Contender) -> str:
    other = _text(second.ref)
    if first.priority != second.priority:
        return f"its priority {first.priority} is higher than {second.priority} of {other}"
    if bool(first.ref.namespace) != bool(second.ref.namespace):
        return f"a policy of the namespace goes before {other}"
    if first.specificity != second.specificity:
        return f"it selects by {first.specificity.text}, {other} by {second.specificity.text}"
    return f"its name comes before that of {other}, which selects the same with the same priority"


def _text(ref: PolicyRef) -> str:
    return f"{ref.kind} {ref.name}"
