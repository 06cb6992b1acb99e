"""The base of all built-in kinds: decoding through the schema tables, and the form of their declaration.

Rules of single kinds are not here: each API group has its own module with `kinds(schemas) -> list[Kind]`.
"""

from argosy.kube import typecheck
from argosy.kube.schema import Schemas, Type
from argosy.server.kinds.shared.zero_values import drop_empties, drop_zeros
from argosy.server.registry import ALL_VERBS, Decoded, Kind, Object, ScalePaths, Strategy

__all__ = ["BuiltinStrategy", "StatuslessStrategy", "VirtualStrategy", "declare"]


class BuiltinStrategy(Strategy):
    """A built-in kind with a spec and a status. `type` is None if the tables of an older minor lack the kind."""

    def __init__(self, type: Type | None) -> None:
        self.type = type

    def decode(self, obj: Object) -> Decoded:
        if self.type is None:
            return Decoded()
        checked = typecheck.check(self.type, obj)
        if not checked.mistyped:
            drop_zeros(self.type, obj)
        return Decoded(checked.unknown, checked.mistyped)

    def unreadable(self, obj: Object) -> str | None:
        if self.type is None:
            return None
        return next(iter(typecheck.check(self.type, obj).mistyped), None)

    def settle(self, obj: Object) -> None:
        if self.type is not None:
            drop_empties(self.type, obj)


class StatuslessStrategy(BuiltinStrategy):
    """A kind without a status subresource: objects are stored as written, and there is no generation."""

    generation = False

    def prepare_create(self, obj: Object) -> None:
        pass

    def prepare_update(self, new: Object, old: Object) -> None:
        pass


class VirtualStrategy(StatuslessStrategy):
    """A kind that is never stored (bindings, reviews)."""

    unconditional_update = False


def declare(
    schemas: Schemas,
    strategy: type[BuiltinStrategy],
    group: str,
    version: str,
    kind: str,
    plural: str,
    *,
    namespaced: bool = True,
    short_names: tuple[str, ...] = (),
    categories: tuple[str, ...] = (),
    verbs: frozenset[str] = ALL_VERBS,
    subresources: frozenset[str] = frozenset(),
    scale: ScalePaths | None = None,
) -> Kind:
    """A built-in kind in its only version; those with several are made from this with `msgspec.structs.replace`."""
    return Kind(
        group=group,
        version=version,
        kind=kind,
        plural=plural,
        singular=kind.lower(),
        namespaced=namespaced,
        strategy=strategy(schemas.kind(group, version, kind)),
        short_names=short_names,
        categories=categories,
        verbs=verbs,
        subresources=subresources,
        scale=scale,
        storage_version=version,
    )
