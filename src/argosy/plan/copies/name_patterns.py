"""Regular expressions that choose clusters by name: a bounded subset of Go's syntax.

Supported are literals, classes, groups, alternatives, repetitions and anchors. Anything else is an error.
"""

import re
from functools import lru_cache
from typing import Final

from argosy.kube.regexp import SMALL, Pattern, PatternError, compile_pattern

__all__ = ["name_pattern"]

_MAX_DEPTH: Final = 100
#: How many expressions are kept, and of how many characters: together at most 16 MB.
_KEPT: Final = 64
_LONGEST_KEPT: Final = 512
_ESCAPES: Final = frozenset("dDwWsSntrfvaAzbB")
_TOKENS: Final = re.compile(
    r"\\(?P<escape>.)|(?P<set>\[\^?\]?(?:\\.|[^]\\])*)|(?P<flags>\(\?(?!:|P?<))|(?P<open>\()|(?P<close>\))", re.DOTALL
)
_IN_SET: Final = re.compile(r"\\(?P<escape>.)|(?P<named>\[:)", re.DOTALL)


def name_pattern(text: str) -> Pattern:
    """Raises PatternError."""
    return _remembered(text) if len(text) <= _LONGEST_KEPT else _compiled(text)


def _compiled(text: str) -> Pattern:
    _check(text)
    return compile_pattern(text, SMALL)


_remembered = lru_cache(maxsize=_KEPT)(_compiled)


def _check(text: str) -> None:
    depth = 0
    for token in _TOKENS.finditer(text):
        match token.lastgroup:
            case "escape":
                _check_escape(token["escape"])
            case "set":
                _check_set(text, token["set"])
            case "flags":
                raise PatternError(f"flags and look-around are not supported: `{text}`")
            case "open":
                depth += 1
            case "close":
                depth -= 1
        if depth > _MAX_DEPTH:
            raise PatternError("expression nests too deeply")


def _check_set(text: str, chars: str) -> None:
    for inner in _IN_SET.finditer(chars, 1):
        if inner["named"]:
            raise PatternError(f"named character classes are not supported: `{text}`")
        if inner["escape"] in "DWS":
            raise PatternError(f"a negated class inside a class is not supported: `{text}`")
        _check_escape(inner["escape"])


def _check_escape(char: str) -> None:
    if char.isalnum() and char not in _ESCAPES:
        raise PatternError(f"invalid escape sequence: `\\{char}`")
