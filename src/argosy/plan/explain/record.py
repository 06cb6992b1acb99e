"""The record of a decision, stored with an object: it explains later why the object runs where it runs.

It is stored in the annotation `argosy.io/decision` of the federated object, in the same write as the placement. It is short
(columns over the considered clusters, no names) and complete: the versions of the inputs, the first filter each cluster
failed and why, the scores by plugin, the selected clusters in order, the planner's steps, the placement, and the replicas
kept beyond capacity.

Reading it:

        record = decode(annotations[keys.DECISION])              # raises RecordError if it is not a record
        names = names_then(record, fleet, seen)                  # the clusters it refers to; None if too many left since
        account = account_of(record, names)                      # an Account: the decision with names
        explain.lines(account), explain.why(account, "c7")       # in sentences

`record_of(decision, inputs)` makes the record of a new decision; `account_of` turns it into the same Account, so a what-if
is explained in the same words as a past decision.
"""

from typing import Any, Final

import msgspec
import numpy as np

from argosy.fleet.fingerprint import Fingerprint
from argosy.fleet.snapshot import Column, Fleet, Rows
from argosy.plan.explain.packing import PackedError, Packing, Unpacker
from argosy.plan.scheduling.framework import by_score
from argosy.plan.scheduling.schedule import Decision

__all__ = [
    "Account",
    "Inputs",
    "Record",
    "RecordError",
    "Refusal",
    "account_of",
    "decode",
    "encode",
    "names_then",
    "record_of",
]

_LONGEST_MESSAGE = 512
#: Records of fleets whose names fit this size include the names.
_NAMES_KEPT = 256
_MOST_CLUSTERS = 100_000

# How a cluster's placement is encoded in one column.
_NOT_PLACED, _DUPLICATED, _REPLICAS = 0, 1, 2


class RecordError(ValueError):
    """The text is no record of a decision."""


