"""The total size of the patterns of one definition. A single pattern is checked by `kube.regexp`."""

from typing import Any, Final

from argosy.kube.regexp import PatternError, compile_pattern

__all__ = ["MAX_SIZE", "too_large"]

#: Instructions of all patterns of one definition, each pattern counted once. Real ones have some thousands.
MAX_SIZE: Final = 500_000
#: Minimum size of a pattern: it has states besides its instructions.
_LEAST: Final = 100


def too_large(schemas: Any) -> bool:
    """Whether the patterns of these schemas are too large together. Invalid ones are reported elsewhere."""
    seen: set[str] = set()
    size = 0
    waiting = [schemas]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
            continue
        if not isinstance(node, dict):
            continue
        waiting += node.values()
        pattern = node.get("pattern")
        if isinstance(pattern, str) and pattern not in seen:
            seen.add(pattern)
            size += _size(pattern)
            if size > MAX_SIZE:
                return True
    return False


def _size(pattern: str) -> int:
    try:
        return max(_LEAST, compile_pattern(pattern).size)
    except PatternError:
        return _LEAST
