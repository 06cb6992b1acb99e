"""Misfit: whether a member's copy is an object of its kind at all. What a member sends is not trusted to be.

Asked when something went wrong with the copies of several members together, to find out whose it was.
"""

import copy as copies
from typing import Any, Final

from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.kube import schema, typecheck
from argosy.plan.fields import Json

__all__ = ["MISSHAPEN", "misfit"]

#: What working with JSON of the wrong shape raises.
MISSHAPEN: Final = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RecursionError)
#: No number that is added up over members is larger than JSON readers understand.
_LARGEST: Final = 2**53


def misfit(type_config: FederatedTypeConfig, copy: Json) -> str:
    """What is wrong with a copy, in one line; empty where nothing is, as far as its kind is known."""
    resource = type_config.resource
    type = schema.load().kind(resource.group, resource.version, type_config.kind)
    if type is not None:
        mistyped = typecheck.check(type, copies.deepcopy(copy)).mistyped
        if mistyped:
            return mistyped[0][:300]
    path = _too_large(copy, "")
    return f"{path}: not a number that can be added up" if path else ""


def _too_large(value: Any, path: str) -> str:
    """The path of the first such number."""
    children: Any = ()
    if isinstance(value, dict):
        children = value.items()
    elif isinstance(value, list):
        children = enumerate(value)
    elif isinstance(value, int | float) and not -_LARGEST <= value <= _LARGEST:
        return path
    return next((found for key, child in children if (found := _too_large(child, f"{path}.{key}"))), "")
