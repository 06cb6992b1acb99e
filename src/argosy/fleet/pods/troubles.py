"""Troubles: why pods do not become ready, by the workload they belong to. For one member, updated event by event.

Only what a pod's status says counts: it finds no node, a container waits for more than its turn, or all of them run and it is
not ready. The last is so for a moment with every pod that starts: it has the time from which it counts. A pod that is well, or
still starting, has no entry.

Texts that change with every attempt are left out, so that a trouble that lasts stays the same: back-off times, the names of
pods, and whether an image is being pulled again just now (ErrImagePull) or not (ImagePullBackOff).
"""

import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from argosy.kube.objects import OwnerReference, join_key

__all__ = ["ContainerStatus", "Trouble", "Troubles", "WorkloadRef", "unready", "unschedulable", "unstarted"]

_STARTING = frozenset({"ContainerCreating", "PodInitializing"})
_PULLING = "ErrImagePull"
_PULL_FAILED = "ImagePullBackOff"
_CRASHING = "CrashLoopBackOff"
#: Messages are for people, and a member may send any.
_LONGEST = 256
_LONGEST_REASON = 64


class Waiting(msgspec.Struct, frozen=True, gc=False):
    reason: str | None = None
    message: str | None = None


class Terminated(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    exit_code: int | None = None
    reason: str | None = None


class Running(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    started_at: str | None = None


class ContainerState(msgspec.Struct, frozen=True, gc=False):
    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The parts of a container's status that tell why it does not run."""

    name: str | None = None
    image: str | None = None
    ready: bool | None = None
    state: ContainerState | None = None
    last_state: ContainerState | None = None


class WorkloadRef(NamedTuple):
    """The workload that pods belong to, in a member: their controller, or the Deployment of their ReplicaSet."""

    group: str
    kind: str
    key: str


class Trouble(msgspec.Struct, frozen=True, gc=False):
    """Why a pod is not ready: a reason in Kubernetes' words, and details."""

    reason: str
    message: str = ""
    workload: WorkloadRef = WorkloadRef("", "", "")
    #: Since when, where it is no trouble at first.
    since: str = ""

    def of(self, controller: OwnerReference, namespace: str, template_hash: str | None) -> "Trouble":
        """The same of a pod with this controller. Values are shared by many pods."""
        kind, name = controller.kind, controller.name
        if kind == "ReplicaSet" and template_hash and name.endswith(f"-{template_hash}"):
            kind, name = "Deployment", name[: -len(template_hash) - 1]
        group = controller.api_version.rpartition("/")[0]
        workload = WorkloadRef(sys.intern(group), sys.intern(kind), sys.intern(join_key(namespace, name)))
        return Trouble(sys.intern(self.reason), sys.intern(self.message), workload, self.since)


def unschedulable(reason: str | None, message: str | None) -> Trouble:
    """A pod that got no node. What the scheduler tells of preemption besides is left out."""
    text = (message or "").partition(". ")[0].removesuffix(".")
    return Trouble(_word(reason) or "Unschedulable", text[:_LONGEST])


def unstarted(containers: Iterable[ContainerStatus]) -> Trouble | None:
    """Why a pod with a node is not ready, by its first container that has a problem; init containers come first."""
    for container in containers:
        if container.ready:
            continue
        state = container.state or ContainerState()
        reason = state.waiting.reason if state.waiting is not None else None
        if reason in (_PULLING, _PULL_FAILED):
            return Trouble(_PULL_FAILED, _image(container, (state.waiting or Waiting()).message or "")[:_LONGEST])
        # A container that ended and runs again for a moment is not well again.
        ended = state.terminated or (container.last_state or ContainerState()).terminated
        failed = ended is not None and bool(ended.exit_code)
        if reason == _CRASHING or (failed and (reason is None or reason in _STARTING)):
            how = f": exit code {ended.exit_code} ({ended.reason or 'Error'})" if ended is not None else ""
            return Trouble(_CRASHING, f"container {container.name}{how}"[:_LONGEST])
        if reason and reason not in _STARTING:
            message = (state.waiting or Waiting()).message or ""
            return Trouble(_word(reason) or "Waiting", f"container {container.name}: {message}"[:_LONGEST])
    return None


def unready(
    reason: str | None, message: str | None, since: str | None, containers: Iterable[ContainerStatus]
) -> Trouble | None:
    """A pod that runs and is not ready, by its condition: a probe fails, or a gate is closed."""
    why = _word(reason)
    if not why:  # its node is lost: not the pod's own trouble
        return None
    started = (each.state.running.started_at or "" for each in containers if each.state and each.state.running)
    return Trouble(why, (message or "")[:_LONGEST], since=max((since or "", *started)))


def _word(reason: str | None) -> str:
    """A reason as conditions may have it; empty if it is none."""
    return reason[:_LONGEST_REASON] if reason and reason.isascii() and reason.isalpha() else ""


def _image(container: ContainerStatus, message: str) -> str:
    """Kubernetes 1.32 and later also tell in the back-off what the last attempt said."""
    _, _, error = message.partition(f"{_PULLING}: ")
    if not error and not message.startswith("Back-off"):
        error = message
    return f'image "{container.image}"' + (f": {error}" if error else "")


class Troubles:
    """The pods with troubles of one member, fed with every change of a pod."""

    def __init__(self) -> None:
        self._of: dict[WorkloadRef, dict[str, Trouble]] = {}

    def of(self, workload: WorkloadRef) -> Iterator[Trouble]:
        """One for each pod that has any."""
        return iter(self._of.get(workload, {}).values())

    def change(self, pod: str, old: Trouble | None, new: Trouble | None) -> list[WorkloadRef]:
        """Apply one change. Returns the workloads that it affects."""
        if old == new:
            return []
        if old is not None:
            pods = self._of.get(old.workload, {})
            pods.pop(pod, None)
            if not pods:
                self._of.pop(old.workload, None)
        if new is not None:
            self._of.setdefault(new.workload, {})[pod] = new
        return [] if old is None and new is None else list({each.workload: None for each in (old, new) if each})
