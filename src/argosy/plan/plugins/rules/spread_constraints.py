"""SpreadConstraints: spread an object over regions, zones, providers, or any other domains given by a cluster label.

Clusters are selected so that the number of domains is within bounds, and, if duplicated, so that domains differ little in
clusters. Divided replicas are given to domains so that these differ little in replicas, with any planner. Constraints apply
to the domains in use; a domain whose clusters can take no replica does not count.
"""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from argosy.api.rules import SCHEDULE_ANYWAY, TopologySpreadConstraint
from argosy.fleet.snapshot import Fleet, Mask, Rows
from argosy.plan.scheduling.domains import codes_of
from argosy.plan.scheduling.framework import Division, Filter, FrameworkError, Ranked, Select, Several
from argosy.plan.scheduling.spread import Limit, choose, domain_targets
from argosy.plan.scheduling.spread_search import TooManyGroups
from argosy.plan.scheduling.staying import staying_first
from argosy.plan.scheduling.unit import Unit

REASON = "cluster(s) had no label {key}, which a spread constraint needs"
REMEDY = "the label on the cluster, or whenUnsatisfiable: ScheduleAnyway in the policy's topologySpreadConstraints"
UNSATISFIABLE = "topologySpreadConstraints: {least} values of {key} are needed, and clusters of {found} can be chosen"
TOGETHER = " so that all constraints are satisfied"
UNDECIDED = (
    "topologySpreadConstraints: no choice of clusters that satisfies all constraints was found; there may be one, "
    "but {groups} groups of clusters are too many to try them all"
)

Divide = Callable[[Unit, Fleet, Rows], Division]


def feasible(unit: Unit, fleet: Fleet) -> Mask:
    """A cluster without the label is in no domain and would escape all bounds."""
    allowed = fleet.everyone
    for lacking in _unlabelled(unit, fleet).values():
        allowed = allowed & ~lacking
    return allowed


def _unlabelled(unit: Unit, fleet: Fleet) -> dict[str, Mask]:
    """By reason, which clusters have no label that a constraint needs."""
    return {
        REASON.format(key=constraint.topology_key): codes_of(fleet, constraint.topology_key) < 0
        for constraint in unit.rules.spread
        if constraint.when_unsatisfiable != SCHEDULE_ANYWAY
    }


def select(unit: Unit, fleet: Fleet, ranked: Ranked) -> Ranked:
    """The best clusters that together satisfy the constraints. Raises FrameworkError if a constraint cannot be satisfied."""
    constraints = unit.rules.spread
    if not constraints or (unit.max_clusters is not None and unit.max_clusters <= 0):
        return ranked
    ranked = staying_first(unit, fleet, ranked)
    limits = [_limit(unit, fleet, ranked.rows, constraint) for constraint in constraints]
    settled = np.flatnonzero(fleet.mask_of(unit.current)[ranked.rows]).tolist()
    try:
        chosen = np.array(choose(limits, len(ranked.rows), unit.max_clusters, settled), dtype=np.intp)
    except TooManyGroups as error:
        raise FrameworkError(UNDECIDED.format(groups=error.groups)) from None
    for constraint, limit in zip(constraints, limits, strict=True):
        found = len({limit.domains[position] for position in chosen.tolist()} - {-1})
        if found < limit.least and not limit.soft:
            message = UNSATISFIABLE.format(least=limit.least, key=constraint.topology_key, found=found or "none")
            raise FrameworkError(message + TOGETHER if sum(not each.soft for each in limits) > 1 else message)
    return Ranked(ranked.rows[chosen], ranked.scores[chosen])


def _limit(unit: Unit, fleet: Fleet, rows: Rows, constraint: TopologySpreadConstraint) -> Limit:
    return Limit(
        codes_of(fleet, constraint.topology_key)[rows].tolist(),
        constraint.min_domains or 0,
        constraint.max_domains,
        None if unit.divides else constraint.max_skew,
        constraint.when_unsatisfiable == SCHEDULE_ANYWAY,
    )


