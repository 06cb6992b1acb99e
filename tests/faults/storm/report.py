"""What a storm ends with, and how it is shown."""

import msgspec

__all__ = ["Outcome", "Row", "shown"]

#: Of violations; one cause tends to have many.
_MOST = 50


class Row(msgspec.Struct, frozen=True):
    part: str
    what: str
    value: float


class Outcome(msgspec.Struct, frozen=True):
    violations: list[str]
    #: What the audit logs have about the objects concerned.
    lines: list[str]
    rows: list[Row]
    #: How many leaders there were, one after the other.
    terms: int


def shown(outcome: Outcome) -> str:
    lines = [f"{row.part:<12} {row.what:<50} {row.value:>8g}" for row in outcome.rows]
    lines += ["", *(f"VIOLATION {text}" for text in outcome.violations[:_MOST])]
    if len(outcome.violations) > _MOST:
        lines.append(f"… and {len(outcome.violations) - _MOST} more")
    lines += outcome.lines
    lines.append("nothing was wrong" if not outcome.violations else f"violations: {len(outcome.violations)}")
    return "\n".join(lines)
