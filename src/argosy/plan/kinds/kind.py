"""Kind: what is special about one kind of object when it is federated, and the defaults for all other kinds.

A kind's file makes one `Kind` value out of small functions; the engines (`render`, `retain`, `aggregate`) only call these.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec

from argosy.api.typeconfigs import PathDefinition
from argosy.kube.podreferences import Reference
from argosy.plan.copies.placement import Patches, value_at
from argosy.plan.fields import Json
from argosy.plan.kinds.about import About
from argosy.plan.kinds.generic import merge
from argosy.plan.kinds.observation import Aggregation

__all__ = ["Divided", "Kind", "Shares", "by_number", "replace"]


class Shares(msgspec.Struct, frozen=True, kw_only=True):
    """Input for dividing one object's replicas: what is wanted, what each cluster has, what is allowed."""

    template: Json
    #: The path of its replicas, as a JSON pointer.
    pointer: str
    #: The replicas scheduling gives to each cluster.
    wanted: Mapping[str, int]
    #: The patches of the clusters that may keep their share, including those no longer wanted.
    before: Mapping[str, Patches] = {}
    #: What a cluster may grow to, and what it may keep; no limit if it is not named.
    room: Mapping[str, int] = {}
    limited: Mapping[str, int] = {}
    most_clusters: int | None = None
    #: Of kinds with `work`: how much of it is done, or being done, in clusters that were left; which clusters may be given
    #: some, best first (None: all that are wanted); and whether it is over, however much of it was done.
    elsewhere: int = 0
    open_to: tuple[str, ...] | None = None
    over: bool = False

    def number_before(self, cluster: str, pointer: str) -> int | None:
        """The number that a cluster's patches set at the pointer, None if they set none."""
        value = value_at(self.before.get(cluster, ()), pointer)
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def replace(pointer: str, value: object) -> Json:
    return {"op": "replace", "path": pointer, "value": value}


class Divided(NamedTuple):
    """Each cluster's patches (clusters left out get no object), and a text about what found no cluster."""

    patches: dict[str, Patches]
    missing: str = ""


def by_number(shares: Shares) -> Divided:
    """Only the number differs between clusters."""
    return Divided({cluster: [replace(shares.pointer, number)] for cluster, number in shares.wanted.items()})


def _always_divisible(template: Json) -> str:
    return ""


def _nothing(copy: Json) -> int:
    return 0


def _never(source: Json) -> bool:
    return False


def _as_it_is(desired: Json) -> Json:
    return desired


def _nothing_kept(desired: Json, observed: Json) -> Json:
    return desired


def _names_nothing(obj: Json) -> Iterable[Reference]:
    return ()


def _about_nothing(obj: Json) -> About | None:
    return None


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """Functions never change their arguments."""

    #: The path of the pod spec, for kinds that run pods.
    pod_spec: tuple[str, ...] = ()
    #: Where its replicas are, if its type config does not say.
    paths: PathDefinition = PathDefinition()
    #: The template without fields that only one cluster's copy can have.
    strip: Callable[[Json], Json] = _as_it_is
    #: (desired, observed): the desired object with what a member's copy keeps. Metadata is handled elsewhere.
    retain: Callable[[Json, Json], Json] = _nothing_kept
    #: Whether feedback annotations go to the source at all.
    feedback: bool = True
    #: Feedback annotations go to the source with its status: annotations of this kind count as a new generation, except
    #: those written through the status subresource.
    feedback_with_status: bool = False
    #: Each cluster's share of divided replicas.
    divide: Callable[[Shares], Divided] = by_number
    #: Why an object cannot be divided; empty if it can.
    indivisible: Callable[[Json], str] = _always_divisible
    #: For kinds whose clusters do a piece of work once, together: the pointer of the number that says how much, how much of it
    #: a copy has done, and whether an object has come to its end.
    work: str = ""
    done: Callable[[Json], int] = _nothing
    over: Callable[[Json], bool] = _never
    #: Whether its conditions have a lastUpdateTime.
    update_time: bool = False
    #: Whether its status has room for conditions.
    has_conditions: bool = True
    #: Merges the members' statuses into one.
    aggregate: Callable[[Aggregation], Json | None] = merge
    #: (desired, copy): what a member's copy lacks to be as desired, in short phrases. The copy may have only the fields that
    #: are collected. None for kinds that nothing special is known of.
    unfinished: Callable[[Json, Json], list[str]] | None = None
    #: The objects that an object names, besides those its pod spec names.
    references: Callable[[Json], Iterable[Reference]] = _names_nothing
    #: What an object is about: it goes where that goes.
    about: Callable[[Json], About | None] = _about_nothing
