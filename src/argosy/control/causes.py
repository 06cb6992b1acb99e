"""Causes: why pods of an object are not ready in its members, for aggregate, and one event for each cluster and reason.

What is known comes from the one watch on each member's pods (`probe`), from the copy's own conditions, and from events about pods
that are not created (`refusals`). What was told last is in the CollectedStatus, so a restart repeats nothing.
"""

import msgspec

from argosy.api.federated import Cause
from argosy.api.types import FederatedObject, FederatedTypeConfig
from argosy.control.caches.informers import Caches
from argosy.control.caches.objectkeys import SourceKey
from argosy.control.members.probe import Prober, TroubleChange
from argosy.control.refusals import Refusals
from argosy.control.telemetry.events import ObjectRecorder
from argosy.control.timings import Timings
from argosy.fleet.pods.troubles import Trouble, WorkloadRef
from argosy.kube import clock
from argosy.plan.fields import MISSHAPEN
from argosy.plan.status.cause import FAILED_CREATE, cause_of, counted, workload_of
from argosy.plan.status.collect import Seen

__all__ = ["Causes"]


class Causes:
    def __init__(self, caches: Caches, prober: Prober, refusals: Refusals, recorder: ObjectRecorder, timings: Timings):
        self._caches = caches
        self._prober = prober
        self._refusals = refusals
        self._recorder = recorder
        self._timings = timings
        self.pods = prober.troubles
        self.refused = refusals.found
        #: When an event told of a cluster and reason.
        self._told: dict[SourceKey, dict[tuple[str, str], float]] = {}

    def source_of(self, change: TroubleChange) -> SourceKey | None:
        """The federated object that pods belong to; None if they are not ours."""
        group, kind, key = change.workload
        config = next(
            (each for each in self._caches.catalog if (each.resource.group, each.kind) == (group, kind)), None
        )
        if config is None:
            return None
        found = SourceKey(config.name, key)
        return found if self._caches.federated_view(found) is not None else None

    def found(self, key: SourceKey, config: FederatedTypeConfig, seen: dict[str, Seen]) -> dict[str, Seen]:
        """What was seen, with its causes. While a member's pods are not known, what was told before stays."""
        stored, workload = self._stored(key), workload_of(config, key.key)
        return {
            name: self._with_cause(key, config, name, each, workload, stored.get(name)) for name, each in seen.items()
        }

    def _with_cause(
        self,
        key: SourceKey,
        config: FederatedTypeConfig,
        cluster: str,
        seen: Seen,
        workload: WorkloadRef,
        before: Cause | None,
    ) -> Seen:
        if not seen.reachable or seen.object is None:
            return seen
        troubles = self._prober.troubles_of(cluster, workload)
        if troubles is None and before is not None:
            return msgspec.structs.replace(seen, cause=before)
        told, _ = self._counted(troubles, before)
        refusal = self._refusals.of_copy(cluster, key)
        if refusal is None:  # nobody has asked yet, after a restart say
            refusal = before.message if before is not None and before.reason == FAILED_CREATE else ""
        try:
            cause = cause_of(seen.object, config, told, refusal, before)
        except MISSHAPEN:  # the copy is not understood, which is told elsewhere
            return seen
        return msgspec.structs.replace(seen, cause=cause)

    def again(self, key: SourceKey, config: FederatedTypeConfig, seen: dict[str, Seen]) -> float | None:
        """Seconds until there may be more to tell, though nothing happens: a trouble has lasted long enough by then, or what was
        told and could not be verified can be. (Pods that are well again tell nothing when they are listed.)"""
        stored, workload = self._stored(key), workload_of(config, key.key)
        soon = []
        for name in (name for name, each in seen.items() if each.reachable):
            troubles = self._prober.troubles_of(name, workload)
            if troubles is None and name in stored:
                soon.append(self._timings.health_period)
            _, left = self._counted(troubles, stored.get(name))
            if left is not None:
                soon.append(left)
        return min(soon, default=None)

    def _counted(self, troubles: list[Trouble] | None, before: Cause | None) -> tuple[list[Trouble], float | None]:
        return counted(troubles or (), clock.now(), self._timings.unready_grace, before)

    def tell(
        self, key: SourceKey, config: FederatedTypeConfig, federated: FederatedObject, seen: dict[str, Seen]
    ) -> None:
        """Record an event for each cluster whose reason is another than before. One that comes and goes is not repeated."""
        found = {name: each.cause for name, each in seen.items() if each.cause is not None}
        stored, now = self._stored(key), clock.monotonic()
        told = {each: when for each, when in self._told.pop(key, {}).items() if now - when < self._timings.cause_repeat}
        for name, cause in sorted(found.items()):
            known = stored.get(name)
            if (known is None or known.reason != cause.reason) and (name, cause.reason) not in told:
                text = f"{cause.reason}: {cause.message}" if cause.message else cause.reason
                self._recorder.for_user(federated, "Warning", cause.reason, f"{name}: {text}")
                told[name, cause.reason] = now
        if told:
            self._told[key] = told

    def forget(self, key: SourceKey) -> None:
        """The object is gone."""
        self._told.pop(key, None)

    def _stored(self, key: SourceKey) -> dict[str, Cause]:
        collected = self._caches.collected(key)
        entries = collected.clusters if collected is not None else ()
        return {each.cluster: each.cause for each in entries if each.cause is not None}
