"""Report: the result of a round of dispatch, written once into the federated object's status, and as events.

The only writer of federated objects' status and of dispatch's finalizer on them.
"""

import msgspec

from argosy.api import resources
from argosy.api.conditions import CHECK_CLUSTERS, OPERATION_FAILED, EventReason, Propagation
from argosy.api.types import FederatedObject, FederatedStatus
from argosy.control.caches.informers import Caches
from argosy.control.caches.objectkeys import FederatedKey
from argosy.control.copies.item import Item
from argosy.control.copies.operations import Applied
from argosy.control.telemetry.events import ObjectRecorder, itself
from argosy.control.telemetry.metrics import Metrics
from argosy.kube import timestamps
from argosy.kube.client import Client, Patch
from argosy.kube.errors import NotFound
from argosy.kube.objects import split_key
from argosy.plan.brake.held_removal import held_removal_of
from argosy.plan.copies import drift, placement
from argosy.plan.copies.identity import Refusal
from argosy.plan.copies.render import is_replaced, version_of
from argosy.plan.pipeline.held import held_of
from argosy.plan.status import propagation

__all__ = ["Report"]

#: Of what is told of one cluster.
_LONGEST_MESSAGE = 300
#: Of what is told of a copy that others changed.
_MOST_CLAUSES = 4
_EVENTS = (
    ("create", EventReason.CREATE_IN_CLUSTER, "created"),
    ("update", EventReason.UPDATE_IN_CLUSTER, "updated"),
    ("delete", EventReason.DELETE_IN_CLUSTER, "deleted"),
    ("release", EventReason.REMOVE_MANAGED_LABEL, "left as it is"),
)


