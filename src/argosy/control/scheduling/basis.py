"""The basis of decisions: all inputs of a pass over one object besides the object itself, kept current."""

from collections.abc import Collection, Generator, Mapping
from typing import Any

import msgspec

from argosy.api import keys
from argosy.api.types import FederatedObject, FederatedTypeConfig, OverridePolicy, PropagationPolicy
from argosy.control.caches.informers import Caches
from argosy.control.caches.objectkeys import SourceKey
from argosy.control.failover import Failback
from argosy.control.followers import Followers
from argosy.control.migrate import Migrate
from argosy.control.options import Options
from argosy.control.scheduling.arrivals import Arrivals
from argosy.control.scheduling.claims import Claims
from argosy.control.scheduling.done import DoneWork
from argosy.control.scheduling.evictions import Evictions
from argosy.control.scheduling.placed import PlacedWorkloads
from argosy.control.scheduling.priorities import Priorities
from argosy.control.scheduling.profiles import Profiles
from argosy.control.scheduling.reservations import ReservedFleet
from argosy.control.scheduling.unwritten import UnwrittenDecisions
from argosy.control.telemetry.scheduling import SchedulingMetrics
from argosy.kube import clock
from argosy.kube.regexp import compile_pattern
from argosy.plan.claims.record import in_force_now
from argosy.plan.failover.evacuation import leaves
from argosy.plan.failover.failover import trusting
from argosy.plan.metadata import annotations_of, labels_of
from argosy.plan.pipeline.inputs import PassInputs
from argosy.plan.pipeline.policy import PolicyRef, override_refs
from argosy.plan.pipeline.run import Outcome, run
from argosy.plan.scheduling.framework import Ask, Reply
from argosy.plan.scheduling.unit import current_placement

__all__ = ["DecisionBasis"]

Object = dict[str, Any]


class DecisionBasis:
    """Its parts signal changes; the loop that decides subscribes to them."""

    def __init__(
        self,
        caches: Caches,
        claims: Claims,
        reserved: ReservedFleet,
        placed: PlacedWorkloads,
        profiles: Profiles,
        priorities: Priorities,
        migrate: Migrate,
        failback: Failback,
        evictions: Evictions,
        done: DoneWork,
        followers: Followers,
        arrivals: Arrivals,
        options: Options,
        metrics: SchedulingMetrics,
    ):
        self.claims = claims
        self.reserved = reserved
        self.placed = placed
        self.profiles = profiles
        self.migrate = migrate
        self.failback = failback
        self.evictions = evictions
        self.done = done
        self.followers = followers
        self.unwritten = UnwrittenDecisions()
        self._arrivals = arrivals
        self._caches = caches
        self._priorities = priorities
        self._options = options
        #: Namespaces with these names are not propagated.
        self.excluded = compile_pattern(options.exclude_namespaces) if options.exclude_namespaces else None
        self._metrics = metrics

    def steps(
        self,
        key: SourceKey,
        source: Object,
        existing: Object | None,
        config: FederatedTypeConfig,
        bound: Collection[str] = (),
    ) -> Generator[Ask, Reply, Outcome]:
        """The pass over one source as it is now. It may not leave the failed clusters it is `bound` to."""
        view = self._caches.source(key)
        selected = self.claims.selected(key, view.metadata) if view is not None else None
        ref = in_force_now(source, existing, selected).ref
        policy = self.policy(ref) if ref is not None else None
        leaving = not self.evictions.inside(key) <= frozenset(bound)
        own = leaving or (policy is not None and policy.spec.limit_replicas_to_available)
        fleet = trusting(self.reserved.fleet(key, own=own), bound)
        return run(
            PassInputs(
                source=source,
                type_config=config,
                fleet=fleet,
                bound=bound,
                existing=existing,
                selected=selected,
                policy=policy,
                override_policies=self._override_policies(source),
                profile=self.profiles.of(policy),
                registry=self.profiles.registry,
                unwritten=self.unwritten.of(key),
                wanted=self._options.federate_all or self.is_led(key, annotations_of(source)),
                following=self.followers.following(key),
                leaders_at=lambda: self.followers.leaders_at(key),
                missing=self.followers.missing(key),
                exclude_namespaces=self.excluded,
                now=clock.now(),
                migration=self.migrate.info(key),
                available=self.failback.available(key),
                done=self.done.of(key),
                arrival=self._arrivals.of(config),
                katalyst=self._options.katalyst,
                instrument=self._metrics.timed,
            )
        )

    def took_turn(
        self,
        key: SourceKey,
        existing: Object | None,
        outcome: Outcome,
        config: FederatedTypeConfig,
        bound: Collection[str],
    ) -> None:
        """After a pass over a source: it may have left the failed clusters that it was not bound to."""
        free = self.evictions.inside(key).difference(bound)
        if free and existing is not None:
            before, after = (
                current_placement(
                    msgspec.convert({"metadata": each["metadata"], "spec": each["spec"]}, FederatedObject), config
                )
                for each in (existing, outcome.object or existing)
            )
            self.evictions.had_turn(key, leaves(before, after, free))

    def is_led(self, key: SourceKey, annotations: Mapping[str, str]) -> bool:
        """Whether a leader asks for an object with these annotations."""
        return annotations.get(keys.DISABLE_FOLLOWING) != "true" and self.followers.is_led(key)

    def rank(self, key: SourceKey) -> int:
        """The queue priority of an object that is woken by a policy, a cluster or the like. Above 0."""
        return self._priorities.rank(self._caches.source_raw(key))

    def policy(self, reference: PolicyRef) -> PropagationPolicy | None:
        return self._caches.policies[bool(reference.namespace)].get(reference.key)

    def policy_of(self, key: SourceKey) -> PropagationPolicy | None:
        """The propagation policy in force for a source, if it exists."""
        source = self._caches.source(key)
        ref = self.claims.in_force(key, source.metadata).ref if source is not None else None
        return self.policy(ref) if ref is not None else None

    def _override_policies(self, source: Object) -> dict[PolicyRef, OverridePolicy]:
        references = override_refs(labels_of(source), source["metadata"].get("namespace") or "")
        found = {each: self._caches.overrides[bool(each.namespace)].get(each.key) for each in references}
        return {each: policy for each, policy in found.items() if policy is not None}
