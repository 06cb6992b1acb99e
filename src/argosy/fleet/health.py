"""Health of a member: from the result of a probe to the conditions of its FederatedCluster.

Pure transitions: the caller probes, supplies the time, stores the conditions and keeps the Debounce and Contact values. A short
outage must not move workloads, so Ready and Offline change only after the new state has lasted for a threshold. That nothing is
heard of the member is told much sooner, by the condition Responding, which moves nothing.
"""

import msgspec

from argosy.api import conditions as texts
from argosy.api.clusters import ClusterCondition, FederatedCluster

__all__ = [
    "Contact",
    "Debounce",
    "Health",
    "HealthUpdate",
    "another_answers",
    "last_contact",
    "next_health",
    "probe_failed",
    "probe_result",
    "responding",
    "suspected",
    "unheard",
    "unreachable",
    "unwatched",
]

_OFFLINE_AND_READY = (texts.OFFLINE, texts.READY)
#: So many failures in a row are no coincidence.
_SILENT = 2


class Health(msgspec.Struct, frozen=True):
    """One observation: is the member reachable, is it ready, and why."""

    offline: bool
    ready: str
    reason: str
    message: str

    @property
    def pair(self) -> tuple[str, str]:
        """Status of the Offline and Ready conditions: what is debounced."""
        return ("True" if self.offline else "False", self.ready)


class Debounce(msgspec.Struct, frozen=True):
    """The last pair observed and since when (the caller's monotonic seconds)."""

    pair: tuple[str, str]
    since: float

    @property
    def offline(self) -> bool:
        return self.pair[0] == "True"


class Contact(msgspec.Struct, frozen=True):
    """When a member was heard of last, how often it has not been since, and why, if there is more to say."""

    heard: str
    failures: int = 0
    why: str = ""

    @property
    def silent(self) -> bool:
        """A single failure may be a lost packet."""
        return self.failures >= _SILENT


class HealthUpdate(msgspec.Struct, frozen=True):
    """Conditions to store (Offline and Ready, others unchanged), the state for next time, and whether they changed."""

    conditions: tuple[ClusterCondition, ...]
    debounce: Debounce
    changed: bool
    #: Whether the observation differs from what is published, and has not lasted long enough.
    pending: bool = False


UNREACHABLE = Health(True, "Unknown", *texts.CLUSTER_NOT_REACHABLE)


def probe_result(healthz: str | None) -> Health:
    """The health by the answer to GET /healthz; None = no answer."""
    if healthz is None:
        return UNREACHABLE
    if healthz.strip().lower() == "ok":
        return Health(False, "True", *texts.CLUSTER_READY)
    return Health(False, "False", *texts.HEALTHZ_NOT_OK)


def unreachable(why: str) -> Health:
    """Nobody answers where the member should; `why` is empty if there is no more to say."""
    reason, message = texts.CLUSTER_NOT_REACHABLE
    return Health(True, "Unknown", reason, why or message)


def another_answers(why: str) -> Health:
    """Another cluster answers in the member's place: the member's own health is unknown."""
    return Health(True, "Unknown", texts.CLUSTER_IDENTITY_CHANGED_REASON, why)


def probe_failed(*, resources: str = "", discovery: str = "", healthz: str = "", busy: str = "") -> Health:
    """A reachable member whose nodes and pods, APIs or health could not be read, or that answers 429."""
    if busy:
        return Health(
            False, "False", texts.TOO_MANY_REQUESTS_REASON, texts.TOO_MANY_REQUESTS_MESSAGE.format(error=busy)
        )
    if healthz:
        reason, message = texts.HEALTHZ_NOT_OK
        return Health(False, "False", reason, f"{message}: {healthz}")
    if resources:
        message = texts.RESOURCE_COLLECTION_FAILED_MESSAGE.format(error=resources)
        return Health(False, "False", texts.RESOURCE_COLLECTION_FAILED_REASON, message)
    message = texts.API_DISCOVERY_FAILED_MESSAGE.format(error=discovery)
    return Health(False, "False", texts.API_DISCOVERY_FAILED_REASON, message)


