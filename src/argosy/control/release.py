"""Release: lets go of what was federated, once no type config names its kind any more.

Sources lose our finalizer, so that they can be deleted, and federated objects whose source is gone lose theirs. Copies in
members stay: nobody knows any more what a copy of that kind is. Until something is deleted all of it can be taken up again:
when the type config comes back, its sources get the finalizer with the next pass.

Nothing is let go for a while after a type config went, since it may be being replaced; nor while the API server has one for the
kind that is only not understood. Keys are kinds. The kinds of federated objects tell which were federated, also after a restart.
"""

import asyncio
import logging
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from argosy.api import keys, resources
from argosy.api.conditions import EventReason
from argosy.api.shards import Shard
from argosy.control.caches.catalog import TypeChange
from argosy.control.caches.informers import Caches
from argosy.control.caches.views import FederatedView
from argosy.control.context import ControllerContext
from argosy.control.sharding import shards
from argosy.control.telemetry.events import ObjectRecorder
from argosy.control.timings import Timings
from argosy.control.wake import Loop, Wake
from argosy.kube.client import Client, Patch
from argosy.kube.errors import Forbidden, Gone, NotFound
from argosy.kube.informer import Change
from argosy.kube.objects import Metadata, Partial, decode
from argosy.kube.queue import Result, WorkQueue
from argosy.kube.references import reference_of
from argosy.kube.resource import Resource

__all__ = ["Release"]

log = logging.getLogger(__name__)

_AT_ONCE: Final = 16
GONE: Final = (
    "no FederatedTypeConfig names the kind {kind} any more: it is not federated now; copies in members stay as they are"
)
LEFT: Final = "no FederatedTypeConfig names the kind {kind} any more: copies in members are left there ({clusters})"


class KindKey(NamedTuple):
    api_version: str
    kind: str

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]


