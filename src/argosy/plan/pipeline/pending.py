"""The pending list: which controllers must still act on a federated object before it is propagated to members.

Stored as JSON: a list of steps, each a list of controllers; `[]` once all are done. Other controllers take part by being
listed in a type config and following the same rules.
"""

from collections.abc import Collection, Sequence

import msgspec

__all__ = ["Steps", "Unreadable", "after", "dump", "finished", "may_act", "parse", "without"]

Steps = tuple[tuple[str, ...], ...]


class Unreadable(ValueError):
    """The annotation is missing or is not a list of lists of names."""


def parse(text: str | None) -> Steps:
    if text is None:
        raise Unreadable("the pending-controllers annotation is missing")
    try:
        # Go writes an empty list as null, and reads it as one.
        steps = msgspec.json.decode(text, type=tuple[tuple[str, ...] | None, ...] | None) or ()
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Unreadable(f"the pending-controllers annotation is unreadable: {error}") from None
    return _tidy([step or () for step in steps])


def dump(steps: Sequence[Sequence[str]]) -> str:
    return msgspec.json.encode(_tidy(steps)).decode()


def finished(text: str | None) -> bool:
    """Whether the object may be propagated to members; never with an unreadable list."""
    try:
        return not parse(text)
    except Unreadable:
        return False


def may_act(pending: Steps, controller: str) -> bool:
    """With an empty list every controller may act: a policy or cluster may change a finished object."""
    return not pending or controller in pending[0]


def after(pending: Steps, controller: str, downstream: Steps, changed: bool) -> Steps:
    """The list once a controller is done. If it changed the object, the later steps are pending again."""
    first = tuple(name for name in pending[0] if name != controller) if pending else ()
    return _tidy((first, *(downstream if changed else pending[1:])))


def without(pending: Steps, controllers: Collection[str]) -> Steps:
    """The list without these controllers."""
    return _tidy([[name for name in step if name not in controllers] for step in pending])


def _tidy(steps: Sequence[Sequence[str]]) -> Steps:
    return tuple(tuple(step) for step in steps if step)
