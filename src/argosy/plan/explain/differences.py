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
from argosy.plan.changes import Path, changes, is_secret, text
from argosy.plan.copies.patches import apply_patches
from argosy.plan.copies.placement import Patches, in_order
from argosy.plan.overriders import record

__all__ = ["DIVISION", "SCHEDULER", "Difference", "differences"]

SCHEDULER: Final = "the scheduler"
DIVISION: Final = "the division of its workloads"
_OURS: Final = {keys.GLOBAL_SCHEDULER: SCHEDULER, keys.FOLLOWER_CONTROLLER: DIVISION}
#: Where nobody recorded who.
_POLICIES: Final = "override policies"


class Difference(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One field. A value that is not there is left out, and so are both if they are `secret`."""

    path: str
    by: str
    template: Any | UnsetType = UNSET
    value: Any | UnsetType = UNSET
    secret: bool = False


def differences(federated: FederatedObject, config: FederatedTypeConfig, cluster: str) -> list[Difference]:
    """By path. Raises OverrideError where the patches cannot be applied."""
    template = federated.spec.template
    changed: dict[Path, str] = {}
    working = template
    for by, patches in _steps(federated, config, cluster):
        after = apply_patches(working, patches)
        for path, _, _ in changes(working, after):
            changed.pop(path, None)  # the last one comes last
            changed[path] = by
        working = after
    found = [Difference(text(path), _author(path, changed), old, new) for path, old, new in changes(template, working)]
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


def _author(path: Path, changed: dict[Path, str]) -> str:
    """Who changed this last, or something it is part of or consists of."""
    authors = [by for other, by in changed.items() if path[: len(other)] == other or other[: len(path)] == path]
    return authors[-1] if authors else _POLICIES
