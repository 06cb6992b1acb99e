"""Held removals: the record of copies that stay although a pass would take them away, kept with the federated object."""

from collections.abc import Mapping
from typing import Final

import msgspec

from argosy.api import keys
from argosy.plan.brake.cause import text_of
from argosy.plan.metadata import without_annotations

__all__ = ["CONDITION", "HeldRemoval", "held_removal_of", "with_held_removal"]

#: Condition on the federated object, True while copies are held and absent otherwise.
CONDITION: Final = "RemovalHeld"
_UNREADABLE: Final = "Unknown"


class HeldRemoval(msgspec.Struct, frozen=True):
    cause: str
    clusters: tuple[str, ...] = ()
    since: str = ""

    @property
    def message(self) -> str:
        where = f" in {', '.join(self.clusters)}" if self.clusters else ""
        return (
            f"held since {self.since}: its copies{where} would be removed, with too many others at once ({text_of(self.cause)})."
            f" They stay as they are. Undo what caused it, or `argosy confirm {self.cause}`"
        )


def held_removal_of(annotations: Mapping[str, str]) -> HeldRemoval | None:
    text = annotations.get(keys.HELD_REMOVAL)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=HeldRemoval)
    except msgspec.MsgspecError:  # held all the same
        return HeldRemoval(_UNREADABLE)


def with_held_removal(annotations: Mapping[str, str], held: HeldRemoval | None) -> dict[str, str]:
    rest = without_annotations(annotations, keys.HELD_REMOVAL)
    return rest if held is None else {**rest, keys.HELD_REMOVAL: msgspec.json.encode(held).decode()}
