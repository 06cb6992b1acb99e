"""The pending list: which controllers a federated object still has to pass before it is carried to members.

Stored as JSON, a list of steps each a list of controllers; `[]` when all are done. Other programs take part by listing
their name in a type config and following the same rules.
"""

from collections.abc import Collection, Sequence

import msgspec

__all__ = ["Steps", "Unreadable", "after", "dump", "finished", "may_act", "parse", "without"]

Steps = tuple[tuple[str, ...], ...]


class Unreadable(ValueError):
    """The annotation is missing or is no list of lists of names."""


def parse(text: str | None) -> Steps:
    if text is None:
        raise Unreadable("the pending-controllers annotation is missing")
    try:
        steps = msgspec.json.decode(text, type=tuple[tuple[str, ...], ...])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Unreadable(f"the pending-controllers annotation is unreadable: {error}") from None
    return _tidy(steps)


def dump(steps: Sequence[Sequence[str]]) -> str:
    return msgspec.json.encode(_tidy(steps)).decode()


def finished(text: str | None) -> bool:
    """Whether the object may be carried to members; an unreadable list never may."""
    try:
        return not parse(text)
    except Unreadable:
        return False


def may_act(pending: Steps, controller: str) -> bool:
    """An empty list lets everybody act: a policy or cluster may change an object that was finished."""
    return not pending or controller in pending[0]


def after(pending: Steps, controller: str, downstream: Steps, changed: bool) -> Steps:
    """The list once a controller is done. One that changed the object sends it through the later steps again."""
    first = tuple(name for name in pending[0] if name != controller) if pending else ()
    return _tidy((first, *(downstream if changed else pending[1:])))


def without(pending: Steps, controllers: Collection[str]) -> Steps:
    """The list without these, wherever they stand."""
    return _tidy([[name for name in step if name not in controllers] for step in pending])


def _tidy(steps: Sequence[Sequence[str]]) -> Steps:
    return tuple(tuple(step) for step in steps if step)
