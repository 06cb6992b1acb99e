"""Kind: what is special about one kind of object when it is federated, and what holds for a kind nobody described.

A kind's file makes one `Kind` value out of small functions; the engines (`render`, `retain`, `aggregate`) only call these.
"""

from collections.abc import Callable

import msgspec

from argosy.plan.fields import Json
from argosy.plan.kinds.generic import merge
from argosy.plan.kinds.observation import Aggregation

__all__ = ["Kind"]


def _as_it_is(desired: Json) -> Json:
    return desired


def _nothing_kept(desired: Json, observed: Json) -> Json:
    return desired


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """Functions never change what they are given."""

    #: Where the pod spec is, for kinds that run pods.
    pod_spec: tuple[str, ...] = ()
    #: The template without fields that only one cluster's copy can have.
    strip: Callable[[Json], Json] = _as_it_is
    #: (desired, observed): the desired object with what a member's copy keeps. Metadata is dealt with elsewhere.
    retain: Callable[[Json, Json], Json] = _nothing_kept
    #: Whether feedback annotations go to the source at all.
    feedback: bool = True
    #: Feedback annotations go to the source with its status: annotations of this kind count as a new generation, except
    #: those written through the status subresource.
    feedback_with_status: bool = False
    #: One status of many.
    aggregate: Callable[[Aggregation], Json | None] = merge
