"""Inside: the one place where tests look into running controllers. Everything else is asked of the API, as users ask it.

What is here is what tests may rely on; that they look nowhere else is checked by `tests/unit/harness/test_inside.py`.

    caches, catalog    what the controllers have heard of the control plane
    snapshot, reserved the fleet that decisions are made on, and what is taken of it
    members, access    the connections to members, and the credentials in use
    collector          the copies in members, as they are known
    queue(name), idle()  the loops' queues, and whether nothing waits or is under way
    rank(key), swept(…)  in which order many objects are looked at
    copies             how many the brake counts in each cluster
    tasks, client, prober, pause, operations, secrets, run(loop)  to stop, slow down or add parts: for tests of what happens then
"""

from collections.abc import Mapping
from typing import Any

from argosy.control.caches.catalog import Catalog
from argosy.control.caches.informers import Caches
from argosy.control.caches.objectkeys import SourceKey
from argosy.control.collect import Collector
from argosy.control.copies.operations import Operations
from argosy.control.copies.pause import Pause
from argosy.control.federate import Federate
from argosy.control.manager import Manager
from argosy.control.members.access import Access
from argosy.control.members.member import Members
from argosy.control.members.probe import Prober
from argosy.control.members.secrets import MemberSecrets
from argosy.control.runner import LoopRunner
from argosy.control.scheduling.reservations import ReservedFleet
from argosy.control.sharding.peers import PeerReservations
from argosy.control.wake import Due, Loop, Sweep
from argosy.fleet.snapshot import Fleet
from argosy.kube.client import Client
from argosy.kube.queue import WorkQueue
from argosy.kube.supervise import Supervisor

__all__ = ["Inside"]


class Inside:
    def __init__(self, manager: Manager):
        self._manager = manager
        context = manager.context
        self.client: Client = context.client
        self.workers = context.options.workers
        self.shard = context.options.shard
        self.tasks: Supervisor = context.tasks
        self.caches: Caches = context.caches
        self.catalog: Catalog = context.caches.catalog
        self.members: Members = context.members
        self.access: Access = context.access
        self.secrets: MemberSecrets = context.secrets
        self.collector: Collector = context.collector
        self.prober: Prober = context.prober
        self.pause: Pause = context.pause
        self.operations: Operations = context.operations
        self.reserved: ReservedFleet = context.reserved
        self.peers: PeerReservations | None = context.peers
        self.copies: Mapping[str, int] = context.brake.copies

    @property
    def snapshot(self) -> Fleet:
        return self._manager.context.fleet.snapshot

    @property
    def suspended(self) -> int:
        """Objects that wait for a remote plugin's answer."""
        (federate,) = (loop for loop in self._manager.loops if isinstance(loop, Federate))
        return federate.suspended

    def queue(self, loop: str) -> WorkQueue[Any]:
        (found,) = (each.queue for each in self._manager.loops if each.name == loop)
        return found

    def idle(self) -> bool:
        """Whether no object waits, is worked on, or will be."""
        queues = [self.queue(name) for name in ("federate", "dispatch", "aggregate")]
        return all(not len(queue) and not queue.processing and not queue.delayed for queue in queues)

    def rank(self, key: SourceKey) -> int:
        """The queue's priority of an object that is looked at for others' sake."""
        return self._manager.context.priorities.rank(self.caches.source_raw(key))

    def swept(self, loop: str, source: str, names: list[str]) -> list[Any]:
        """The keys that a sweep finds, in the order it would add them."""
        (found,) = (each for each in self._manager.loops if each.name == loop)
        (sweep,) = (each for each in found.wakes() if isinstance(each, Sweep) and each.source.name == source)
        return [each.key if isinstance(each, Due) else each for each in sweep.keys(names) if each is not None]

    def run(self, loop: Loop[Any]) -> LoopRunner:
        """Run another loop beside the others, as these are run."""
        self._manager._runner.start(loop)
        return self._manager._runner
