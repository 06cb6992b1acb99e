"""Drift: what others changed in a copy behind our back.

Compared are the copy that was found and the copy as the member has it once it is what we want: after the repair, or by a dry run.
Defaults, what webhooks add and what members retain are in both, and so no drift. What was found is kept in the status of the
federated object, where it is written together with what is written anyway.
"""

import re
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final

import msgspec
import orjson
from msgspec import UNSET, UnsetType

from argosy.api import keys
from argosy.api.federated import DriftedField, PropagationEntry
from argosy.plan import changes, fields
from argosy.plan.changes import is_secret
from argosy.plan.fields import MISSHAPEN, Json
from argosy.plan.metadata import without_annotations

__all__ = [
    "DELETED",
    "NONE",
    "Changed",
    "Drift",
    "Since",
    "as_left",
    "drift_of",
    "keeping",
    "left_in",
    "noted",
    "reports",
    "stated_drift",
    "told",
    "within_bounds",
]

#: Of one copy, and of all copies of an object: its status stays small whatever somebody does to its copies.
_MOST: Final = 16
_MOST_ALTOGETHER: Final = 256
#: The encoded value; a longer one is told by its beginning and its digest.
_LONGEST_VALUE: Final = 160
_SHORTENED: Final = re.compile(r"… \(\d+ bytes, [0-9a-f]{12}\)\Z")
_LONGEST_TOLD: Final = 60
_LONGEST_PATH: Final = 200
#: A longer path is told, and not looked up: the work for a copy grows with its size alone.
_LONGEST_KEPT: Final = 1000
#: Deeper parts count as a whole.
_DEEPEST: Final = 16
_NO_FIELDS: Final = ("apiVersion", "kind", "status")
_METADATA: Final = ("labels", "annotations", "finalizers", "ownerReferences")


class Changed(msgspec.Struct, frozen=True):
    """One field: the value found, and the one wanted."""

    path: str
    theirs: Any | UnsetType = UNSET
    ours: Any | UnsetType = UNSET


#: The copy was deleted.
DELETED: Final = Changed("")
#: More fields than are listed.
_MANY: Final = "*"


class Drift(msgspec.Struct, frozen=True):
    """All that is found of one copy; `left` if it was not repaired."""

    changed: tuple[Changed, ...] = ()
    left: bool = False


NONE: Final = Drift()


class Since(msgspec.Struct, frozen=True):
    """What is known of a copy since it was written last."""

    #: What is wanted is what was written, but perhaps for the source's generation: where the copy differs, others changed it.
    unchanged: bool = False
    #: Not even the generation is another one: there is nothing to write where others' changes stay.
    settled: bool = False
    #: What others change stays in the copy.
    reports: bool = False
    #: What they changed, and was left.
    left: tuple[DriftedField, ...] = ()

    @property
    def keeps(self) -> bool:
        """Whether the copy has, or may have, something that stays."""
        return self.reports and (self.unchanged or bool(self.left))


def reports(annotations: Mapping[str, str]) -> bool:
    """Whether what others change in its copies stays there, by the annotations of the federated object."""
    return annotations.get(keys.DRIFT_CORRECTION) == keys.REPORT


def drift_of(found: Json, wanted: Json, *, secret: bool, left: bool) -> Drift:
    """`wanted` is the copy as the member has it, or would have it, when it is as wanted. It is short, whatever a member says."""
    return _drift(found, wanted, secret, left, stated=False)


def stated_drift(found: Json, desired: Json) -> Drift:
    """Where the member does not say what it would make of the rendered object: only fields that this states can be compared."""
    return _drift(found, desired, is_secret(desired), left=True, stated=True)


def _drift(found: Json, wanted: Json, secret: bool, left: bool, stated: bool) -> Drift:
    try:
        old, new = _content(found), _content(wanted)
        differing = changes.changes(old, new, _DEEPEST)
        parts = _parts([path for path, _, ours in differing if ours is not UNSET or not stated])
        changed = [
            Changed(_named(path))
            if secret
            else Changed(_named(path), *(_short(changes.at(each, path)) for each in (old, new)))
            for path in parts
        ]
    except MISSHAPEN:
        changed = [Changed(_MANY)]
    return Drift(tuple(changed), left) if len(changed) <= _MOST else Drift((Changed(_MANY),), left)


def _parts(paths: list[changes.Path]) -> list[changes.Path]:
    """Few paths; several in one part are told as that part."""
    depth = max(map(len, paths), default=0)
    while len(paths) > _MOST and depth > 1:
        depth -= 1
        paths = list(dict.fromkeys(path[:depth] for path in paths))
    return paths


def _named(path: changes.Path) -> str:
    text = changes.text(path)
    return text if len(text) <= _LONGEST_PATH else f"{text[:_LONGEST_PATH]}… ({_digest(text.encode())})"


def keeping(desired: Json, found: Json, wanted: Json, since: Since) -> Json:
    """A changed desired object with the values that others gave to the copy, except where what is wanted changed as well."""
    try:
        return _keeping(desired, found, wanted, since)
    except MISSHAPEN:
        return desired