class Release(Loop[KindKey]):
    name = "release"
    workers = 1

    def __init__(
        self,
        client: Client,
        queue: WorkQueue[KindKey],
        caches: Caches,
        recorder: ObjectRecorder,
        timings: Timings,
        shard: Shard,
    ):
        self.queue = queue
        self._client = client
        self._caches = caches
        self._recorder = recorder
        self._timings = timings
        self._shard = shard

    @classmethod
    def of(cls, shared: ControllerContext) -> "Release":
        return cls(shared.client, shared.queue(), shared.caches, shared.recorder, shared.timings, shared.options.shard)

    def wakes(self) -> Iterable[Wake[Any, KindKey]]:
        caches, patience = self._caches, self._timings.types_kept
        yield Wake(caches.catalog.changes, self._of_type, "its type config is gone", 1, patience)
        why = "an object of a kind that is not federated any more was found, or is deleted"
        yield Wake(caches.federated_changes, self._of_federated, why, 1, patience)

    def _of_type(self, types: TypeChange) -> Iterator[KindKey]:
        old, new = types
        if old is not None and (new is None or (new.api_version, new.kind) != (old.api_version, old.kind)):
            yield KindKey(old.api_version, old.kind)

    def _of_federated(self, change: Change[FederatedView]) -> Iterator[KindKey]:
        """When it is seen first, and when its deletion begins."""
        old, new = change.old, change.new
        if new is None or (old is not None and old.metadata.deletion_timestamp == new.metadata.deletion_timestamp):
            return
        key = _kind_of(new)
        if key is not None and self._caches.catalog.of_kind(*key) is None:
            yield key

    async def reconcile(self, key: KindKey) -> Result | None:
        catalog, patience = self._caches.catalog, self._timings.types_kept
        if catalog.of_group(key.group, key.kind) is not None:
            return None
        if any((each.resource.group, each.kind) == (key.group, key.kind) for each in catalog.lately(patience)):
            return Result(requeue_after=patience)
        if await self._is_named(key):
            log.warning("the type config of %s cannot be understood: its objects stay as they are", key.kind)
            return None
        served = await self._client.discover()
        if key.api_version in served.failures:
            return Result(error=f"{key.api_version}: {served.failures[key.api_version]}")
        found = [each for each in served.resources if (each.api_version, each.kind) == key]
        try:
            for resource in found[:1]:
                await self._release_sources(resource)
            await self._release_federated(key, found[0] if found else None)
        except Forbidden as error:
            log.warning("%s cannot be let go: %s", key.kind, error)
            return Result(requeue_after=self._timings.rights_kept)
        return None

    async def _is_named(self, key: KindKey) -> bool:
        """Whether there is a type config for the kind, in whatever version, readable or not."""
        for each in (await self._client.list(resources.FEDERATED_TYPE_CONFIGS)).items:
            source = (each.get("spec") or {}).get("sourceType") or {}
            if (source.get("group") or "", source.get("kind")) == (key.group, key.kind):
                return True
        return False

    async def _release_sources(self, resource: Resource) -> None:
        owns = shards.kept(self._shard, resource)
        if not resource.namespaced and not self._shard.owns_cluster_scoped:
            return
        while True:
            try:
                async for page in self._client.pages(resource):
                    found = [decode(raw, Partial).metadata for raw in page.items]
                    held = [each for each in found if keys.FEDERATE_FINALIZER in each.finalizers]
                    ours = [each for each in held if owns is None or self._shard.owns(each.namespace)]
                    for start in range(0, len(ours), _AT_ONCE):
                        await asyncio.gather(
                            *(self._release(resource, each) for each in ours[start : start + _AT_ONCE])
                        )
                return
            except Gone:
                continue  # the list expired; what was let go already is skipped
            except NotFound:
                return  # the kind is not served any more

    async def _release(self, resource: Resource, metadata: Metadata) -> None:
        left = [each for each in metadata.finalizers if each != keys.FEDERATE_FINALIZER]
        await self._set_finalizers(resource, metadata, left)
        text = GONE.format(kind=resource.kind)
        self._recorder.on(reference_of(resource, metadata), "Warning", EventReason.RELEASED, text)

    async def _release_federated(self, key: KindKey, resource: Resource | None) -> None:
        """Those that are being deleted with their source. A deletion that somebody confirmed waits for the type config: its
        copies are meant to go."""
        for namespaced, informer in self._caches.federated.items():
            for view in informer.values():
                metadata = view.metadata
                if (
                    _kind_of(view) != key
                    or not metadata.deletion_timestamp
                    or keys.SYNC_FINALIZER not in metadata.finalizers
                    or metadata.annotations.get(keys.CONFIRM_DELETION) == "true"
                    or not await self._source_is_gone(view, resource)
                ):
                    continue
                clusters = ", ".join(sorted(view.placed)) or "nowhere"
                self._recorder.event(
                    view, "Warning", EventReason.RELEASED, LEFT.format(kind=key.kind, clusters=clusters)
                )
                left = [each for each in metadata.finalizers if each != keys.SYNC_FINALIZER]
                await self._set_finalizers(resources.federated_objects(namespaced), metadata, left)

    async def _source_is_gone(self, view: FederatedView, resource: Resource | None) -> bool:
        """Or goes, too. Of a kind that the API server does not serve there are none."""
        if resource is None:
            return True
        owner = next(each for each in view.metadata.owner_references if each.controller)
        try:
            raw = await self._client.get(resource, owner.name, view.metadata.namespace or None, into=bytes)
        except NotFound:
            return True
        source = decode(raw, Partial).metadata
        return source.uid != owner.uid or bool(source.deletion_timestamp)

    async def _set_finalizers(self, resource: Resource, metadata: Metadata, left: list[str]) -> None:
        change = {"metadata": {"finalizers": left, "resourceVersion": metadata.resource_version}}
        namespace = metadata.namespace or None
        try:
            await self._client.patch(resource, metadata.name, change, namespace, kind=Patch.MERGE, into=bytes)
        except NotFound:
            return


def _kind_of(view: FederatedView) -> KindKey | None:
    """Of its source, as its owner says."""
    for owner in view.metadata.owner_references:
        if owner.controller:
            return KindKey(owner.api_version, owner.kind)
    return None
