"""Wake-ups: which placed objects a changed fleet concerns, told for all objects of a policy in one step.

A cluster's label changes, and a hundred thousand objects may have to be scheduled again; for most of them nothing follows. What
an object's pass would find out is the same for all objects with the same policy whose last decision rested on the same fleet:
whether its policy wants to be scheduled again for such a change, and whether the policy's own choice of clusters reads anything
that changed. Where that cannot be told for sure, the answer is yes: then the pass decides.

Only for objects that are placed and held by nothing; of others, the pass has to look.
"""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec
import numpy as np

from argosy.api import keys
from argosy.api.policies import PropagationPolicy
from argosy.fleet.fingerprint import Fingerprint, FleetChange
from argosy.fleet.snapshot import Fleet
from argosy.kube.objects import key_of
from argosy.plan.plugins import cluster_affinity
from argosy.plan.triggers import Difference, verdict
from argosy.plan.unit import Affinity, Unit

__all__ = ["Wakeups"]

_JUDGED_KEPT = 10_000
#: With one of these on the object, something follows from the fleet that its trigger record does not tell.
_LOOK_ANYWAY = (keys.HELD, keys.FAILBACK)


class _Decided(msgspec.Struct):
    """What of a stored trigger record is about the fleet."""

    clusters: Fingerprint
    unanswered: bool = False


class _Group(NamedTuple):
    policy: str
    generation: int
    #: What the last decision rested on.
    clusters: Fingerprint
    #: The object says something of its own about where it may go.
    special: bool


class Wakeups:
    """Remembers the fleet it was asked about last, and which changes since were found to matter to nobody of a group."""

    def __init__(self) -> None:
        self._before: Fleet | None = None
        self._after: Fleet | None = None
        self._answers: dict[_Group, bool] = {}
        #: For each group that was left alone: up to which fleet.
        self._judged: dict[_Group, Fingerprint] = {}

    def begin(self, fleet: Fleet) -> None:
        """From now on it is about this fleet, compared with the one before."""
        self._before, self._after = self._after, fleet
        self._answers = {}
        if len(self._judged) > _JUDGED_KEPT:
            self._judged.clear()

    def concerned(self, policy: PropagationPolicy | None, annotations: Mapping[str, str]) -> bool:
        """Whether an object with this policy and these annotations on its federated object has to be looked at."""
        stored = annotations.get(keys.SCHEDULING_TRIGGERS)
        if policy is None or not stored or any(key in annotations for key in _LOOK_ANYWAY):
            return True
        try:
            decided = msgspec.json.decode(stored, type=_Decided)
        except msgspec.MsgspecError:
            return True
        special = not keys.SCHEDULING_ANNOTATIONS.isdisjoint(annotations)
        group = _Group(
            f"{policy.kind}/{key_of(policy.metadata)}", policy.metadata.generation, decided.clusters, special
        )
        answer = self._answers.get(group)
        if answer is None:
            answer = self._answers[group] = self._is_concerned(group, policy)
        return answer or decided.unanswered

    def _is_concerned(self, group: _Group, policy: PropagationPolicy) -> bool:
        if self._after is None:
            return True
        now = self._after.surveyed_only()
        change = now.hashes.since(group.clusters)
        if not verdict(Difference(fleet=change), policy.spec).schedule:
            return False
        if group.special or self._before is None or change != FleetChange(labels=True):
            return True
        before = self._before.surveyed_only()
        if self._judged.get(group, group.clusters) != before.hashes.fingerprint:
            return True  # more has changed since than is seen here
        if _reads_other_labels(policy) or not _same_choice(policy, before, now):
            return True
        self._judged[group] = now.hashes.fingerprint
        return False


def _reads_other_labels(policy: PropagationPolicy) -> bool:
    """Whether anything but the selectors may look at labels of clusters: rules about domains, and plugins we do not know."""
    spec = policy.spec
    return bool(
        spec.scheduling_profile
        or spec.topology_spread_constraints
        or spec.workload_affinity is not None
        or spec.workload_anti_affinity is not None
        or spec.compute_power is not None
        or spec.cost is not None
        or spec.locality is not None
        or spec.failure_domain is not None
    )


def _same_choice(policy: PropagationPolicy, before: Fleet, after: Fleet) -> bool:
    """Whether the policy's selectors match, and prefer, the same clusters as before."""
    spec = policy.spec
    if before.names != after.names:
        return False
    affinity = Affinity(spec.cluster_affinity or None, spec.preferred_cluster_affinity)
    unit = Unit(cluster_selector=spec.cluster_selector, affinity=affinity)
    matches, prefers = cluster_affinity.FILTER.feasible, cluster_affinity.SCORE.score
    return bool(
        np.array_equal(matches(unit, before), matches(unit, after))
        and np.array_equal(prefers(unit, before), prefers(unit, after))
    )
