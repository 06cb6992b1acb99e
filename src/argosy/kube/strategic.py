"""Strategic merge patch: a merge patch that knows which lists are keyed, guided by the schema of the kind.

Fields whose schema says so merge by key (containers by name) or as sets (finalizers); everything else is as in a merge
patch. Directives inside the patch: `$patch: replace|delete`, `$retainKeys`, `$deleteFromPrimitiveList/<field>`,
`$setElementOrder/<field>`. Results and error texts are those of kube-apiserver. Neither input is changed.
`apply3way` makes such patches.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from argosy.kube.schema import Type

__all__ = ["DELETE_FROM", "DIRECTIVE", "RETAIN_KEYS", "SET_ORDER", "StrategicPatchError", "apply", "identity"]

DIRECTIVE: Final = "$patch"
RETAIN_KEYS: Final = "$retainKeys"
DELETE_FROM: Final = "$deleteFromPrimitiveList"
SET_ORDER: Final = "$setElementOrder"

_ABSENT: Final = object()


class StrategicPatchError(ValueError):
    """The patch is malformed, or cannot be merged into this document."""


def apply(doc: dict[str, Any], patch: Any, type: Type | None) -> dict[str, Any]:
    """The patched document. `type` is the kind's; without one every list is replaced as a whole."""
    if not isinstance(patch, dict):
        raise StrategicPatchError("json: cannot unmarshal array into Go value of type map[string]interface {}")
    return _merged(doc, patch, type)


def _merged(original: dict[str, Any], patch: dict[str, Any], type: Type | None) -> dict[str, Any]:
    if DIRECTIVE in patch:
        return _directed(patch)
    result = dict(original)
    if RETAIN_KEYS in patch:
        _retain(result, patch)
    for key, value in patch.items():
        if key != RETAIN_KEYS and not key.startswith((DELETE_FROM, SET_ORDER)):
            _merge_field(result, key, value, patch, type)
    for key, value in patch.items():
        if key.startswith((DELETE_FROM, SET_ORDER)):
            _check_parallel(key, value)
            field = key.partition("/")[2]
            # If the field itself is in the patch, its order was handled together with its items.
            if key.startswith(SET_ORDER) and field not in patch and isinstance(result.get(field), list):
                merge_key = _merge_key(type.child(field) if type else None)
                _check_elements(result[field])
                result[field] = _ordered(result[field], value, result[field], merge_key)
    for key, value in patch.items():
        if key.startswith(DELETE_FROM):
            field = key.partition("/")[2]
            if isinstance(result.get(field), list):
                gone = {identity(item, "") for item in value}
                result[field] = [item for item in result[field] if identity(item, "") not in gone]
    return result


def _directed(patch: dict[str, Any]) -> dict[str, Any]:
    match patch[DIRECTIVE]:
        case "replace":
            return {key: value for key, value in patch.items() if key != DIRECTIVE}
        case "delete":
            return {}
    raise StrategicPatchError(f"unknown patch type: {patch[DIRECTIVE]} in map: {_shown(patch)}")


def _retain(result: dict[str, Any], patch: dict[str, Any]) -> None:
    """Drop from the result what the patch does not list; everything the patch sets must be listed."""
    retained = patch[RETAIN_KEYS]
    if not isinstance(retained, list):
        raise StrategicPatchError("invalid patch format of retainKeys")
    kept = {key for key in retained if isinstance(key, str)}
    for key, value in patch.items():
        if (
            key != RETAIN_KEYS
            and value is not None
            and not key.startswith((DELETE_FROM, SET_ORDER))
            and key not in kept
        ):
            raise StrategicPatchError("invalid patch format of retainKeys")
    for key in list(result):
        if key not in kept:
            del result[key]


def _check_parallel(key: str, value: Any) -> None:
    prefix, slash, field = key.partition("/")
    if prefix not in (DELETE_FROM, SET_ORDER) or not slash or not field or not isinstance(value, list):
        kind = "primitive list" if key.startswith(DELETE_FROM) else "setElementOrder list"
        raise StrategicPatchError(f"invalid patch format of {kind}")


def _merge_field(result: dict[str, Any], key: str, value: Any, patch: dict[str, Any], type: Type | None) -> None:
    if value is None:
        result.pop(key, None)
        return
    field = type.child(key) if type else None
    current = result.get(key, _ABSENT)
    replaces = field is not None and "replace" in field.strategies
    if isinstance(value, dict) and isinstance(current, dict):
        result[key] = value if replaces else _merged(current, value, field)
        return
    if isinstance(value, list):
        result[key] = _merge_list(current, value, patch.get(f"{SET_ORDER}/{key}"), field)
        return
    taken = _without_directives(value)
    if taken is _ABSENT:
        result.pop(key, None)
    else:
        result[key] = taken


def _merge_list(current: Any, items: list[Any], order: Any, type: Type | None) -> list[Any]:
    merge_key = _merge_key(type)
    if order is not None:
        _check_parallel(f"{SET_ORDER}/x", order)
        _check_order(items, order, merge_key)
        _check_elements(items, current if isinstance(current, list) else [])
    if not isinstance(current, list):
        taken: list[Any] = _without_directives(items)
        return taken if order is None else _ordered(taken, order, [], merge_key)
    if type is None or "merge" not in type.strategies:
        return items
    if not current and not items:
        return []
    if not _holds_objects(current, items):
        merged = list({identity(item, ""): item for item in [*current, *items]}.values())
        return _ordered(merged, items if order is None else order, current, "")
    if not merge_key:
        raise StrategicPatchError(f"cannot merge lists without merge key for {type.name}")
    kept, plain = _special_items_applied(current, items, merge_key)
    merged = _merge_objects(kept, plain, merge_key, type.item)
    if order is None:
        return _ordered(merged, plain, kept, merge_key)
    # In kube-apiserver new items take the places of deleted ones before the order is applied, and come after the server's own
    # items for it.
    return _ordered(merged, order, merged[: max(len(current), len(kept))], merge_key)


