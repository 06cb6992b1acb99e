"""Refusals: why members create no pods for workloads whose status does not tell: StatefulSets, DaemonSets and Jobs.

A Deployment has a condition for that (ReplicaFailure). For the others only an event in the member says that a quota or a webhook
refused their pods. Events are many and nobody watches them here: a member is asked for those of one object, only while that
object has lacked pods for some seconds, and no more often than `Timings.refusal_recheck`. Writes nothing: aggregate tells it.
"""

import logging
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

from argosy.control.caches.informers import Caches
from argosy.control.caches.objectkeys import SourceKey
from argosy.control.caches.projection import as_object
from argosy.control.collect import Collector, CopyChange
from argosy.control.context import ControllerContext
from argosy.control.members.member import Members
from argosy.control.timings import Timings
from argosy.control.wake import Loop, Signal, Wake
from argosy.kube import clock, timestamps
from argosy.kube.client import Client
from argosy.kube.errors import ApiError, Forbidden, TransportError
from argosy.kube.events import EVENTS
from argosy.kube.objects import HasMetadata, split_key
from argosy.kube.queue import Result, WorkQueue
from argosy.plan.fields import MISSHAPEN
from argosy.plan.status.cause import FAILED_CREATE, lacks_pods

__all__ = ["CopyKey", "Refusals"]

log = logging.getLogger(__name__)
_KINDS: Final = frozenset({("apps", "StatefulSet"), ("apps", "DaemonSet"), ("batch", "Job")})


class CopyKey(NamedTuple):
    """An object in a member."""

    cluster: str
    source: SourceKey


class _EventView(msgspec.Struct, frozen=True, rename="camel"):
    message: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None

    @property
    def when(self) -> str:
        return self.last_timestamp or self.event_time or ""


class _Asked(NamedTuple):
    refusal: str
    when: float


class Refusals(Loop[CopyKey]):
    name = "refusals"
    #: Few: it is only asked why something does not work.
    workers = 2

    def __init__(
        self, queue: WorkQueue[CopyKey], caches: Caches, collector: Collector, members: Members, timings: Timings
    ):
        self.queue = queue
        self._caches = caches
        self._collector = collector
        self._members = members
        self._timings = timings
        #: An object whose pods a member refuses, for another reason than before or no more.
        self.found: Signal[SourceKey] = Signal("pods that members do not create")
        #: Of copies that lack pods.
        self._asked: dict[CopyKey, _Asked] = {}
        self._forbidding: set[str] = set()

    @classmethod
    def of(cls, shared: ControllerContext) -> "Refusals":
        return cls(shared.queue(), shared.caches, shared.collector, shared.members, shared.timings)

    def of_copy(self, cluster: str, key: SourceKey) -> str | None:
        """What the member said last about pods it did not create; empty if nothing, None if it was not asked yet."""
        asked = self._asked.get(CopyKey(cluster, key))
        return asked.refusal if asked is not None else None

    def wakes(self) -> Iterable[Wake[Any, CopyKey]]:
        why = "a member changed a copy, which may lack pods"
        yield Wake(self._collector.changes, self._of_copy, why, 1, self._timings.refusal_delay)

    def _of_copy(self, change: CopyChange) -> list[CopyKey]:
        config = self._caches.catalog.get(change.type)
        if config is None or (config.resource.group, config.kind) not in _KINDS or change.change.origin:
            return []
        key = CopyKey(change.cluster, change.source)
        return [key] if key in self._asked or self._lacks_pods(key, change.change.new) else []

    def _lacks_pods(self, key: CopyKey, copy: HasMetadata | None) -> bool:
        config = self._caches.catalog.get(key.source.type)
        if config is None or copy is None:
            return False
        try:
            return lacks_pods(as_object(copy), config)
        except MISSHAPEN:
            return False

    async def reconcile(self, key: CopyKey) -> Result | None:
        member, cluster = self._members.get(key.cluster), self._caches.clusters.get(key.cluster)
        copy = self._collector.get(key.cluster, key.source.type, key.source.key)
        if cluster is None or copy is None or not self._lacks_pods(key, copy):
            before = self._asked.pop(key, None)
            if before is not None and before.refusal:
                self.found.tell(key.source)
            return None
        if member is None or not cluster.ready or cluster.silent_since is not None:
            return Result(requeue_after=self._timings.refusal_recheck)
        if (left := self._left(key)) > 0:
            return Result(requeue_after=left)
        namespace, _ = split_key(key.source.key)
        selector = f"involvedObject.uid={copy.metadata.uid},reason={FAILED_CREATE}"

        async def ask(client: Client) -> list[_EventView]:
            return (await client.list(EVENTS, namespace, field_selector=selector, into=_EventView)).items

        try:
            events = await member.call(ask)
        except (ApiError, TransportError, TimeoutError) as error:
            if isinstance(error, Forbidden) and key.cluster not in self._forbidding:
                self._forbidding.add(key.cluster)  # told once: a missing right is missing for every workload
                log.warning("member %s: why pods are not created is not known: %s", key.cluster, error)
            return Result(requeue_after=self._timings.refusal_recheck)
        newest = max(events, key=lambda event: event.when, default=None)
        recent = newest is not None and _age(newest.when) < self._timings.refusal_age
        self._remember(key, (newest.message or FAILED_CREATE) if newest is not None and recent else "")
        return Result(requeue_after=self._timings.refusal_recheck)

    def _left(self, key: CopyKey) -> float:
        """Seconds until the member may be asked again."""
        asked = self._asked.get(key)
        return asked.when + self._timings.refusal_recheck - clock.monotonic() if asked is not None else 0.0

    def _remember(self, key: CopyKey, refusal: str) -> None:
        before = self._asked.get(key)
        self._asked[key] = _Asked(refusal, clock.monotonic())
        if before is None or refusal != before.refusal:
            self.found.tell(key.source)


def _age(when: str) -> float:
    moment = timestamps.parse(when)
    return (clock.now() - moment).total_seconds() if moment is not None else 0.0