def within_bounds(divide: Divide, unit: Unit, fleet: Fleet, rows: Rows) -> Division:
    """The planner's division with the bounds on domains kept. Of several constraints, later ones apply inside earlier ones."""
    bounds = [item for item in unit.rules.spread if item.max_skew is not None or item.min_domains is not None]
    if not bounds:
        return divide(unit, fleet, rows)
    total = unit.desired_replicas or 0
    # Placed without a number: the whole count runs there, not that of a domain.
    current = {name: total if number is None else number for name, number in unit.current.items()}
    return _within(bounds, divide, msgspec.structs.replace(unit, current=current), fleet, rows)


def _within(
    bounds: Sequence[TopologySpreadConstraint], divide: Divide, unit: Unit, fleet: Fleet, rows: Rows
) -> Division:
    if not bounds:
        return divide(unit, fleet, rows)
    whole = divide(unit, fleet, rows)
    codes = codes_of(fleet, bounds[0].topology_key)[rows]
    domains = [np.flatnonzero(codes == code) for code in np.unique(codes[codes >= 0]).tolist()]
    return _Domains(bounds, divide, unit, fleet, rows, domains, whole).division()


class _Domains:
    """The division over the domains of one constraint: what each should get, and what the planner makes of that."""

    def __init__(
        self,
        bounds: Sequence[TopologySpreadConstraint],
        divide: Divide,
        unit: Unit,
        fleet: Fleet,
        rows: Rows,
        domains: list[Rows],
        whole: Division,
    ) -> None:
        self._constraint, self._inner = bounds[0], bounds[1:]
        self._divide, self._unit, self._fleet, self._rows = divide, unit, fleet, rows
        self._domains, self._whole = domains, whole
        self._wanted = [int(whole.replicas[domain].sum()) for domain in domains]
        self._total = max((unit.desired_replicas or 0) - int(whole.replicas[_outside(domains, len(rows))].sum()), 0)

    def division(self) -> Division:
        room = [self._total] * len(self._domains)
        while True:
            targets = self._targets(room)
            if targets == self._wanted and not self._inner:
                return self._whole
            parts = [self._part(number, target) for number, target in enumerate(targets)]
            placed = [int(part.replicas.sum()) for part in parts]
            short = [number for number, target in enumerate(targets) if placed[number] < target]
            if not short:
                return self._joined(parts, targets)
            for number in short:
                room[number] = placed[number]

    def _targets(self, room: list[int]) -> list[int]:
        """The domains that can take any replica."""
        able = [number for number, most in enumerate(room) if most > 0]
        if not able:
            return [0] * len(room)
        numbers = domain_targets(
            [self._wanted[number] for number in able],
            self._total,
            [room[number] for number in able],
            skew=self._constraint.max_skew,
            least=self._constraint.min_domains or 0,
            soft=self._constraint.when_unsatisfiable == SCHEDULE_ANYWAY,
        )
        targets = [0] * len(room)
        for number, target in zip(able, numbers, strict=True):
            targets[number] = target
        return targets

    def _part(self, number: int, target: int) -> Division:
        domain = self._domains[number]
        if target == self._wanted[number] and not self._inner:
            return Division(self._whole.replicas[domain], self._whole.overflow[domain])
        if target == 0:
            return Division(np.zeros(len(domain), dtype=np.int64), np.zeros(len(domain), dtype=np.int64))
        unit = msgspec.structs.replace(self._unit, desired_replicas=target)
        return _within(self._inner, self._divide, unit, self._fleet, self._rows[domain])

    def _joined(self, parts: list[Division], targets: list[int]) -> Division:
        replicas, overflow = self._whole.replicas.copy(), self._whole.overflow.copy()
        for domain, part in zip(self._domains, parts, strict=True):
            replicas[domain], overflow[domain] = part.replicas, part.overflow
        key = self._constraint.topology_key
        values = [self._fleet.members[self._rows[domain[0]]].labels[key] for domain in self._domains]
        told = ", ".join(
            f"{value} {before} → {after}" if before != after else f"{value} {after}"
            for value, before, after in zip(values, self._wanted, targets, strict=True)
        )
        return Division(replicas, overflow, (*self._whole.steps, f"spread over {key}: {told}"))


def _outside(domains: list[Rows], count: int) -> Mask:
    outside = np.ones(count, dtype=np.bool_)
    for domain in domains:
        outside[domain] = False
    return outside


FILTER = Filter("SpreadConstraints", feasible, Several(_unlabelled), remedy=REMEDY)
SELECT = Select("SpreadConstraints", select)
