"""Orphans: copies in members that the control plane does not know, and copies it expects that members do not have.

After a restore the members are newer than the control plane. Neither finding proves a fault, and nothing is changed
automatically: an operator decides.
"""

from collections.abc import Collection, Iterable, Mapping

import msgspec

from argosy.plan.explain.snapshot import ObjectKey

__all__ = ["Copy", "Missing", "Orphan", "missing", "orphaned"]


class Copy(msgspec.Struct, frozen=True):
    """An object in a member that carries the label of the federation, or the mark of one that was rescued."""

    cluster: str
    key: ObjectKey
    created: str = ""
    #: It was in the member before us.
    adopted: bool = False
    #: It was left running when its source was deleted by mistake, and is managed by nobody.
    rescued: bool = False


class Orphan(msgspec.Struct, frozen=True):
    copy: Copy
    #: Its federated object exists, but does not name this cluster.
    placed_elsewhere: bool

    @property
    def why(self) -> str:
        if self.copy.rescued:
            return "rescued when its source was deleted"
        why = "placed elsewhere" if self.placed_elsewhere else "no federated object"
        return f"{why}; it was there before it was adopted" if self.copy.adopted else why


class Missing(msgspec.Struct, frozen=True):
    """An object that some of its clusters do not have. It is created there again as soon as members are written to."""

    key: ObjectKey
    gone: tuple[str, ...]
    still: tuple[str, ...]
    #: Clusters that could not be checked.
    unknown: tuple[str, ...] = ()


def orphaned(copies: Iterable[Copy], known: Mapping[ObjectKey, Collection[str]]) -> list[Orphan]:
    """`known`: by object, every cluster that may have a copy according to its federated object."""
    found = [
        Orphan(copy, copy.key in known)
        for copy in copies
        if copy.rescued or copy.cluster not in known.get(copy.key, ())
    ]
    return sorted(found, key=lambda each: (each.copy.cluster, each.copy.key))


def missing(
    copies: Iterable[Copy], placed: Mapping[ObjectKey, Collection[str]], looked_at: Collection[str]
) -> list[Missing]:
    """`placed`: by object, the clusters it is placed in; `looked_at`: the clusters whose copies are known."""
    held: dict[ObjectKey, set[str]] = {}
    for copy in copies:
        if not copy.rescued:
            held.setdefault(copy.key, set()).add(copy.cluster)
    found = []
    for key, clusters in sorted(placed.items()):
        known = {each for each in clusters if each in looked_at}
        holding = held.get(key, set()) & known
        if known - holding:
            unknown = set(clusters) - known
            found.append(Missing(key, *(tuple(sorted(each)) for each in (known - holding, holding, unknown))))
    return found
