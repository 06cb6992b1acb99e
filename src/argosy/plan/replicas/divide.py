"""Divide: from the number of replicas of each cluster to the overrides of each cluster's copy.

For most kinds that is the number alone. A kind that divides more than a number (ordinals, completions) may also change the
clusters' numbers, since a cluster's present share may have to stay there. The present shares are read from the overrides
stored with the object; nothing else is remembered, except what a Job has done in clusters it left (`completed`).
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from argosy.api import keys
from argosy.fleet.snapshot import LARGEST, Column
from argosy.plan.copies.placement import Patches, value_at
from argosy.plan.fields import pointer
from argosy.plan.kinds.kind import Kind, Shares, by_number
from argosy.plan.kinds.registry import kind_of
from argosy.plan.replicas.completed import Completed, Work
from argosy.plan.replicas.demand import demand_of
from argosy.plan.scheduling.schedule import Decision

__all__ = ["Divided", "Divider", "divider_of"]

Placements = Mapping[str, int | None]


class Divided(NamedTuple):
    """The object's clusters and replicas, each copy's overrides, and what found no cluster."""

    placements: Placements
    patches: dict[str, Patches]
    missing: str = ""


class Divider(msgspec.Struct, frozen=True):
    """Divides one object over clusters."""

    kind: Kind
    template: dict[str, Any]
    pointer: str
    #: The scheduler's patches as stored.
    before: Mapping[str, Patches]
    #: None if no new decision was made: then only the placed clusters keep their share.
    decision: Decision | None
    work: Work = Work()

    @property
    def by_number(self) -> bool:
        return self.kind.divide is by_number

    def adjusted(self, placements: Placements) -> dict[str, int | None]:
        """The placements with the numbers that this kind allows."""
        return dict(placements if self.by_number else self.divide(placements).placements)

    def divide(self, placements: Placements) -> Divided:
        wanted = {cluster: number for cluster, number in placements.items() if number is not None}
        if self.by_number or not wanted or len(wanted) < len(placements):
            return Divided(placements, by_number(self._shares(wanted)).patches)
        patches, missing = self.kind.divide(self._stable(wanted))
        return Divided(self._numbers(patches), patches, missing)

    def completed_with(self, patches: Mapping[str, Patches]) -> Completed:
        """What is known of the work once only these clusters have a share."""
        return self.work.without({name: share for name, share in self._shares_before().items() if name not in patches})

    def _shares_before(self) -> dict[str, int]:
        """Each cluster's share of the work, as stored."""
        found = (
            {name: value_at(theirs, self.kind.work) for name, theirs in self.before.items()} if self.kind.work else {}
        )
        return {name: number for name, number in found.items() if isinstance(number, int) and number > 0}

    def _numbers(self, patches: Mapping[str, Patches]) -> dict[str, int | None]:
        return {cluster: value_at(theirs, self.pointer) for cluster, theirs in sorted(patches.items())}

    def _shares(self, wanted: Mapping[str, int]) -> Shares:
        return Shares(template=self.template, pointer=self.pointer, wanted=wanted)

    def _stable(self, wanted: Mapping[str, int]) -> Shares:
        """Also clusters that passed all filters may keep their share, although they were not selected this time."""
        shares = msgspec.structs.replace(
            self._shares(wanted),
            before={cluster: patches for cluster, patches in self.before.items() if cluster in wanted},
        )
        decision = self.decision
        if decision is None or decision.unschedulable or decision.filtered is None:
            return self._with_work(shares, sorted(wanted))
        fleet = decision.fleet
        feasible = decision.filtered.feasible
        before = {
            cluster: patches
            for cluster, patches in self.before.items()
            if cluster in wanted or (cluster in fleet and feasible[fleet.index[cluster]])
        }
        rows = fleet.rows_of(sorted({*before, *wanted}))
        names = fleet.names_of(rows)
        demand = demand_of(decision.unit, fleet, rows)
        shares = msgspec.structs.replace(
            shares,
            before=before,
            room=_stated(names, demand.room),
            limited=_stated(names, demand.limited),
            most_clusters=decision.unit.max_clusters,
        )
        return self._with_work(shares, [*wanted, *_selected_with_room(decision)])

    def _with_work(self, shares: Shares, candidates: Iterable[str]) -> Shares:
        """What is left of the work, and who may take it. A copy that is on its way out would refuse another share."""
        if not self.kind.work:
            return shares
        open_to = tuple(name for name in dict.fromkeys(candidates) if name not in self.work.noted)
        elsewhere = self.completed_with(shares.before).accounted
        over = self.work.over
        return msgspec.structs.replace(shares, elsewhere=elsewhere, open_to=() if over else open_to, over=over)


def _selected_with_room(decision: Decision) -> list[str]:
    """The selected clusters that may run some of it, best first."""
    unit, ranked = decision.unit, decision.ranked
    if ranked is None:
        return []
    room = demand_of(unit, decision.fleet, ranked.rows).room > 0
    names = decision.fleet.names_of(ranked.rows[room])
    return [name for name in names if unit.weights.get(name, 0) > 0] if unit.weights else names


def divider_of(
    spec: Mapping[str, Any], replicas_path: str, decision: Decision | None, work: Work | None = None
) -> Divider:
    """For a federated object's stored spec; `replicas_path` is its type config's."""
    template = spec["template"]
    return Divider(kind_of(template), template, pointer(replicas_path), _patches(spec), decision, work or Work())


def _patches(spec: Mapping[str, Any]) -> dict[str, Patches]:
    return {
        item["cluster"]: list(item.get("patches") or ())
        for entry in spec.get("overrides") or ()
        if entry["controller"] == keys.GLOBAL_SCHEDULER
        for item in entry.get("clusters") or ()
    }


def _stated(names: list[str], column: Column) -> dict[str, int]:
    return {name: number for name, number in zip(names, column.tolist(), strict=True) if number < LARGEST}
