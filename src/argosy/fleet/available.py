"""Available: what all members have available at one moment, as they report it or less what is reserved."""

from typing import Final

from argosy.fleet.columns import Amounts, Mask, Rows
from argosy.fleet.member import Member
from argosy.fleet.tables import Tables, changed_fields, table

__all__ = ["Available"]

_FIELDS: Final = frozenset({"available", "stale"})


class Available(Tables):
    @table("available")
    def amounts(self) -> Amounts:
        return Amounts([member.available for member in self.members.values()])

    @table("stale")
    def stale(self) -> Mask:
        """Of which clusters the amounts have not been heard of for long."""
        return self._mask(lambda member: member.stale)

    def replaced(self, row: int, before: Member, after: Member) -> "Available":
        """After the member in this row changed."""
        changed = changed_fields(before, after, _FIELDS)
        return Available({**self.members, after.name: after}, self._still_true(changed, row, after))

    def with_amounts(self, amounts: Amounts) -> "Available":
        """The same members with these amounts, whatever they report."""
        return Available(self.members, {"amounts": amounts, "stale": self.stale})

    def only(self, rows: Rows) -> "Available":
        """Of the members in these rows."""
        every = tuple(self.members.values())
        members = {every[row].name: every[row] for row in rows.tolist()}
        return Available(members, {"amounts": self.amounts.only(rows), "stale": self.stale[rows]})
