"""Brake: one answer for all who would take copies away. Kept current by changes, and told of orders by the system namespace."""

import datetime
import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from argosy.api import keys
from argosy.api.types import FederatedCluster
from argosy.control.brake.counts import Counts
from argosy.control.brake.deletions import Deletion, Deletions
from argosy.control.brake.removals import Answer, Judgement, Moment, Removals
from argosy.control.caches.informers import Caches, SourceChange
from argosy.control.caches.objectkeys import SourceKey
from argosy.control.caches.views import FederatedView
from argosy.control.telemetry.metrics import Metrics
from argosy.control.timings import Timings
from argosy.control.wake import Follow, Signal
from argosy.kube import clock, timestamps
from argosy.kube.informer import Change
from argosy.kube.objects import Partial
from argosy.plan.brake.cause import Cause, text_of
from argosy.plan.brake.departure import Departure
from argosy.plan.brake.held_removal import HeldRemoval, held_removal_of
from argosy.plan.brake.limits import Limits
from argosy.plan.brake.orders import NO_ORDERS, Orders, orders_of

__all__ = ["Brake"]

log = logging.getLogger(__name__)
_OF_POLICIES = frozenset({Cause.POLICY_CHANGED, Cause.OTHER_POLICY})
#: An order that is further ahead comes from a wrong clock, and would cover what nobody has seen yet.
_AHEAD = datetime.timedelta(seconds=60)


