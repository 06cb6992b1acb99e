"""Uses: how many federated objects name each policy, by their kind. For people, who see it in the policies' status.

Kept current by changes of federated objects: nothing is counted anew. With shards, each shard counts its own objects, and hears
from the others what they count of policies without a namespace (`sharding.peers`).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from argosy.api import resources
from argosy.control.caches.informers import Caches
from argosy.control.caches.views import FederatedView
from argosy.control.sharding.peers import PeerReservations
from argosy.control.wake import Follow, Signal
from argosy.kube.informer import Change
from argosy.kube.objects import Metadata
from argosy.kube.resource import Resource
from argosy.plan.pipeline.policy import override_refs, propagation_ref

__all__ = ["KindUse", "PolicyKey", "PolicyUses"]

#: By API version and kind, `apps/v1 Deployment`.
KindUse = Mapping[str, int]


class PolicyKey(msgspec.Struct, frozen=True, order=True):
    """A policy of any of the four kinds."""

    plural: str
    name: str
    namespace: str = ""

    @property
    def resource(self) -> Resource:
        return _RESOURCES[self.plural]

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


_RESOURCES = {
    each.plural: each
    for each in (
        resources.PROPAGATION_POLICIES,
        resources.CLUSTER_PROPAGATION_POLICIES,
        resources.OVERRIDE_POLICIES,
        resources.CLUSTER_OVERRIDE_POLICIES,
    )
}
_OVERRIDES = (resources.OVERRIDE_POLICIES, resources.CLUSTER_OVERRIDE_POLICIES)


class PolicyUses:
    name = "policy uses"

    def __init__(self, caches: Caches, peers: PeerReservations | None):
        self._caches = caches
        self._peers = peers
        self._uses: dict[PolicyKey, Counter[str]] = {}
        self.changes: Signal[PolicyKey] = Signal("uses of policies")

    def follows(self) -> Iterable[Follow[Any]]:
        yield Follow(self._caches.federated_changes, self._changed, "which policies objects name")
        if self._peers is not None:
            yield Follow(self._peers.uses_changed, self._elsewhere, "which policies objects of other shards name")

    def of(self, policy: PolicyKey) -> KindUse:
        own: KindUse = self._uses.get(policy, {})
        if self._peers is None or policy.namespace:
            return own
        return Counter(own) + self._peers.uses_of(f"{policy.plural}/{policy.name}")

    def all(self) -> Iterator[tuple[PolicyKey, int]]:
        """Those that there are, and that are used at all, here. Anybody may name what does not exist."""
        for policy in list(self._uses):
            if self._exists(policy):
                yield policy, sum(self.of(policy).values())

    def by_kinds(self, kinds: Collection[str]) -> Iterator[PolicyKey]:
        """Those that objects of these kinds name, here."""
        return (policy for policy, uses in list(self._uses.items()) if not uses.keys().isdisjoint(kinds))

    def of_cluster_scoped(self) -> dict[str, KindUse]:
        """Of our own objects, as other shards are told: by `plural/name`."""
        return {
            f"{each.plural}/{each.name}": uses
            for each, uses in self._uses.items()
            if not each.namespace and self._exists(each)
        }

    def _exists(self, policy: PolicyKey) -> bool:
        cached = self._caches.overrides if policy.resource in _OVERRIDES else self._caches.policies
        return cached[bool(policy.namespace)].get(policy.key) is not None

    def _elsewhere(self, names: Collection[str]) -> None:
        for name in names:
            plural, _, policy = name.partition("/")
            if plural in _RESOURCES:
                self.changes.tell(PolicyKey(plural, policy))

    def _changed(self, change: Change[FederatedView]) -> None:
        old, new = change.old, change.new
        if old is not None and new is not None and old.metadata.labels == new.metadata.labels:
            return
        before, after = _counted(old), _counted(new)
        for policy, kind in before - after:
            uses = self._uses[policy]
            uses[kind] -= 1
            if not uses[kind]:
                del uses[kind]
            if not uses:
                del self._uses[policy]
        for policy, kind in after - before:
            self._uses.setdefault(policy, Counter())[kind] += 1
        for policy, _ in before ^ after:
            self.changes.tell(policy)


def _counted(view: FederatedView | None) -> set[tuple[PolicyKey, str]]:
    if view is None:
        return set()
    kind = _kind_of(view.metadata)
    return {(policy, kind) for policy in _named(view.metadata)}


def _named(metadata: Metadata) -> Iterator[PolicyKey]:
    """A policy that selected the object is among its labels as well."""
    propagation = propagation_ref(metadata.labels, metadata.namespace)
    if propagation is not None:
        plural = resources.PROPAGATION_POLICIES if propagation.namespace else resources.CLUSTER_PROPAGATION_POLICIES
        yield PolicyKey(plural.plural, propagation.name, propagation.namespace)
    for ref in override_refs(metadata.labels, metadata.namespace):
        plural = resources.OVERRIDE_POLICIES if ref.namespace else resources.CLUSTER_OVERRIDE_POLICIES
        yield PolicyKey(plural.plural, ref.name, ref.namespace)


def _kind_of(metadata: Metadata) -> str:
    owner = next((each for each in metadata.owner_references if each.controller), None)
    return f"{owner.api_version} {owner.kind}" if owner is not None else ""
