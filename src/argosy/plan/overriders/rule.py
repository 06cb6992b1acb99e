"""Rule: the overriders of one rule in the API's order, each on the result of those before."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from argosy.api.overriders import (
    EntrypointOverrider,
    EnvOverrider,
    ImageOverrider,
    JsonPatchOverrider,
    StringMapOverrider,
)
from argosy.plan.copies.patches import OverrideError, apply_patches
from argosy.plan.copies.placement import Patches
from argosy.plan.fields import Json
from argosy.plan.overriders.entrypoint import args, command
from argosy.plan.overriders.envs import envs
from argosy.plan.overriders.image import image
from argosy.plan.overriders.json_patch import json_patch
from argosy.plan.overriders.string_maps import annotations, labels

__all__ = ["OVERRIDERS", "rule_patches"]


class _Overrider(NamedTuple):
    item: type
    patches: Callable[[Any, Json], Patches]


#: In the order they apply.
OVERRIDERS: Final[Mapping[str, _Overrider]] = {
    "image": _Overrider(ImageOverrider, image),
    "command": _Overrider(EntrypointOverrider, command),
    "args": _Overrider(EntrypointOverrider, args),
    "envs": _Overrider(EnvOverrider, envs),
    "annotations": _Overrider(StringMapOverrider, annotations),
    "labels": _Overrider(StringMapOverrider, labels),
    "jsonpatch": _Overrider(JsonPatchOverrider, json_patch),
}


def rule_patches(overriders: Mapping[str, Any] | None, obj: Json) -> tuple[Patches, Json]:
    """The patches, and the object with them. Raises OverrideError."""
    stated = {name: items for name, items in (overriders or {}).items() if items}
    for name in stated:
        if name not in OVERRIDERS:
            raise OverrideError(f"unknown overrider {name!r}")
    made: Patches = []
    for name, overrider in OVERRIDERS.items():
        if name not in stated:
            continue
        try:
            items = msgspec.convert(stated[name], list[overrider.item])  # type: ignore[name-defined]
            patches = overrider.patches(items, obj)
            obj = apply_patches(obj, [patch for patch in patches if not _of_finalizers(patch)])
        except msgspec.ValidationError as error:
            raise OverrideError(f"{name}: {error}") from None
        except OverrideError as error:
            raise OverrideError(f"{name}: {error}") from None
        made += patches
    return made, obj


def _of_finalizers(patch: Json) -> bool:
    """Finalizers belong to the member: patches on them apply only when the member's object is rendered."""
    path: str = patch["path"]
    return path == "/metadata/finalizers" or path.startswith("/metadata/finalizers/")
