"""The health of joined members: from probes, and from requests and watches that fail, to the conditions of FederatedClusters.

Called by `clusters` for one cluster at a time. A probe is a small request; what it finds is stored when it changes, and else
every report period. The memory of earlier probes is lost with the process: the stored conditions stay until they are confuted.
"""

import math
from datetime import timedelta

import msgspec

from argosy.api import conditions as texts
from argosy.api import resources
from argosy.api.conditions import EventReason
from argosy.api.types import APIResource, ClusterCondition, ClusterStatus, FederatedCluster
from argosy.control.caches.informers import Caches
from argosy.control.members.access import Access, Problem
from argosy.control.members.expected import ExpectedKinds
from argosy.control.members.member import Member, Members
from argosy.control.members.probe import Observation, Prober
from argosy.control.members.writer import ClusterWriter
from argosy.control.timings import Timings
from argosy.fleet.apis import lasting
from argosy.fleet.health import (
    Contact,
    Debounce,
    Health,
    another_answers,
    last_contact,
    next_health,
    responding,
    suspected,
    unheard,
    unreachable,
    unwatched,
)
from argosy.kube import chance, clock, timestamps
from argosy.kube.events import EventRecorder
from argosy.kube.references import reference_of

__all__ = ["ClusterHealth"]

#: Between the first probes of a member that joined and is not ready yet.
_FIRST_PROBES = 2.0
#: Limits for the message about a member's invalid answers.
_LONGEST_MESSAGE = 300
_SHOWN = 3
#: Probes of many members are spread over time.
_SPREAD = (0.9, 1.0)


