"""Projections of member objects: struct types made from the dotted paths a reader needs, so that nothing else is decoded."""

import functools
from collections.abc import Iterable
from typing import Any, cast

import msgspec
from msgspec import UNSET, UnsetType

from argosy.kube.objects import HasMetadata, Metadata

__all__ = ["as_object", "projection"]

_Tree = dict[str, "_Tree"]


def projection(paths: Iterable[str]) -> type[HasMetadata]:
    """A struct type with the usual metadata and, of everything else, only the given paths."""
    return _projection(tuple(sorted(set(paths))))


def as_object(value: HasMetadata) -> dict[str, Any]:
    """The projected part of the object as plain JSON values."""
    return cast(dict[str, Any], msgspec.to_builtins(value))


@functools.lru_cache(maxsize=256)
def _projection(paths: tuple[str, ...]) -> type[HasMetadata]:
    tree: _Tree = {}
    for path in paths:
        branch = tree
        for step in path.split("."):
            branch = branch.setdefault(step, {})
    tree.pop("metadata", None)  # always complete
    made = msgspec.defstruct(
        "MemberObject", [("metadata", Metadata, Metadata()), *_fields(tree)], rename=_names(tree), frozen=True
    )
    return cast(type[HasMetadata], made)


def _struct(tree: _Tree) -> type[msgspec.Struct]:
    return msgspec.defstruct("Part", _fields(tree), rename=_names(tree), frozen=True)


def _fields(tree: _Tree) -> list[tuple[str, Any, Any]]:
    # Field names are generated, because a JSON name need not be a Python one.
    return [
        (f"field{number}", _struct(branch) | UnsetType if branch else Any, UNSET)
        for number, branch in enumerate(tree.values())
    ]


def _names(tree: _Tree) -> dict[str, str]:
    return {f"field{number}": name for number, name in enumerate(tree)}
