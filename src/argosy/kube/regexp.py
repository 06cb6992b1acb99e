"""Regular expressions written by users: Go's syntax, matched by RE2, in time linear in the text.

Python's own `re` backtracks, so a user's pattern could hang the process, and its syntax differs from what authors of CRDs and
annotations test against. RE2 has the same syntax and parser as Go; its errors are translated to Go's. A match releases the
interpreter lock; at worst it takes `size` times the length of the text (some 10 ns each).
"""

import re
from typing import Final

import re2

__all__ = ["LARGE", "SMALL", "Pattern", "PatternError", "compile_pattern"]

#: Memory of one pattern, most of it for cached states. Few patterns do not fit into the first; those that do not fit into the
#: last are refused. A small one has some ten thousand instructions.
SMALL: Final = 256 * 1024
LARGE: Final = 8 * 1024 * 1024
_MAX_LENGTH: Final = 32 * 1024
#: Escapes, outside of quoted parts.
_ESCAPES: Final = re.compile(r"\\Q.*?(?:\\E|\Z)|\\(.)", re.DOTALL)

_WORDS: Final = {
    "invalid escape sequence": "invalid escape sequence",
    "invalid character class": "invalid character class",
    "invalid character class range": "invalid character class range",
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "unexpected )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid UTF-8": "invalid UTF-8",
    "invalid named capture group": "invalid named capture",
}


class PatternError(ValueError):
    """The pattern is not one Go would accept; the message is Go's."""


class Pattern:
    """A compiled pattern. `size` is the number of its instructions."""

    __slots__ = ("_compiled", "size")

    def __init__(self, compiled: "re2._Regexp"):
        self._compiled = compiled
        self.size: int = compiled.programsize

    def matches(self, text: str) -> bool:
        """Whether the text contains a match."""
        return self._compiled.search(text.encode(errors="replace")) is not None


def compile_pattern(pattern: str, largest: int = LARGE) -> Pattern:
    """Uses at most `largest` bytes, SMALL or LARGE, as long as it is kept. Raises PatternError."""
    if len(pattern) > _MAX_LENGTH:
        raise _error("expression too large", pattern)
    for memory in sorted({SMALL, largest}):
        options = re2.Options()
        options.log_errors = False
        options.never_capture = True
        options.max_mem = memory
        try:
            compiled = re2.compile(pattern.encode(errors="replace"), options)
        except re2.error as error:
            text = error.args[0]
            problem = text.decode(errors="replace") if isinstance(text, bytes) else str(text)
            if not problem.startswith("pattern too large"):
                raise _in_go_words(problem, pattern) from None
            continue
        re2.purge()  # its own cache would keep the last hundred patterns, with all states, of objects long gone
        if any(found[1] == "C" for found in _ESCAPES.finditer(pattern)):  # RE2's escape for one byte of a character
            raise _error("invalid escape sequence", r"\C")
        return Pattern(compiled)
    raise _error("expression too large", pattern)


def _in_go_words(problem: str, pattern: str) -> PatternError:
    what, _, where = problem.partition(": ")
    if where in ("(?<=", "(?<!"):  # which Go takes for the beginning of a name
        rest = pattern[pattern.find(where) :]
        name, bracket, _ = rest.partition(">")
        return _error("invalid named capture", name + bracket)
    return _error(_WORDS.get(what, what), where)


def _error(what: str, where: str) -> PatternError:
    return PatternError(f"error parsing regexp: {what}: `{where}`")
