"""Bounds: how much of a plugin's texts is kept. Its process applies them, and so does the reader of its answers."""

from collections.abc import Sequence
from typing import Any, Final

__all__ = ["LONGEST_ERROR", "LONGEST_TEXT", "MOST_TEXTS", "cut", "few"]

#: Characters of an error: it is stored with every object that waits for the plugin.
LONGEST_ERROR: Final = 1000
#: Characters of a reason or a step, and how many of them one answer may have.
LONGEST_TEXT: Final = 300
MOST_TEXTS: Final = 32


def cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def few(texts: Sequence[Any]) -> tuple[str, ...]:
    """The first texts, each cut; the last one says how many are missing."""
    if len(texts) > MOST_TEXTS:
        texts = (*texts[: MOST_TEXTS - 1], f"… and {len(texts) - MOST_TEXTS + 1} more")
    return tuple(cut(str(text), LONGEST_TEXT) for text in texts)