class Inputs(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Versions of the inputs of a decision. Generation 0 means unknown."""

    policy: str = ""
    policy_generation: int = 0
    #: Empty if the policy names none.
    profile: str = ""
    profile_generation: int = 0
    source_generation: int = 0


UNKNOWN_INPUTS: Final = Inputs()


class Head(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, rename="camel"):
    """The part of a record that is not columns."""

    inputs: Inputs = Inputs()
    #: How many clusters were considered, a hash of their names, and a hash of their names, labels, taints and APIs.
    clusters: int
    names_hash: str
    fleet_hash: str
    #: The names themselves, if they are few.
    names: tuple[str, ...] = ()

    message: str = ""
    unschedulable: bool = False
    sticky: bool = False
    shortfall: int = 0
    waiting: int = 0
    steps: tuple[str, ...] = ()

    #: Filter and reason, each once.
    refusals: tuple[tuple[str, str], ...] = ()
    #: The score plugins.
    scorers: tuple[str, ...] = ()
    #: Clusters the object stays in although the fleet does not know them.
    elsewhere: dict[str, int | None] = {}


class _Stored(Head, frozen=True, omit_defaults=True, kw_only=True, rename="camel"):
    """The annotation."""

    columns: str
    #: How many were selected, and whether in another order than that of the scores; the order is a column then.
    selected: int = 0
    spelled_out: bool = False


class Record(Head, frozen=True, eq=False, kw_only=True):
    """A decision as columns over the clusters considered, in the order of their names."""

    #: Which of the refusals (from 1) excluded a cluster, 0 if none did.
    refused: Column
    #: What each score plugin gave to the clusters that were not refused.
    scores: tuple[Column, ...] = ()
    #: Rows in the order of selection, and whether that is the order of the scores.
    selected: Rows
    by_score: bool
    placed: Column
    overflow: Column
    #: Refusals and scores, if they are packed already.
    packing: Packing | None = None


class Refusal(msgspec.Struct, frozen=True):
    """Clusters that one filter was the first to refuse, for one reason. Without names if they are no longer known."""

    plugin: str
    reason: str
    count: int
    clusters: tuple[str, ...] = ()


class Account(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, rename="camel"):
    """A decision with names."""

    inputs: Inputs = Inputs()
    #: How many clusters were considered.
    clusters: int = 0
    placements: dict[str, int | None] = {}
    message: str = ""
    #: Nothing better was found: the placement stays as before.
    unschedulable: bool = False
    #: Clusters once chosen are kept.
    sticky: bool = False
    refused: tuple[Refusal, ...] = ()
    #: For the clusters that were not refused: the weighted score of each plugin.
    scores: dict[str, dict[str, int]] = {}
    #: Best first, including those that got no replicas.
    selected: tuple[str, ...] = ()
    #: How the replicas were divided, in the planner's words.
    steps: tuple[str, ...] = ()
    #: Replicas kept in a cluster that cannot run them.
    overflow: dict[str, int] = {}
    #: Replicas that found no cluster, and those of them that are started once there is room; the message tells the latter.
    shortfall: int = 0
    waiting: int = 0
    #: False if clusters left since and names can no longer be assigned: then only counts and reasons are here.
    named: bool = True


_DECODER = msgspec.json.Decoder(_Stored)
_ENCODER = msgspec.json.Encoder()


def record_of(decision: Decision, inputs: Inputs = UNKNOWN_INPUTS) -> Record:
    fleet = decision.fleet
    count = len(fleet)
    fingerprint = fleet.hashes.fingerprint
    evaluation = decision.evaluation.summary(fleet) if decision.evaluation is not None else None
    scored = decision.scored.by_plugin if decision.scored is not None else ()
    placed = np.zeros(count, dtype=np.int64)
    elsewhere: dict[str, int | None] = {}
    if decision.rows is None:
        for name, number in decision.kept.items():
            row = fleet.index.get(name)
            if row is None:
                elsewhere[name] = number
            else:
                placed[row] = _DUPLICATED if number is None else number + _REPLICAS
    else:
        placed[decision.rows] = _DUPLICATED if decision.replicas is None else decision.replicas + _REPLICAS
    overflow = fleet.zeros
    if decision.division is not None and decision.ranked is not None and not decision.unschedulable:
        overflow = np.zeros(count, dtype=np.int64)
        overflow[decision.ranked.rows] = decision.division.overflow
    return Record(
        inputs=inputs,
        clusters=count,
        names_hash=fingerprint.names,
        fleet_hash=fleet.hashes.short,
        names=fleet.names if count <= _NAMES_KEPT and sum(map(len, fleet.names)) <= _NAMES_KEPT else (),
        message=decision.message[:_LONGEST_MESSAGE],
        unschedulable=decision.unschedulable,
        sticky=decision.sticky,
        shortfall=decision.shortfall,
        waiting=decision.waiting,
        steps=decision.division.steps if decision.division is not None else (),
        refusals=evaluation.refusals if evaluation is not None else (),
        refused=evaluation.refused if evaluation is not None else fleet.zeros,
        scorers=tuple([name for name, _ in scored]),
        scores=tuple([scores for _, scores in scored]),
        selected=decision.ranked.rows if decision.ranked is not None else np.empty(0, dtype=np.intp),
        by_score=evaluation is None or evaluation.follows_scores,
        placed=placed,
        overflow=overflow,
        elsewhere=elsewhere,
        packing=evaluation.packing if evaluation is not None else None,
    )


def encode(record: Record) -> str:
    packing = Packing().add(record.refused, *record.scores) if record.packing is None else record.packing
    columns = [record.placed, record.overflow]
    if not record.by_score:
        columns.append(np.diff(record.selected, prepend=0).astype(np.int64))
    stored = _Stored(
        columns=packing.add(*columns).text(),
        selected=len(record.selected),
        spelled_out=not record.by_score,
        **_head(record),
    )
    return _ENCODER.encode(stored).decode()


def _head(record: Head) -> dict[str, Any]:
    return {field: getattr(record, field) for field in Head.__struct_fields__}


def decode(text: str) -> Record:
    """Raises RecordError for anything `encode` did not make."""
    try:
        stored = _DECODER.decode(text)
        if not 0 <= stored.selected <= stored.clusters <= _MOST_CLUSTERS:
            raise RecordError("the record of the decision has a wrong number of clusters")
        unpacker = Unpacker(stored.columns)
        refused = unpacker.take(stored.clusters)
        if refused.min(initial=0) < 0 or refused.max(initial=0) > len(stored.refusals):
            raise RecordError("the record of the decision refers to an unknown reason")
        passed = int((refused == 0).sum())
        scores = tuple(unpacker.take(passed) for _ in stored.scorers)
        placed, overflow = unpacker.take(stored.clusters), unpacker.take(stored.clusters)
        if stored.spelled_out:
            selected = np.cumsum(unpacker.take(stored.selected)).astype(np.intp)
        else:
            selected = _by_score(refused, scores)[: stored.selected]
    except (msgspec.MsgspecError, PackedError, UnicodeDecodeError) as error:
        raise RecordError(f"the record of the decision is unreadable: {error}") from None
    if selected.min(initial=0) < 0 or selected.max(initial=-1) >= stored.clusters:
        raise RecordError("the record of the decision refers to an unknown cluster")
    return Record(
        refused=refused,
        scores=scores,
        selected=selected,
        by_score=not stored.spelled_out,
        placed=placed,
        overflow=overflow,
        **_head(stored),
    )


def names_then(record: Record, fleet: Fleet, seen: Fingerprint | None = None) -> tuple[str, ...] | None:
    """The clusters a record refers to, found in today's fleet; None if one that cannot be named has left since.

    `seen` is the fingerprint of the trigger record stored with it: it tells which clusters joined later.
    """
    if len(record.names) == record.clusters:
        return record.names
    joined = fleet.joined_only()
    if joined.hashes.fingerprint.names == record.names_hash:
        return joined.names
    known = joined.hashes.known_then(seen) if seen is not None and seen.names == record.names_hash else None
    return None if known is None else tuple(joined.names_of(np.flatnonzero(known)))


def account_of(record: Record, names: tuple[str, ...] | None) -> Account:
    """The decision with names. Without names, only counts."""
    named = names is not None and len(names) == record.clusters
    told = Account(
        inputs=record.inputs,
        clusters=record.clusters,
        message=record.message,
        unschedulable=record.unschedulable,
        sticky=record.sticky,
        refused=tuple(_refusal(record, code, names if named else None) for code in range(1, len(record.refusals) + 1)),
        steps=record.steps,
        shortfall=record.shortfall,
        waiting=record.waiting,
        named=named,
    )
    if names is None or not named:
        return told
    passed = [names[row] for row in np.flatnonzero(record.refused == 0).tolist()]
    scores: dict[str, dict[str, int]] = {}
    if record.scorers:
        columns = zip(*(column.tolist() for column in record.scores), strict=True)
        scores = {
            name: dict(zip(record.scorers, given, strict=True)) for name, given in zip(passed, columns, strict=True)
        }
    elif len(record.selected):
        scores = {name: {} for name in passed}
    placements: dict[str, int | None] = {
        names[row]: None if code == _DUPLICATED else code - _REPLICAS
        for row, code in enumerate(record.placed.tolist())
        if code != _NOT_PLACED
    }
    placements = dict(sorted((placements | record.elsewhere).items()))
    return msgspec.structs.replace(
        told,
        placements=placements,
        scores=scores,
        selected=tuple(placements) if record.sticky else tuple(names[row] for row in record.selected.tolist()),
        overflow={names[row]: int(record.overflow[row]) for row in np.flatnonzero(record.overflow > 0).tolist()},
    )


def _refusal(record: Record, code: int, names: tuple[str, ...] | None) -> Refusal:
    plugin, reason = record.refusals[code - 1]
    rows = np.flatnonzero(record.refused == code).tolist()
    return Refusal(plugin, reason, len(rows), () if names is None else tuple(names[row] for row in rows))


def _by_score(refused: Column, scores: tuple[Column, ...]) -> Rows:
    """Rows of the clusters that passed, best score first, then by name."""
    rows = np.flatnonzero(refused == 0)
    return rows[by_score(rows, _total(scores, len(rows)))]


def _total(scores: tuple[Column, ...], count: int) -> Column:
    total = np.zeros(count, dtype=np.int64)
    for column in scores:
        total += column
    return total
