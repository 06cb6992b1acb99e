"""Containers of an object's pod template, and where they are in it."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from argosy.plan import fields
from argosy.plan.copies.patches import OverrideError
from argosy.plan.fields import Json
from argosy.plan.kinds.registry import kind_of

__all__ = ["Container", "containers", "find"]

#: In the order they are searched.
_LISTS: Final = ("initContainers", "containers")


class Container(NamedTuple):
    name: str
    #: JSON pointer to the container.
    pointer: str
    content: Json

    def listed(self, field: str, items: type) -> list[Any]:
        """The list in a field of the container; empty if there is none. Raises OverrideError: a patch may have put anything
        there."""
        found = self.content.get(field)
        if found is None:
            return []
        if not isinstance(found, list) or not all(isinstance(each, items) for each in found):
            raise OverrideError(f"{self.pointer}/{field} is not a list of the right form")
        return found


def containers(obj: Json) -> Iterator[Container]:
    """Init containers first. Raises OverrideError if the kind runs no pods."""
    path = kind_of(obj).pod_spec
    if not path:
        raise OverrideError(f"a {obj.get('kind')} has no pod template that is known here")
    spec = fields.get(obj, path, None)
    for field in _LISTS:
        listed: Any = spec.get(field) if isinstance(spec, dict) else None
        for index, content in enumerate(listed if isinstance(listed, list) else ()):
            if isinstance(content, dict):
                yield Container(str(content.get("name")), f"/{'/'.join(path)}/{field}/{index}", content)


def find(obj: Json, name: str) -> Container | None:
    """The first container of that name; None if there is none. Raises OverrideError if the kind runs no pods."""
    return next((each for each in containers(obj) if each.name == name), None)
