"""Rules: what a policy asks of a placement beyond KubeAdmiral's fields, validated and in the form the plugins read.

An invalid rule (a minimum above its maximum, an unreadable selector) raises RuleError with the path of the field: the object
keeps its placement until the policy is corrected. The plugins define what the rules mean.
"""

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

import msgspec

from argosy.api.policies import PropagationPolicySpec
from argosy.api.rules import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    ComputePower,
    Cost,
    FailureDomain,
    Locality,
    TopologySpreadConstraint,
    WorkloadAffinity,
    WorkloadTerm,
)
from argosy.fleet.declared import nanos
from argosy.kube.names import qualified_name_errors
from argosy.kube.selectors import LabelSelector, SelectorError, from_label_selector

__all__ = ["NO_RULES", "CostRule", "PreferredWorkloads", "RuleError", "Rules", "WorkloadRule", "rules_of"]


T = TypeVar("T")
R = TypeVar("R")


class RuleError(ValueError):
    """A rule of a policy is invalid; the message begins with the path of the field."""


class WorkloadRule(msgspec.Struct, frozen=True):
    """The workloads a term selects. Without namespaces: those in the object's own; without a key: a domain is a cluster."""

    selector: LabelSelector
    namespaces: tuple[str, ...] = ()
    topology_key: str = ""


class PreferredWorkloads(msgspec.Struct, frozen=True):
    """A positive weight attracts, a negative one repels."""

    weight: int
    rule: WorkloadRule


class CostRule(msgspec.Struct, frozen=True):
    prefer_lowest: bool = True
    #: In billionths.
    max_price: int | None = None


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    spread: tuple[TopologySpreadConstraint, ...] = ()
    #: Workloads whose domains are the only ones allowed, and workloads whose domains are not allowed.
    affinity: tuple[WorkloadRule, ...] = ()
    anti_affinity: tuple[WorkloadRule, ...] = ()
    preferred: tuple[PreferredWorkloads, ...] = ()
    compute_power: ComputePower | None = None
    cost: CostRule | None = None
    locality: Locality | None = None
    failure_domain: FailureDomain | None = None
    #: Clusters get no more replicas than they have room for.
    within_available: bool = False


NO_RULES: Final = Rules()


def rules_of(spec: PropagationPolicySpec) -> Rules:
    """The rules of a policy. Raises RuleError."""
    attract, repel = spec.workload_affinity, spec.workload_anti_affinity
    if not (
        spec.topology_spread_constraints
        or attract is not None
        or repel is not None
        or spec.compute_power is not None
        or spec.cost is not None
        or spec.locality is not None
        or spec.failure_domain is not None
        or spec.limit_replicas_to_available
    ):
        return NO_RULES
    return Rules(
        spread=_each("topologySpreadConstraints", spec.topology_spread_constraints, _spread),
        affinity=_required("workloadAffinity", attract),
        anti_affinity=_required("workloadAntiAffinity", repel),
        preferred=_preferred("workloadAffinity", attract, +1) + _preferred("workloadAntiAffinity", repel, -1),
        compute_power=spec.compute_power,
        cost=None if spec.cost is None else _cost("cost", spec.cost),
        locality=None if spec.locality is None else _locality("locality", spec.locality),
        failure_domain=None if spec.failure_domain is None else _domain("failureDomain", spec.failure_domain),
        within_available=spec.limit_replicas_to_available,
    )


def _each(path: str, items: Iterable[T], checked: Callable[[str, T], R]) -> tuple[R, ...]:
    return tuple(checked(f"{path}[{position}]", item) for position, item in enumerate(items))


def _spread(path: str, constraint: TopologySpreadConstraint) -> TopologySpreadConstraint:
    _key(f"{path}.topologyKey", constraint.topology_key)
    least, most, skew = constraint.min_domains, constraint.max_domains, constraint.max_skew
    if least is None and most is None and skew is None:
        raise RuleError(f"{path}: one of minDomains, maxDomains and maxSkew is needed")
    for field, number in (("minDomains", least), ("maxDomains", most), ("maxSkew", skew)):
        if number is not None and number < 1:
            raise RuleError(f"{path}.{field}: {number} is less than 1")
    if least is not None and most is not None and least > most:
        raise RuleError(f"{path}.minDomains: {least} is greater than maxDomains, {most}")
    _choice(f"{path}.whenUnsatisfiable", constraint.when_unsatisfiable)
    return constraint


def _required(path: str, affinity: WorkloadAffinity | None) -> tuple[WorkloadRule, ...]:
    if affinity is None:
        return ()
    path = f"{path}.requiredDuringSchedulingIgnoredDuringExecution"
    return _each(path, affinity.required_during_scheduling_ignored_during_execution, _workloads)


def _preferred(path: str, affinity: WorkloadAffinity | None, sign: int) -> tuple[PreferredWorkloads, ...]:
    if affinity is None:
        return ()
    found = []
    path = f"{path}.preferredDuringSchedulingIgnoredDuringExecution"
    for position, term in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        if not 1 <= term.weight <= 100:
            raise RuleError(f"{path}[{position}].weight: {term.weight} is not between 1 and 100")
        rule = _workloads(f"{path}[{position}].workloadAffinityTerm", term.workload_affinity_term)
        found.append(PreferredWorkloads(sign * term.weight, rule))
    return tuple(found)


def _workloads(path: str, term: WorkloadTerm) -> WorkloadRule:
    if term.label_selector is None:
        raise RuleError(f"{path}.labelSelector: required; {{}} means all workloads")
    try:
        selector = from_label_selector(term.label_selector)
    except SelectorError as error:
        raise RuleError(f"{path}.labelSelector: {error}") from None
    if term.topology_key:
        _key(f"{path}.topologyKey", term.topology_key)
    return WorkloadRule(selector, term.namespaces, term.topology_key)


def _cost(path: str, cost: Cost) -> CostRule:
    stated = cost.max_price_per_core_hour
    price = nanos(stated)
    if stated is not None and (price is None or price < 0):
        raise RuleError(f"{path}.maxPricePerCoreHour: {stated!r} is not a price such as 0.04")
    return CostRule(cost.prefer_lowest, price)


def _locality(path: str, locality: Locality) -> Locality:
    if not locality.near:
        raise RuleError(f"{path}.near: at least one label is needed")
    for position, term in enumerate(locality.near):
        _key(f"{path}.near[{position}].topologyKey", term.topology_key)
    return locality


def _domain(path: str, rule: FailureDomain) -> FailureDomain:
    _key(f"{path}.topologyKey", rule.topology_key)
    if not 0 <= rule.max_unready_percent < 100:
        raise RuleError(f"{path}.maxUnreadyPercent: {rule.max_unready_percent} is not between 0 and 99")
    _choice(f"{path}.whenExceeded", rule.when_exceeded)
    return rule


def _key(path: str, key: str) -> None:
    if messages := qualified_name_errors(key):
        raise RuleError(f"{path}: {key!r} is not a label key: {'; '.join(messages)}")


def _choice(path: str, choice: str) -> None:
    if choice not in (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY):
        raise RuleError(f"{path}: {choice!r} is neither {DO_NOT_SCHEDULE} nor {SCHEDULE_ANYWAY}")