def _special_items_applied(current: list[Any], items: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """The current list and the patch's items after the directives among the items were applied."""
    plain = [item for item in items if DIRECTIVE not in item]
    replaced = False
    gone = set()
    for item in items:
        match item.get(DIRECTIVE, _ABSENT):
            case "delete":
                gone.add(identity(item, merge_key))
            case "replace":
                replaced = True
            case "merge":
                raise StrategicPatchError("merging lists cannot yet be specified in the patch")
            case directive if directive is not _ABSENT:
                raise StrategicPatchError(f"unknown patch type: {directive} in map: {_shown(item)}")
    if replaced:
        return plain, []
    if gone:
        current = [other for other in current if merge_key not in other or identity(other, merge_key) not in gone]
    return current, plain


def _merge_objects(current: list[Any], items: list[Any], merge_key: str, type: Type | None) -> list[Any]:
    merged = list(current)
    positions: dict[Any, int] = {}
    for index, item in enumerate(merged):
        if merge_key in item:
            positions.setdefault(identity(item, merge_key), index)
    for item in items:
        index = positions.get(identity(item, merge_key), -1)
        if index >= 0:
            merged[index] = _merged(merged[index], item, type)
        else:
            positions[identity(item, merge_key)] = len(merged)
            # As it is, including directives inside: kube-apiserver applies them only if there is something to merge.
            merged.append(item)
    return merged


def _ordered(merged: list[Any], order: Sequence[Any], server: Sequence[Any], merge_key: str) -> list[Any]:
    """Items in the order list are in that order; the others keep the server's and go before the first item they preceded."""
    wanted = _positions(order, merge_key)
    standing = _positions(server, merge_key)
    named = [item for item in merged if identity(item, merge_key) in wanted]
    others = [item for item in merged if identity(item, merge_key) not in wanted]
    named.sort(key=lambda item: wanted[identity(item, merge_key)])
    others.sort(key=lambda item: standing.get(identity(item, merge_key), len(standing)))
    result: list[Any] = []
    left, right = 0, 0
    while left < len(others) and right < len(named):
        before = standing.get(identity(others[left], merge_key))
        after = standing.get(identity(named[right], merge_key))
        if before is not None and after is not None and before < after:
            result.append(others[left])
            left += 1
        else:
            result.append(named[right])
            right += 1
    return [*result, *others[left:], *named[right:]]


def _check_elements(*lists: list[Any]) -> None:
    """kube-apiserver refuses an empty order, whose kind is unknown."""
    if not any(lists):
        raise StrategicPatchError("no elements in any of the given slices")


def _check_order(items: list[Any], order: list[Any], merge_key: str) -> None:
    """The patch's items must be in its order list, in the same relative order."""
    if not items or not order:
        return
    wanted = [identity(item, merge_key) for item in items if not (isinstance(item, dict) and DIRECTIVE in item)]
    remaining = iter([identity(item, merge_key) for item in order])
    if not all(item in remaining for item in wanted):
        raise StrategicPatchError(
            f"The order in patch list:\n{_shown(items)}\n doesn't match {SET_ORDER} list:\n{_shown(order)}\n"
        )


def _positions(items: Iterable[Any], merge_key: str) -> dict[Any, int]:
    found: dict[Any, int] = {}
    for index, item in enumerate(items):
        found.setdefault(identity(item, merge_key), index)
    return found


def identity(item: Any, merge_key: str) -> tuple[bool, Any]:
    """The identity of a list item: the merge key's value, or the item itself without a merge key."""
    value = item
    if merge_key:
        if not isinstance(item, dict):
            raise StrategicPatchError(f"expected a map[string]interface {{}}, but received a {item.__class__.__name__}")
        if merge_key not in item:
            raise StrategicPatchError(f"map: {_shown(item)} does not contain declared merge key: {merge_key}")
        value = item[merge_key]
    if isinstance(value, dict | list):
        raise StrategicPatchError(
            "lists of lists are not supported" if isinstance(value, list) else "invalid merge key"
        )
    return value.__class__ is bool, value  # to Python True and 1 are the same key


def _holds_objects(*lists: list[Any]) -> bool:
    kinds = {item.__class__ is dict for items in lists for item in items}
    if len(kinds) > 1:
        raise StrategicPatchError(f"list element types are not identical: {_shown(list(lists))}")
    return True in kinds


def _without_directives(value: Any) -> Any:
    """A value taken as it is: nulls in objects are dropped, and so are objects with a directive.

    The other directives stay, as in kube-apiserver: the decoder treats them as unknown fields.
    """
    if isinstance(value, dict):
        if DIRECTIVE in value:
            return _ABSENT
        taken = {key: _without_directives(inner) for key, inner in value.items() if inner is not None}
        return {key: inner for key, inner in taken.items() if inner is not _ABSENT}
    if isinstance(value, list):
        return [inner for inner in map(_without_directives, value) if inner is not _ABSENT]
    return value


def _merge_key(type: Type | None) -> str:
    return type.merge_key if type is not None and "merge" in type.strategies else ""


def _shown(value: Any) -> str:
    """As Go prints it in the API server's errors."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{_shown(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_shown, value))}]"
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)
