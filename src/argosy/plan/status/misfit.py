"""Misfit: whether a member's copy is a valid object of its kind. Members are not trusted to send one.

Called when handling the copies of several members together failed, to find the invalid one. So nothing in a copy, however
deep or large, makes the check itself fail.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.kube import schema, typecheck
from argosy.kube.jsonreader import TOO_DEEP, is_deep
from argosy.plan.fields import MISSHAPEN, Json
from argosy.plan.status.refused import refused

__all__ = ["misfit", "overlarge"]

#: Numbers that are summed over members must be exact in any JSON reader.
_LARGEST: Final = 2**53
#: Copies up to this size are never left out; and the size of all together that any server accepts as one object.
_UNSUSPECTED: Final = 256 * 1024
_TOGETHER: Final = 1024 * 1024


def misfit(type_config: FederatedTypeConfig, copy: Json) -> str:
    """What is wrong with a copy, in one line; empty if nothing is, as far as its kind is known."""
    if is_deep(copy):
        return TOO_DEEP
    resource = type_config.resource
    type = schema.load().kind(resource.group, resource.version, type_config.kind)
    if type is not None:
        mistyped = typecheck.check(type, msgspec.to_builtins(copy)).mistyped
        if mistyped:
            return mistyped[0][:300]
        status = copy.get("status")
        if isinstance(status, dict) and (why := refused(resource.group, type_config.kind, status)):
            return why
    path = _too_large(copy)
    return f"{path[:300]}: number out of range" if path else ""


def overlarge(copies: Mapping[str, Json]) -> dict[str, str]:
    """If copies are too large together: those to leave out, the largest first, and why."""
    sizes = {name: _size(copy) for name, copy in copies.items()}
    together = sum(sizes.values())
    found = {}
    for name, size in sorted(sizes.items(), key=lambda each: (-each[1], each[0])):
        if together <= _TOGETHER or size <= _UNSUSPECTED:
            break
        found[name] = f"its collected fields of {size} bytes are too large to be stored"
        together -= size
    return found


def _size(copy: Json) -> int:
    try:
        return len(msgspec.json.encode(copy))
    except MISSHAPEN:  # it cannot be encoded at all
        return 2**63


def _too_large(copy: Json) -> str:
    """The path of the first number out of range."""
    path: list[Any] = []
    levels = [_children(copy)]
    while levels:
        for key, value in levels[-1]:
            if isinstance(value, dict | list):
                path.append(key)
                levels.append(_children(value))
                break
            if isinstance(value, int | float) and not -_LARGEST <= value <= _LARGEST:
                return "".join(f".{step}" for step in (*path, key))
        else:
            levels.pop()
            if path:
                path.pop()
    return ""


def _children(node: dict[str, Any] | list[Any]) -> Iterator[tuple[Any, Any]]:
    return iter(node.items()) if isinstance(node, dict) else enumerate(node)
