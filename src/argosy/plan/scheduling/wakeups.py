"""Wake-ups: which placed objects a changed fleet concerns, told for all objects of a policy in one step.

A cluster's label changes, and a hundred thousand objects may have to be scheduled again; for most of them nothing follows.
Whether it does is the same for all objects with the same policy whose last decision rested on the same fleet and read the
same labels: it is worked out once for all of them, by the rules that a pass goes by (`triggers`). Of those that are to be
scheduled again, most stay where they are: what the filters say, once for the whole fleet, tells who has to move. They go
first; for the others only their records are out of date.

Only for objects that are placed and held by nothing; of others, the pass has to look.
"""

from collections.abc import Mapping, Set
from enum import Enum
from typing import NamedTuple

import msgspec

from argosy.api import keys
from argosy.api.policies import PropagationPolicy
from argosy.fleet.fingerprint import Fingerprint
from argosy.fleet.snapshot import Fleet
from argosy.kube.objects import key_of
from argosy.plan.plugins import cluster_affinity, cluster_ready, cluster_terminating, placement_filter, taint_toleration
from argosy.plan.scheduling.rules import NO_RULES, RuleError, rules_of
from argosy.plan.scheduling.triggers import Difference, Record, read_record, verdict
from argosy.plan.scheduling.unit import Unit, choice_of

__all__ = ["Concern", "Wakeups"]

#: With one of these on the object, something follows from the fleet that its trigger record does not tell.
_LOOK_ANYWAY = (keys.HELD, keys.FAILBACK)
#: What of the policy's choice depends on clusters alone.
_FILTERS = (
    taint_toleration.FILTER,
    placement_filter.FILTER,
    cluster_affinity.FILTER,
    cluster_ready.FILTER,
    cluster_terminating.FILTER,
)


class Concern(Enum):
    """What a changed fleet means for an object."""

    NONE = "nothing"
    RECORD = "it is scheduled again, and as far as can be told stays where it is"
    PLACEMENT = "it may have to be placed anew"


class _Group(NamedTuple):
    policy: str
    generation: int
    #: What the last decision rested on.
    clusters: Fingerprint
    reads: tuple[str, ...] | None
    #: The object says something of its own about where it may go.
    special: bool


class _Choice(NamedTuple):
    """The clusters an object may newly get, and those it may stay in."""

    open: frozenset[str]
    kept: frozenset[str]
    divides: bool

    def stays(self, clusters: Set[str]) -> bool:
        return clusters <= self.kept and (self.divides or clusters >= self.open)


class Wakeups:
    """About one fleet, the present one."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet.discovered_only()
        self._answers: dict[_Group, Concern | _Choice] = {}

    def concern(self, policy: PropagationPolicy | None, annotations: Mapping[str, str], clusters: Set[str]) -> Concern:
        """Of an object with this policy, these annotations on its federated object, placed in these clusters."""
        if policy is None or any(key in annotations for key in _LOOK_ANYWAY):
            return Concern.PLACEMENT
        record = read_record(annotations.get(keys.SCHEDULING_TRIGGERS))
        if not isinstance(record, Record) or record.unanswered:
            return Concern.PLACEMENT
        special = not keys.SCHEDULING_ANNOTATIONS.isdisjoint(annotations)
        name, generation = f"{policy.kind}/{key_of(policy.metadata)}", policy.metadata.generation
        group = _Group(name, generation, record.clusters, record.reads, special)
        answer = self._answers.get(group)
        if answer is None:
            answer = self._answers[group] = self._answer(group, policy)
        if isinstance(answer, Concern):
            return answer
        return Concern.RECORD if answer.stays(clusters) else Concern.PLACEMENT

    def _answer(self, group: _Group, policy: PropagationPolicy) -> Concern | _Choice:
        change = self._fleet.hashes.reading(group.reads).since(group.clusters)
        if not verdict(Difference(fleet=change), policy.spec).schedule:
            return Concern.NONE
        if group.special or change.apis or change.joined or _looks_further(policy):
            return Concern.PLACEMENT
        return self._choice(policy)

    def _choice(self, policy: PropagationPolicy) -> _Choice:
        spec, fleet = policy.spec, self._fleet
        outside = choice_of(policy)
        inside = msgspec.structs.replace(outside, current=dict.fromkeys(fleet.names))
        return _Choice(self._passing(outside), self._passing(inside), divides=spec.scheduling_mode == keys.DIVIDE)

    def _passing(self, unit: Unit) -> frozenset[str]:
        passing = self._fleet.everyone
        for each in _FILTERS:
            passing = passing & each.feasible(unit, self._fleet)
        return frozenset(self._fleet.names_of(passing.nonzero()[0]))


def _looks_further(policy: PropagationPolicy) -> bool:
    """Whether more than the filters decides which clusters an object has: the best so many, rules, plugins we do not know."""
    spec = policy.spec
    try:
        ruled = rules_of(spec) != NO_RULES
    except RuleError:
        ruled = True
    moves = spec.scheduling_mode == keys.DIVIDE and not spec.avoid_disruption
    return ruled or moves or bool(spec.scheduling_profile) or spec.max_clusters is not None
