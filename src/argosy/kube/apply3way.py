"""Three-way patches: what `kubectl apply` sends, from the last applied, the live and the desired object.

Fields that were applied before and are no longer desired are removed; fields set by others stay. With a type the result is a
strategic merge patch, without one (custom resources) a JSON merge patch. An empty patch means no change.
"""

from typing import Any

from argosy.kube.mergepatch import same
from argosy.kube.schema import Type
from argosy.kube.strategic import DELETE_FROM, DIRECTIVE, RETAIN_KEYS, SET_ORDER, identity

__all__ = ["three_way", "two_way"]

Object = dict[str, Any]


def three_way(last_applied: Object | None, current: Object, modified: Object, type: Type | None) -> Object:
    """The patch to send; `last_applied` is None if the object was never applied."""
    return _diff(last_applied or {}, current, modified, type)


def two_way(original: Object, modified: Object, type: Type | None) -> Object:
    """The patch that turns `original` into `modified`."""
    return _diff(original, original, modified, type)


def _diff(last: Any, current: Object, modified: Object, type: Type | None) -> Object:
    last = last if isinstance(last, dict) else {}
    patch: Object = {key: None for key in last if key not in modified and key in current}
    for key, wanted in modified.items():
        if key not in current:
            if wanted is not None:
                patch[key] = wanted
            continue
        field = type.child(key) if type else None
        there = current[key]
        if isinstance(wanted, dict) and isinstance(there, dict) and not (field and "replace" in field.strategies):
            if inner := _diff_member(last.get(key), there, wanted, field, field):
                patch[key] = inner
        elif isinstance(wanted, list) and isinstance(there, list) and field is not None and "merge" in field.strategies:
            _diff_list(patch, key, last.get(key), there, wanted, field)
        elif not same(there, wanted):
            patch[key] = wanted
    return patch


def _diff_member(last: Any, current: Object, modified: Object, type: Type | None, field: Type | None) -> Object:
    """The patch of an object in `field`, or in the list that is `field`.

    A union field (retainKeys) has one member at a time: members that are not desired are removed, whoever set them.
    """
    patch = _diff(last, current, modified, type)
    if field is None or "retainKeys" not in field.strategies:
        return patch
    retained = sorted(key for key, value in modified.items() if value is not None)
    if retained and (patch or any(value is not None and key not in modified for key, value in current.items())):
        patch[RETAIN_KEYS] = retained
    return patch


def _diff_list(patch: Object, key: str, last: Any, current: list[Any], modified: list[Any], type: Type) -> None:
    last = last if isinstance(last, list) else []
    if not current:
        if modified:
            patch[key] = modified
        return
    if any(isinstance(item, dict) for item in [*current, *modified]):
        changes = _diff_objects(last, current, modified, type)
        order = [{type.merge_key: item[type.merge_key]} for item in modified if type.merge_key in item]
    else:
        there, wanted = _identities(current, ""), _identities(modified, "")
        changes = [item for item in modified if identity(item, "") not in there]
        order = modified
        gone = [item for item in last if identity(item, "") not in wanted and identity(item, "") in there]
        if gone:
            patch[f"{DELETE_FROM}/{key}"] = gone
            patch[f"{SET_ORDER}/{key}"] = order
    if changes:
        patch[key] = changes
    if changes or _reordered(current, modified, type.merge_key):
        patch[f"{SET_ORDER}/{key}"] = order


def _diff_objects(last: list[Any], current: list[Any], modified: list[Any], type: Type) -> list[Any]:
    merge_key = type.merge_key
    there = _by_key(current, merge_key)
    before = _by_key(last, merge_key)
    changes = []
    # Items that share a key (a port number used for TCP and UDP) cannot be told apart by it; the first one counts.
    for key, item in _by_key(modified, merge_key).items():
        if key not in there:
            changes.append(item)
        elif inner := _diff_member(before.get(key), there[key], item, type.item, type):
            changes.append({merge_key: item[merge_key], **inner})
    wanted = _identities(modified, merge_key)
    return changes + [
        {DIRECTIVE: "delete", merge_key: item[merge_key]}
        for key, item in before.items()
        if key not in wanted and key in there
    ]


def _by_key(items: list[Any], merge_key: str) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for item in items:
        found.setdefault(identity(item, merge_key), item)
    return found


def _identities(items: list[Any], merge_key: str) -> set[Any]:
    return {identity(item, merge_key) for item in items}


def _reordered(current: list[Any], modified: list[Any], merge_key: str) -> bool:
    wanted = _identities(modified, merge_key)
    shared = [identity(item, merge_key) for item in current if identity(item, merge_key) in wanted]
    return shared != [identity(item, merge_key) for item in modified]