def _keeping(desired: Json, found: Json, wanted: Json, since: Since) -> Json:
    new = _content(wanted)
    differing = changes.changes(_content(found), new, _DEEPEST)
    if since.unchanged:
        return _put(desired, ((path, theirs) for path, theirs, _ in differing))
    if is_secret(desired):
        return desired
    known = {each.path: each for each in since.left}
    stays: dict[changes.Path, bool] = {}
    return _put(desired, ((path, theirs) for path, theirs, _ in differing if _stays(path, new, known, stays)))


def _put(desired: Json, values: Iterable[tuple[changes.Path, Any]]) -> Json:
    result: Json = changes.put(desired, values)
    return result


def _stays(
    path: changes.Path, wanted: Json, known: Mapping[str, DriftedField], stays: dict[changes.Path, bool]
) -> bool:
    """Whether it, or else the smallest part with it, is on record, and what is wanted there is what was wanted then."""
    if path not in stays:
        before = known.get(_named(path)) if sum(map(len, path)) <= _LONGEST_KEPT else None
        if before is not None:
            stays[path] = before.ours == _short(changes.at(wanted, path))
        else:
            stays[path] = len(path) > 1 and _stays(path[:-1], wanted, known, stays)
    return stays[path]


def _content(obj: Json) -> Json:
    metadata = {key: value for key, value in obj["metadata"].items() if key in _METADATA and value}
    metadata["annotations"] = without_annotations(metadata.get("annotations"), keys.SOURCE_GENERATION)
    return {**{key: value for key, value in obj.items() if key not in _NO_FIELDS}, "metadata": metadata}


def _short(value: Any) -> Any:
    """The value itself, or a text that is equal for equal values. A null is as good as nothing."""
    if value is UNSET or value is None:
        return UNSET
    encoded = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    if len(encoded) <= _LONGEST_VALUE:
        return value
    beginning = encoded[: _LONGEST_VALUE // 2].decode(errors="ignore")
    return f"{beginning}… ({len(encoded)} bytes, {_digest(encoded)})"


def _is_shortened(value: Any) -> bool:
    return isinstance(value, str) and _SHORTENED.search(value) is not None


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=6).hexdigest()


# What is kept of it.


def left_in(record: PropagationEntry | None) -> tuple[DriftedField, ...]:
    """The fields of a copy that still have somebody else's value."""
    return tuple(each for each in record.drift if each.left) if record is not None else ()


def noted(before: tuple[DriftedField, ...], drift: Drift, now: str) -> tuple[DriftedField, ...]:
    """The record of one copy: what was found now, then what was found earlier of other fields, as many as there is room for."""
    known = {each.path: each for each in before}
    found = {}
    for each in drift.changed:
        field = DriftedField(each.path, now, each.theirs, each.ours, drift.left)
        same = known.get(each.path)
        if same is not None and drift.left and same == msgspec.structs.replace(field, since=same.since):
            field = same
        found[each.path] = field
    earlier = [msgspec.structs.replace(each, left=False) for each in before if each.path not in found]
    return (*found.values(), *earlier)[:_MOST]


def within_bounds(entries: tuple[PropagationEntry, ...]) -> tuple[PropagationEntry, ...]:
    """All copies together. Without room for all, nothing is told of earlier changes, and of some copies only that they differ."""
    if sum(len(each.drift) for each in entries) <= _MOST_ALTOGETHER:
        return entries
    room = _MOST_ALTOGETHER
    kept = []
    for entry in entries:
        left = left_in(entry)
        if len(left) > room - len(entries):
            left = tuple(DriftedField(_MANY, each.since, left=True) for each in left[:1])
        room -= len(left)
        kept.append(msgspec.structs.replace(entry, drift=left))
    return tuple(kept)


def as_left(desired: Json, record: PropagationEntry | None) -> Json:
    """What is wanted of a copy whose changed fields are left: with their values, where these are on record."""
    for each in left_in(record):
        if each.theirs is not UNSET and not _is_shortened(each.theirs) and fields.get(desired, each.path) == each.ours:
            desired = fields.put(desired, each.path, each.theirs)
    return desired


# In words.


def told(field: DriftedField) -> str:
    """A clause about one field of a copy."""
    if not field.path:
        return "it was deleted there"
    if field.path == _MANY:
        return "more fields than are listed " + ("are not ours" if field.left else "were changed")
    if field.theirs is UNSET and field.ours is UNSET:
        return f"{field.path} is not ours" if field.left else f"{field.path} was changed"
    theirs = "not set" if field.theirs is UNSET else _shown(field.theirs)
    ours = "nothing" if field.ours is UNSET else _shown(field.ours)
    return f"{field.path} {'is' if field.left else 'was'} {theirs} instead of {ours}"


def _shown(value: Any) -> str:
    shown = value if isinstance(value, str) else orjson.dumps(value).decode()
    return shown if len(shown) <= _LONGEST_TOLD else f"{shown[: _LONGEST_TOLD - 1]}…"
