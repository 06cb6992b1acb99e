"""Pods by their ReplicaSet: how many there are, how many have a node, and since when the others wait for one.

For one member, updated event by event. Numbers only: a pod has an entry of its own only while it is unschedulable.
"""

import msgspec

from argosy.fleet.capacity import FINISHED, PodView

__all__ = ["Pods", "PodsByReplicaSet"]

_UNSCHEDULABLE = "Unschedulable"


class Pods(msgspec.Struct):
    """The pods of one ReplicaSet, without terminating ones."""

    total: int = 0
    scheduled: int = 0
    #: Unschedulable pods, and since when, by their condition.
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
        """Removes a pod as it was added."""
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
        """The pods of the ReplicaSet with this uid. Do not keep: it changes with the next event."""
        return self._sets.get(uid) or Pods()

    def change(self, key: str, old: PodView | None, new: PodView | None) -> str:
        """Apply one change. Returns the uid of the ReplicaSet that it affects, empty if none."""
        before, after = _maker(old), _maker(new)
        if not before and not after:
            return ""
        if old is not None and new is not None and before == after and old.status.conditions == new.status.conditions:
            return ""
        if old is not None and before:
            pods = self._sets.get(before)
            if pods is not None:
                pods.remove(key, old)
                if not pods.total:
                    del self._sets[before]
        if new is not None and after:
            self._sets.setdefault(after, Pods()).add(key, new)
        return after or before


def _maker(pod: PodView | None) -> str:
    """The ReplicaSet that this pod counts for; empty for a terminating or finished pod."""
    if pod is None or pod.metadata.deletion_timestamp or pod.status.phase in FINISHED:
        return ""
    return pod.metadata.replica_set
