"""Pods by the ReplicaSet that made them: how many there are, how many have a node, and since when the others wait for one.

One member's, kept up to date event by event. Numbers only: a pod costs an entry of its own just while it fits no node.
"""

import msgspec

from argosy.fleet.capacity import FINISHED, PodOwner, PodView

__all__ = ["Pods", "PodsByReplicaSet"]

_UNSCHEDULABLE = "Unschedulable"


class Pods(msgspec.Struct):
    """Of one ReplicaSet, without those on their way out."""

    total: int = 0
    scheduled: int = 0
    #: Pods that fit no node, and since when, as their condition says it.
    waiting: dict[str, str] = msgspec.field(default_factory=dict)

    def add(self, key: str, pod: PodView) -> None:
        self.total += 1
        condition = pod.status.scheduling
        if condition is None:
            return
        if condition.status == "True":
            self.scheduled += 1
        elif condition.status == "False" and condition.reason == _UNSCHEDULABLE:
            self.waiting[key] = condition.last_transition_time or ""

    def remove(self, key: str, pod: PodView) -> None:
        """As it was added."""
        self.total -= 1
        condition = pod.status.scheduling
        if condition is not None and condition.status == "True":
            self.scheduled -= 1
        self.waiting.pop(key, None)


class PodsByReplicaSet:
    """Fed with every pod event of a member's watch."""

    def __init__(self) -> None:
        self._sets: dict[str, Pods] = {}

    def of(self, uid: str) -> Pods:
        """Of the ReplicaSet with this uid. Not to be kept: it changes with the next event."""
        return self._sets.get(uid) or Pods()

    def change(self, key: str, old: PodView | None, new: PodView | None) -> PodOwner | None:
        """Take in one change. Answers with the ReplicaSet for which it makes a difference."""
        before, after = _maker(old), _maker(new)
        if before is None and after is None:
            return None
        if old is not None and new is not None and before == after and old.status.conditions == new.status.conditions:
            return None
        if old is not None and before is not None:
            pods = self._sets.get(before.uid)
            if pods is not None:
                pods.remove(key, old)
                if not pods.total:
                    del self._sets[before.uid]
        if new is not None and after is not None:
            self._sets.setdefault(after.uid, Pods()).add(key, new)
        return after or before


def _maker(pod: PodView | None) -> PodOwner | None:
    """The ReplicaSet that counts on this pod; one on its way out or finished counts for nobody."""
    if pod is None or pod.metadata.deletion_timestamp or pod.status.phase in FINISHED:
        return None
    return pod.metadata.replica_set
