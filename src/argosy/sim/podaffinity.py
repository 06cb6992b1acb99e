"""Affinity between pods: near which pods one must or should run, and which pods keep it away. Pure.

Terms speak of places: all nodes with the same value of a label. They concern pods of the pod's own namespace, or of those they
name or select.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from argosy.kube.selectors import LabelSelector, SelectorError, from_label_selector

__all__ = ["APART_FROM_ALL", "PodAffinity", "Running", "Term", "Terms", "terms_of"]

Labels = Mapping[str, str]
_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
_APART = "node(s) didn't match pod anti-affinity rules"
#: Evicting others would not help.
APART_FROM_ALL = "node(s) didn't match pod affinity rules"
_KEPT_AWAY = "node(s) didn't satisfy existing pods anti-affinity rules"


class Term(NamedTuple):
    topology: str
    selector: LabelSelector
    namespaces: frozenset[str]
    #: Of namespaces, by their labels; None: only those named, and if there are none the pod's own.
    namespace_selector: LabelSelector | None
    weight: int = 0

    def selects(self, own: str, namespace: str, labels: Labels, labels_of: Callable[[str], Labels]) -> bool:
        """Whether a pod in `namespace` is meant by this term of a pod in the namespace `own`."""
        named = namespace in self.namespaces
        if self.namespace_selector is not None:
            named = named or self.namespace_selector.matches(labels_of(namespace))
        elif not self.namespaces:
            named = namespace == own
        return named and self.selector.matches(labels)


class Terms(NamedTuple):
    together: tuple[Term, ...] = ()
    apart: tuple[Term, ...] = ()
    #: With their weights; those that repel are negative.
    preferred: tuple[Term, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.together or self.apart or self.preferred)


class Running(NamedTuple):
    """A pod that is bound to a node, or about to be."""

    namespace: str
    labels: Labels
    node: str
    terms: Terms


def terms_of(spec: Mapping[str, Any]) -> Terms:
    affinity = spec.get("affinity") or {}
    near, far = affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}
    if not near and not far:
        return Terms()
    return Terms(
        tuple(_term(each) for each in near.get(_REQUIRED) or ()),
        tuple(_term(each) for each in far.get(_REQUIRED) or ()),
        tuple(
            _term(each["podAffinityTerm"], sign * each["weight"])
            for given, sign in ((near, 1), (far, -1))
            for each in given.get(_PREFERRED) or ()
        ),
    )


def _term(term: Mapping[str, Any], weight: int = 0) -> Term:
    given = term.get("namespaceSelector")
    try:
        selector = from_label_selector(term.get("labelSelector"))
        namespaces = from_label_selector(given) if given is not None else None
    except SelectorError:
        selector, namespaces = from_label_selector(None), None
    return Term(term["topologyKey"], selector, frozenset(term.get("namespaces") or ()), namespaces, weight)


class PodAffinity:
    """What the running pods mean for one more. `nodes` has the labels of each node, `labels_of` those of a namespace."""

    def __init__(
        self,
        pod: Running,
        running: Iterable[Running],
        nodes: Mapping[str, Labels],
        labels_of: Callable[[str], Labels],
    ):
        self._terms = pod.terms
        #: For each term the values of its label in whose places it finds pods.
        self._near: list[set[str]] = [set() for _ in pod.terms.together]
        self._far: set[tuple[str, str]] = set()
        self._repelled: set[tuple[str, str]] = set()
        self._scores: dict[tuple[str, str], int] = {}
        self._first = all(
            term.selects(pod.namespace, pod.namespace, pod.labels, labels_of) for term in pod.terms.together
        )
        for other in running:
            labels = nodes.get(other.node)
            if labels is None:
                continue
            for term, places in zip(pod.terms.together, self._near, strict=True):
                if term.topology in labels and term.selects(pod.namespace, other.namespace, other.labels, labels_of):
                    places.add(labels[term.topology])
            for term in (*pod.terms.apart, *pod.terms.preferred):
                if term.topology in labels and term.selects(pod.namespace, other.namespace, other.labels, labels_of):
                    place = (term.topology, labels[term.topology])
                    if term.weight:
                        self._scores[place] = self._scores.get(place, 0) + term.weight
                    else:
                        self._far.add(place)
            for term in other.terms.apart:
                if term.topology in labels and term.selects(other.namespace, pod.namespace, pod.labels, labels_of):
                    self._repelled.add((term.topology, labels[term.topology]))

    def refuses(self, node: Labels) -> str:
        """Why a node with these labels is not for the pod; empty if it is."""
        if not self._is_near(node):
            return APART_FROM_ALL
        if any(node.get(key) == value for key, value in self._far):
            return _APART
        if any(node.get(key) == value for key, value in self._repelled):
            return _KEPT_AWAY
        return ""

    def _is_near(self, node: Labels) -> bool:
        terms: Sequence[Term] = self._terms.together
        if not all(term.topology in node for term in terms):
            return False
        if self._first and not any(self._near):
            return True  # the first of pods that want to be together
        return all(node[term.topology] in places for term, places in zip(terms, self._near, strict=True))

    def score(self, node: Labels) -> int:
        return sum(weight for (key, value), weight in self._scores.items() if node.get(key) == value)
