"""Judge: whether each step through the storm was a right one, by the audit logs of members and control plane.

* A copy is deleted by us only when its source was deleted or the cluster left the placement, at that time.
* A cluster leaves a placement only when a tenant said so, never because it was not seen.
* Whoever writes has the lease: a leader writes nothing once the next one's term has begun.

A request that a paused server or a silent network held up arrives late, whatever its sender does; where that explains a
delete or a write, it is counted as such. What it may do is limited by its preconditions, and looked at by the survey.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from argosy.api import resources
from argosy.testing import Cluster
from tests.faults.storm.plan import HELD, PLANE, Kind
from tests.faults.storm.stage import FEDERATION
from tests.faults.storm.tenants import NAMESPACE, App, Journal, Placement
from tests.faults.storm.witness import Term, Wanted, Witness
from tests.real.controllers import Write

__all__ = ["Held", "Judge", "told"]

#: Objects of which everything is told.
_TOLD = 3

#: Seconds between a decision and the delete that follows from it, on a busy machine.
_SLACK = 10.0
#: ... between a write and our being told of it.
_TOLD_LATE = 5.0
#: ... between a tenant's change and the placement that follows from it: nobody may lead for a while.
_SCHEDULED = 120.0


class Held(NamedTuple):
    """A fault as it happened, by the wall clock."""

    target: str
    kind: Kind
    begun: float
    ended: float


class Deletion(NamedTuple):
    cluster: str
    name: str
    received: float
    line: str


class Judge:
    def __init__(self, journal: Journal, witness: Witness, faults: list[Held]):
        self._journal = journal
        self._witness = witness
        self._held = [fault for fault in faults if fault.kind in HELD]
        self._outages = [fault for fault in faults if fault.target == PLANE]
        self.violations: list[str] = []
        self.deletes: Counter[str] = Counter()
        self.writes: Counter[str] = Counter()
        self.terms = 0

    # Deletes.

    def deletions(self, members: Mapping[str, Cluster]) -> None:
        for name, cluster in members.items():
            for deletion in _deletions(name, cluster):
                reason = self._reason(deletion)
                self.deletes[reason or "NOT NEEDED"] += 1
                if reason is None:
                    wanted = self._witness.wanted.get(deletion.name)
                    self.violations.append(
                        f"{deletion.name} in {name} was deleted for nothing: {deletion.line}\n    {wanted}"
                    )

    def _reason(self, deletion: Deletion) -> str | None:
        states = self._witness.wanted.get(deletion.name, [])
        blind = self._blind(deletion.received)
        now = _during(states, deletion.received, max(deletion.received + _TOLD_LATE, blind or 0.0))
        since = min(deletion.received - _SLACK, self._sent(deletion.cluster, deletion.received))
        for late, known in (("", now), (" (and came back meanwhile)", _during(states, since, deletion.received))):
            if any(clusters is None for clusters in known):
                return f"source deleted{late}"
            if any(clusters is not None and deletion.cluster not in clusters for clusters in known):
                return f"left the placement{late}"
        # An object may have come and gone between two looks of the witness; who deleted it knows.
        if None in self._journal.meanwhile(deletion.name, since, deletion.received):
            return "source deleted (by its tenant's word)"
        # A version may have come and gone while nobody could be told of it.
        return None if blind is None else "not witnessed, the control plane being away"

    def _blind(self, when: float) -> float | None:
        """Until when the witness may not have seen what was stored then: a watch that broke is opened again, some time later."""
        ends = [each.ended + _SLACK for each in self._outages if each.begun - _TOLD_LATE < when < each.ended + _SLACK]
        return max(ends, default=None)

    def _sent(self, target: str, received: float) -> float:
        """The earliest time a request that arrived then may have been sent at."""
        sent = received
        for fault in self._held:
            # What goes to the control plane also passes the relay of its sender.
            held = fault.target == target or (
                target == PLANE and fault.kind is Kind.SILENCE and "controllers" in fault.target
            )
            if held and fault.begun < received and fault.ended > received - _SLACK:
                sent = min(sent, fault.begun - _SLACK)
        return sent

    # Placements.

    def placements(self) -> None:
        for name, states in self._witness.wanted.items():
            for before, after in itertools.pairwise(states):
                if before.clusters is None or after.clusters is None:
                    continue
                for cluster in before.clusters - after.clusters:
                    self.writes["clusters left a placement"] += 1
                    if not self._asked_for(name, cluster, after.since):
                        self.violations.append(f"{name} left {cluster} although nobody asked for it: {before} {after}")

    def _asked_for(self, name: str, cluster: str, when: float) -> bool:
        tenant = name.partition("/")[2].partition("-")[0]
        policy = f"{resources.PROPAGATION_POLICIES.plural}/{tenant}"
        placements = self._journal.meanwhile(policy, when - _SCHEDULED, when)
        if any(isinstance(each, Placement) and cluster not in each.clusters for each in placements):
            return True
        divided = any(isinstance(each, Placement) and each.mode == "Divide" for each in placements)
        is_app = any(isinstance(each, App) for each in self._journal.meanwhile(name, 0.0, when))
        # Fewer replicas than clusters leave some without.
        return divided and is_app and self._journal.changed(name, when - _SCHEDULED, when)

    # Terms.

    def leaders(self, writes: Iterable[Write]) -> None:
        """Nobody writes outside its terms."""
        terms = self._witness.terms
        self.terms = len(terms)
        caught: set[tuple[str, float]] = set()
        for write in writes:
            self.writes["writes of controllers"] += 1
            if any(
                term.holder == write.identity and _covers(terms, number, write.received)
                for number, term in enumerate(terms)
            ):
                continue
            received = write.received.timestamp()
            lost = _lost(terms, write)
            if lost is not None and self._sent(write.cluster, received) < lost:
                self.writes["writes that arrived late"] += 1
                continue
            if lost is not None and write.is_harmless and (write.identity, lost) not in caught:
                # A stop can catch one request on its way to the kernel (see `argosy.control.fence`).
                caught.add((write.identity, lost))
                self.writes["writes that a stop caught"] += 1
                continue
            self.violations.append(f"written outside of its term: {write}\n    terms: {_told(terms)}")


def _deletions(name: str, cluster: Cluster) -> list[Deletion]:
    """Ours, as far as they were carried out."""
    found = []
    for event in cluster.audit:
        about = event.get("objectRef") or {}
        if event["verb"] not in ("delete", "deletecollection") or event["user"].get("username") != FEDERATION:
            continue
        if about.get("namespace") != NAMESPACE or event["responseStatus"]["code"] >= 300:
            continue
        received = datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()
        line = f"{event['requestReceivedTimestamp']} {event['requestURI']} by {event['userAgent']}"
        found.append(Deletion(name, f"{about['resource']}/{about['name']}", received, line))
    return found


def _during(states: list[Wanted], since: float, until: float) -> list[frozenset[str] | None]:
    """The states that were in effect at some time between the two; before the first it was not there."""
    found = []
    for number, state in enumerate(states):
        ended = states[number + 1].since if number + 1 < len(states) else float("inf")
        if state.since <= until and ended >= since:
            found.append(state.clusters)
    return found


def _covers(terms: list[Term], number: int, when: datetime) -> bool:
    return terms[number].since <= when and (number + 1 == len(terms) or when < terms[number + 1].since)


def _lost(terms: list[Term], write: Write) -> float | None:
    """When the writer's last term before this write was over."""
    ends = [
        terms[number + 1].since.timestamp()
        for number, term in enumerate(terms[:-1])
        if term.holder == write.identity and term.since <= write.received
    ]
    return ends[-1] if ends else None


def _told(terms: list[Term]) -> str:
    return ", ".join(f"{term.holder} since {term.since:%H:%M:%S.%f}" for term in terms)


def told(clusters: Mapping[str, Cluster], names: list[str]) -> list[str]:
    """What the audit logs have about the first few of these objects, their federated objects and their copies."""
    wanted = {name.partition("/")[2]: name for name in names if "/" in name}
    lines = []
    for bare in list(wanted)[:_TOLD]:
        about = {bare, *(f"{bare}-{plural}" for plural in ("deployments.apps", "configmaps"))}
        lines += [
            f"{event['requestReceivedTimestamp']} {name:<6} {event['verb']:<7}"
            f" {event['requestURI'].partition('?')[0].rpartition(NAMESPACE)[2]} {event['responseStatus'].get('code')}"
            f" by {event['user'].get('username')} {event['userAgent'][-40:]}"
            for name, cluster in clusters.items()
            for event in cluster.audit
            if (event.get("objectRef") or {}).get("name") in about
        ]
    return sorted(lines)
