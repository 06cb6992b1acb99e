"""Adoption: what becomes of a member's object that the federation did not make, and what is left behind on deletion.

The annotations controllers own win over the user's.
"""

from collections.abc import Mapping

import msgspec

from argosy.api import keys
from argosy.plan import expressions

__all__ = ["AdoptionError", "adopts", "is_derived_service", "may_adopt", "orphans"]


class AdoptionError(ValueError):
    """The clusters-to-adopt annotation cannot be read."""


class _ClustersToAdopt(msgspec.Struct, frozen=True):
    clusters: tuple[str, ...] | None = ()
    regexp: str | None = ""


def _stated(annotations: Mapping[str, str], internal: str, own: str) -> str | None:
    return annotations.get(internal, annotations.get(own))


def adopts(annotations: Mapping[str, str]) -> bool:
    """Whether existing objects are taken over at all."""
    return _stated(annotations, keys.INTERNAL_CONFLICT_RESOLUTION, keys.CONFLICT_RESOLUTION) == keys.ADOPT


def may_adopt(annotations: Mapping[str, str], cluster: str) -> bool:
    """Whether existing objects are taken over in this cluster: it is listed, or the expression is found in its name."""
    text = _stated(annotations, keys.INTERNAL_CLUSTERS_TO_ADOPT, keys.CLUSTERS_TO_ADOPT)
    if not text:
        return False
    try:
        wanted = msgspec.json.decode(text, type=_ClustersToAdopt)
        if cluster in (wanted.clusters or ()):
            return True
        return bool(wanted.regexp and expressions.parse(wanted.regexp).search(cluster))
    except (msgspec.MsgspecError, expressions.ExpressionError, RecursionError) as error:
        raise AdoptionError(f"{keys.CLUSTERS_TO_ADOPT}: {error}") from None


def orphans(annotations: Mapping[str, str], member_annotations: Mapping[str, str]) -> bool:
    """Whether a member's copy stays, without the managed label, when the federated object is deleted."""
    match _stated(annotations, keys.INTERNAL_ORPHAN, keys.ORPHAN):
        case keys.ORPHAN_ALL:
            return True
        case keys.ORPHAN_ADOPTED:
            return member_annotations.get(keys.ADOPTED) == "true"
        case _:
            return False


def is_derived_service(annotations: Mapping[str, str] | None) -> bool:
    """A derived service has the name of the service it stands for, and is another object all the same."""
    return keys.DERIVED_SERVICE in (annotations or {})
