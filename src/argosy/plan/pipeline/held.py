"""Held: why an object's placement stays although something else was requested.

Kept as an annotation on the federated object, so that it survives a restart and is written only when it changes.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec

from argosy.api import keys
from argosy.plan.metadata import without_annotations

__all__ = ["CONDITION", "Held", "HeldReason", "held_of", "with_held"]

#: Condition on the federated object, False while it is held and absent otherwise.
CONDITION: Final = "Scheduled"


class HeldReason(StrEnum):
    POLICY_MISSING = "PolicyNotFound"
    #: The policy whose selectors claimed it selects it no more.
    NOT_SELECTED = "NoLongerSelected"
    PROFILE_MISSING = "SchedulingProfileNotFound"
    PROFILE_INVALID = "SchedulingProfileInvalid"
    UNSCHEDULABLE = "Unschedulable"
    CANNOT_SCHEDULE = "CannotSchedule"
    WAITING_FOR_KIND = "WaitingForKind"
    OVERRIDE_POLICY_MISSING = "OverridePolicyNotFound"
    #: Of single clusters (`plan.copies.held_copies`), and of objects that an earlier version held as a whole.
    OVERRIDES_INVALID = "OverridesInvalid"
    NOT_SERVED = "StepNotServed"
    NO_PLACING_STEP = "NoPlacingStep"


class Held(msgspec.Struct, frozen=True):
    reason: str
    message: str


def held_of(annotations: Mapping[str, str]) -> Held | None:
    text = annotations.get(keys.HELD)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=Held)
    except msgspec.MsgspecError:
        return Held("Unknown", text)


def with_held(annotations: Mapping[str, str], held: Held | None) -> dict[str, str]:
    rest = without_annotations(annotations, keys.HELD)
    return rest if held is None else {**rest, keys.HELD: msgspec.json.encode(held).decode()}
