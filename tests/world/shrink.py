"""Shrinking: the shortest script found that still fails."""

import re
from collections.abc import Callable, Sequence

from tests.world.steps import Script

__all__ = ["alike", "shrunk"]

_NUMBERS = re.compile(r"[\d.]+")


def alike(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether two runs broke the same promise, times and numbers apart."""
    return bool({_NUMBERS.sub("", each) for each in first} & {_NUMBERS.sub("", each) for each in second})


def shrunk(script: Script, fails: Callable[[Script], bool], tries: int = 200) -> Script:
    """Leaves steps out, many at a time first, for as long as it still fails and so many tries last."""
    size = max(len(script) // 2, 1)
    while tries > 0:
        start, shorter = 0, False
        while start < len(script) and tries > 0:
            without = script[:start] + script[start + size :]
            tries -= 1
            if fails(without):
                script, shorter = without, True
            else:
                start += size
        if size == 1 and not shorter:
            break
        size = size if shorter and size == 1 else max(size // 2, 1)
    return script
