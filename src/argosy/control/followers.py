"""Followers: keeps the graph of leaders and followers current, and tells which objects a change concerns.

Fed by federated objects (what leaders need, whom followers follow as stored), by sources (which workload an autoscaler or a
budget is about, what exists) and by types. Nothing is written here: the pass over a follower places it. All of a graph's edges
stay within a namespace, so a shard knows all that concerns its own objects.

An object is decoded only if what it needs may have changed. Where leaders are is read from the informers' cache when it is
asked for.
"""

import logging
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from argosy.api import keys
from argosy.api.types import FederatedTypeConfig
from argosy.control.brake.brake import Brake
from argosy.control.caches.catalog import TypeChange
from argosy.control.caches.informers import Caches, SourceChange
from argosy.control.caches.objectkeys import SourceKey
from argosy.control.caches.views import FederatedView
from argosy.control.wake import Follow, Signal
from argosy.kube.informer import Change
from argosy.kube.objects import decode, join_key, key_of, split_key
from argosy.kube.selectors import SelectorError, from_label_selector
from argosy.plan.fields import MISSHAPEN
from argosy.plan.followers.graph import NOBODY, Following, Graph, Leader, ObjectRef, Where
from argosy.plan.followers.needs import NOTHING, Needs, about_of, is_about, needs_of, pod_labels_of
from argosy.plan.followers.standing import behind_of, is_divided, is_leaving, leads, pods_of, where_of
from argosy.plan.kinds.about import About, PodSelector, Target
from argosy.plan.replicas.budget import Pods

__all__ = ["Followers"]

log = logging.getLogger(__name__)


