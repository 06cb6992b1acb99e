"""What others changed in an object's copies: `argosy status --drift`. Read from the status of its federated object."""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from argosy.api.federated import DriftedField
from argosy.cli.output.diff import text
from argosy.plan.changes import is_secret
from argosy.plan.copies.drift import left_in, told
from argosy.plan.status.wanted import Known

__all__ = ["Drifted", "drifted", "field", "left", "value"]


class Drifted(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One field of one copy. A value that is not there is left out, and so are both of a Secret."""

    cluster: str
    #: Empty: the copy was deleted. `*`: more fields than are listed.
    path: str
    since: str
    #: `left` or `repaired`.
    state: str
    theirs: Any | UnsetType = UNSET
    ours: Any | UnsetType = UNSET
    secret: bool = False


def drifted(known: Known) -> tuple[Drifted, ...]:
    """All that is on record, cluster by cluster: first what the copies still have, then what was repaired."""
    if known.federated is None:
        return ()
    secret = is_secret(known.federated.spec.template)
    entries = known.federated.status.clusters
    return tuple(_drifted(entry.cluster, each, secret) for entry in entries for each in entry.drift)


def _drifted(cluster: str, field: DriftedField, secret: bool) -> Drifted:
    state = "left" if field.left else "repaired"
    return Drifted(cluster, field.path, field.since, state, field.theirs, field.ours, secret)


def left(known: Known) -> list[str]:
    """What copies still have that is not ours, in short sentences."""
    entries = known.federated.status.clusters if known.federated is not None else ()
    return [f"{entry.cluster}: {told(each)}" for entry in entries for each in left_in(entry)]


def field(each: Drifted) -> str:
    return {"": "(the whole object)", "*": "(more fields)"}.get(each.path, each.path)


def value(each: Drifted, found: Any) -> str:
    """A value in the table."""
    if not each.path:
        return "deleted" if found is each.theirs else "-"
    return text(found, secret=each.secret)
