"""Cascading deletion: a cluster that leaves with the cascading-delete annotation loses our copies first.

Without the annotation nothing in the member is touched. An object without a known federated object is never deleted: the
cluster waits. Each shard removes its own copies; the owner of the cluster waits for all of them.
"""

import asyncio
import functools

from argosy.api import keys
from argosy.api.shards import WHOLE, Shard
from argosy.api.types import FederatedCluster, FederatedTypeConfig
from argosy.control.caches.informers import Caches
from argosy.control.caches.objectkeys import SourceKey
from argosy.control.collect import MANAGED
from argosy.control.copies.operations import Operations
from argosy.control.copies.pause import Pause, PauseGuard
from argosy.control.fence import Withheld
from argosy.control.members.guarded import Guarded
from argosy.control.members.member import Member
from argosy.control.timings import Timings
from argosy.kube import chance, clock
from argosy.kube.errors import ApiError, NotFound, TransportError
from argosy.kube.objects import Partial, key_of
from argosy.plan.copies.adoption import orphans
from argosy.plan.copies.placement import may_hold_copies

__all__ = ["Cascade"]

_DISCOVERY = 30.0


class Cascade:
    def __init__(self, caches: Caches, operations: Operations, pause: Pause, timings: Timings, shard: Shard = WHOLE):
        self._timings = timings
        #: Since when members do not seem to serve a kind.
        self._unserved: dict[tuple[str, str], float] = {}
        self._caches = caches
        self._operations = operations
        self._pause = pause
        self._shard = shard

    async def progress(self, cluster: FederatedCluster, member: Member | None) -> str:
        """Delete what is left. Returns what is being waited for; empty if the member may go."""
        if not cluster.joined or keys.CASCADING_DELETE not in cluster.metadata.annotations:
            return ""
        if member is None or not cluster.answers:
            return "the cluster is not ready"
        if self._pause.fleet() or self._pause.cluster(cluster):
            return "nothing is written to it while it is paused"
        until = clock.monotonic() + self._timings.cascade_pass
        results = await asyncio.gather(*(self._of_type(member, config, until) for config in self._caches.catalog))
        left = sum(count for count, _ in results)
        problems = [problem for _, found in results for problem in found]
        if problems:
            return f"{left} objects left; {problems[0]}"
        if left:
            return f"{left} objects left"
        try:  # nobody looks again, so the empty answer must come from the member
            await member.confirm()
        except (ApiError, TransportError, TimeoutError) as error:
            return f"no objects are left, but the member's identity could not be confirmed: {error}"
        self._unserved = {key: since for key, since in self._unserved.items() if key[0] != cluster.name}
        return ""

    async def _of_type(self, member: Member, config: FederatedTypeConfig, until: float) -> tuple[int, list[str]]:
        """Returns how many objects of the type are left after this pass, and the problems. A pass is limited in time, and
        removes at least one object."""
        try:
            listed = await member.call(
                lambda client: client.list(config.resource, label_selector=MANAGED, into=Partial)
            )
        except NotFound as error:
            if not self._may_have_copies(member, config) or await self._is_unserved(member, config):
                return 0, []
            return 1, [f"{config.name}: {error}"]
        except (ApiError, TransportError, TimeoutError) as error:
            return 1, [f"{config.name}: {error}"]
        self._unserved.pop((member.name, config.name), None)
        left, tried, problems = 0, 0, list[str]()
        # In random order: objects that cannot be removed must not use up every pass.
        for item in chance.sample(listed.items):
            if tried and clock.monotonic() >= until:
                left += 1
                continue
            if not self._shard.owns(item.metadata.namespace):
                left += 1
                continue
            key = key_of(item.metadata)
            federated = self._caches.federated_view(SourceKey(config.name, key))
            if federated is None:
                left += 1
                problems.append(f"{config.name} {key} belongs to no federated object known here")
                continue
            tried += 1
            annotations = federated.metadata.annotations
            guard = PauseGuard(self._pause, self._caches, member.name, SourceKey(config.name, key), annotations)
            stays = functools.partial(orphans, annotations)
            try:
                applied = await self._operations.remove(Guarded(member, guard), config, key, stays)
            except Withheld as why:
                left += 1
                problems.append(str(why))
                continue
            left += applied.status is not None
            if applied.failed:
                problems.append(f"{config.name} {key}: {applied.error}")
        return left, problems

    def _may_have_copies(self, member: Member, config: FederatedTypeConfig) -> bool:
        """Whether some object of the type is, or was, placed in the member."""
        informer = self._caches.federated[config.namespaced]
        for view in informer.values():
            key = self._caches.source_of(view)
            if key is not None and key.type == config.name and member.name in may_hold_copies(view):
                return True
        return False

    async def _is_unserved(self, member: Member, config: FederatedTypeConfig) -> bool:
        """Whether the member has not served the kind in any version for long. Asked directly: its status is not updated while
        it leaves, and the CRD may have been deleted before."""
        if self._operations.is_unserved(member, config):
            return True
        try:
            async with asyncio.timeout(_DISCOVERY):
                found = await member.client.discover()
        except (ApiError, TransportError, TimeoutError):
            return False
        group, kind = config.resource.group, config.kind
        unread = any(name.rpartition("/")[0] == group for name in found.failures)
        if unread or any((each.group, each.kind) == (group, kind) for each in found.resources):
            self._unserved.pop((member.name, config.name), None)
            return False
        since = self._unserved.setdefault((member.name, config.name), clock.monotonic())
        return clock.monotonic() - since >= self._timings.apis_kept