class ClusterHealth:
    def __init__(
        self,
        caches: Caches,
        members: Members,
        access: Access,
        prober: Prober,
        expected: ExpectedKinds,
        writer: ClusterWriter,
        recorder: EventRecorder,
        timings: Timings,
    ):
        self._caches = caches
        self._members = members
        self._access = access
        self._prober = prober
        self._expected = expected
        self._writer = writer
        self._recorder = recorder
        self._timings = timings
        self._debounce: dict[str, Debounce] = {}
        self._contacts: dict[str, Contact] = {}
        #: When an observation that is not published yet will have lasted long enough; infinity if there is none.
        self._due: dict[str, float] = {}
        #: When a status was written last.
        self._written: dict[str, float] = {}
        #: By cluster: APIs it served and does not seem to serve any more, and since when.
        self._missing: dict[str, dict[APIResource, float]] = {}

    def forget(self, name: str) -> None:
        for memory in (self._debounce, self._contacts, self._due, self._written, self._missing):
            memory.pop(name, None)
        self._expected.forget(name)

    def turned(self, name: str) -> tuple[str, ...]:
        """A member stopped or began to answer: it is to be probed. Returns its name, if so."""
        contact, failing = self._contacts.get(name), self._access.failing(name)
        if contact is not None and failing:
            self._contacts[name] = suspected(contact)
        # That our own probe was answered is no reason for another one.
        return (name,) if failing or contact is None or contact.failures else ()

    def is_failing(self, name: str) -> bool:
        """Whether the last probe was not answered. Watches alone may fail for reasons that do not concern requests."""
        contact, seen = self._contacts.get(name), self._debounce.get(name)
        return contact is not None and contact.failures > 0 and (seen is None or seen.offline)

    def next_probe(self, cluster: FederatedCluster, took: float) -> float:
        """Seconds until the next probe, after one that took so long."""
        timings, name = self._timings, cluster.name
        if self._is_another(name):
            return min(timings.health_period, timings.identity_recheck)
        if self._expected.left(cluster):
            return min(timings.health_period, timings.kind_recheck)
        contact = self._contacts.get(name)
        if contact is not None and contact.failures == 1:
            return timings.health_recheck
        wait = min(timings.health_period * chance.uniform(*_SPREAD), self._soon(cluster)) - took
        wait = min(wait, self._due.get(name, math.inf) - clock.monotonic())
        return max(wait, timings.health_recheck)

    def _soon(self, cluster: FederatedCluster) -> float:
        """Seconds for a member that answers while watches on it fail, and for a new one that somebody is waiting for."""
        member, seen = self._members.get(cluster.name), self._debounce.get(cluster.name)
        if member is not None and member.unwatched() and seen is not None and not seen.offline:
            return self._timings.watch_lost
        joined = cluster.condition(texts.JOINED)
        if _was_ready(cluster) or joined is None:
            return math.inf
        then = timestamps.parse(joined.last_transition_time)
        age = (clock.now() - then).total_seconds() if then is not None else 0.0
        # Another machine's clock may be ahead: then the age is unknown.
        return max(_FIRST_PROBES, age) if age >= 0 else math.inf

    async def publish(self, cluster: FederatedCluster, member: Member | None) -> None:
        """Probe the member, and store what changed. One that cannot be connected to is unreachable."""
        name = cluster.name
        # As it is now: what fails from here on is this probe.
        contact = self._contacts.setdefault(name, last_contact(cluster, timestamps.now()))
        observed = await self._observed(cluster, member)
        cluster = self._caches.clusters.get(name) or cluster
        contact = self._contacts[name] = self._judged(contact, observed.health, member)
        before, now = self._debounce.get(name), clock.monotonic()
        threshold = self._threshold(cluster, observed.health)
        update = next_health(cluster, observed.health, before, now=now, wall_time=timestamps.now(), threshold=threshold)
        self._debounce[name] = update.debounce
        self._due[name] = update.debounce.since + threshold if update.pending else math.inf
        status = self._status(cluster, member, observed, update.conditions, contact)
        late = now - self._written.get(name, -math.inf) >= self._timings.report_period
        if late or observed.resources is not None or _told(status) != _told(cluster.status):
            await self._writer.write_status(cluster, status)
            self._written[name] = now
        shown = cluster.condition(texts.READY)
        # The conditions wait for the threshold; the event is recorded at once.
        news = before is None or before.pair != update.debounce.pair
        if update.changed or (news and shown is not None and shown.status != observed.health.ready):
            kind = "Normal" if observed.health.ready == "True" else "Warning"
            self._event(cluster, kind, observed.health.reason, observed.health.message)

    async def _observed(self, cluster: FederatedCluster, member: Member | None) -> Observation:
        problem = self._access.problem(cluster.name)
        if problem is not None and self._is_another(cluster.name):
            return Observation(another_answers(problem.message))
        silence = self._access.silence(cluster.name)
        if member is None or silence is not None:
            return Observation(unreachable(silence or ""))
        again = self._expected.awaited(cluster.name)
        observed = await self._prober.observe(member, cluster.status.api_resource_types, again=again)
        if not observed.health.offline and await self._access.follow_role(cluster, member):
            message = "the service account's rights in the member were updated to the type configs"
            self._event(cluster, "Normal", EventReason.ROLE_UPDATED, message)
        return observed

    def _judged(self, contact: Contact, health: Health, member: Member | None) -> Contact:
        """The contact after a probe."""
        if health.offline or member is None:
            return unheard(contact, health.message if health != unreachable("") else "")
        lost, seen = member.unwatched(), self._debounce.get(member.name)
        # Watches that fail although probes are answered keep their own pace.
        member.answers(again=contact.failures > 0, retry=seen is None or seen.offline)
        # A member that was away is believed at once: its watches have this long from its first answer on.
        answering = clock.monotonic() - seen.since if seen is not None and not seen.offline else 0.0
        if min(lost, answering) > self._timings.watch_lost:
            return unwatched(contact, timestamps.timestamp(clock.now() - timedelta(seconds=lost)))
        return Contact(timestamps.now())

    def _status(
        self,
        cluster: FederatedCluster,
        member: Member | None,
        observed: Observation,
        conditions: tuple[ClusterCondition, ...],
        contact: Contact,
    ) -> ClusterStatus:
        conditions = self._responding(cluster, conditions, contact)
        conditions = self._with(
            cluster, conditions, texts.AUTHORIZED, texts.AUTHORIZED_AGAIN, self._access.problem(cluster.name)
        )
        conditions = self._with(
            cluster, conditions, texts.ANSWERS_READABLE, texts.ANSWERS_READABLE_AGAIN, _misunderstood(member)
        )
        status = msgspec.structs.replace(
            cluster.status,
            conditions=conditions,
            last_heard_time=contact.heard,
            kubernetes_version=observed.version or cluster.status.kubernetes_version,
        )
        if observed.resources is not None:
            status = msgspec.structs.replace(status, resources=observed.resources)
        if observed.apis is not None and (_was_ready(cluster) or _is_ready(status)):
            # Once its APIs are stored, objects may be placed in the cluster. They are stored only when it is ready, or else
            # objects waiting for it would be tried once, too early.
            apis, self._missing[cluster.name] = lasting(
                cluster.status.api_resource_types,
                observed.apis,
                self._missing.get(cluster.name, {}),
                clock.monotonic(),
                self._timings.apis_kept,
            )
            status = msgspec.structs.replace(status, api_resource_types=apis)
        return status

    def _threshold(self, cluster: FederatedCluster, health: Health) -> float:
        """How long an observation must last before it is published."""
        shown = cluster.condition(texts.READY)
        told = texts.CLUSTER_IDENTITY_CHANGED_REASON
        # An identity mismatch is certain and does not pass by itself, so there is no need to wait. Nor is there for a cluster
        # that was never ready: nothing depends on it yet.
        certain = health.reason == told or (health.ready == "True" and shown is not None and shown.reason == told)
        return self._timings.health_threshold if _was_ready(cluster) and not certain else 0.0

    def _is_another(self, name: str) -> bool:
        problem = self._access.problem(name)
        return problem is not None and problem.reason == texts.CLUSTER_IDENTITY_CHANGED_REASON

    # Conditions that exist once there was a problem.

    def _responding(
        self, cluster: FederatedCluster, conditions: tuple[ClusterCondition, ...], contact: Contact
    ) -> tuple[ClusterCondition, ...]:
        before = cluster.condition(texts.RESPONDING)
        conditions = responding(cluster, conditions, contact, timestamps.now())
        told = next((each for each in conditions if each.type == texts.RESPONDING), None)
        if told is not None and (before is None or before.status != told.status):
            self._event(cluster, "Normal" if told.status == "True" else "Warning", told.reason, told.message)
        return conditions

    def _with(
        self,
        cluster: FederatedCluster,
        conditions: tuple[ClusterCondition, ...],
        type: str,
        well: tuple[str, str],
        problem: Problem | None,
    ) -> tuple[ClusterCondition, ...]:
        """Adds the condition about the member's authorization, or about its answers."""
        before = cluster.condition(type)
        if problem is None and before is None:
            return conditions
        status = "True" if problem is None else "False"
        reason, message = well if problem is None else (problem.reason, problem.message)
        now = timestamps.now()
        since = before.last_transition_time if before is not None and before.status == status else None
        condition = ClusterCondition(type, status, now, since or now, reason, message)
        if before is None or (before.reason, before.message) != (reason, message):
            self._event(cluster, "Normal" if problem is None else "Warning", reason, message)
        return (*(other for other in conditions if other.type != type), condition)

    def _event(self, cluster: FederatedCluster, kind: str, reason: str, message: str) -> None:
        self._recorder.event(reference_of(resources.FEDERATED_CLUSTERS, cluster.metadata), kind, reason, message)


def _told(status: ClusterStatus) -> tuple[object, ...]:
    """What is stored as soon as it changes: not the times of probes."""
    conditions = {each.type: msgspec.structs.replace(each, last_probe_time=None) for each in status.conditions}
    return conditions, status.api_resource_types, status.kubernetes_version


def _misunderstood(member: Member | None) -> Problem | None:
    """The problem, if the member's answers are invalid."""
    troubles = member.troubles() if member is not None else []
    if not troubles:
        return None
    more = f" (and {len(troubles) - _SHOWN} more)" if len(troubles) > _SHOWN else ""
    shown = "; ".join(trouble[:_LONGEST_MESSAGE] for trouble in troubles[:_SHOWN])
    return Problem(texts.BAD_ANSWER_REASON, f"{shown}{more}")


def _was_ready(cluster: FederatedCluster) -> bool:
    """Whether it was ever ready: APIs are stored from then on."""
    return bool(cluster.status.api_resource_types)


def _is_ready(status: ClusterStatus) -> bool:
    return any(each.type == texts.READY and each.status == "True" for each in status.conditions)
