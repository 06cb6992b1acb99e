"""The image overrider: changes parts of image references, in containers or at one path.

What comes out must again be an image reference, or nothing at all.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from argosy.api.overriders import ADD_IF_ABSENT, DELETE, OVERWRITE, ImageOperation, ImageOverrider
from argosy.plan.copies.patches import OverrideError
from argosy.plan.copies.placement import Patches
from argosy.plan.fields import Json
from argosy.plan.overriders.containers import containers
from argosy.plan.overriders.image_reference import COMPONENTS, ImageReference, ImageReferenceError, parse

__all__ = ["image"]


def image(items: Iterable[ImageOverrider], obj: Json) -> Patches:
    """One patch for each image, by path. Raises OverrideError."""
    images: dict[str, str] = {}
    for item in items:
        for path, found in _targets(item, obj):
            try:
                images[path] = _changed(images.get(path, found), item.operations)
            except ImageReferenceError as error:
                raise OverrideError(f"the image at {path}: {error}") from None
    return [{"op": "replace", "path": path, "value": images[path]} for path in sorted(images)]


def _targets(item: ImageOverrider, obj: Json) -> Iterator[tuple[str, str]]:
    """Path and present value of each image that is to change."""
    if item.image_path:
        yield item.image_path, _at(obj, item.image_path)
        return
    for container in containers(obj):
        if not item.container_names or container.name in item.container_names:
            found = container.content.get("image")
            yield f"{container.pointer}/image", found if isinstance(found, str) else ""


def _at(obj: Json, path: str) -> str:
    if not path.startswith("/"):
        raise OverrideError(f"imagePath {path!r} does not start with /")
    node: Any = obj
    for part in path[1:].split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict):
            node = node.get(key)
        elif isinstance(node, list) and key.isascii() and key.isdigit() and int(key[:9]) < len(node):
            node = node[int(key[:9])]
        else:
            raise OverrideError(f"there is no {path}")
    if not isinstance(node, str):
        raise OverrideError(f"{path} is not a text")
    return node


def _changed(text: str, operations: Iterable[ImageOperation]) -> str:
    reference = parse(text)
    for operation in operations:
        reference = _operated(reference, operation)
    changed = str(reference)
    if changed:
        parse(changed)
    return changed


def _operated(reference: ImageReference, operation: ImageOperation) -> ImageReference:
    part = COMPONENTS.get(operation.image_component)
    if part is None:
        raise OverrideError(f"unknown imageComponent {operation.image_component!r}")
    match operation.operator or OVERWRITE:
        case "addIfAbsent":
            if not operation.value:
                raise OverrideError(f"{ADD_IF_ABSENT} of the {part} needs a value")
            if getattr(reference, part):
                raise ImageReferenceError(f"{ADD_IF_ABSENT} of the {part}, but it has one")
            return reference.having(part, operation.value)
        case "overwrite":
            return reference.having(part, operation.value)
        case "delete":
            return reference.having(part, "")
        case other:
            raise OverrideError(f"unknown operator {other!r}: {ADD_IF_ABSENT}, {OVERWRITE} or {DELETE}")
