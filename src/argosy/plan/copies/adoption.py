"""Adoption: whether an object that a member already has is taken over, and what stays in members after deletion.

Annotations of controllers win over those of the user.
"""

from collections.abc import Mapping

import msgspec

from argosy.api import keys
from argosy.kube.regexp import PatternError
from argosy.plan.copies.name_patterns import name_pattern
from argosy.plan.copies.retain import recorded_keys

__all__ = ["AdoptionError", "adopted_mark", "adopts", "is_derived_service", "may_adopt", "orphans"]


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
        return bool(wanted.regexp and name_pattern(wanted.regexp).matches(cluster))
    except (msgspec.MsgspecError, PatternError, RecursionError) as error:
        raise AdoptionError(f"{keys.CLUSTERS_TO_ADOPT}: {error}") from None


def orphans(annotations: Mapping[str, str], member_annotations: Mapping[str, str], *, rescued: bool = False) -> bool:
    """Whether a member's copy stays, without the managed label, when the federated object is deleted.

    A user's `all` counts for namespaces as well, of which controllers say `adopted`: what is in one is deleted with it.
    """
    if rescued or annotations.get(keys.ORPHAN) == keys.ORPHAN_ALL:
        return True
    match _stated(annotations, keys.INTERNAL_ORPHAN, keys.ORPHAN):
        case keys.ORPHAN_ALL:
            return True
        case keys.ORPHAN_ADOPTED:
            return adopted_mark(member_annotations) == "true"
        case _:
            return False


def adopted_mark(member_annotations: Mapping[str, str]) -> str | None:
    """Whether the object was in the member before us, as its copy says. Only the copy itself may say so.

    Earlier versions and KubeAdmiral also copied the annotation from the template and so overwrote the true value. Such a copy
    counts as adopted: leaving behind an object of ours is better than deleting a user's own.
    """
    if keys.ADOPTED in recorded_keys(member_annotations, keys.PROPAGATED_ANNOTATION_KEYS):
        return "true"
    return member_annotations.get(keys.ADOPTED)


def is_derived_service(annotations: Mapping[str, str] | None) -> bool:
    """A derived service has the name of the service it stands for, but is another object."""
    return keys.DERIVED_SERVICE in (annotations or {})
