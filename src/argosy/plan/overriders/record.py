"""The record of which rule made which patch, stored with the federated object, so that each difference can be explained.

The annotation `argosy.io/overrides` holds no patches: these are in `spec.overrides`, in order. For each cluster that has some,
it says how many come from which rule. It is short: clusters with the same rules share one entry, and names are left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

import msgspec

from argosy.api import keys

__all__ = ["Made", "decode", "encode"]

#: A longer record is left out; then only the policies are known.
_LONGEST: Final = 4096


class Made(msgspec.Struct, frozen=True):
    """So many patches in a row that one rule made. Rule -1 means that the rule is not on record."""

    #: Kind and name.
    policy: str
    rule: int
    patches: int

    def __str__(self) -> str:
        return f"{self.policy}, overrideRules[{self.rule}]" if self.rule >= 0 else self.policy


class _Record(msgspec.Struct, frozen=True, omit_defaults=True):
    policies: tuple[str, ...]
    #: What a cluster may have: (policy, rule, number of patches).
    rules: tuple[tuple[tuple[int, int, int], ...], ...] = ()
    #: Which of these the clusters have, in the order of the overrides: (which, for so many clusters in a row).
    clusters: tuple[tuple[int, int], ...] = ()


def encode(made: Mapping[str, Sequence[Made]]) -> str:
    """The record; empty if nobody made anything. `made` has the clusters that have patches, and only those."""
    if not made:
        return ""
    policies = list(dict.fromkeys(each.policy for name in sorted(made) for each in made[name]))
    sequences = {
        name: tuple((policies.index(each.policy), each.rule, each.patches) for each in made[name]) for name in made
    }
    rules = list(dict.fromkeys(sequences[name] for name in sorted(made)))
    indexes = (rules.index(sequences[name]) for name in sorted(made))
    runs = tuple((index, len(list(group))) for index, group in groupby(indexes))
    text = msgspec.json.encode(_Record(tuple(policies), tuple(rules), runs)).decode()
    return text if len(text) <= _LONGEST else msgspec.json.encode(_Record(tuple(policies))).decode()


def decode(annotations: Mapping[str, str], clusters: Iterable[Mapping[str, Any]]) -> dict[str, tuple[Made, ...]]:
    """By cluster, who made its patches. `clusters` are those of the override policies' entry of the federated object.

    Where the record does not fit the patches, it says only which policies there were, or nothing.
    """
    patches = {each["cluster"]: len(each.get("patches") or ()) for each in clusters}
    try:
        record = msgspec.json.decode(annotations.get(keys.OVERRIDES, ""), type=_Record)
        indexes = [index for index, count in record.clusters for _ in range(min(count, len(patches) + 1))]
        return {
            name: _fitting(_made(record, indexes[at] if len(indexes) == len(patches) else None, count), count)
            for at, (name, count) in enumerate(patches.items())
        }
    except (msgspec.MsgspecError, RecursionError, IndexError):
        return {}


def _made(record: _Record, index: int | None, count: int) -> tuple[Made, ...]:
    if index is None:
        return (Made(" or ".join(record.policies), -1, count),)
    return tuple(Made(record.policies[policy], rule, number) for policy, rule, number in record.rules[index])


def _fitting(made: tuple[Made, ...], patches: int) -> tuple[Made, ...]:
    return made if sum(each.patches for each in made) == patches else ()
