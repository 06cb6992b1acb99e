"""Differences: in which fields an object's copy in a cluster differs from its template, and who made it so.

Told is what is wanted in the cluster. What the federation marks copies with, and what members keep of their own, is left out.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from argosy.api import keys
from argosy.api.federated import FederatedObject
from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.plan.copies.patches import apply_patches
from argosy.plan.copies.placement import Patches, in_order
from argosy.plan.fields import equal
from argosy.plan.overriders import record

__all__ = ["DIVISION", "SCHEDULER", "Difference", "differences", "is_secret"]

SCHEDULER: Final = "the scheduler"
DIVISION: Final = "the division of its workloads"
_OURS: Final = {keys.GLOBAL_SCHEDULER: SCHEDULER, keys.FOLLOWER_CONTROLLER: DIVISION}
#: Where nobody recorded who.
_POLICIES: Final = "override policies"

Path = tuple[str, ...]


class Difference(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One field. A value that is not there is left out, and so are both if they are `secret`."""

    path: str
    by: str
    template: Any | UnsetType = UNSET
    value: Any | UnsetType = UNSET
    secret: bool = False


def is_secret(obj: dict[str, Any]) -> bool:
    """Whether an object's values are not to be shown."""
    return obj.get("kind") == "Secret"


def differences(federated: FederatedObject, config: FederatedTypeConfig, cluster: str) -> list[Difference]:
    """By path. Raises OverrideError where the patches cannot be applied."""
    template = federated.spec.template
    changed: dict[Path, str] = {}
    working = template
    for by, patches in _steps(federated, config, cluster):
        after = apply_patches(working, patches)
        for path, _, _ in _differing((), working, after):
            changed.pop(path, None)  # the last one comes last
            changed[path] = by
        working = after
    found = [
        Difference(_text(path), _author(path, changed), old, new)
        for path, old, new in _differing((), template, working)
    ]
    return [_hidden(each) for each in found] if is_secret(template) else found


def _hidden(difference: Difference) -> Difference:
    return msgspec.structs.replace(difference, template=UNSET, value=UNSET, secret=True)


def _steps(federated: FederatedObject, config: FederatedTypeConfig, cluster: str) -> Iterator[tuple[str, Patches]]:
    """The patches in the order they apply, by who made them."""
    for entry in in_order(msgspec.to_builtins(federated.spec.overrides), config.spec.controllers):
        controller, clusters = entry["controller"], entry.get("clusters") or ()
        patches = next((each.get("patches") or [] for each in clusters if each["cluster"] == cluster), [])
        if controller != keys.OVERRIDE_CONTROLLER:
            yield _OURS.get(str(controller), str(controller)), patches
            continue
        at = 0
        for made in record.decode(federated.metadata.annotations, clusters).get(cluster, ()):
            yield str(made), patches[at : at + made.patches]
            at += made.patches
        yield _POLICIES, patches[at:]


def _differing(path: Path, old: Any, new: Any) -> Iterator[tuple[Path, Any, Any]]:
    """The smallest parts that differ. Items of lists go by their names where they have some."""
    if old is UNSET or new is UNSET:
        if old not in (None, UNSET) or new not in (None, UNSET):  # a null is as good as nothing
            yield path, old, new
        return
    if equal(old, new):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from _differing((*path, f".{key}"), old.get(key, UNSET), new.get(key, UNSET))
        return
    named = [_by_name(each) for each in (old, new)]
    if named[0] is not None and named[1] is not None:
        for name in dict.fromkeys([*named[0], *named[1]]):
            yield from _differing((*path, f"[{name}]"), named[0].get(name, UNSET), named[1].get(name, UNSET))
        return
    yield path, old, new


def _by_name(value: Any) -> dict[str, Any] | None:
    """Items by name; None if this is no list of items with different names."""
    if not isinstance(value, list) or not all(isinstance(each, dict) and "name" in each for each in value):
        return None
    named = {str(each["name"]): each for each in value}
    return named if len(named) == len(value) else None


def _author(path: Path, changed: dict[Path, str]) -> str:
    """Who changed this last, or something it is part of or consists of."""
    authors = [by for other, by in changed.items() if path[: len(other)] == other or other[: len(path)] == path]
    return authors[-1] if authors else _POLICIES


def _text(path: Path) -> str:
    return "".join(path).removeprefix(".")
