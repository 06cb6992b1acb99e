"""State: a federated object during a pass. Each step returns the next state and changes none."""

import datetime
from collections.abc import Mapping

import msgspec

from argosy.api.conditions import EventReason
from argosy.plan.fields import Json
from argosy.plan.pipeline.held import Held, HeldReason
from argosy.plan.pipeline.pending import Steps
from argosy.plan.scheduling.schedule import Decision
from argosy.plan.scheduling.triggers import Difference

__all__ = ["Note", "State"]


class Note(msgspec.Struct, frozen=True):
    """An event to record on the federated object and its source."""

    type: str
    reason: str
    message: str


class State(msgspec.Struct, frozen=True, eq=False):
    #: The object as stored; None if it is not.
    before: Json | None
    #: The object as its source makes it. Steps change its spec and its annotations.
    base: Json
    spec: Json
    annotations: Mapping[str, str]
    #: Why its placement was held, as of the last pass.
    held_before: Held | None = None
    #: The controllers that must still act.
    pending: Steps = ()

    held: Held | None = None
    #: Whether the pass ends with this step for now.
    stopped: bool = False
    notes: tuple[Note, ...] = ()
    #: What scheduling decided, if it ran.
    decision: Decision | None = None
    #: What changed since the last scheduling, if there was a reason for another.
    changed: Difference | None = None
    #: The settings that prevent scheduling although something changed.
    deferred: str = ""
    #: When the pass is to be run again at the latest.
    until: datetime.datetime | None = None

    def with_spec(self, spec: Json) -> "State":
        return msgspec.structs.replace(self, spec=spec)

    def with_annotations(self, annotations: Mapping[str, str]) -> "State":
        """With exactly these annotations."""
        return msgspec.structs.replace(self, annotations=annotations)

    def noting(self, type: str, reason: EventReason, message: str) -> "State":
        return msgspec.structs.replace(self, notes=(*self.notes, Note(type, reason, message)))

    def holding(self, reason: HeldReason, message: str, event: EventReason) -> "State":
        """Holds the placement, with the reason. The event is recorded once: a pass with the same result adds none."""
        held = Held(reason, message)
        state = msgspec.structs.replace(self, held=held)
        return state if held == self.held_before else state.noting("Warning", event, message)

    def waiting(self, reason: HeldReason, message: str, until: datetime.datetime) -> "State":
        """Stops the pass until then, or until something changes. That is nothing to warn of."""
        return msgspec.structs.replace(self, held=Held(reason, message), stopped=True, until=until)

    def stopping(self, reason: HeldReason, message: str, event: EventReason) -> "State":
        """Holds the placement and stops the pass: later steps cannot go on either."""
        return msgspec.structs.replace(self.holding(reason, message, event), stopped=True)
