"""State: a federated object on its way through the steps of a pass. Each step returns the next state and changes none."""

from collections.abc import Mapping

import msgspec

from argosy.api.conditions import EventReason
from argosy.plan.fields import Json
from argosy.plan.pipeline.held import Held, HeldReason
from argosy.plan.pipeline.pending import Steps
from argosy.plan.scheduling.schedule import Decision

__all__ = ["Note", "State"]


class Note(msgspec.Struct, frozen=True):
    """An event to record on the federated object and its source."""

    type: str
    reason: str
    message: str


class State(msgspec.Struct, frozen=True, eq=False):
    #: As it is stored; None where it is not.
    before: Json | None
    #: As its source makes it. Steps change its spec and its annotations.
    base: Json
    spec: Json
    annotations: Mapping[str, str]
    #: Why its placement stayed as it was, as the last pass found.
    held_before: Held | None = None
    #: The controllers that have still to act.
    pending: Steps = ()

    held: Held | None = None
    #: Whether the pass ends with this step for now.
    stopped: bool = False
    notes: tuple[Note, ...] = ()
    #: What scheduling decided, where it ran.
    decision: Decision | None = None
    #: The settings that keep it from being scheduled although something changed.
    deferred: str = ""

    def with_spec(self, spec: Json) -> "State":
        return msgspec.structs.replace(self, spec=spec)

    def with_annotations(self, annotations: Mapping[str, str]) -> "State":
        """These annotations, and no others."""
        return msgspec.structs.replace(self, annotations=annotations)

    def noting(self, type: str, reason: EventReason, message: str) -> "State":
        return msgspec.structs.replace(self, notes=(*self.notes, Note(type, reason, message)))

    def holding(self, reason: HeldReason, message: str, event: EventReason) -> "State":
        """Its placement stays as it was, and this is why. Noted once: a pass that finds the same again adds nothing."""
        held = Held(reason, message)
        state = msgspec.structs.replace(self, held=held)
        return state if held == self.held_before else state.noting("Warning", event, message)

    def stopping(self, reason: HeldReason, message: str, event: EventReason) -> "State":
        """The same where later steps cannot go on either."""
        return msgspec.structs.replace(self.holding(reason, message, event), stopped=True)
