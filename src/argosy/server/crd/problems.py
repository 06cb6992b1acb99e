"""Problems with one value of a custom object, before its place in the object is known.

Validators find problems deep inside and return them upwards; each level adds its own step, so a valid object needs no paths.
`fields` turns them into field errors in kube-apiserver's words.
"""

from collections.abc import Callable, Iterable
from typing import Any

from argosy.kube.fieldpath import MAX_PIECE
from argosy.server.fielderrors import FieldError

__all__ = ["NOWHERE", "Problem", "Step", "fields", "joined", "under"]

#: A property or map key, or an index.
Step = str | int

#: The field kube-apiserver names if it lost the path (anyOf and the like; the message has it).
NOWHERE = "<nil>"


class Problem:
    """`make(field, name)` builds the error; `name` is the path as messages quote it, without the root of the check."""

    __slots__ = ("make", "steps")

    def __init__(self, make: Callable[[str, str], FieldError], *steps: Step):
        self.make = make
        #: From the inside outwards.
        self.steps: list[Step] = list(steps)

    @property
    def path(self) -> tuple[Step, ...]:
        return tuple(reversed(self.steps))


def under(step: Step, problems: list[Problem]) -> list[Problem]:
    for problem in problems:
        problem.steps.append(step)
    return problems


def joined(steps: Iterable[Step], root: str = "") -> str:
    text = root
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            name = step if len(step) <= MAX_PIECE else f"{step[:MAX_PIECE]}..."
            text += f".{name}" if text else name
    return text


def fields(problems: Iterable[Problem], root: str = "") -> list[FieldError]:
    """Field errors; `root` is where the checked value lies in the object."""
    return [p.make(joined(p.path, root) or NOWHERE, joined(p.path)) for p in problems]


def invalid(value: Any, text: str) -> Problem:
    """An invalid value; `text` follows the path in the message."""
    return Problem(lambda field, name: FieldError("FieldValueInvalid", field, value, f"{name} in body {text}"))


def composite(text: str) -> Problem:
    """A failed combination of schemas; `text` follows the quoted path."""
    return Problem(lambda _, name: FieldError("FieldValueInvalid", NOWHERE, "", f'"{name}" {text}'))


def mistyped(expected: str, found: str) -> Problem:
    return Problem(
        lambda field, name: FieldError(
            "FieldValueTypeInvalid", field, found, f'{name} in body must be of type {expected}: "{found}"'
        )
    )