def next_health(
    cluster: FederatedCluster,
    observed: Health,
    debounce: Debounce | None,
    *,
    now: float,
    wall_time: str,
    threshold: float,
) -> HealthUpdate:
    """The conditions after an observation.

    A cluster without these conditions gets the first observation at once. Otherwise the published conditions stay until another
    observation has lasted for `threshold` seconds; after a restart (no Debounce) the time starts again.
    """
    memory = debounce if debounce is not None and debounce.pair == observed.pair else Debounce(observed.pair, now)
    shown = _shown(cluster)
    if shown is not None and shown != observed.pair and now - memory.since < threshold:
        return HealthUpdate(_probed(cluster, wall_time), memory, changed=False, pending=True)
    offline_texts = texts.CLUSTER_NOT_REACHABLE if observed.offline else texts.CLUSTER_REACHABLE
    conditions = (
        _condition(cluster, texts.OFFLINE, observed.pair[0], *offline_texts, wall_time),
        _condition(cluster, texts.READY, observed.pair[1], observed.reason, observed.message, wall_time),
    )
    return HealthUpdate(_merged(cluster, conditions), memory, changed=shown != observed.pair)


def last_contact(cluster: FederatedCluster, wall_time: str) -> Contact:
    """The contact as far as the stored status tells."""
    if (since := cluster.silent_since) is not None:
        return Contact(since, _SILENT)
    joined = cluster.condition(texts.JOINED)
    return Contact(
        cluster.status.last_heard_time or (joined.last_transition_time if joined is not None else None) or wall_time
    )


def suspected(contact: Contact) -> Contact:
    """After a request or watch that failed: the next probe decides."""
    return msgspec.structs.replace(contact, failures=max(contact.failures, 1))


def unheard(contact: Contact, why: str = "") -> Contact:
    """After a probe that was not answered."""
    return Contact(contact.heard, contact.failures + 1, why)


def unwatched(contact: Contact, since: str) -> Contact:
    """The member answers probes, and its watches have been failing since then."""
    return Contact(contact.heard if contact.silent else since, _SILENT, texts.WATCHES_FAIL)


def responding(
    cluster: FederatedCluster, conditions: tuple[ClusterCondition, ...], contact: Contact, wall_time: str
) -> tuple[ClusterCondition, ...]:
    """The conditions with the one that tells whether the member is heard of. It exists once it was not.

    After a single failure it stays as it is.
    """
    before = cluster.condition(texts.RESPONDING)
    if contact.failures == 1 or (before is None and not contact.silent):
        return conditions
    told = _condition(cluster, texts.RESPONDING, "True", *texts.RESPONDING_AGAIN, wall_time)
    if contact.silent:
        message = texts.NOT_HEARD_OF_MESSAGE.format(since=contact.heard)
        message = f"{message}: {contact.why}" if contact.why else message
        told = ClusterCondition(texts.RESPONDING, "False", wall_time, contact.heard, texts.NOT_HEARD_OF_REASON, message)
    return (*(other for other in conditions if other.type != texts.RESPONDING), told)


def _shown(cluster: FederatedCluster) -> tuple[str, str] | None:
    offline, ready = (cluster.condition(type) for type in _OFFLINE_AND_READY)
    if offline is None or ready is None:
        return None
    return offline.status, ready.status


def _probed(cluster: FederatedCluster, wall_time: str) -> tuple[ClusterCondition, ...]:
    """The old conditions, with the time of this probe."""
    return tuple(
        msgspec.structs.replace(condition, last_probe_time=wall_time)
        if condition.type in _OFFLINE_AND_READY
        else condition
        for condition in cluster.status.conditions
    )


def _condition(
    cluster: FederatedCluster, type: str, status: str, reason: str, message: str, wall_time: str
) -> ClusterCondition:
    before = cluster.condition(type)
    kept = before.last_transition_time if before is not None and before.status == status else None
    return ClusterCondition(
        type=type,
        status=status,
        last_probe_time=wall_time,
        last_transition_time=kept or wall_time,
        reason=reason,
        message=message,
    )


def _merged(cluster: FederatedCluster, conditions: tuple[ClusterCondition, ...]) -> tuple[ClusterCondition, ...]:
    replaced = {condition.type: condition for condition in conditions}
    kept = tuple(replaced.pop(old.type, old) for old in cluster.status.conditions)
    return kept + tuple(replaced.values())
