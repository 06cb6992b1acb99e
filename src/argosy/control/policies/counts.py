"""Policy counts: how many objects use a policy is kept in its status, for people.

Nothing is decided by it, so it may be late: changes within seconds share one write, and a count that is right is not written.
With shards, the owner of a policy writes it; for policies without a namespace the others tell shard 0 theirs (`sharding.peers`).
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import msgspec

from argosy.api.policies import PolicyStatus, TypedRefCount
from argosy.api.types import OverridePolicy, PropagationPolicy
from argosy.control.caches.catalog import TypeChange
from argosy.control.caches.informers import Caches
from argosy.control.context import ControllerContext
from argosy.control.policies.uses import PolicyKey, PolicyUses
from argosy.control.telemetry.metrics import Metrics
from argosy.control.timings import Timings
from argosy.control.wake import Loop, Wake, itself
from argosy.kube.client import Client, Patch
from argosy.kube.errors import Forbidden, NotFound
from argosy.kube.informer import Change, Informer
from argosy.kube.objects import split_key
from argosy.kube.queue import Result, WorkQueue

__all__ = ["PolicyCounts"]

log = logging.getLogger(__name__)

Policy = PropagationPolicy | OverridePolicy
#: After everything else that is to be done.
_LAST = 9


class PolicyCounts(Loop[PolicyKey]):
    name = "policy counts"
    workers = 1

    def __init__(
        self,
        client: Client,
        queue: WorkQueue[PolicyKey],
        caches: Caches,
        uses: PolicyUses,
        metrics: Metrics,
        timings: Timings,
        owns: Callable[[str], bool],
    ):
        self.queue = queue
        self._client = client
        self._caches = caches
        self._uses = uses
        self._metrics = metrics
        self._delay = timings.policy_counts
        self._owns = owns
        self._refused = False

    @classmethod
    def of(cls, shared: ControllerContext) -> "PolicyCounts":
        return cls(
            shared.client,
            shared.queue(),
            shared.caches,
            shared.uses,
            shared.metrics,
            shared.timings,
            shared.options.shard.owns,
        )

    def wakes(self) -> Iterable[Wake[Any, PolicyKey]]:
        yield Wake(self._uses.changes, itself, "more or fewer objects name it", _LAST, self._delay)
        why = "objects that name it are of a kind that is federated again, or no more"
        yield Wake(self._caches.catalog.changes, self._of_type, why, _LAST, self._delay)
        for informer in self._informers():
            why = "it came, or somebody wrote its count"
            yield Wake(informer, partial(_of_policy, informer.resource.plural), why, _LAST, self._delay)

    async def reconcile(self, key: PolicyKey) -> Result | None:
        if not self._owns(key.namespace):
            return None
        policy, wanted = self._policy(key), self._counted(key)
        if policy is None or wanted == policy.status:
            return None
        body = {"status": {"refCount": wanted.ref_count, "typedRefCount": msgspec.to_builtins(wanted.typed_ref_count)}}
        namespace = key.namespace or None
        try:
            await self._client.patch(
                key.resource, key.name, body, namespace, kind=Patch.MERGE, subresource="status", into=bytes
            )
        except NotFound:
            return None
        except Forbidden as error:
            if not self._refused:
                log.warning("uses of policies are not counted in their status: %s", error)
            self._refused = True
            return None
        self._metrics.control_writes.labels(key.resource.kind, "status").inc()
        return None

    def _of_type(self, change: TypeChange) -> Iterator[PolicyKey]:
        kinds = {
            f"{each.resource.api_version} {each.resource.kind}" for each in (change.old, change.new) if each is not None
        }
        return self._uses.by_kinds(kinds)

    def _counted(self, key: PolicyKey) -> PolicyStatus:
        found = self._uses.of(key)
        typed: Counter[tuple[str, str]] = Counter()
        for text, count in found.items():
            api_version, _, kind = text.partition(" ")
            config = self._caches.catalog.of_kind(api_version, kind)
            if config is not None:
                typed[config.resource.group, config.resource.plural] += count
        each = (TypedRefCount(resource, typed[group, resource], group) for group, resource in sorted(typed))
        return PolicyStatus(sum(found.values()), tuple(each))

    def _policy(self, key: PolicyKey) -> Policy | None:
        (informer,) = (each for each in self._informers() if each.resource.plural == key.plural)
        return informer.get(key.key)

    def _informers(self) -> Iterator[Informer[Any]]:
        yield from self._caches.policies.values()
        yield from self._caches.overrides.values()


def _of_policy(plural: str, change: Change[Policy]) -> tuple[PolicyKey, ...]:
    old, new = change.old, change.new
    if old is not None and new is not None and old.status == new.status:
        return ()
    namespace, name = split_key(change.key)
    return (PolicyKey(plural, name, namespace),)
