"""Claims: which policies select what, kept current, and which objects a change of that concerns.

Decides nothing: `plan.claims` says which policy gets an object. What a policy selected before counts as well as what it selects
now: a pass that began before the change may not have written its claim yet.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from argosy.api.types import FederatedTypeConfig, PropagationPolicy
from argosy.control.caches.informers import Caches
from argosy.control.caches.objectkeys import SourceKey
from argosy.control.wake import Follow, Signal
from argosy.kube.informer import Change
from argosy.kube.objects import Metadata, Partial, key_of
from argosy.plan.claims.claim import Selectors, ref_of
from argosy.plan.claims.exclusions import Subject
from argosy.plan.claims.record import InForce, claimed_by, in_force, unless_missed
from argosy.plan.pipeline.policy import PolicyRef, propagation_ref

__all__ = ["Claims"]

Labels = Mapping[str, str]


class Claims:
    name = "claims"

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self._selectors = Selectors()
        #: What changed since the last sweep: what policies selected and select, and the labels namespaces had and have.
        self._policies: dict[str, tuple[PolicyRef, list[Selectors]]] = {}
        self._namespaces: dict[str, list[Labels | None]] = {}
        #: A policy that selects, or a namespace: see `concerned`.
        self.changes: Signal[str] = Signal("what policies select")

    def follows(self) -> Iterable[Follow[Any]]:
        for policies in self._caches.policies.values():
            yield Follow(policies, self._policy_changed, "which objects policies select")
        yield Follow(self._caches.namespaces, self._namespace_changed, "labels that policies select namespaces by")

    # What is asked.

    def selected(self, key: SourceKey, metadata: Metadata) -> PolicyRef | None:
        """The policy whose selectors claim a source; None also for one that names a policy."""
        config = self._caches.catalog.get(key.type)
        if config is None or not len(self._selectors):
            return None
        if propagation_ref(metadata.labels, metadata.namespace) is not None:
            return None
        if self.is_unknown(key, metadata):
            return self._recorded(key)
        claim = self._selectors.claim(_subject(config, metadata), self._labels(metadata.namespace))
        if claim is None:
            return None
        view = self._caches.federated_view(key)
        return unless_missed(claim.ref, view.metadata if view is not None else None, self._exists)

    def is_unknown(self, key: SourceKey, metadata: Metadata) -> bool:
        """Whether nobody knows yet which policy selects a source: its namespace has a say in that, and is not known. Nothing is
        to be decided before it is, which `changes` tells."""
        config = self._caches.catalog.get(key.type)
        if config is None or self._labels(metadata.namespace):
            return False
        return self._selectors.needs_namespace(_subject(config, metadata))

    def wants(self, group: str, kind: str, metadata: Metadata) -> bool:
        """Whether an object names a policy or is selected by one, of a kind that may have no type config."""
        claim = self._selectors.claim(Subject(group, kind, metadata), self._labels(metadata.namespace))
        return claim is not None

    def _recorded(self, key: SourceKey) -> PolicyRef | None:
        view = self._caches.federated_view(key)
        if view is None:
            return None
        return claimed_by(view.metadata.labels, view.metadata.annotations, view.metadata.namespace)

    def _exists(self, ref: PolicyRef) -> bool:
        return self._caches.policies[bool(ref.namespace)].get(ref.key) is not None

    def in_force(self, key: SourceKey, metadata: Metadata) -> InForce:
        """The policy that counts for a source."""
        view = self._caches.federated_view(key)
        return in_force(metadata, view.metadata if view is not None else None, self.selected(key, metadata))

    # What is heard.

    def _policy_changed(self, change: Change[PropagationPolicy]) -> None:
        old, new = change.old, change.new
        known = [each for each in (old, new) if each is not None]
        if not known or _same(old, new):
            return
        ref = ref_of(known[0])
        versions = [each for each in known if each.spec.resource_selectors]
        # One that selects nothing any more may still have what it selected before.
        if not versions and not any(self._caches.sources_selected_by(ref)):
            return
        if new is not None:
            self._selectors.put(new)
        else:
            self._selectors.drop(ref)
        name = f"{ref.kind} {ref.key}"
        self._policies.setdefault(name, (ref, []))[1].extend(Selectors([each]) for each in versions)
        self.changes.tell(name)

    def _namespace_changed(self, change: Change[Partial]) -> None:
        before, after = (each.metadata.labels if each is not None else None for each in (change.old, change.new))
        if before == after or not self._selectors.look_at_namespaces:
            return
        self._namespaces.setdefault(change.key, []).extend((before, after))
        self.changes.tell(_namespace(change.key))

    # What a change concerns.

    def concerned(self, names: Collection[str]) -> Iterator[SourceKey | None]:
        """The objects that the policies did or do select, and those that others select because of a namespace's labels."""
        changed = [self._policies.pop(name) for name in [*self._policies] if name in names]
        for ref, versions in changed:
            yield from self._caches.sources_selected_by(ref)
            for config in self._caches.catalog:
                either = [each for each in versions if each.selects_kind(config.resource.group, config.kind)]
                for key, subject in self._subjects(config, ref.namespace) if either else ():
                    labels = self._labels(subject.metadata.namespace)
                    yield key if any(each.contenders(subject, labels) for each in either) else None
        for namespace in [each for each in self._namespaces if _namespace(each) in names]:
            labels_then = self._namespaces.pop(namespace)
            for config in self._caches.catalog:
                selected = config.namespaced and self._selectors.selects_kind(config.resource.group, config.kind)
                for key, subject in self._subjects(config, namespace) if selected else ():
                    yield key if self._differ(subject, labels_then) else None

    def _differ(self, subject: Subject, versions: list[Labels | None]) -> bool:
        """Whether other policies select an object with other labels of its namespace; None where they are not known."""
        if None in versions and self._selectors.needs_namespace(subject):
            return True
        namespace = subject.metadata.namespace
        found = [self._selectors.contenders(subject, {namespace: labels or {}}) for labels in versions]
        return any(each != found[0] for each in found)

    def _subjects(self, config: FederatedTypeConfig, namespace: str) -> Iterator[tuple[SourceKey, Subject]]:
        for source in self._caches.sources_in(config.name, namespace):
            yield SourceKey(config.name, key_of(source.metadata)), _subject(config, source.metadata)

    def _labels(self, namespace: str) -> dict[str, Labels]:
        known = self._caches.namespaces.get(namespace) if namespace else None
        return {namespace: known.metadata.labels} if known is not None else {}


def _subject(config: FederatedTypeConfig, metadata: Metadata) -> Subject:
    return Subject(config.resource.group, config.kind, metadata)


def _namespace(name: str) -> str:
    return f"namespace {name}"


def _same(old: PropagationPolicy | None, new: PropagationPolicy | None) -> bool:
    """Reference counts are in a policy's status and do not matter here."""
    if old is None or new is None:
        return False
    return old.spec == new.spec and old.metadata.annotations == new.metadata.annotations
