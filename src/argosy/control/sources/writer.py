"""The writes of federate: marks on a source, its federated object, and their deletion. Each is counted in the metrics.

A source gets our finalizer, together with the feedback annotations, before its federated object exists, so that no copy is ever
created whose deletion we would miss. Writes carry the resourceVersion that was read, so that the response never shows a user's
write as if it were ours.
"""

from typing import Any

from argosy.api import keys, resources
from argosy.api.types import FederatedTypeConfig
from argosy.control.caches.informers import Caches
from argosy.control.caches.objectkeys import SourceKey
from argosy.control.caches.views import FederatedView
from argosy.control.sources.finalized import JustFinalized
from argosy.control.telemetry.events import ObjectRecorder
from argosy.control.telemetry.metrics import Metrics
from argosy.control.wake import FEDERATE
from argosy.kube.client import Client, Patch
from argosy.kube.errors import AlreadyExists, Conflict, Forbidden, Invalid, NotFound
from argosy.kube.objects import split_key
from argosy.kube.references import reference_to
from argosy.plan.kinds.registry import kind_of
from argosy.plan.metadata import annotations_of
from argosy.plan.status.aggregate import feedback

__all__ = ["SourceWriter"]

Object = dict[str, Any]


class SourceWriter:
    def __init__(
        self, client: Client, caches: Caches, finalized: JustFinalized, recorder: ObjectRecorder, metrics: Metrics
    ):
        self._client = client
        self._caches = caches
        self._finalized = finalized
        self._recorder = recorder
        self._metrics = metrics

    async def mark_source(self, key: SourceKey, config: FederatedTypeConfig, source: Object, federated: Object) -> bool:
        """Adds our finalizer and the feedback annotations to the source, in one write, if either is missing.

        False if the source does not exist any more.
        """
        metadata = source["metadata"]
        changes: Object = {}
        finalizers = metadata.get("finalizers") or []
        if keys.FEDERATE_FINALIZER not in finalizers:
            changes["finalizers"] = sorted({*finalizers, keys.FEDERATE_FINALIZER})
            self._finalized.note(key)
        kind = kind_of(source)
        if config.spec.status_aggregation.enabled and kind.feedback and not kind.feedback_with_status:
            before = annotations_of(source)
            after = feedback(before, annotations_of(federated))
            if after is not None:
                changed = {name: after.get(name) for name in keys.FEEDBACK_ANNOTATIONS}
                changes["annotations"] = {n: v for n, v in changed.items() if before.get(n) != v}
        if not changes:
            return True
        # With resourceVersion: a list is replaced as a whole.
        changes["resourceVersion"] = metadata["resourceVersion"]
        return await self._patch_source(key, config, changes)

    async def store(self, config: FederatedTypeConfig, federated: Object, create: bool) -> None:
        """Create or update the federated object."""
        resource = resources.federated_objects(config.namespaced)
        namespace = federated["metadata"].get("namespace")
        try:
            if create:
                raw = await self._client.create(resource, federated, namespace, into=bytes)
            else:
                raw = await self._client.update(resource, federated, namespace, into=bytes)
        except (AlreadyExists, NotFound) as behind:
            # Our cache is behind; the event is on its way.
            raise Conflict(409, "Conflict", str(behind), behind.status) from behind
        except Forbidden as error:
            if not error.namespace_terminating:
                raise
            return  # the source is deleted with its namespace
        except Invalid as error:
            self._recorder.on(reference_to(federated), "Warning", "InvalidFederatedObject", str(error))
            raise
        self._metrics.control_writes.labels(resource.kind, "create" if create else "update").inc()
        self._caches.remember_federated(FEDERATE, raw, config.namespaced)

    async def delete(
        self, key: SourceKey, config: FederatedTypeConfig, source: Object, view: FederatedView | None
    ) -> None:
        """A source that is being deleted waits for its federated object, which waits for the members."""
        if keys.FEDERATE_FINALIZER not in (source["metadata"].get("finalizers") or ()):
            return
        if view is None:
            if await self._is_stored(key, config):
                raise Conflict(409, "Conflict", "the federated object is not in the cache yet", {})
            left = [f for f in source["metadata"]["finalizers"] if f != keys.FEDERATE_FINALIZER]
            changes = {"finalizers": left, "resourceVersion": source["metadata"]["resourceVersion"]}
            await self._patch_source(key, config, changes)
        elif not view.metadata.deletion_timestamp:
            await self._delete_federated(config, view)

    async def delete_of_slipped(self, key: SourceKey, config: FederatedTypeConfig, uid: str) -> None:
        """For a source that was deleted in spite of our finalizer: deletes the federated object, with confirmation."""
        view = self._caches.federated_view(key)
        if view is None or not any(owner.uid == uid for owner in view.metadata.owner_references):
            return
        resource, metadata = resources.federated_objects(config.namespaced), view.metadata
        confirmed = {"metadata": {"uid": metadata.uid, "annotations": {keys.CONFIRM_DELETION: "true"}}}
        namespace = metadata.namespace or None
        try:
            await self._client.patch(resource, metadata.name, confirmed, namespace, kind=Patch.MERGE, into=bytes)
        except NotFound:
            return
        self._metrics.control_writes.labels(resource.kind, "patch").inc()
        if not metadata.deletion_timestamp:
            await self._delete_federated(config, view)

    async def _delete_federated(self, config: FederatedTypeConfig, view: FederatedView) -> None:
        resource, metadata = resources.federated_objects(config.namespaced), view.metadata
        try:
            await self._client.delete(
                resource, metadata.name, metadata.namespace or None, uid=metadata.uid, propagation="Background"
            )
        except NotFound:
            return
        self._metrics.control_writes.labels(resource.kind, "delete").inc()

    async def _patch_source(self, key: SourceKey, config: FederatedTypeConfig, metadata: Object) -> bool:
        """False if it is gone."""
        namespace, name = split_key(key.key)
        try:
            raw = await self._client.patch(
                config.resource, name, {"metadata": metadata}, namespace or None, kind=Patch.MERGE, into=bytes
            )
        except NotFound:
            return False
        self._metrics.control_writes.labels(config.kind, "patch").inc()
        if metadata.get("finalizers") != []:
            self._caches.remember_source(FEDERATE, raw, key.type)
        return True

    async def _is_stored(self, key: SourceKey, config: FederatedTypeConfig) -> bool:
        """Read from the server: without its federated object nothing would remove the copies any more."""
        namespace, name = split_key(key.federated.key)
        try:
            await self._client.get(resources.federated_objects(config.namespaced), name, namespace or None, into=bytes)
        except NotFound:
            return False
        return True
