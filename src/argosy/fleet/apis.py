"""The APIs a member serves: a kind that one discovery did not find is not gone yet.

An API server that has just started leaves out groups for a moment, and one address may lead to several servers. The known APIs
decide where copies may be, so a kind is removed only after it has been missing for a threshold, as with health. New kinds are
added at once.
"""

from collections.abc import Iterable, Mapping

from argosy.api.types import APIResource

__all__ = ["lasting", "ordered"]


def ordered(apis: Iterable[APIResource]) -> tuple[APIResource, ...]:
    """In the order of a FederatedCluster's status: by kind, then by the other fields, so that the order is stable."""
    return tuple(sorted(apis, key=lambda api: (api.kind, api.group, api.version, api.plural_name)))


def lasting(
    shown: tuple[APIResource, ...],
    found: tuple[APIResource, ...],
    missing: Mapping[APIResource, float],
    now: float,
    threshold: float,
) -> tuple[tuple[APIResource, ...], dict[APIResource, float]]:
    """The APIs to publish, and since when each one not found is `missing`; empty after a restart."""
    if shown == found:
        return found, {}
    since = {api: missing.get(api, now) for api in set(shown) - set(found)}
    kept = {api: first for api, first in since.items() if now - first < threshold}
    return ordered((*found, *kept)), kept
