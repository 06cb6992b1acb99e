"""Orphans: what members hold that the control plane does not know of, and what it knows of that they do not hold.

After a restore the members are newer than the control plane. Neither finding says that anything is wrong, and nothing follows
from it by itself: somebody looks, and decides.
"""

from collections.abc import Collection, Iterable, Mapping

import msgspec

from argosy.plan.explain.snapshot import ObjectKey

__all__ = ["Copy", "Missing", "Orphan", "missing", "orphaned"]


class Copy(msgspec.Struct, frozen=True):
    """An object in a member that carries the label of the federation."""

    cluster: str
    key: ObjectKey
    created: str = ""


class Orphan(msgspec.Struct, frozen=True):
    copy: Copy
    #: Its federated object is there, and says nothing of this cluster.
    placed_elsewhere: bool


class Missing(msgspec.Struct, frozen=True):
    """An object that is to be in clusters that do not hold it; it is made there again as soon as members are written to."""

    key: ObjectKey
    gone: tuple[str, ...]
    still: tuple[str, ...]
    #: Those that could not be looked at.
    unknown: tuple[str, ...] = ()


def orphaned(copies: Iterable[Copy], known: Mapping[ObjectKey, Collection[str]]) -> list[Orphan]:
    """`known`: by object, every cluster that may have a copy as far as its federated object says."""
    found = [Orphan(copy, copy.key in known) for copy in copies if copy.cluster not in known.get(copy.key, ())]
    return sorted(found, key=lambda each: (each.copy.cluster, each.copy.key))


def missing(
    copies: Iterable[Copy], placed: Mapping[ObjectKey, Collection[str]], looked_at: Collection[str]
) -> list[Missing]:
    """`placed`: by object, where it is to be; `looked_at`: the clusters whose copies are known."""
    held: dict[ObjectKey, set[str]] = {}
    for copy in copies:
        held.setdefault(copy.key, set()).add(copy.cluster)
    found = []
    for key, clusters in sorted(placed.items()):
        known = {each for each in clusters if each in looked_at}
        holding = held.get(key, set()) & known
        if known - holding:
            unknown = set(clusters) - known
            found.append(Missing(key, *(tuple(sorted(each)) for each in (known - holding, holding, unknown))))
    return found
