"""Tables over all members: built on first use, and passed on to the next snapshot while they are valid.

Each table declares the fields of a member it reads. When one member changes, tables that read none of the changed fields are
shared with the next snapshot, and amounts are changed in that member's row alone.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from argosy.fleet.columns import Amounts, Column, Mask, read_only
from argosy.fleet.member import Member

__all__ = ["Table", "Tables", "changed_fields", "table"]

T = TypeVar("T")


class Tables:
    """Tables over these members, in the order of their names. Immutable."""

    def __init__(self, members: Mapping[str, Member], built: Mapping[str, Any] | None = None) -> None:
        """`built` has the tables, by name, that are known to be valid for these members."""
        self.members = members
        self._built: dict[str, Any] = dict(built or {})
        for name, known in self._built.items():
            setattr(self, name, known)  # like a cached property that was already read

    def __len__(self) -> int:
        return len(self.members)

    def _still_true(self, changed: frozenset[str], row: int, after: Member) -> dict[str, Any]:
        """The tables that are still valid after these fields of the member in this row have changed."""
        kept = {}
        for name, known in self._built.items():
            reads: frozenset[str] = getattr(type(self), name).reads
            if not reads & changed:
                kept[name] = known
            elif isinstance(known, Amounts):
                (field,) = reads
                kept[name] = known.with_row(row, getattr(after, field))
        return kept

    def _mask(self, predicate: Callable[[Member], bool]) -> Mask:
        return read_only(np.fromiter(map(predicate, self.members.values()), dtype=np.bool_, count=len(self)))

    def _numbers(self, number: Callable[[Member], int]) -> Column:
        return read_only(np.fromiter(map(number, self.members.values()), dtype=np.int64, count=len(self)))


class Table(cached_property[T]):
    """One of the tables of `Tables`: built by a method that reads only these fields of members, and their names."""

    def __init__(self, build: Callable[[Any], T], reads: frozenset[str]) -> None:
        def built(tables: Tables) -> T:
            found = tables._built[build.__name__] = build(tables)
            return found

        super().__init__(built)
        self.reads = reads
        self.__doc__ = build.__doc__


def table(*reads: str) -> Callable[[Callable[[Any], T]], Table[T]]:
    """Turns a method into a table that reads these fields of members."""
    return lambda build: Table(build, frozenset(reads))


def changed_fields(before: Member, after: Member, fields: frozenset[str]) -> frozenset[str]:
    return frozenset(field for field in fields if getattr(before, field) != getattr(after, field))
