"""Wake-ups: which placed objects a changed fleet affects, decided for all objects of a policy in one step.

A cluster's label changes, and a hundred thousand objects may have to be scheduled again; most of them are not affected. The
answer is the same for all objects with the same policy whose last decision saw the same fleet and read the same labels: it is
computed once for all of them, by the rules of a pass (`triggers`). Of the objects to be scheduled again, most stay where they
are: the results of the filters, computed once for the whole fleet, tell which objects must move. Those go first; for the
others only their records are out of date.

Only for objects that are placed and not held; others always need a pass.
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
from argosy.plan.scheduling.triggers import Difference, Record, Unwritten, read_record, record_as_decided, verdict
from argosy.plan.scheduling.unit import Unit, choice_of

__all__ = ["Concern", "Wakeups"]

#: Objects with one of these annotations depend on the fleet in ways their trigger record does not tell.
_LOOK_ANYWAY = (keys.HELD, keys.FAILBACK)
#: The filters that depend on clusters and policy alone.
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
    DEFERRED = "nothing, by its policy"
    RECORD = "it is scheduled again and most likely stays where it is, or only its record is behind"
    PLACEMENT = "it may have to be placed anew"


class _Group(NamedTuple):
    policy: str
    generation: int
    #: The inputs of the last decision.
    clusters: Fingerprint
    reads: tuple[str, ...] | None
    #: Whether annotations of the object replace policy fields.
    special: bool


class _Choice(NamedTuple):
    """The clusters an object may be added to, and those it may stay in."""

    open: frozenset[str]
    kept: frozenset[str]
    divides: bool

    def stays(self, clusters: Set[str]) -> bool:
        return clusters <= self.kept and (self.divides or clusters >= self.open)


class Wakeups:
    """For one fleet, the present one."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet.discovered_only()
        self._answers: dict[_Group, Concern | _Choice] = {}

    def concern(
        self,
        policy: PropagationPolicy | None,
        annotations: Mapping[str, str],
        clusters: Set[str],
        unwritten: Unwritten | None = None,
    ) -> Concern:
        """For an object with this policy, these annotations on its federated object, placed in these clusters."""
        if policy is None or any(key in annotations for key in _LOOK_ANYWAY):
            return Concern.PLACEMENT
        stored = annotations.get(keys.SCHEDULING_TRIGGERS)
        record = record_as_decided(stored, unwritten)
        if not isinstance(record, Record) or record.unanswered:
            return Concern.PLACEMENT
        special = not keys.SCHEDULING_ANNOTATIONS.isdisjoint(annotations)
        name, generation = f"{policy.kind}/{key_of(policy.metadata)}", policy.metadata.generation
        group = _Group(name, generation, record.clusters, record.reads, special)
        answer = self._answers.get(group)
        if answer is None:
            answer = self._answers[group] = self._answer(group, policy)
        if answer is Concern.DEFERRED:
            return Concern.RECORD if unwritten is not None and record != read_record(stored) else Concern.NONE
        if isinstance(answer, Concern):
            return answer
        return Concern.RECORD if answer.stays(clusters) else Concern.PLACEMENT

    def surely_moves(self, policy: PropagationPolicy, annotations: Mapping[str, str], clusters: Set[str]) -> bool:
        """Whether the object cannot stay as it is, by the filters alone. (Others may move as well.)"""
        if not keys.SCHEDULING_ANNOTATIONS.isdisjoint(annotations) or policy.spec.scheduling_profile:
            return False
        choice = self._choice(policy)
        return not clusters <= choice.kept if _looks_further(policy) else not choice.stays(clusters)

    def _answer(self, group: _Group, policy: PropagationPolicy) -> Concern | _Choice:
        change = self._fleet.hashes.reading(group.reads).since(group.clusters)
        found = verdict(Difference(fleet=change), policy.spec)
        if not found.schedule:
            return Concern.DEFERRED if found.deferred else Concern.NONE
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
    """Whether more than the filters decides an object's clusters: a maximum of clusters, rules, unknown plugins."""
    spec = policy.spec
    try:
        ruled = rules_of(spec) != NO_RULES
    except RuleError:
        ruled = True
    moves = spec.scheduling_mode == keys.DIVIDE and not spec.avoid_disruption
    return ruled or moves or bool(spec.scheduling_profile) or spec.max_clusters is not None
