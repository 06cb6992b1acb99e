"""Pruning: fields that the schema does not have are removed, and reported so that strict requests can refuse them."""

from typing import Any

from argosy.kube.fieldpath import Path, written
from argosy.server.crd.structure import META_FIELDS, Structure
from argosy.server.metadata import METADATA_FIELDS

__all__ = ["prune", "prune_nulls"]

#: Unknown fields that are reported.
MAX_UNKNOWN = 1000
_OWNER = frozenset({"apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"})


def prune(value: Any, structure: Structure) -> list[str]:
    """Remove unknown fields in place; returns their paths (`spec.list[0].q`), sorted, up to MAX_UNKNOWN of them."""
    unknown: list[str] = []
    _prune(value, structure, None, unknown, keep=structure.preserve)
    unknown.sort()
    return unknown


def _tell(unknown: list[str], path: Path, name: str) -> None:
    if len(unknown) < MAX_UNKNOWN:
        unknown.append(written((path, f".{name}")))


def _prune(value: Any, structure: Structure | None, path: Path, unknown: list[str], *, keep: bool) -> None:
    """`keep` applies to this level only, but reaches through a preserving list to its items, as in kube-apiserver."""
    if type(value) is dict:
        if structure is None:
            for name in value:
                _tell(unknown, path, name)
            value.clear()
            return
        surplus: list[str] = []
        for name, item in value.items():
            if structure.embedded and name in META_FIELDS:
                if name == "metadata":
                    _prune_metadata(item, (path, ".metadata"), unknown)
                continue
            child = structure.properties.get(name) or structure.additional
            if child is None and not structure.has_additional:
                if not keep:
                    surplus.append(name)
            elif type(item) is dict or type(item) is list:
                _prune(item, child, (path, f".{name}"), unknown, keep=child is not None and child.preserve)
        for name in surplus:
            del value[name]
            _tell(unknown, path, name)
    elif type(value) is list:
        below = structure.items if structure is not None else None
        if keep and below is None:
            return
        keep = keep or (below is not None and below.preserve)
        for index, item in enumerate(value):
            if type(item) is dict or type(item) is list:
                _prune(item, below, (path, f"[{index}]"), unknown, keep=keep)


def _prune_metadata(metadata: Any, path: Path, unknown: list[str]) -> None:
    """A resource's metadata has no schema except ObjectMeta's own fields."""
    if type(metadata) is not dict:
        return
    for name in [name for name in metadata if name not in METADATA_FIELDS]:
        del metadata[name]
        _tell(unknown, path, name)
    owners = metadata.get("ownerReferences")
    for index, owner in enumerate(owners if type(owners) is list else ()):
        for name in [name for name in owner if name not in _OWNER] if type(owner) is dict else ():
            del owner[name]
            _tell(unknown, (path, f".ownerReferences[{index}]"), name)


def prune_nulls(value: Any, structure: Structure | None) -> None:
    """Remove nulls where the schema allows none and has no default to put there."""
    if structure is None:
        return
    if type(value) is dict:
        surplus: list[str] = []
        for name, item in value.items():
            if item is None:
                surplus.append(name)
            elif type(item) is dict or type(item) is list:
                prune_nulls(item, structure.child(name))
        defaulted = {name for name, _ in structure.defaulted} if surplus else ()
        for name in surplus:
            child = structure.child(name)
            if child is not None and not child.nullable and name not in defaulted:
                del value[name]
    elif type(value) is list:
        for item in value:
            if type(item) is dict or type(item) is list:
                prune_nulls(item, structure.items)
