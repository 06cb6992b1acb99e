"""Held copies: clusters that keep their copy exactly as it is, because the overrides meant for them cannot be applied.

A copy without its override may do harm, so such a cluster gets neither a new copy nor a changed one; the others get theirs.
Taking a copy away needs no override. The clusters are an annotation of the federated object, written together with its spec.
"""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Final

import msgspec

from argosy.api import keys
from argosy.plan.metadata import without_annotations

__all__ = ["HeldCopies", "Refusal", "held_copies", "with_held_copies"]

#: All clusters are named, whatever their number; of what is told there is less.
_LONGEST_TEXT: Final = 256
_MOST_TEXTS: Final = 8


class Refusal(msgspec.Struct, frozen=True, order=True):
    """Which rule cannot be applied, and why."""

    #: Kind and name.
    policy: str
    rule: int
    why: str

    def __str__(self) -> str:
        return f"{self.policy}, overrideRules[{self.rule}]: {self.why}"

    def told_of(self, cluster: str) -> str:
        return f"{self.policy}, overrideRules[{self.rule}], cluster {cluster}: {self.why}"


class _Refused(msgspec.Struct, frozen=True):
    refusal: Refusal
    clusters: tuple[str, ...]


class HeldCopies(msgspec.Struct, frozen=True):
    """`unreadable` if nobody knows which clusters are held: then each of them is."""

    refused: tuple[_Refused, ...] = ()
    unreadable: str = ""

    def __bool__(self) -> bool:
        return bool(self.refused or self.unreadable)

    def why(self, cluster: str) -> str:
        """Why the copy in this cluster is held; empty if it is not."""
        refusal = self.refusal(cluster)
        return refusal.told_of(cluster) if isinstance(refusal, Refusal) else refusal

    def refusal(self, cluster: str) -> Refusal | str:
        """The same without the cluster's name."""
        if self.unreadable:
            return self.unreadable
        return next((each.refusal for each in self.refused if cluster in each.clusters), "")

    @property
    def message(self) -> str:
        """All of it in one text, of bounded length."""
        return self.unreadable or "; ".join(
            each.refusal.told_of(_named(each.clusters)) for each in self.refused[:_MOST_TEXTS]
        )


NONE: Final = HeldCopies()


def held_copies(annotations: Mapping[str, str]) -> HeldCopies:
    text = annotations.get(keys.HELD_COPIES)
    if text is None:
        return NONE
    try:
        return HeldCopies(msgspec.json.decode(text, type=tuple[_Refused, ...]))
    except (msgspec.MsgspecError, RecursionError):
        return HeldCopies(unreadable=f"the annotation {keys.HELD_COPIES} cannot be read")


def with_held_copies(annotations: Mapping[str, str], refusals: Mapping[str, Refusal]) -> dict[str, str]:
    """The annotations with exactly these clusters held; the same text for the same refusals."""
    rest = without_annotations(annotations, keys.HELD_COPIES)
    if not refusals:
        return rest
    return {**rest, keys.HELD_COPIES: msgspec.json.encode(tuple(_grouped(refusals))).decode()}


def _grouped(refusals: Mapping[str, Refusal]) -> Iterator[_Refused]:
    """Those that differ too much to be told one by one share the first one's text."""
    shortened = {cluster: _shortened(refusal) for cluster, refusal in refusals.items()}
    texts = sorted(set(shortened.values()))
    told = {text: text for text in texts} | dict.fromkeys(texts[_MOST_TEXTS:], texts[-1])
    ordered = sorted((told[refusal], cluster) for cluster, refusal in shortened.items())
    for refusal, group in groupby(ordered, key=lambda each: each[0]):
        yield _Refused(refusal, tuple(cluster for _, cluster in group))


def _shortened(refusal: Refusal) -> Refusal:
    return msgspec.structs.replace(refusal, why=refusal.why[:_LONGEST_TEXT])


def _named(clusters: tuple[str, ...]) -> str:
    more = len(clusters) - _MOST_TEXTS
    return ", ".join(clusters[:_MOST_TEXTS]) + (f" and {more} more" if more > 0 else "")
