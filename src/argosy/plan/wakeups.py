"""Wake-ups: which placed objects a changed fleet concerns, told for all objects of a policy in one step.

A cluster's label changes, and a hundred thousand objects may have to be scheduled again; for most of them nothing follows.
Whether it does is the same for all objects with the same policy whose last decision rested on the same fleet and read the
same labels: it is worked out once for all of them, by the rules that a pass goes by (`triggers`).

Only for objects that are placed and held by nothing; of others, the pass has to look.
"""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from argosy.api import keys
from argosy.api.policies import PropagationPolicy
from argosy.fleet.fingerprint import Fingerprint
from argosy.fleet.snapshot import Fleet
from argosy.kube.objects import key_of
from argosy.plan.triggers import Difference, verdict

__all__ = ["Wakeups"]

#: With one of these on the object, something follows from the fleet that its trigger record does not tell.
_LOOK_ANYWAY = (keys.HELD, keys.FAILBACK)


class _Decided(msgspec.Struct):
    """What of a stored trigger record is about the fleet."""

    clusters: Fingerprint
    reads: tuple[str, ...] | None = None
    unanswered: bool = False


class _Group(NamedTuple):
    policy: str
    generation: int
    #: What the last decision rested on.
    clusters: Fingerprint
    reads: tuple[str, ...] | None


class Wakeups:
    """About one fleet, the present one."""

    def __init__(self, fleet: Fleet) -> None:
        self._hashes = fleet.surveyed_only().hashes
        self._answers: dict[_Group, bool] = {}

    def concerned(self, policy: PropagationPolicy | None, annotations: Mapping[str, str]) -> bool:
        """Whether an object with this policy and these annotations on its federated object has to be looked at."""
        stored = annotations.get(keys.SCHEDULING_TRIGGERS)
        if policy is None or not stored or any(key in annotations for key in _LOOK_ANYWAY):
            return True
        try:
            decided = msgspec.json.decode(stored, type=_Decided)
        except msgspec.MsgspecError:
            return True
        group = _Group(
            f"{policy.kind}/{key_of(policy.metadata)}", policy.metadata.generation, decided.clusters, decided.reads
        )
        answer = self._answers.get(group)
        if answer is None:
            change = self._hashes.reading(group.reads).since(group.clusters)
            answer = self._answers[group] = verdict(Difference(fleet=change), policy.spec).schedule
        return answer or decided.unanswered
