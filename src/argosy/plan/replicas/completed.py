"""Completed: what a divided Job has done in clusters it left, so that it counts once and is not done again.

Each completion is in one place: the share of a cluster, the share of a copy that is on its way out, done in a cluster whose copy
is gone, or in no cluster. What is known of a copy that goes is kept with the federated object: two numbers while it goes, part
of one sum afterwards.

While the copy is on its way out its share is nobody else's: it may still be doing it. A cluster that does not answer is not
waited for: what it is not known to have done is given to others, and does not count if it is done there after all.
"""

from collections.abc import Collection, Mapping

import msgspec
import orjson

from argosy.api import keys
from argosy.plan.metadata import without_annotations

__all__ = ["NOTHING", "Completed", "Leaving", "Witness", "Work", "completed_of", "with_completed"]


class Leaving(msgspec.Struct, frozen=True, omit_defaults=True):
    """A copy on its way out: what it is to do, and what it is known to have done of it."""

    share: int = 0
    done: int = 0


class Witness(msgspec.Struct, frozen=True):
    """What can be seen of the copies now: how much each has done, where that is known, and the clusters that answer."""

    done: Mapping[str, int] = {}
    answering: frozenset[str] = frozenset()

    def seen(self, cluster: str, leaving: Leaving) -> Leaving:
        """The same copy as it is seen now. What a copy has done never becomes less."""
        done = min(max(leaving.done, self.done.get(cluster, 0)), leaving.share)
        return Leaving(leaving.share if cluster in self.answering else done, done)


class Completed(msgspec.Struct, frozen=True, omit_defaults=True):
    #: What was done in clusters whose copy is gone.
    total: int = 0
    leaving: dict[str, Leaving] = {}

    @property
    def done(self) -> int:
        return self.total + sum(each.done for each in self.leaving.values())

    @property
    def accounted(self) -> int:
        """What need not be given to any cluster now."""
        return self.total + sum(each.share for each in self.leaving.values())

    def settled(self, noted: Collection[str], witness: Witness) -> "Completed":
        """As it is now. `noted` are the clusters whose copies were not yet seen gone."""
        seen = {name: witness.seen(name, each) for name, each in self.leaving.items()}
        gone = sum(each.done for name, each in seen.items() if name not in noted)
        return Completed(self.total + gone, {name: each for name, each in seen.items() if name in noted and each.share})

    def without(self, shares: Mapping[str, int], witness: Witness) -> "Completed":
        """After these clusters were left, which had these shares."""
        left = {name: witness.seen(name, Leaving(share)) for name, share in shares.items()}
        return Completed(self.total, {**self.leaving, **{name: each for name, each in left.items() if each.share}})


NOTHING = Completed()


class Work(msgspec.Struct, frozen=True):
    """All that is known of a divided Job besides the shares of its clusters."""

    completed: Completed = NOTHING
    witness: Witness = Witness()
    #: Clusters that may still have an older copy.
    noted: frozenset[str] = frozenset()
    #: It has come to its end, however much of it was done.
    over: bool = False

    def without(self, shares: Mapping[str, int]) -> Completed:
        return self.completed.without(shares, self.witness)


def completed_of(annotations: Mapping[str, str]) -> Completed:
    """Of a federated object. What cannot be read is not known, and is done again."""
    try:
        return msgspec.json.decode(annotations.get(keys.COMPLETED, "{}"), type=Completed)
    except msgspec.MsgspecError:
        return NOTHING


def with_completed(annotations: Mapping[str, str], completed: Completed) -> dict[str, str]:
    rest = without_annotations(annotations, keys.COMPLETED)
    if completed == NOTHING:
        return rest
    return {**rest, keys.COMPLETED: orjson.dumps(msgspec.to_builtins(completed), option=orjson.OPT_SORT_KEYS).decode()}
