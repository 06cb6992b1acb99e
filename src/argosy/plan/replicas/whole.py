"""Whole: objects that every cluster has as a whole, although their policy divides.

Some cannot be divided. Others could, but were placed whole before: dividing them would stop pods in every cluster that have an
identity and a volume there, or do work twice. That is never done because a type config or a policy came to say otherwise: they
are divided when somebody asks for it. Who changes the mode from Duplicate to Divide, in the policy or by an annotation of the
object, does; a label or a selector that gives the object another policy does not. So the mode is kept with the record of the last
scheduling.
"""

from collections.abc import Mapping
from typing import Final

from argosy.api import keys
from argosy.api.policies import PropagationPolicy
from argosy.plan.fields import Json
from argosy.plan.kinds.registry import kind_of

__all__ = ["ASK", "BY_OBJECT", "STARTED", "mode_of", "mode_record", "why_kept_whole", "why_whole"]

#: The mode of an object whose own annotation says so.
BY_OBJECT: Final = f"{keys.DIVIDE} by annotation"
ASK: Final = (
    "it was placed so before, and its pods have volumes in every cluster; the annotation"
    f" {keys.SCHEDULING_MODE}={keys.DIVIDE} divides it"
)
STARTED: Final = "it was given out so before, and only new ones are divided"


def mode_of(annotations: Mapping[str, str], policy: PropagationPolicy) -> tuple[str, bool]:
    """The mode that is asked for, and whether by the object itself."""
    stated = annotations.get(keys.SCHEDULING_MODE)
    if (
        stated in (keys.DUPLICATE, keys.DIVIDE)
        and policy.metadata.annotations.get(keys.REFUSE_OBJECT_OVERRIDES) != "true"
    ):
        return str(stated), True
    return policy.spec.scheduling_mode, False


def mode_record(template: Json, annotations: Mapping[str, str], policy: PropagationPolicy | None) -> str:
    """The mode to remember; nothing for kinds that may be divided at any time."""
    if policy is None or not kind_of(template).stays_whole:
        return ""
    mode, by_object = mode_of(annotations, policy)
    return BY_OBJECT if by_object and mode == keys.DIVIDE else mode


def why_whole(
    template: Json, then: str, now: str, current: Mapping[str, int | None], *, other_policy: bool = False
) -> str:
    """Why an object is not divided although that is asked for, empty if it is. `then` and `now` are the modes of the last
    scheduling and of this one, `current` where it is placed now, and the replicas each cluster was given as its share.

    Another policy than then says nothing of how the object was placed before: nobody changed the mode."""
    kind = kind_of(template)
    if why := kind.indivisible(template):
        return why
    if not kind.stays_whole or not current or any(number is not None for number in current.values()):
        return ""
    if kind.work:
        return STARTED
    by_object = now == BY_OBJECT and then in (keys.DUPLICATE, keys.DIVIDE)
    asked = by_object or (then == keys.DUPLICATE and not other_policy)
    return "" if asked else ASK


def why_kept_whole(source: Json, *, placed: bool, divided: bool) -> str:
    """The same once it was decided: whether scheduling placed it, and gave clusters shares of it."""
    kind = kind_of(source)
    if why := kind.indivisible(source):
        return why
    if divided or not placed or not kind.stays_whole:
        return ""
    return STARTED if kind.work else ASK
