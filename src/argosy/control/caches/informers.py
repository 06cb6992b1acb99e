"""Caches: everything the loops read from the control plane, as informers, one per kind.

Owns the informers' tasks; `run` starts them, and `synced` is set when all have listed once. Source types come and go with the
type configs. A shard keeps its own part (see `shards`).
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from argosy.api import keys, resources
from argosy.api.shards import WHOLE, Shard
from argosy.api.types import (
    CollectedStatus,
    FederatedCluster,
    FederatedTypeConfig,
    OverridePolicy,
    PropagationPolicy,
    SchedulerPluginWebhookConfiguration,
    SchedulingProfile,
)
from argosy.control.caches.catalog import Catalog, TypeChange
from argosy.control.caches.objectkeys import SourceKey
from argosy.control.caches.views import FederatedView, SourceView, policy_references, selecting_references
from argosy.control.sharding import shards
from argosy.control.timings import Timings
from argosy.control.wake import Follow, Signal
from argosy.kube.client import Client
from argosy.kube.informer import Change, Informer
from argosy.kube.objects import HasMetadata, Partial, key_of
from argosy.kube.resource import Resource
from argosy.kube.supervise import Supervisor
from argosy.plan.copies.identity import Refusal, subject_of
from argosy.plan.pipeline.policy import PolicyRef

__all__ = ["Caches", "SourceChange"]

T = TypeVar("T", bound=HasMetadata)
BY_POLICY = "policy"
BY_NAMESPACE = "namespace"
_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)


class SourceChange(NamedTuple):
    """A change of a source object of this type."""

    type: str
    change: Change[SourceView]

    @property
    def key(self) -> SourceKey:
        return SourceKey(self.type, self.change.key)


class Caches:
    name = "sources"

    def __init__(self, client: Client, timings: Timings, tasks: Supervisor, shard: Shard = WHOLE):
        self._client = client
        self._timings = timings
        self._tasks = tasks
        self._shard = shard
        self.catalog = Catalog()
        self.type_configs = self._informer(
            resources.FEDERATED_TYPE_CONFIGS, FederatedTypeConfig, on_change=self.catalog.observe
        )
        self.clusters = self._informer(resources.FEDERATED_CLUSTERS, FederatedCluster)
        self.policies = {
            True: self._informer(resources.PROPAGATION_POLICIES, PropagationPolicy),
            False: self._informer(resources.CLUSTER_PROPAGATION_POLICIES, PropagationPolicy),
        }
        self.overrides = {
            True: self._informer(resources.OVERRIDE_POLICIES, OverridePolicy),
            False: self._informer(resources.CLUSTER_OVERRIDE_POLICIES, OverridePolicy),
        }
        self.profiles = self._informer(resources.SCHEDULING_PROFILES, SchedulingProfile)
        self.webhooks = self._informer(
            resources.SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS, SchedulerPluginWebhookConfiguration
        )
        #: Of both scopes.
        self.federated_changes: Signal[Change[FederatedView]] = Signal("federated objects")
        #: By scope: True holds FederatedObjects, False ClusterFederatedObjects.
        self.federated = {
            namespaced: Informer(
                client,
                resources.federated_objects(namespaced),
                FederatedView,
                keep_raw=True,
                indexers={BY_POLICY: lambda view: selecting_references(view.metadata)},
                keep=shards.kept_federated(shard, namespaced),
                liveness=timings.watch_liveness,
                on_change=self.federated_changes.tell,
            )
            for namespaced in (True, False)
        }
        self.collected = {
            True: self._informer(resources.COLLECTED_STATUSES, CollectedStatus),
            False: self._informer(resources.CLUSTER_COLLECTED_STATUSES, CollectedStatus),
        }
        #: The system namespace, whose annotation pauses the fleet.
        self.system: Informer[Partial] = Informer(
            client,
            _NAMESPACES,
            Partial,
            field_selector=f"metadata.name={keys.SYSTEM_NAMESPACE}",
            liveness=timings.watch_liveness,
        )
        #: All of them, whether or not they are federated: policies select by their labels.
        self.namespaces: Informer[Partial] = Informer(client, _NAMESPACES, Partial, liveness=timings.watch_liveness)
        self.sources: dict[str, Informer[SourceView]] = {}
        self.source_changes: Signal[SourceChange] = Signal("source objects")

    def follows(self) -> Iterable[Follow[TypeChange]]:
        yield Follow(self.catalog.changes, self._type_changed, "sources of federated types are watched")

    async def run(self) -> None:
        """Start watching; returns when every kind that decisions depend on has been listed once."""
        # First: what federated objects mean follows from the types.
        self._tasks.start(f"watch {self.type_configs.resource}", self.type_configs.run)
        await self.type_configs.synced.wait()
        fixed: list[Informer[Any]] = [self.system, self.namespaces, self.clusters]
        for pair in (self.policies, self.overrides, self.federated, self.collected):
            fixed += pair.values()
        if not self._shard.owns_cluster_scoped:
            fixed.remove(self.collected[False])
        for informer in fixed:
            what = "the system namespace" if informer is self.system else informer.resource
            self._tasks.start(f"watch {what}", informer.run)
        few: list[Informer[Any]] = [self.profiles, self.webhooks]
        for informer in few:
            self._tasks.start(f"watch {informer.resource}", informer.run)
        await asyncio.gather(*(informer.synced.wait() for informer in fixed))
        # Policies that name an unreadable profile wait; the others need not.
        await asyncio.gather(*(informer.tried.wait() for informer in few))
        # A type that cannot be listed (its CRD is not installed, say) must not hold up the others.
        await asyncio.gather(*(informer.tried.wait() for informer in list(self.sources.values())))

    def source(self, key: SourceKey) -> SourceView | None:
        informer = self.sources.get(key.type)
        return informer.get(key.key) if informer is not None else None

    def source_of(self, view: FederatedView) -> SourceKey | None:
        """The source of a federated object, by the federated object's own name."""
        subject = subject_of(view.metadata, {}, self.catalog)
        return None if isinstance(subject, Refusal) else SourceKey(subject.config.name, subject.key)

    def source_raw(self, key: SourceKey) -> bytes | None:
        informer = self.sources.get(key.type)
        return informer.raw(key.key) if informer is not None else None

    def sources_synced(self, type_name: str) -> bool:
        informer = self.sources.get(type_name)
        return informer is not None and informer.has_synced

    def sources_awaited(self, type_name: str) -> bool:
        """Whether their first list has not returned yet."""
        informer = self.sources.get(type_name)
        return informer is not None and not informer.tried.is_set()

    def federated_view(self, key: SourceKey) -> FederatedView | None:
        federated = key.federated
        return self.federated[federated.namespaced].get(federated.key)

    def federated_raw(self, key: SourceKey) -> bytes | None:
        federated = key.federated
        return self.federated[federated.namespaced].raw(federated.key)

    def remember_federated(self, origin: str, raw: bytes, namespaced: bool) -> None:
        """Put a loop's own write of a federated object into the cache.

        The response may include somebody else's write, whose event then changes nothing: see `views.same_but_for_status`.
        """
        self.federated[namespaced].remember(raw, origin)

    def remember_source(self, origin: str, raw: bytes, type_name: str) -> None:
        """The same for a source. The write must have carried a resourceVersion, so that the response shows no other write."""
        informer = self.sources.get(type_name)
        if informer is not None:
            informer.remember(raw, origin)

    def sources_naming(self, reference: str) -> Iterable[SourceKey]:
        """Sources that name a policy (see `policy_references`)."""
        # A copy here and below: types may come and go while a caller iterates, a few objects at a time.
        for type_name, informer in list(self.sources.items()):
            for source in informer.by_index(BY_POLICY, reference):
                yield SourceKey(type_name, key_of(source.metadata))

    def sources_selected_by(self, ref: PolicyRef) -> Iterable[SourceKey]:
        """Sources that a policy selected, as far as their federated objects say so."""
        for federated in self.federated.values():
            for view in federated.by_index(BY_POLICY, ref.key):
                if (key := self.source_of(view)) is not None:
                    yield key

    def sources_in(self, type_name: str, namespace: str) -> list[SourceView]:
        """Sources of a type, of one namespace or (empty) of all."""
        informer = self.sources.get(type_name)
        if informer is None:
            return []
        return informer.by_index(BY_NAMESPACE, namespace) if namespace else list(informer.values())

    def all_sources(self) -> Iterable[tuple[SourceKey, SourceView]]:
        for type_name, informer in list(self.sources.items()):
            for source in informer.values():
                yield SourceKey(type_name, key_of(source.metadata)), source

    def _informer(
        self, resource: Resource, into: type[T], on_change: Callable[[Change[T]], None] | None = None
    ) -> Informer[T]:
        keep = shards.kept(self._shard, resource)
        return Informer(
            self._client, resource, into, keep=keep, liveness=self._timings.watch_liveness, on_change=on_change
        )

    def _type_changed(self, types: TypeChange) -> None:
        old, new = types
        if old is not None and (new is None or new.resource != old.resource):
            if self.sources.pop(old.name, None) is not None:
                self._tasks.cancel(f"watch sources {old.name}")
            old = None
        if new is None or old is not None or not shards.watches_sources(self._shard, new):
            return
        type_name = new.name
        informer: Informer[SourceView] = Informer(
            self._client,
            new.resource,
            SourceView,
            keep_raw=True,
            indexers={
                BY_POLICY: lambda source: policy_references(source.metadata),
                BY_NAMESPACE: lambda source: [source.metadata.namespace] if source.metadata.namespace else [],
            },
            keep=shards.kept(self._shard, new.resource),
            liveness=self._timings.watch_liveness,
            on_change=lambda change: self.source_changes.tell(SourceChange(type_name, change)),
        )
        self.sources[type_name] = informer
        self._tasks.start(f"watch sources {type_name}", informer.run)
