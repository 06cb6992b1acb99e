"""The graph of leaders and followers: who needs whom, kept in memory and changed one object at a time.

A leader is a federated object, a follower anything that a leader needs, or that is itself about a leader. An edge leads from
leader to follower; both have the same namespace. Where leaders are is not stored here but asked for, when a follower is placed.

A follower goes where its leaders were placed by others than their own leaders, and theirs in turn. So two objects that need
each other do not keep each other in place. If it is there, it stays where a leader may still have a copy, and where a leader
that needed it before has not got its newest change. It stays everywhere while a leader it followed is not known: gone without
having been deleted.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from argosy.api.federated import LeaderReference
from argosy.kube.selectors import LabelSelector
from argosy.plan.followers.needs import NOTHING, Name, Need, Needs
from argosy.plan.replicas.budget import Pods

__all__ = ["NOBODY", "Following", "Graph", "Leader", "ObjectRef", "Where"]


class ObjectRef(NamedTuple):
    namespace: str
    group: str
    kind: str
    name: str

    @property
    def reference(self) -> LeaderReference:
        return LeaderReference(self.kind, self.name, self.group, self.namespace)

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class Leader(msgspec.Struct, frozen=True):
    """What counts of a federated object for those that follow it, besides where it is."""

    needs: Needs = NOTHING
    #: Whether what it needs goes where it goes: its policy says so, or it has none and is itself a follower.
    leads: bool = True
    #: Nothing new follows it, and what does stays as it is.
    frozen: bool = False
    #: It is being deleted, as its owner wants; its copies go with it.
    leaving: bool = False
    #: It follows nobody.
    alone: bool = False
    #: The labels of its pods.
    pod_labels: Mapping[str, str] | None = None
    #: Whether its replicas are divided between clusters, and whether members keep their own number of them.
    divided: bool = False
    retains: bool = False
    #: Another number whenever the replicas of some cluster are.
    counted: int = 0


class Where(NamedTuple):
    """Where a leader is."""

    #: By other controllers than the one of followers.
    placed: frozenset[str] = frozenset()
    #: Clusters that may have a copy and are not to.
    leaving: frozenset[str] = frozenset()


class Following(msgspec.Struct, frozen=True):
    """Whom an object follows, and where that places it."""

    #: Sorted; including those that are not known any more.
    leaders: tuple[LeaderReference, ...] = ()
    clusters: frozenset[str] = frozenset()
    #: Where it stays if it is there.
    staying: frozenset[str] = frozenset()
    #: Leaders it followed that are gone without having been deleted: it stays wherever it is.
    unknown: tuple[LeaderReference, ...] = ()
    #: The workload it is about; None if that is not federated.
    target: Leader | None = None
    #: The pods it selects, by workload. None if it selects none, or if nobody knows how many some of them are.
    selected: tuple[Pods, ...] | None = None


#: Clusters that count; None if all do.
_Only = frozenset[str] | None
#: For an object that follows nobody.
NOBODY: Final = Following()
_NOWHERE: Final = Where()


class _Kept:
    """What keeps an object where it is, besides those that lead it now."""

    def __init__(self) -> None:
        self.staying: set[str] = set()
        #: Leaders it goes on naming, and those nobody knows.
        self.listed: set[ObjectRef] = set()
        self.unknown: set[ObjectRef] = set()


class _Reach:
    def __init__(self) -> None:
        self.clusters: set[str] = set()
        self.staying: set[str] = set()
        #: Leaders of its leaders that nobody knows.
        self.unknown: set[ObjectRef] = set()


class Graph:
    def __init__(
        self,
        where: Callable[[ObjectRef], Where | None],
        behind: Callable[[ObjectRef], frozenset[str]],
        pods: Callable[[ObjectRef], Pods | None],
    ) -> None:
        """`where` tells where a leader is, None if nobody knows it; `behind`, in which clusters its newest change may not be;
        `pods`, how many it runs where, None if nobody knows."""
        self._where = where
        self._behind = behind
        self._pods = pods
        self._leaders: dict[ObjectRef, Leader] = {}
        self._needed: dict[ObjectRef, dict[ObjectRef, Need]] = {}
        #: Whom objects follow, as stored in them, and the other way round.
        self._stored: dict[ObjectRef, frozenset[ObjectRef]] = {}
        self._followers: dict[ObjectRef, set[ObjectRef]] = {}
        #: Objects about one workload, by that; and those about pods with labels, by namespace.
        self._targets: dict[ObjectRef, ObjectRef] = {}
        self._targeted: dict[ObjectRef, set[ObjectRef]] = {}
        self._selecting: dict[str, dict[ObjectRef, LabelSelector]] = {}
        #: Leaders that run pods, by namespace.
        self._running: dict[str, dict[ObjectRef, None]] = {}
        #: Leaders that were deleted, and that somebody still follows as far as is stored.
        self._departed: set[ObjectRef] = set()

    def __len__(self) -> int:
        return len(self._leaders)

    # What is known.

    def leader(self, ref: ObjectRef) -> Leader | None:
        return self._leaders.get(ref)

    def concerns(self, ref: ObjectRef, leader: Leader) -> bool:
        """Whether anybody may follow this object."""
        return bool(
            leader.needs is not NOTHING
            or leader.pod_labels is not None
            or ref in self._targeted
            or ref in self._followers
        )

    def set_leader(self, ref: ObjectRef, leader: Leader, moved: bool = False) -> set[ObjectRef]:
        """A leader came, changed or moved. Returns the followers that this may concern."""
        before = self._leaders.get(ref)
        self._departed.discard(ref)
        if not self.concerns(ref, leader):
            return self._without(ref) if before is not None else set()
        self._leaders[ref] = leader
        old = before.needs.needed if before is not None else {}
        if leader.needs is not (before.needs if before is not None else None):
            for name in old.keys() - leader.needs.needed.keys():
                self._unneeded(_beside(ref, name), ref)
            for name, need in leader.needs.needed.items():
                self._needed.setdefault(_beside(ref, name), {})[ref] = need
        if leader.pod_labels is not None:
            self._running.setdefault(ref.namespace, {})[ref] = None
        if before == leader and not moved:
            return set()
        if before is not None and not moved and before == msgspec.structs.replace(leader, counted=before.counted):
            return self._selecting_of(ref, leader)
        found = {_beside(ref, name) for name in (*old, *leader.needs.needed)}
        found |= self._attached(ref, before) | self._attached(ref, leader)
        return self._downwards(ref, found)

    def drop_leader(self, ref: ObjectRef) -> set[ObjectRef]:
        """The federated object is gone: deleted if it was leaving, else lost."""
        before = self._leaders.get(ref)
        if before is not None and before.leaving and ref in self._followers:
            self._departed.add(ref)
        return self._without(ref)

    def set_stored(self, ref: ObjectRef, leaders: Iterable[LeaderReference]) -> None:
        """Whom an object follows, as stored in its federated object."""
        wanted = frozenset(ObjectRef(ref.namespace, each.group, each.kind, each.name) for each in leaders)
        before = self._stored.get(ref, frozenset())
        for leader in before - wanted:
            followers = self._followers[leader]
            followers.discard(ref)
            if not followers:
                del self._followers[leader]
                self._departed.discard(leader)
        for leader in wanted - before:
            self._followers.setdefault(leader, set()).add(ref)
        if wanted:
            self._stored[ref] = wanted
        else:
            self._stored.pop(ref, None)

    def set_target(self, ref: ObjectRef, target: ObjectRef | None) -> None:
        """The workload that an object is about."""
        before = self._targets.get(ref)
        if before == target:
            return
        if before is not None:
            self._targeted[before].discard(ref)
            if not self._targeted[before]:
                del self._targeted[before]
            del self._targets[ref]
        if target is not None:
            self._targets[ref] = target
            self._targeted.setdefault(target, set()).add(ref)

    def set_selector(self, ref: ObjectRef, selector: LabelSelector | None) -> None:
        """The pods that an object is about."""
        if selector is not None:
            self._selecting.setdefault(ref.namespace, {})[ref] = selector
            return
        selecting = self._selecting.get(ref.namespace, {})
        selecting.pop(ref, None)
        if not selecting:
            self._selecting.pop(ref.namespace, None)

    def stored_leaders(self, ref: ObjectRef) -> frozenset[ObjectRef]:
        """Whom it follows, as stored."""
        return self._stored.get(ref, frozenset())

    # What follows from it.

    def is_led(self, ref: ObjectRef) -> bool:
        """Whether somebody wants this object where it is itself."""
        return any(self._leaders[leader].leads for leader, _ in self._edges(ref))

    def has_stale_followers(self, ref: ObjectRef) -> bool:
        """Whether objects follow this one, as stored, that it needs no more, or not in every cluster."""
        return any(self._is_stale(each, ref) for each in self._followers.get(ref, ()))

    def _is_stale(self, follower: ObjectRef, ref: ObjectRef) -> bool:
        leader = self._leaders.get(ref)
        if leader is None or not self._leads(ref):
            return True
        if self._targets.get(follower) == ref:
            return False
        selector = self._selecting.get(ref.namespace, {}).get(follower)
        if selector is not None and _selects(selector, leader):
            return False
        need = self._needed.get(follower, {}).get(ref)
        return need is None or need.clusters is not None

    def leaders_of(self, group: str, kind: str) -> list[ObjectRef]:
        """All leaders of a kind."""
        return [ref for ref in self._leaders if (ref.group, ref.kind) == (group, kind)]

    def followers(self, ref: ObjectRef) -> list[ObjectRef]:
        """Objects that follow this one, as stored."""
        return list(self._followers.get(ref, ()))

    def needing(self, ref: ObjectRef) -> list[ObjectRef]:
        """The leaders that name this object."""
        return list(self._needed.get(ref, ()))

    def following(self, ref: ObjectRef) -> Following:
        reach, kept = self._reach(ref), self._kept(ref)
        target = self._targets.get(ref)
        return Following(
            _references(self._listed(ref) | kept.listed | kept.unknown),
            frozenset(reach.clusters),
            frozenset(reach.staying | kept.staying),
            _references(kept.unknown | reach.unknown),
            self._leaders.get(target) if target is not None else None,
            self._selected(ref),
        )

    def _selected(self, ref: ObjectRef) -> tuple[Pods, ...] | None:
        selector = self._selecting.get(ref.namespace, {}).get(ref)
        if selector is None:
            return None
        found = []
        for name in sorted(self._running.get(ref.namespace, ())):
            leader = self._leaders[name]
            if not _selects(selector, leader):
                continue
            pods = self._pods(name) if not leader.retains else None
            if pods is None:
                return None
            found.append(pods)
        return tuple(found)

    def _selecting_of(self, ref: ObjectRef, leader: Leader) -> set[ObjectRef]:
        """Objects about its pods."""
        selecting = self._selecting.get(ref.namespace, {})
        return {each for each, selector in selecting.items() if _selects(selector, leader)}

    def _listed(self, ref: ObjectRef) -> set[ObjectRef]:
        """The leaders that lead an object now, and are known to be somewhere or nowhere."""
        return {leader for leader, _ in self._edges(ref) if self._leads(leader) and self._where(leader) is not None}

    def _kept(self, ref: ObjectRef) -> "_Kept":
        """By the leaders that an object followed, as stored, and that do not lead it now."""
        kept = _Kept()
        for leader in self._stored.get(ref, frozenset()) - self._listed(ref):
            known, where = self._leaders.get(leader), self._where(leader)
            if known is None or where is None:
                if leader not in self._departed:
                    kept.unknown.add(leader)
                continue
            behind = self._behind(leader)
            kept.staying |= where.leaving | behind
            if known.leaving:
                kept.staying |= where.placed
            elif known.frozen or known.needs.unclear:
                kept.listed.add(leader)
                kept.staying |= where.placed
            elif behind:
                kept.listed.add(leader)
        return kept

    def _leads(self, ref: ObjectRef) -> bool:
        leader = self._leaders[ref]
        return leader.leads and not leader.leaving and not leader.frozen

    def _reach(self, ref: ObjectRef) -> "_Reach":
        """Where its leaders, and theirs in turn, place an object; and what keeps them, and so it, in place."""
        found = _Reach()
        reached: dict[ObjectRef, _Only] = {}
        waiting = [(leader, need.clusters) for leader, need in self._edges(ref)]
        while waiting:
            leader, only = waiting.pop()
            if leader == ref:
                continue
            if leader in reached:
                only = _either(only, reached[leader])
                if only == reached[leader]:
                    continue
            reached[leader] = only
            where = self._where(leader) or _NOWHERE
            found.staying |= where.leaving
            if only is not None:  # it may need the object elsewhere until it has its newest change there
                found.staying |= self._behind(leader)
            if self._leads(leader):
                found.clusters |= where.placed if only is None else where.placed & only
                if not self._leaders[leader].alone:
                    waiting += [(above, _both(only, need.clusters)) for above, need in self._edges(leader)]
                    kept = self._kept(leader)
                    found.staying |= kept.staying
                    found.unknown |= kept.unknown
            elif self._leaders[leader].leaving:
                found.staying |= where.placed
        return found

    def _edges(self, ref: ObjectRef) -> list[tuple[ObjectRef, Need]]:
        """The leaders of an object, and what they need it for."""
        found = list(self._needed.get(ref, {}).items())
        target = self._targets.get(ref)
        if target in self._leaders:
            found.append((target, Need()))
        selector = self._selecting.get(ref.namespace, {}).get(ref)
        if selector is not None:
            running = self._running.get(ref.namespace, ())
            found += [(leader, Need()) for leader in running if _selects(selector, self._leaders[leader])]
        return [(leader, need) for leader, need in found if leader != ref]

    def _attached(self, ref: ObjectRef, leader: Leader | None) -> set[ObjectRef]:
        """Objects that follow a leader without being named by it."""
        found = self._followers.get(ref, set()) | self._targeted.get(ref, set())
        return found | self._selecting_of(ref, leader) if leader is not None else found

    def _downwards(self, ref: ObjectRef, found: set[ObjectRef]) -> set[ObjectRef]:
        """These and all that follow them."""
        waiting = list(found)
        while waiting:
            leader = self._leaders.get(below := waiting.pop())
            if leader is None:
                continue
            more = {_beside(below, name) for name in leader.needs.needed} | self._attached(below, leader)
            waiting += more - found
            found |= more
        return found - {ref}

    def _without(self, ref: ObjectRef) -> set[ObjectRef]:
        before = self._leaders.get(ref)
        found = self._attached(ref, before)
        if before is not None:
            found |= {_beside(ref, name) for name in before.needs.needed}
            for name in before.needs.needed:
                self._unneeded(_beside(ref, name), ref)
            running = self._running.get(ref.namespace, {})
            running.pop(ref, None)
            if not running:
                self._running.pop(ref.namespace, None)
            del self._leaders[ref]
        return self._downwards(ref, found)

    def _unneeded(self, follower: ObjectRef, leader: ObjectRef) -> None:
        needed = self._needed.get(follower, {})
        needed.pop(leader, None)
        if not needed:
            self._needed.pop(follower, None)


def _either(one: _Only, other: _Only) -> _Only:
    return None if one is None or other is None else one | other


def _both(one: _Only, other: _Only) -> _Only:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _beside(leader: ObjectRef, name: Name) -> ObjectRef:
    return ObjectRef(leader.namespace, *name)


def _selects(selector: LabelSelector, leader: Leader) -> bool:
    return leader.pod_labels is not None and selector.matches(leader.pod_labels)


def _references(found: Iterable[ObjectRef]) -> tuple[LeaderReference, ...]:
    return tuple(each.reference for each in sorted(found))
