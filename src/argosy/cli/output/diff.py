"""How an object differs from cluster to cluster: `argosy status --diff`. Put together from what `report` gathers."""

from typing import Any

import msgspec
from msgspec import UNSET

from argosy.cli.output.failures import Failure
from argosy.plan.copies.held_copies import held_copies
from argosy.plan.copies.patches import OverrideError
from argosy.plan.explain.differences import Difference, differences
from argosy.plan.status.wanted import Known

__all__ = ["Differing", "differing", "text"]

_LONGEST_VALUE = 60


class Differing(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One cluster: the fields that are to differ from the template there, or why that cannot be told."""

    cluster: str
    fields: tuple[Difference, ...] = ()
    #: Its copy stays as it is, and this is why.
    held: str = ""


def differing(known: Known, cluster: str | None = None) -> tuple[Differing, ...]:
    """For each cluster the object is placed in, or one of them. Raises Failure if it is not placed there."""
    placed = known.federated.placed if known.federated is not None else ()
    if cluster is not None and cluster not in placed:
        where = f"it is placed in {', '.join(placed)}" if placed else "it is placed nowhere"
        raise Failure(f"it is not placed in {cluster}: {where}", code=1)
    return tuple(_differing(known, name) for name in placed if cluster in (None, name))


def _differing(known: Known, name: str) -> Differing:
    federated, config = known.federated, known.type_config
    assert federated is not None
    if config is None:
        return Differing(name)
    if why := held_copies(federated.metadata.annotations).why(name):
        return Differing(name, held=why)
    try:
        return Differing(name, tuple(differences(federated, config, name)))
    except OverrideError as error:
        return Differing(name, held=str(error))


def text(value: Any, *, secret: bool) -> str:
    """A value in a table; `-o json` has the whole of it."""
    if secret:
        return "(hidden)"
    if value is UNSET:
        return "-"
    told = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return told if len(told) <= _LONGEST_VALUE else told[: _LONGEST_VALUE - 1] + "…"