class Brake:
    name = "brake"

    def __init__(
        self, caches: Caches, limits: Limits, timings: Timings, metrics: Metrics, *, alone: bool = True
    ) -> None:
        """`alone`: all objects are ours, so that a cluster without copies of ours has none."""
        self._caches = caches
        self._limits = limits
        self._alone = alone
        self._metrics = metrics
        self._counts = Counts()
        self._removals = Removals(self._counts, limits, timings)
        self._deletions = Deletions(self._counts, limits, timings)
        self._orders = NO_ORDERS
        #: Sources whose deletion goes on.
        self._decided: set[SourceKey] = set()
        #: Something waits to be judged.
        self.asked: Signal[None] = Signal("what would be taken away")
        #: Judged: the pass over the object may go on, or knows that it is held.
        self.judged: Signal[SourceKey] = Signal("the brake's judgements")
        #: A source that is being deleted: whether its copies go with it is known now.
        self.deletions_decided: Signal[SourceKey] = Signal("deletions that were let go")
        self._told: Counter[str] = Counter()

    def follows(self) -> Iterable[Follow[Any]]:
        yield Follow(self._caches.federated_changes, self._federated_changed, "where copies are")
        yield Follow(self._caches.source_changes, self._source_changed, "how many sources are being deleted")
        yield Follow(self._caches.system, self._ordered, "removals are confirmed, or the brake is off")

    # What is asked.

    @property
    def copies(self) -> Mapping[str, int]:
        """How many are in each cluster, of the objects that are ours."""
        return self._counts.there

    def ask(self, key: SourceKey, departure: Departure, view: FederatedView | None) -> Answer:
        """Whether a pass may store what it decided. Told by `judged` once a wait is over."""
        if self._limits.never or self._orders.is_off(clock.now()):
            self._removals.forget(key)
            return Answer(Judgement.GO)
        recorded = held_removal_of(view.metadata.annotations) if view is not None else None
        if recorded is not None and recorded.cause == Cause.SOURCES_DELETED:
            recorded = None
        protected = self._is_protected(key, departure)
        answer = self._removals.ask(key, departure, recorded, self._orders, _moment(), protected=protected)
        if answer.judgement is Judgement.WAIT:
            self.asked.tell(None)
        self._show()
        return answer

    def concerns(self, key: SourceKey) -> bool:
        """Whether something of it would be taken away."""
        return self._removals.concerns(key)

    def forget(self, key: SourceKey) -> None:
        """Nothing is taken away of it by what the last pass decided."""
        self._removals.forget(key)

    def deletion(self, key: SourceKey) -> Deletion:
        """Whether the copies of a source that is being deleted go with it."""
        if any(self._caches.sources_awaited(config.name) for config in self._caches.catalog):
            return Deletion.WAIT  # how many there are, and how many are deleted, is not known yet
        view = self._caches.federated_view(key)
        recorded = held_removal_of(view.metadata.annotations) if view is not None else None
        if self._orders.is_off(clock.now()):
            self._deletions.let_go(key)
            return Deletion.GO
        found = self._deletions.ask(key, recorded, self._orders, clock.monotonic(), timestamps.now())
        self._show()
        return found

    def decided(self, key: SourceKey) -> None:
        """The deletion of a source goes on. Told to those that wait for it."""
        if key not in self._decided:
            self._decided.add(key)
            self.deletions_decided.tell(key)

    def is_decided(self, key: SourceKey) -> bool:
        """Whether the deletion of a source was seen to go on. Asking decides nothing."""
        return key in self._decided

    def held_deletion(self, key: SourceKey) -> HeldRemoval | None:
        return self._deletions.held.get(key)

    def leave(self, cluster: FederatedCluster) -> bool:
        """Whether a cluster that is being deleted may leave: not while an earlier one does, and not once that was held, before it
        is confirmed."""
        if self._limits.never or self._orders.is_off(clock.now()):
            return True
        since = cluster.metadata.annotations.get(keys.LEAVE_HELD)
        if since:
            return self._orders.confirms(Cause.LEAVING, since)
        if (self._alone and not self._counts.there[cluster.name]) or self._orders.confirms(
            Cause.LEAVING, timestamps.now()
        ):
            return True
        mine = (cluster.metadata.deletion_timestamp or "", cluster.name)
        others = (each for each in self._caches.clusters.values() if each.terminating and each.joined)
        return not any((each.metadata.deletion_timestamp or "", each.name) < mine for each in others)

    def judge(self) -> float | None:
        """Judges what waits. Returns in how many seconds to do so again."""
        if self._orders.is_off(clock.now()):
            for key in [*self._removals.let_all_go(), *self._deletions.held]:
                self.judged.tell(key)
            return None
        before = Counter(self._removals.copies_held)
        judged, again = self._removals.judge(self._planned, _moment())
        for cause, copies in (Counter(self._removals.copies_held) - before).items():
            log.warning("%d copies are held: %s; undo it, or `argosy confirm %s`", copies, text_of(cause), cause)
        self._show()
        for key in judged:
            self.judged.tell(key)
        return again

    def _planned(self, cause: Cause) -> set[str]:
        """The ids of plans that somebody ordered, or, of changes of policies, applied a policy by."""
        found = set(self._orders.expected(timestamps.now()))
        if cause in _OF_POLICIES:
            for policies in self._caches.policies.values():
                found.update(policy.metadata.annotations.get(keys.PLAN, "") for policy in policies.values())
        return found - {""}

    def _is_protected(self, key: SourceKey, departure: Departure) -> bool:
        """Whether its policy, as it was before, wants all removals confirmed."""
        kind, _, name = departure.policy.partition("/")
        namespaced = kind == "PropagationPolicy"
        namespace = key.key.partition("/")[0]
        policy = self._caches.policies[namespaced].get(f"{namespace}/{name}" if namespaced else name) if kind else None
        return policy is not None and policy.spec.removal_protection == "Confirm"

    def _show(self) -> None:
        held = Counter(self._removals.copies_held)
        held[Cause.SOURCES_DELETED] += len(self._deletions.held)
        for cause in {*held, *self._told}:
            if held[cause] != self._told[cause]:
                self._metrics.held_removals.labels(cause).set(held[cause])
        self._told = held

    # What is heard.

    def _federated_changed(self, change: Change[FederatedView]) -> None:
        self._counts.observe(change)
        if change.old is None and change.new is not None:
            # A source that was being deleted when we started may have been heard of before its federated object.
            key = self._caches.source_of(change.new)
            source = self._caches.source(key) if key is not None else None
            if key is not None and source is not None and source.metadata.deletion_timestamp:
                self._deletions.observe(key, source.metadata.deletion_timestamp, clock.monotonic())

    def _source_changed(self, told: SourceChange) -> None:
        new = told.change.new
        if new is None:
            self._removals.forget(told.key)
            self._decided.discard(told.key)
            self._deletions.gone(told.key, clock.time())
            self._show()
        elif new.metadata.deletion_timestamp and self._caches.federated_view(told.key) is not None:
            self._deletions.observe(told.key, new.metadata.deletion_timestamp, clock.monotonic())

    def _ordered(self, change: Change[Partial]) -> None:
        if change.key != keys.SYSTEM_NAMESPACE:
            return
        given: Orders = orders_of(change.new.metadata.annotations) if change.new is not None else NO_ORDERS
        orders = given.until(clock.now() + _AHEAD)
        if orders == self._orders:
            return
        if orders != given:
            log.warning("an order of the brake is of the future, and ignored: the clock of who gave it is wrong")
        self._orders = orders
        for key in [*self._removals.held, *self._deletions.held]:
            self.judged.tell(key)
        self.asked.tell(None)


def _moment() -> Moment:
    return Moment(clock.monotonic(), timestamps.now())
