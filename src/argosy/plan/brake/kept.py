"""Kept: the object to store while what a pass would take away waits or is held.

Everything else goes on: a changed template reaches the copies that stay. What scheduling decided is not stored, not even in part:
if the mistake is undone, the next pass finds the object as it was, and no member is written.
"""

from typing import Final

from argosy.api import keys
from argosy.api.conditions import EventReason
from argosy.plan.brake.cause import Cause, text_of
from argosy.plan.brake.held_removal import HeldRemoval, held_removal_of, with_held_removal
from argosy.plan.fields import Json, equal
from argosy.plan.metadata import annotations_of, copy_keys, without_managed_fields
from argosy.plan.pipeline.state import Note

__all__ = ["kept", "told"]

_SPEC: Final = ("placements", "overrides", "follows")
#: What belongs to the decision that is not stored.
_ANNOTATIONS: Final = (
    keys.SCHEDULING_TRIGGERS,
    keys.SCHEDULING_DEFERRED_REASONS,
    keys.SCHEDULING,
    keys.DECISION,
    keys.COMPLETED,
    keys.FAILBACK,
    keys.DRIFT_CORRECTION,
    keys.AUTO_MIGRATION_INFO,
    keys.POD_UNSCHEDULABLE_THRESHOLD,
    keys.ENABLE_FOLLOWER_SCHEDULING,
    keys.APPLIED_MIGRATION_CONFIGURATION,
    keys.TO_BE_REMOVED,
    keys.HELD,
    keys.HELD_COPIES,
    keys.OVERRIDES,
    keys.BUDGET,
)


def kept(before: Json, decided: Json, held: HeldRemoval | None) -> Json | None:
    """The object as stored with what else changed; None if that is nothing."""
    spec = {key: value for key, value in decided["spec"].items() if key not in _SPEC}
    spec |= {key: before["spec"][key] for key in _SPEC if key in before["spec"]}
    restored = list(_ANNOTATIONS)
    if equal(before["spec"].get("template"), spec.get("template")):
        # Else the steps of other controllers have yet to look at the new template.
        restored.append(keys.PENDING_CONTROLLERS)
    annotations, _ = copy_keys(annotations_of(before), annotations_of(decided), restored)
    metadata = {**decided["metadata"], "annotations": with_held_removal(annotations, held)}
    result = {**decided, "metadata": metadata, "spec": spec}
    stored = {**before, "metadata": without_managed_fields(before)}
    return None if equal(result, stored) else result


def told(before: Json, held: HeldRemoval | None, begun: Cause | None) -> tuple[Note, ...]:
    """What users are told of it, once. `begun` is the cause of a wait that has just begun."""
    known = held_removal_of(annotations_of(before))
    if held is not None:
        news = known is None or known.cause != held.cause
        return (Note("Warning", EventReason.REMOVAL_HELD, held.message),) if news else ()
    if begun is Cause.POLICY_UNNAMED:
        text = f"{text_of(begun)}: its copies are removed in a minute, unless it is named again"
        return (Note("Warning", EventReason.REMOVAL_HELD, text),)
    return ()
