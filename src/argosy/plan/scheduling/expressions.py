"""Regular expressions that users write, searched for in time linear in the text.

Python's own engine backtracks: an annotation such as `(a+)+$` could stop the whole control plane. Go's expressions, which
the API promises, cannot; this is the part of their syntax that selects names: literals, classes, groups, alternatives,
repetitions, anchors. What is not supported is an error, never another meaning.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

__all__ = ["Expression", "ExpressionError", "parse"]

#: Bounds the work a search may be: instructions times characters.
_MAX_SIZE: Final = 1000
_MAX_DEPTH: Final = 100
_MAX_REPEAT: Final = 1000
#: Characters of an expression that is remembered.
_REMEMBERED: Final = 512

_WORD: Final = (("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z"))
_CLASSES: Final = {"d": (("0", "9"),), "w": _WORD, "s": (("\t", "\n"), ("\f", "\r"), (" ", " "))}
_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_ANCHORS: Final = {"A": "begin", "z": "end", "b": "boundary", "B": "no boundary"}


class ExpressionError(ValueError):
    """The text is no expression, or one that is not supported."""


class _Set(NamedTuple):
    """One character out of these ranges, or out of all others."""

    ranges: tuple[tuple[str, str], ...]
    negated: bool = False

    def holds(self, char: str) -> bool:
        return any(low <= char <= high for low, high in self.ranges) is not self.negated


class _Step(NamedTuple):
    """An instruction: `eat` one character, go on at one of `to` without eating, or an anchor that must hold here."""

    eat: _Set | None = None
    to: tuple[int, ...] = ()
    anchor: str = ""


_Program = list[_Step]
#: Appends a piece of program that ends by falling through to what comes behind it.
_Piece = Callable[[_Program], None]


class Expression(NamedTuple):
    steps: tuple[_Step, ...]

    def search(self, text: str) -> bool:
        """Whether the expression is found anywhere in the text."""
        alive: set[int] = set()
        for position in range(len(text) + 1):
            alive = self._reachable({*alive, 0}, text, position)
            if len(self.steps) in alive:
                return True
            if position < len(text):
                char = text[position]
                alive = {at + 1 for at in alive if (eat := self.steps[at].eat) is not None and eat.holds(char)}
        return False

    def _reachable(self, starts: set[int], text: str, position: int) -> set[int]:
        """All places in the program that can be got to from these without eating."""
        seen: set[int] = set()
        waiting = list(starts)
        while waiting:
            at = waiting.pop()
            if at in seen:
                continue
            seen.add(at)
            if at == len(self.steps):
                continue
            step = self.steps[at]
            if step.anchor and _anchored(step.anchor, text, position):
                waiting.append(at + 1)
            waiting.extend(step.to)
        return seen


def _anchored(anchor: str, text: str, position: int) -> bool:
    if anchor == "begin":
        return position == 0
    if anchor == "end":
        return position == len(text)
    word = _Set(_WORD)
    before = position > 0 and word.holds(text[position - 1])
    behind = position < len(text) and word.holds(text[position])
    return (before != behind) == (anchor == "boundary")


def parse(text: str) -> Expression:
    """Raises ExpressionError."""
    return _remembered(text) if len(text) <= _REMEMBERED else _parsed(text)


def _parsed(text: str) -> Expression:
    parser = _Parser(text)
    piece = parser.alternatives(0)
    if not parser.at_end:
        raise ExpressionError(f"unexpected ): `{text}`")
    program: _Program = []
    piece(program)
    return Expression(tuple(program))


_remembered = lru_cache(maxsize=256)(_parsed)


class _Parser:
    """Reads from left to right; each method returns the piece of program it read."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    @property
    def at_end(self) -> bool:
        return self._at >= len(self._text)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _next(self) -> str:
        char = self._peek()
        if not char:
            raise ExpressionError(f"unexpected end: `{self._text}`")
        self._at += 1
        return char

    def _accept(self, word: str) -> bool:
        if not self._text.startswith(word, self._at):
            return False
        self._at += len(word)
        return True

    def alternatives(self, depth: int) -> _Piece:
        if depth > _MAX_DEPTH:
            raise ExpressionError("expression nests too deeply")
        pieces = [self._sequence(depth)]
        while self._accept("|"):
            pieces.append(self._sequence(depth))
        return pieces[0] if len(pieces) == 1 else _either(pieces)

    def _sequence(self, depth: int) -> _Piece:
        pieces: list[_Piece] = []
        while not self.at_end and self._peek() not in "|)":
            pieces.append(self._repeated(depth))
        return _one_after_another(pieces)

    def _repeated(self, depth: int) -> _Piece:
        if self._peek() in "*+?":
            raise ExpressionError(f"missing argument to repetition operator: `{self._peek()}`")
        piece = self._atom(depth)
        repeated = False
        while (counts := self._counts()) is not None:
            if repeated:
                raise ExpressionError(f"invalid nested repetition operator: `{self._text}`")
            piece, repeated = _repeat(piece, *counts), True
            self._accept("?")  # fewest or most makes no difference to whether there is a match
        return piece

    def _counts(self) -> tuple[int, int | None] | None:
        if self._accept("*"):
            return 0, None
        if self._accept("+"):
            return 1, None
        if self._accept("?"):
            return 0, 1
        if self._peek() != "{":
            return None
        inside, closed, _ = self._text[self._at + 1 :].partition("}")
        low, comma, high = inside.partition(",")
        if not closed or not _is_number(low) or (high and not _is_number(high)):
            return None  # a brace that counts nothing is a brace
        least, most = int(low), int(high) if high else None if comma else int(low)
        if max(least, most or 0) > _MAX_REPEAT or (most is not None and most < least):
            raise ExpressionError(f"invalid repeat count: `{{{inside}}}`")
        self._at += len(inside) + 2
        return least, most

    def _atom(self, depth: int) -> _Piece:
        match char := self._next():
            case "(":
                return self._group(depth)
            case "[":
                return _eat(self._set())
            case ".":
                return _eat(_Set((("\n", "\n"),), negated=True))
            case "^":
                return _anchor("begin")
            case "$":
                return _anchor("end")
            case "\\":
                return self._escape()
            case _:
                return _eat(_Set(((char, char),)))

    def _group(self, depth: int) -> _Piece:
        if self._accept("?"):
            if self._accept("P<") or self._accept("<"):
                while self._next() != ">":
                    pass
            elif not self._accept(":"):
                raise ExpressionError(f"flags and look-around are not supported: `{self._text}`")
        piece = self.alternatives(depth + 1)
        if not self._accept(")"):
            raise ExpressionError(f"missing closing ): `{self._text}`")
        return piece

    def _escape(self) -> _Piece:
        char = self._next()
        if char in _ANCHORS:
            return _anchor(_ANCHORS[char])
        return _eat(self._escaped_set(char))

    def _escaped_set(self, char: str) -> _Set:
        if char.lower() in _CLASSES:
            return _Set(_CLASSES[char.lower()], negated=char.isupper())
        if char in _CONTROLS:
            return _Set(((_CONTROLS[char], _CONTROLS[char]),))
        if char.isalnum():
            raise ExpressionError(f"invalid escape sequence: `\\{char}`")
        return _Set(((char, char),))

    def _set(self) -> _Set:
        negated = self._accept("^")
        ranges: list[tuple[str, str]] = []
        first = True
        while first or self._peek() != "]":
            first = False
            if self._text.startswith("[:", self._at):
                raise ExpressionError(f"named character classes are not supported: `{self._text}`")
            ranges += self._range()
        self._next()
        return _Set(tuple(ranges), negated)

    def _range(self) -> tuple[tuple[str, str], ...]:
        low = self._member()
        if low.negated:
            raise ExpressionError(f"a negated class inside a class is not supported: `{self._text}`")
        ends_behind = self._text[self._at + 1 : self._at + 2] == "]"
        if len(low.ranges) != 1 or low.ranges[0][0] != low.ranges[0][1] or ends_behind or not self._accept("-"):
            return low.ranges
        high = self._member()
        if len(high.ranges) != 1 or high.ranges[0][0] != high.ranges[0][1] or high.ranges[0] < low.ranges[0]:
            raise ExpressionError(f"invalid character class range: `{self._text}`")
        return ((low.ranges[0][0], high.ranges[0][0]),)

    def _member(self) -> _Set:
        char = self._next()
        return self._escaped_set(self._next()) if char == "\\" else _Set(((char, char),))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 4