class Followers:
    name = "followers"

    def __init__(self, caches: Caches, brake: Brake) -> None:
        self._caches = caches
        self._brake = brake
        self._graph = Graph(self._where, self._behind, self._pods)
        #: Followers whose leaders came, went, moved or changed.
        self.led: Signal[SourceKey] = Signal("leaders of an object")
        #: Leaders that lack something they need, and those that lack it no more.
        self.lacking: Signal[SourceKey] = Signal("objects that are missing")
        self.found: Signal[SourceKey] = Signal("objects that were missing")

    def follows(self) -> Iterable[Follow[Any]]:
        caches = self._caches
        yield Follow(caches.federated_changes, self._federated_changed, "what leaders need, and where they are")
        yield Follow(caches.source_changes, self._source_changed, "what exists, and which workload it is about")
        yield Follow(caches.catalog.changes, self._type_changed, "what an object needs follows from its type")
        yield Follow(self._brake.deletions_decided, self._deletion_decided, "whether a leader's copies go with it")

    # What is asked.

    def following(self, key: SourceKey) -> Following:
        """Whom an object follows, and where that places it."""
        ref = self._ref(key)
        return self._graph.following(ref) if ref is not None else NOBODY

    def leaders_at(self, key: SourceKey) -> frozenset[str]:
        """Where those are that an object follows as stored."""
        ref = self._ref(key)
        found = (self._key(each) for each in self._graph.stored_leaders(ref)) if ref is not None else ()
        views = [self._caches.federated_view(each) for each in found if each is not None]
        return frozenset(name for view in views if view is not None for name in view.placed)

    def is_led(self, key: SourceKey) -> bool:
        """Whether a leader asks for this object to be propagated."""
        ref = self._ref(key)
        return ref is not None and self._graph.is_led(ref)

    def missing(self, key: SourceKey) -> tuple[str, ...]:
        """What a leader waits for that does not exist, sorted. What nobody can know is not missing."""
        ref = self._ref(key)
        leader = self._graph.leader(ref) if ref is not None else None
        if ref is None or leader is None or not leader.leads or leader.leaving:
            return ()
        missing = [
            (name, need)
            for name, need in leader.needs.needed.items()
            if need.required and self._is_missing(ObjectRef(ref.namespace, *name))
        ]
        where = self._where(ref) if missing else None
        placed = where.placed if where is not None else frozenset()
        return tuple(
            sorted(
                f"{name.kind} {ref.namespace}/{name.name}"
                for name, need in missing
                if (placed if need.clusters is None else placed & need.clusters)
            )
        )

    def is_released(self, key: SourceKey) -> bool:
        """Whether all that followed a leader that is being deleted have noted that it is: afterwards nobody could tell it from
        one that was lost."""
        ref = self._ref(key)
        leader = self._graph.leader(ref) if ref is not None else None
        if ref is None or leader is None or not leader.leaving:
            return True
        views = (self._caches.federated_view(each) for each in self._keys(self._graph.followers(ref)))
        return not any(view is not None and not view.metadata.deletion_timestamp for view in views)

    # What is heard.

    def _federated_changed(self, change: Change[FederatedView]) -> None:
        view = change.new or change.old
        source = self._caches.source_of(view) if view is not None and view.metadata.namespace else None
        ref = self._ref(source) if source is not None else None
        if ref is None or source is None:
            return
        if change.new is None:
            self._graph.set_stored(ref, ())
            self._tell(self._graph.drop_leader(ref))
            return
        if change.old is None or change.old.spec.follows != change.new.spec.follows:
            self._set_stored(ref, change.new)
        self._set_leader(source, ref, change.old, change.new)

    def _set_leader(self, source: SourceKey, ref: ObjectRef, old: FederatedView | None, new: FederatedView) -> None:
        """`old` is None if nothing was known of it. An object without followers is decoded once for each generation."""
        before = self._graph.leader(ref)
        if old is None or _may_need_more(old, new):
            read = self._read(source, new)
        elif before is None:
            return
        else:
            read = before
        annotations = new.metadata.annotations
        leader = msgspec.structs.replace(
            read,
            leads=leads(new),
            frozen=annotations.get(keys.NO_SCHEDULING) == "true",
            leaving=is_leaving(new.metadata, self._source_is_deleted(source)),
            alone=annotations.get(keys.DISABLE_FOLLOWING) == "true",
            retains=annotations.get(keys.RETAIN_REPLICAS) == "true",
        )
        if before is not None and leader.needs == before.needs:
            leader = msgspec.structs.replace(leader, needs=before.needs)
        self._tell(self._graph.set_leader(ref, leader, moved=old is None or self._moved(ref, old, new)))
        if leader.needs is not NOTHING and (
            old is None or old.spec.placements != new.spec.placements or read is not before
        ):
            self._tell_if_lacking(source)

    def _moved(self, ref: ObjectRef, old: FederatedView, new: FederatedView) -> bool:
        """Whether followers may be placed otherwise. That it has its newest change everywhere matters to those it needs no
        more."""
        if self._graph.leader(ref) is None:
            return True
        before, after = where_of(old), where_of(new)
        if before.placed != after.placed or before.leaving != after.leaving:
            return True
        return self._graph.has_stale_followers(ref) and behind_of(old) != behind_of(new)

    def _source_changed(self, told: SourceChange) -> None:
        change = told.change
        config = self._caches.catalog.get(told.type)
        ref = self._ref(told.key)
        if config is None or ref is None:
            return
        if is_about(config) and not change.origin:
            self._set_about(ref, told, config)
        if change.old is None or change.new is None:
            self._tell_existence(ref, exists=change.new is not None)
        # Whether a leader's deletion is meant is seen on its source.
        deleted = change.new is not None and change.new.metadata.deletion_timestamp
        view = self._caches.federated_view(told.key) if deleted else None
        if view is not None:
            self._set_leader(told.key, ref, view, view)

    def _deletion_decided(self, key: SourceKey) -> None:
        ref, view = self._ref(key), self._caches.federated_view(key)
        if ref is not None and view is not None:
            self._set_leader(key, ref, view, view)

    def _set_about(self, ref: ObjectRef, told: SourceChange, config: FederatedTypeConfig) -> None:
        old, new = told.change.old, told.change.new
        # A generation of 0 tells nothing: autoscalers have none on many API servers.
        same = old is not None and new is not None and old.metadata.generation == new.metadata.generation
        if same and new is not None and new.metadata.generation:
            return
        about = self._about(told.key, config) if new is not None else None
        target = ObjectRef(ref.namespace, *about) if isinstance(about, Target) else None
        self._graph.set_target(ref, target)
        self._graph.set_selector(ref, _selector(about))
        if target is not None:
            self._refresh(target)
        if new is not None:
            self._tell([ref])

    def _type_changed(self, types: TypeChange) -> None:
        """Objects of a type that is new, or names its needs otherwise, are read again; of one that is gone, forgotten."""
        old, new = types
        if old is not None and (new is None or (old.resource.group, old.kind) != (new.resource.group, new.kind)):
            # Where its objects are can no longer be told: those that follow them stay.
            for ref in self._graph.leaders_of(old.resource.group, old.kind):
                self._tell(self._graph.drop_leader(ref))
            old = None
        if new is None or (old is not None and old.spec.followers == new.spec.followers):
            return
        label = (new.api_version, new.kind)
        for view in self._caches.federated[True].values():
            if label in view.metadata.labels.items():
                self._federated_changed(Change(key_of(view.metadata), None, view))

    # What is read.

    def _read(self, source: SourceKey, view: FederatedView) -> Leader:
        """What is read from the whole object."""
        config, raw = self._caches.catalog.get(source.type), self._caches.federated_raw(source)
        if config is None or raw is None:
            return Leader()
        spec = decode(raw, dict).get("spec") or {}
        try:
            return Leader(
                needs=needs_of(spec, view.metadata.annotations, config),
                pod_labels=pod_labels_of(spec.get("template") or {}),
                divided=is_divided(spec),
                counted=_counted(spec, config),
            )
        except MISSHAPEN as error:
            log.warning("what %s needs cannot be read: %s", source, error)
            return Leader(needs=Needs(unclear=f"its template: {error}"))

    def _about(self, key: SourceKey, config: FederatedTypeConfig) -> About | None:
        raw = self._caches.source_raw(key)
        if raw is None:
            return None
        source = decode(raw, dict)
        return about_of({**source, "apiVersion": config.api_version, "kind": config.kind}, config)

    def _set_stored(self, ref: ObjectRef, view: FederatedView) -> None:
        self._graph.set_stored(ref, view.spec.follows)
        for each in view.spec.follows:
            self._refresh(ObjectRef(ref.namespace, each.group, each.kind, each.name))

    def _refresh(self, ref: ObjectRef) -> None:
        """An object that nobody was known to follow is not kept in the graph; now somebody does."""
        source = self._key(ref)
        view = self._caches.federated_view(source) if source is not None else None
        if source is not None and view is not None and self._graph.leader(ref) is None:
            self._set_leader(source, ref, None, view)

    def _where(self, ref: ObjectRef) -> Where | None:
        source = self._key(ref)
        view = self._caches.federated_view(source) if source is not None else None
        return where_of(view) if view is not None else None

    def _behind(self, ref: ObjectRef) -> frozenset[str]:
        source = self._key(ref)
        view = self._caches.federated_view(source) if source is not None else None
        return behind_of(view) if view is not None else frozenset()

    def _pods(self, ref: ObjectRef) -> Pods | None:
        source = self._key(ref)
        config = self._caches.catalog.get(source.type) if source is not None else None
        raw = self._caches.federated_raw(source) if source is not None else None
        return pods_of(decode(raw, dict).get("spec") or {}, config) if config is not None and raw is not None else None

    def _is_missing(self, ref: ObjectRef) -> bool:
        key = self._key(ref)
        return key is not None and self._caches.sources_synced(key.type) and self._caches.source(key) is None

    def _source_is_deleted(self, key: SourceKey) -> bool:
        """Together with its copies, as far as that is decided."""
        source = self._caches.source(key)
        deleted = source is not None and bool(source.metadata.deletion_timestamp)
        return deleted and self._brake.is_decided(key)

    # What is told.

    def _tell(self, refs: Iterable[ObjectRef]) -> None:
        for key in self._keys(refs):
            self.led.tell(key)

    def _tell_existence(self, ref: ObjectRef, exists: bool) -> None:
        for leader in self._keys(self._graph.needing(ref)):
            if not exists:
                self.lacking.tell(leader)
            elif (view := self._caches.federated_view(leader)) and keys.WAITS_FOR in view.metadata.annotations:
                self.found.tell(leader)

    def _tell_if_lacking(self, key: SourceKey) -> None:
        if self.missing(key):
            self.lacking.tell(key)

    def _keys(self, refs: Iterable[ObjectRef]) -> Iterator[SourceKey]:
        for ref in refs:
            if (key := self._key(ref)) is not None:
                yield key

    def _key(self, ref: ObjectRef) -> SourceKey | None:
        """None for an object whose type is not federated."""
        config = self._caches.catalog.of_group(ref.group, ref.kind)
        return SourceKey(config.name, join_key(ref.namespace, ref.name)) if config and config.namespaced else None

    def _ref(self, key: SourceKey) -> ObjectRef | None:
        config = self._caches.catalog.get(key.type)
        if config is None or not config.namespaced:
            return None
        namespace, name = split_key(key.key)
        return ObjectRef(namespace, config.resource.group, config.kind, name)


def _may_need_more(old: FederatedView, new: FederatedView) -> bool:
    """Whether what an object needs may have changed. Its generation grows with its template and overrides."""
    before, after = old.metadata, new.metadata
    return (before.uid, before.generation, before.annotations.get(keys.FOLLOWERS)) != (
        after.uid,
        after.generation,
        after.annotations.get(keys.FOLLOWERS),
    )


def _counted(spec: dict[str, Any], config: FederatedTypeConfig) -> int:
    pods = pods_of(spec, config)
    return hash((pods.divided, *sorted(pods.clusters.items()))) if pods is not None else 0


def _selector(about: About | None) -> Any:
    if not isinstance(about, PodSelector):
        return None
    try:
        return from_label_selector(about.selector)
    except SelectorError:
        return None
