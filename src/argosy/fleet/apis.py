"""What a member serves: a kind that one look did not find is not gone yet.

An API server that has just started leaves out groups for a moment, and behind one address there may be several. What is known
to be served decides where copies may be, so a kind goes from what is shown only after it has been missing for a threshold, as
with health. What is new is shown at once.
"""

from collections.abc import Iterable, Mapping

from argosy.api.types import APIResource

__all__ = ["lasting", "ordered"]


def ordered(apis: Iterable[APIResource]) -> tuple[APIResource, ...]:
    """As a FederatedCluster's status lists them: sorted by kind, and further so that the order never changes."""
    return tuple(sorted(apis, key=lambda api: (api.kind, api.group, api.version, api.plural_name)))


def lasting(
    shown: tuple[APIResource, ...],
    found: tuple[APIResource, ...],
    missing: Mapping[APIResource, float],
    now: float,
    threshold: float,
) -> tuple[tuple[APIResource, ...], dict[APIResource, float]]:
    """What to show, and since when each of it that was not found is `missing`; empty after a restart."""
    if shown == found:
        return found, {}
    since = {api: missing.get(api, now) for api in set(shown) - set(found)}
    kept = {api: first for api, first in since.items() if now - first < threshold}
    return ordered((*found, *kept)), kept
