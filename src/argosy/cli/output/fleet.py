"""The screen of `argosy status fleet`: what is wrong first, then the clusters."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from argosy.api import keys
from argosy.api.conditions import Propagation
from argosy.api.types import FederatedCluster
from argosy.cli.client.brake import HeldObject
from argosy.cli.output.terminal import age, say, table
from argosy.kube.quantity import QuantityError, parse
from argosy.plan.brake.cause import Cause, text_of
from argosy.plan.brake.orders import Off

__all__ = ["ClusterLine", "FleetReport", "HeldLine", "ObjectState", "report", "show"]

#: Objects that are named, of those that are not where they belong.
_NAMED = 5


class ObjectState(msgspec.Struct, frozen=True):
    """A federated object, as far as this screen is about it."""

    name: str
    placed: frozenset[str]
    #: By cluster.
    states: dict[str, str]
    propagated: bool
    held: str = ""
    #: Copies of it have fields that others changed.
    drifted: bool = False


class ClusterLine(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    ready: str
    copies: int
    #: Copies that are not as wanted there.
    behind: int
    #: How much of it is taken, in percent; None where it has not told.
    cpu: int | None
    memory: int | None
    problem: str = ""


class HeldLine(msgspec.Struct, frozen=True, rename="camel"):
    cause: str
    copies: int
    objects: int
    since: str

    @property
    def text(self) -> str:
        what = (
            f"{self.objects} clusters"
            if self.cause == Cause.LEAVING
            else f"{self.copies} copies of {self.objects} objects"
        )
        return f"{what}: {text_of(self.cause)}"


class FleetReport(msgspec.Struct, frozen=True, rename="camel"):
    clusters: tuple[ClusterLine, ...]
    objects: int
    copies: int
    held: tuple[HeldLine, ...] = ()
    #: Objects that are on their way to members, or stuck on it.
    behind: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    trouble: tuple[str, ...] = ()
    #: Objects with copies that others changed, and that stay so.
    drifted: tuple[str, ...] = ()

    @property
    def well(self) -> bool:
        return not (self.held or self.undecided or self.trouble)


def report(
    clusters: Sequence[FederatedCluster],
    objects: Sequence[ObjectState],
    held: Sequence[HeldObject],
    *,
    paused: bool,
    off: Off | None,
    shards: Sequence[str] = (),
) -> FleetReport:
    """`shards` says which parts of the control plane nobody runs."""
    copies: Counter[str] = Counter()
    behind: Counter[str] = Counter()
    for each in objects:
        copies.update(each.placed)
        behind.update(name for name, state in each.states.items() if state != Propagation.OK)
    lines = tuple(_line(each, copies[each.name], behind[each.name]) for each in sorted(clusters, key=_by_name))
    trouble = [*shards]
    if paused:
        trouble.append("the fleet is paused: nothing is written to members; `argosy resume fleet`")
    if off is not None:
        trouble.append(f"the brake is off until {off.until}: {off.reason}; `argosy brake on`")
    trouble += [f"{line.name}: {line.problem}" for line in lines if line.problem]
    states = (
        (each.name, each.metadata.annotations.get(keys.FAILOVER_STATE)) for each in sorted(clusters, key=_by_name)
    )
    trouble += [f"{name}: {state}" for name, state in states if state]
    return FleetReport(
        lines,
        len(objects),
        sum(copies.values()),
        _held_lines(held),
        tuple(each.name for each in objects if not each.propagated and not each.held),
        tuple(f"{each.name}: {each.held}" for each in objects if each.held),
        tuple(trouble),
        tuple(each.name for each in objects if each.drifted),
    )


def _by_name(cluster: FederatedCluster) -> str:
    return cluster.name


def _held_lines(held: Sequence[HeldObject]) -> tuple[HeldLine, ...]:
    groups: dict[str, list[HeldObject]] = {}
    for each in held:
        groups.setdefault(each.cause, []).append(each)
    return tuple(
        HeldLine(cause, sum(len(each.clusters) for each in group), len(group), min(each.since for each in group))
        for cause, group in sorted(groups.items())
    )


def _line(cluster: FederatedCluster, copies: int, behind: int) -> ClusterLine:
    conditions = {each.type: each for each in cluster.status.conditions}
    problem = ""
    for kind in ("Joined", "Ready", "Responding"):
        found = conditions.get(kind)
        if found is not None and found.status != "True":
            problem = found.message or found.reason or f"not {kind.lower()}"
            break
    ready = conditions["Ready"].status if "Ready" in conditions else "Unknown"
    if not problem and ready != "True":
        problem = "it has not told yet how it is"
    if cluster.metadata.annotations.get(keys.PAUSED) == "true":
        problem = problem or f"paused; `argosy resume cluster {cluster.name}`"
    resources = cluster.status.resources
    cpu, memory = (_level(resources.allocatable.get(name), resources.available.get(name)) for name in ("cpu", "memory"))
    return ClusterLine(cluster.name, ready, copies, behind, cpu, memory, problem)


def _level(allocatable: Any, available: Any) -> int | None:
    try:
        total, free = parse(str(allocatable)).nanos, parse(str(available)).nanos
    except QuantityError:
        return None
    return round(100 * (total - free) / total) if total else None


def show(found: FleetReport) -> None:
    for line in found.held:
        say(f"HELD  {line.text}", "red")
        say(f"      for {age(line.since)}; undo what caused it, or `argosy {_going_on(line.cause)}`")
    for text in found.trouble:
        say(f"!     {text}", "yellow")
    for text in found.undecided[:_NAMED]:
        say(f"!     {text}", "yellow")
    if len(found.undecided) > _NAMED:
        say(f"!     and {len(found.undecided) - _NAMED} objects more", "yellow")
    if found.drifted:
        say(f"!     others changed copies: {_some(found.drifted)}; `argosy status KIND/NAME --drift`", "yellow")
    if found.behind:
        say(f"...   on the way to members: {_some(found.behind)}")
    if found.well and not found.behind and not found.drifted:
        say("Everything is as it should be.", "green")
    say()
    say(f"{found.objects} objects, {found.copies} copies, {len(found.clusters)} clusters")
    if found.clusters:
        rows = [
            [line.name, line.ready, str(line.copies), str(line.behind), _percent(line.cpu), _percent(line.memory)]
            for line in sorted(found.clusters, key=lambda each: (not each.problem, each.name))
        ]
        table(["CLUSTER", "READY", "COPIES", "BEHIND", "CPU", "MEMORY"], rows)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _going_on(cause: str) -> str:
    return (
        "rescue` to keep the copies, `argosy confirm SourcesDeleted"
        if cause == "SourcesDeleted"
        else f"confirm {cause}"
    )


def _percent(level: int | None) -> str:
    return "-" if level is None else f"{level}%"
