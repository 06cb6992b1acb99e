"""Selectors: which objects a propagation policy is for, besides those that name it by label. Argosy's own, and optional.

A version never matters: an object is the same in every version its API serves. `plan.claims` says which policy gets an object.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from argosy.api.policies import PropagationPolicySpec

__all__ = ["ANY", "ResourceSelector", "named_kinds", "selects_any_kind"]

ANY: Final = "*"


class ResourceSelector(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """All that is stated must match; one that states nothing matches every object that may be selected."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    #: As in the API: see `kube.selectors`.
    label_selector: dict[str, Any] | None = None
    #: Of cluster-scoped policies.
    namespace_selector: dict[str, Any] | None = None

    @property
    def group(self) -> str:
        """The API group; `*` for any."""
        if self.api_version in ("", ANY):
            return ANY
        return self.api_version.rpartition("/")[0]

    @property
    def any_kind(self) -> bool:
        return self.kind in ("", ANY)


def named_kinds(spec: "PropagationPolicySpec") -> frozenset[tuple[str, str]]:
    """The (group, kind)s that a policy names; not those it selects by a wildcard."""
    return frozenset((each.group, each.kind) for each in _naming(spec))


def selects_any_kind(spec: "PropagationPolicySpec") -> bool:
    """Whether a policy selects objects of kinds it does not name in full."""
    return len(list(_naming(spec))) < len(spec.resource_selectors)


def _naming(spec: "PropagationPolicySpec") -> Iterator[ResourceSelector]:
    return (each for each in spec.resource_selectors if not each.any_kind and each.group != ANY)