class Report:
    def __init__(self, client: Client, caches: Caches, recorder: ObjectRecorder, metrics: Metrics):
        self._client = client
        self._caches = caches
        self._recorder = recorder
        self._metrics = metrics
        #: The last reported failures of objects: cluster -> (reason, error). Reported once, not with every retry.
        self._told: dict[FederatedKey, dict[str, tuple[str, str]]] = {}

    def forget(self, key: FederatedKey) -> None:
        """The object is gone."""
        self._told.pop(key, None)

    async def round(self, item: Item, results: dict[str, Applied], complete: bool) -> None:
        """Write the status once, and only if it changed."""
        outcomes = {
            cluster: _result(item, cluster, applied)
            for cluster, applied in results.items()
            if applied.status is not None
        }
        reason = ""
        if not complete:  # clusters that have not answered yet keep their entry, or are pending
            placed = set(item.federated.placed)
            for cluster in placement.may_hold_copies(item.federated) - results.keys():
                record = item.record(cluster)
                under_way = Propagation.PENDING_CREATE if cluster in placed else Propagation.WAITING_FOR_REMOVAL
                outcomes[cluster] = (
                    propagation.Result(record.status, message=record.message)
                    if record
                    else propagation.Result(under_way)
                )
                # An entry that tells of what was sent before does not make the condition true.
                if record is None or cluster not in placed or record.digest not in ("", item.digest(cluster)):
                    reason = CHECK_CLUSTERS
        status = propagation.propagation_status(
            item.federated.status,
            item.federated.metadata.generation if complete else item.federated.status.synced_generation,
            outcomes,
            timestamps.now(),
            reason=reason,
            held=held_of(item.annotations),
            held_copies=item.held,
            held_removal=held_removal_of(item.annotations),
            reports_drift=drift.reports(item.annotations),
        )
        self.tell(item, results)
        if status is not None:
            await self._write_status(item.key, status)

    async def refused(self, key: FederatedKey, federated: FederatedObject, refusal: Refusal) -> None:
        """Nothing is sent to members, and their copies stay. Not reported if no cluster is affected."""
        concerned = placement.may_hold_copies(federated)
        if not concerned:
            return
        before, placed = federated.status, set(federated.placed)
        outcomes = {
            cluster: propagation.Result(
                Propagation.COMPUTE_RESOURCE_FAILED if cluster in placed else Propagation.WAITING_FOR_REMOVAL
            )
            for cluster in concerned
        }
        told = self._told.get(key)
        self._told[key] = {"": (refusal.reason, refusal.message)}
        if told != self._told[key]:
            self._metrics.refused.labels(refusal.reason).inc()
            self._recorder.on(itself(federated), "Warning", refusal.reason, f"nothing is sent: {refusal.message}")
        status = propagation.propagation_status(
            before,
            before.synced_generation,
            outcomes,
            timestamps.now(),
            reason=refusal.reason,
            reports_drift=drift.reports(federated.metadata.annotations),
        )
        if status is not None:
            await self._write_status(key, status)

    async def held(self, item: Item) -> None:
        """The object is not sent while its decision is held: its copies stay as they are, and what is wanted may be another."""
        held = held_of(item.annotations)
        if held is None:
            return
        before = item.federated.status
        status = propagation.propagation_status(
            before,
            before.synced_generation,
            propagation.held_results(item.federated, held),
            timestamps.now(),
            reason=held.reason,
            held=held,
            held_copies=item.held,
            held_removal=held_removal_of(item.annotations),
            reports_drift=drift.reports(item.annotations),
        )
        if status is not None:
            await self._write_status(item.key, status)

    async def held_deletion(self, item: Item, message: str, reason: str = "DeletionNotConfirmed") -> None:
        """The copies stay although the object is being deleted."""
        before = item.federated.status
        known = {entry.cluster: propagation.Result(entry.status, message=entry.message) for entry in before.clusters}
        status = propagation.propagation_status(
            before,
            before.synced_generation,
            known,
            timestamps.now(),
            reason=reason,
            held_removal=held_removal_of(item.annotations),
            reports_drift=drift.reports(item.annotations),
        )
        if status is not None:
            self._recorder.event(item.federated, "Warning", EventReason.ENSURE_DELETION_FAILED, message)
            await self._write_status(item.key, status)

    async def finalizers(self, item: Item, finalizers: list[str]) -> None:
        resource = resources.federated_objects(item.key.namespaced)
        namespace, name = split_key(item.key.key)
        metadata = item.federated.metadata
        body = {"metadata": {"finalizers": finalizers, "resourceVersion": metadata.resource_version}}
        try:
            raw = await self._client.patch(resource, name, body, namespace or None, kind=Patch.MERGE, into=bytes)
        except NotFound:
            return
        self._metrics.control_writes.labels(resource.kind, "patch").inc()
        if finalizers or not metadata.deletion_timestamp:
            self._caches.remember_federated("dispatch", raw, item.key.namespaced)

    def tell(self, item: Item, results: dict[str, Applied]) -> None:
        """One event for all clusters with the same operation, and one for each different failure."""
        for operation, reason, verb in _EVENTS:
            clusters = [name for name, applied in results.items() if applied.wrote == operation and not applied.failed]
            if clusters:
                self._recorder.event(item.federated, "Normal", reason, f"{verb} in {', '.join(clusters)}")
        replaced = [
            name
            for name, applied in results.items()
            if applied.wrote != "create" and is_replaced(item.record(name), applied.metadata.uid)
        ]
        if replaced:
            message = (
                f"{', '.join(replaced)}: the object is not the one that was written: somebody deleted that and created"
                " another of the same name"
            )
            self._recorder.event(item.federated, "Warning", EventReason.REPLACED_IN_CLUSTER, message)
        self._tell_drift(item, results)
        failing = {
            name: (OPERATION_FAILED.get(applied.status, str(applied.status)), applied.error)
            for name, applied in results.items()
            if applied.failed and applied.status is not None
        }
        told = self._told.pop(item.key, {})
        if failing:
            self._told[item.key] = failing
        failures: dict[tuple[str, str], list[str]] = {}
        for name, failure in failing.items():
            if told.get(name) != failure:
                failures.setdefault(failure, []).append(name)
        for (why, error), clusters in failures.items():
            self._recorder.event(item.federated, "Warning", why, f"{', '.join(clusters)}: {error}")

    def _tell_drift(self, item: Item, results: dict[str, Applied]) -> None:
        """What others changed: each change once, also if it is left for long."""
        for name, applied in results.items():
            if applied.drift is None or not applied.drift.changed:
                continue
            record = item.record(name)
            before = record.drift if record is not None else ()
            fresh = [each for each in drift.noted(before, applied.drift, "") if not each.since]
            if not fresh:
                continue
            reason = EventReason.DRIFT_LEFT if applied.drift.left else EventReason.DRIFT_REPAIRED
            clauses = [drift.told(each) for each in fresh[:_MOST_CLAUSES]]
            if len(fresh) > _MOST_CLAUSES:
                clauses.append(f"and {len(fresh) - _MOST_CLAUSES} more")
            self._recorder.event(item.federated, "Warning", reason, f"{name}: {'; '.join(clauses)}")

    async def _write_status(self, key: FederatedKey, status: FederatedStatus) -> None:
        resource = resources.federated_objects(key.namespaced)
        namespace, name = split_key(key.key)
        # Empty lists are included: a merge patch keeps what it leaves out. Without resourceVersion on purpose: federate may
        # have written meanwhile, and what was seen in members stays true (see `fence` for former leaders that resume).
        # The count is for tables, whose columns cannot count; nobody reads it here.
        derived = {"syncedClusters": propagation.synced_clusters(status)}
        body = {"status": {"conditions": [], "clusters": [], **msgspec.to_builtins(status), **derived}}
        try:
            raw = await self._client.patch(
                resource, name, body, namespace or None, kind=Patch.MERGE, subresource="status", into=bytes
            )
        except NotFound:
            return
        self._metrics.control_writes.labels(resource.kind, "status").inc()
        self._caches.remember_federated("dispatch", raw, key.namespaced)


def _result(item: Item, cluster: str, applied: Applied) -> propagation.Result:
    """The cluster's entry in the status, with a new record if something was written or verified."""
    if applied.status is Propagation.APPLY_OVERRIDES_FAILED:
        return propagation.Result(applied.status, message=applied.held or applied.error[:_LONGEST_MESSAGE])
    if applied.status is not Propagation.OK or not applied.metadata.resource_version:
        return propagation.Result(applied.status or Propagation.OK, drift=applied.drift)
    return propagation.Result(
        Propagation.OK,
        applied.metadata.generation,
        version_of(applied.metadata),
        item.digest(cluster),
        applied.metadata.uid,
        drift=applied.drift,
    )