def _append(program: _Program, step: _Step) -> None:
    if len(program) >= _MAX_SIZE:
        raise ExpressionError("expression is too large")
    program.append(step)


def _eat(set: _Set) -> _Piece:
    return lambda program: _append(program, _Step(eat=set))


def _anchor(name: str) -> _Piece:
    return lambda program: _append(program, _Step(anchor=name))


def _one_after_another(pieces: list[_Piece]) -> _Piece:
    def emit(program: _Program) -> None:
        for piece in pieces:
            piece(program)

    return emit


def _either(pieces: list[_Piece]) -> _Piece:
    def emit(program: _Program) -> None:
        fork = len(program)
        _append(program, _Step())
        starts, ends = [], []
        for piece in pieces:
            starts.append(len(program))
            piece(program)
            ends.append(len(program))
            _append(program, _Step())
        program[fork] = _Step(to=tuple(starts))
        for end in ends:
            program[end] = _Step(to=(len(program),))

    return emit


def _repeat(piece: _Piece, least: int, most: int | None) -> _Piece:
    def emit(program: _Program) -> None:
        for _ in range(least):
            before = len(program)
            piece(program)
            if len(program) == before:
                break  # nothing, however often
        if most is None:
            fork = len(program)
            _append(program, _Step())
            piece(program)
            _append(program, _Step(to=(fork,)))
            program[fork] = _Step(to=(fork + 1, len(program)))
            return
        forks = []
        for _ in range(most - least):
            forks.append(len(program))
            _append(program, _Step())
            piece(program)
        for fork in forks:
            program[fork] = _Step(to=(fork + 1, len(program)))

    return emit
