"""Overriders: the changes a rule of an override policy may state, one type an overrider. An empty operator means overwrite."""

from typing import Any, Final

import msgspec

__all__ = [
    "ADD_IF_ABSENT",
    "APPEND",
    "DELETE",
    "OVERWRITE",
    "EntrypointOverrider",
    "EnvOverrider",
    "ImageOperation",
    "ImageOverrider",
    "JsonPatchOverrider",
    "StringMapOverrider",
]

ADD_IF_ABSENT: Final = "addIfAbsent"
APPEND: Final = "append"
OVERWRITE: Final = "overwrite"
DELETE: Final = "delete"


class ImageOperation(msgspec.Struct, frozen=True, rename="camel"):
    #: Registry, Repository, Tag or Digest.
    image_component: str
    operator: str = OVERWRITE
    value: str = ""


class ImageOverrider(msgspec.Struct, frozen=True, rename="camel"):
    """For one image at `image_path`, else for the containers named; for all containers if none is named."""

    operations: tuple[ImageOperation, ...]
    container_names: tuple[str, ...] = ()
    image_path: str = ""


class EntrypointOverrider(msgspec.Struct, frozen=True, rename="camel"):
    """Of a container's command or args."""

    container_name: str
    operator: str = OVERWRITE
    value: tuple[str, ...] | None = ()


class EnvOverrider(msgspec.Struct, frozen=True, rename="camel"):
    """`value` are variables as in a container; kept as they are, with whatever fields."""

    container_name: str
    operator: str = OVERWRITE
    value: tuple[dict[str, Any], ...] | None = ()


class StringMapOverrider(msgspec.Struct, frozen=True, rename="camel"):
    """Of labels or annotations."""

    operator: str = OVERWRITE
    value: dict[str, str] | None = {}


class JsonPatchOverrider(msgspec.Struct, frozen=True, rename="camel"):
    path: str
    #: An operation of RFC 6902; empty means replace.
    operator: str = ""
    value: Any = None
