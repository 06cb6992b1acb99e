"""The syntax of Go's regular expressions: a pattern's text to a small tree. Nothing is matched here.

Look-around and back references are errors, as they are in Go; so are script classes such as \\p{Greek}, which Python's
Unicode tables do not hold (general categories such as \\p{L} are there).
"""

import unicodedata
from typing import TypeAlias

import msgspec

__all__ = ["Any", "Assertion", "Choice", "Class", "Node", "PatternError", "Repeat", "Sequence", "parse"]

_MAX_REPEAT = 1000
_MAX_DEPTH = 200
_MAX_LENGTH = 32_768
_LAST = 0x10FFFF

Ranges: TypeAlias = tuple[tuple[int, int], ...]


class PatternError(ValueError):
    """The pattern is not one Go would accept."""


class Class(msgspec.Struct, frozen=True):
    """One character out of ranges and Unicode categories, or, negated, any other."""

    ranges: Ranges = ()
    #: (category prefix, negated)
    categories: tuple[tuple[str, bool], ...] = ()
    negated: bool = False
    fold: bool = False

    def accepts(self, char: str) -> bool:
        found = self._holds(char) or (self.fold and (self._holds(char.lower()) or self._holds(char.upper())))
        return found != self.negated

    def _holds(self, char: str) -> bool:
        if len(char) != 1:
            return False
        code = ord(char)
        if any(low <= code <= high for low, high in self.ranges):
            return True
        return any(unicodedata.category(char).startswith(name) != negated for name, negated in self.categories)


class Any(msgspec.Struct, frozen=True):
    newline: bool = False

    def accepts(self, char: str) -> bool:
        return self.newline or char != "\n"


class Assertion(msgspec.Struct, frozen=True):
    kind: str


class Sequence(msgspec.Struct, frozen=True):
    parts: "tuple[Node, ...]"


class Choice(msgspec.Struct, frozen=True):
    parts: "tuple[Node, ...]"


class Repeat(msgspec.Struct, frozen=True):
    part: "Node"
    least: int
    most: int | None


Node: TypeAlias = Class | Any | Assertion | Sequence | Choice | Repeat

_DIGIT: Ranges = ((48, 57),)
_SPACE: Ranges = ((9, 10), (12, 13), (32, 32))
_WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
_PERL: dict[str, Ranges] = {"d": _DIGIT, "s": _SPACE, "w": _WORD}
_POSIX: dict[str, Ranges] = {
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "alpha": ((65, 90), (97, 122)),
    "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)),
    "digit": _DIGIT,
    "graph": ((33, 126),),
    "lower": ((97, 122),),
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "upper": ((65, 90),),
    "word": _WORD,
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}
_ESCAPES = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_CATEGORIES = {"L", "M", "N", "P", "S", "Z", "C"} | {
    "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po",
    "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co",
}  # fmt: skip


def parse(pattern: str) -> Node:
    if len(pattern) > _MAX_LENGTH:
        raise PatternError("expression too large")
    parser = _Parser(pattern)
    tree = parser.choice(_Flags(), 0)
    if parser.at < len(pattern):
        raise _error("unexpected )", pattern)
    return tree


def _error(what: str, where: str) -> PatternError:
    return PatternError(f"error parsing regexp: {what}: `{where}`")


def _inverse(ranges: Ranges) -> Ranges:
    result = []
    low = 0
    for first, last in sorted(ranges):
        if first > low:
            result.append((low, first - 1))
        low = max(low, last + 1)
    if low <= _LAST:
        result.append((low, _LAST))
    return tuple(result)


class _Flags(msgspec.Struct, frozen=True):
    i: bool = False
    m: bool = False
    s: bool = False
    U: bool = False


class _Parser:
    def __init__(self, text: str):
        self.text = text
        self.at = 0

    def choice(self, flags: _Flags, depth: int) -> Node:
        if depth > _MAX_DEPTH:
            raise PatternError("expression nests too deeply")
        branches: list[Node] = []
        parts: list[Node] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == ")":
                break
            if char == "|":
                self.at += 1
                branches.append(Sequence(tuple(parts)))
                parts = []
            elif self.text.startswith("(?", self.at) and (changed := self._flags_only(flags)) is not None:
                flags = changed
            elif self.text.startswith(r"\Q", self.at):
                end = self.text.find(r"\E", self.at)
                quoted = self.text[self.at + 2 : end if end >= 0 else None]
                self.at = len(self.text) if end < 0 else end + 2
                parts.extend(_literal(c, flags) for c in quoted)
            else:
                parts.append(self._repeated(self._atom(flags, depth)))
        branches.append(Sequence(tuple(parts)))
        return branches[0] if len(branches) == 1 else Choice(tuple(branches))

    def _flags_only(self, flags: _Flags) -> _Flags | None:
        """`(?i)` changes the flags up to the end of the group; `(?i:…)` is left to `_group`."""
        end = self.at + 2
        while end < len(self.text) and self.text[end] in "imsU-":
            end += 1
        if end == self.at + 2 or not self.text.startswith(")", end):
            return None
        letters = self.text[self.at + 2 : end]
        self.at = end + 1
        return _changed(flags, letters)

    def _atom(self, flags: _Flags, depth: int) -> Node:
        char = self.text[self.at]
        if char in "*+?":
            raise _error("missing argument to repetition operator", char)
        if char == "(":
            return self._group(flags, depth)
        if char == "[":
            return self._bracket(flags)
        if char == "\\":
            return self._escape(flags)
        self.at += 1
        if char == ".":
            return Any(newline=flags.s)
        if char == "^":
            return Assertion("line-start" if flags.m else "text-start")
        if char == "$":
            return Assertion("line-end" if flags.m else "text-end")
        return _literal(char, flags)

    def _group(self, flags: _Flags, depth: int) -> Node:
        start = self.at
        self.at += 1
        if self.text.startswith("?", self.at):
            rest = self.text[self.at :]
            if rest.startswith(("?P<", "?<")) and not rest.startswith(("?<=", "?<!")):
                end = self.text.find(">", self.at)
                name = self.text[self.at : end].split("<", 1)[1] if end > 0 else ""
                if not name.isidentifier():
                    raise _error("invalid named capture", self.text[start : end + 1 if end > 0 else None])
                self.at = end + 1
            else:
                end = self.at + 1
                while end < len(self.text) and self.text[end] in "imsU-":
                    end += 1
                if not self.text.startswith(":", end):
                    raise _error("invalid or unsupported Perl syntax", self.text[start : end + 1])
                flags = _changed(flags, self.text[self.at + 1 : end])
                self.at = end + 1
        inner = self.choice(flags, depth + 1)
        if not self.text.startswith(")", self.at):
            raise _error("missing closing )", self.text)
        self.at += 1
        return inner

    def _repeated(self, node: Node) -> Node:
        start = self.at
        seen = False
        while self.at < len(self.text):
            begin = self.at
            bounds = self._bounds()
            if bounds is None:
                return node
            if seen:
                raise _error("invalid nested repetition operator", self.text[start : self.at])
            least, most = bounds
            if least > _MAX_REPEAT or (most is not None and (most > _MAX_REPEAT or most < least)):
                raise _error("invalid repeat count", self.text[begin : self.at])
            if self.text.startswith("?", self.at):
                self.at += 1
            node, seen = Repeat(node, least, most), True
        return node

    def _bounds(self) -> tuple[int, int | None] | None:
        char = self.text[self.at]
        simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        if char in simple:
            self.at += 1
            return simple[char]
        if char != "{":
            return None
        end = self.text.find("}", self.at)
        low, comma, high = self.text[self.at + 1 : max(end, self.at + 1)].partition(",")
        if not (_is_number(low) and (not high or _is_number(high))):
            return None  # a literal brace, as in Go
        self.at = end + 1
        if not comma:
            return int(low), int(low)
        return int(low), int(high) if high else None

    def _escape(self, flags: _Flags) -> Node:
        letter = self.text[self.at + 1 : self.at + 2]
        assertions = {"A": "text-start", "z": "text-end", "b": "boundary", "B": "no-boundary"}
        if letter in assertions and letter:
            self.at += 2
            return Assertion(assertions[letter])
        ranges, categories = self._escaped()
        return Class(ranges, categories, fold=flags.i)

    def _escaped(self) -> tuple[Ranges, tuple[tuple[str, bool], ...]]:
        """What a backslash means as a set of characters, inside brackets or out."""
        start = self.at
        letter = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if not letter:
            raise PatternError("error parsing regexp: trailing backslash at end of expression: ``")
        if letter.lower() in _PERL:
            ranges = _PERL[letter.lower()]
            return (ranges if letter.islower() else _inverse(ranges)), ()
        if letter in "pP":
            return self._category(start, letter == "P")
        if letter in _ESCAPES:
            code = _ESCAPES[letter]
        elif letter == "x":
            code = self._hexadecimal(start)
        elif letter == "0":
            digits = self.text[self.at : self.at + 2]
            digits = digits[: next((n for n, c in enumerate(digits) if c not in "01234567"), len(digits))]
            self.at += len(digits)
            code = int(digits or "0", 8)
        elif not (letter.isascii() and letter.isalnum()):
            code = ord(letter)
        else:
            raise _error("invalid escape sequence", self.text[start : self.at])
        return ((code, code),), ()

    def _category(self, start: int, negated: bool) -> tuple[Ranges, tuple[tuple[str, bool], ...]]:
        name = self.text[self.at : self.at + 1]
        self.at += 1
        if name == "{":
            end = self.text.find("}", self.at)
            name = self.text[self.at : max(end, self.at)]
            self.at = end + 1 if end >= 0 else len(self.text)
        if name.startswith("^"):
            name, negated = name[1:], not negated
        if name not in _CATEGORIES:
            raise _error("invalid character class range", self.text[start : self.at])
        return (), ((name, negated),)

    def _hexadecimal(self, start: int) -> int:
        if self.text.startswith("{", self.at):
            end = self.text.find("}", self.at)
            digits = self.text[self.at + 1 : max(end, self.at + 1)]
            self.at = end + 1 if end >= 0 else len(self.text)
        else:
            digits = self.text[self.at : self.at + 2]
            self.at += 2
            digits = digits if len(digits) == 2 else ""
        valid = 0 < len(digits) <= 6 and all(c in "0123456789abcdefABCDEF" for c in digits)
        if not valid or int(digits, 16) > _LAST:
            raise _error("invalid escape sequence", self.text[start : self.at])
        return int(digits, 16)

    def _bracket(self, flags: _Flags) -> Node:
        start = self.at
        self.at += 1
        negated = self.text.startswith("^", self.at)
        self.at += negated
        ranges: list[tuple[int, int]] = []
        categories: list[tuple[str, bool]] = []
        first = True
        while first or not self.text.startswith("]", self.at):
            if self.at >= len(self.text):
                raise _error("missing closing ]", self.text[start:])
            first = False
            if self.text.startswith("[:", self.at) and (end := self.text.find(":]", self.at + 2)) >= 0:
                ranges.extend(self._posix(end))
                continue
            found, named = self._member()
            categories.extend(named)
            if not (len(found) == 1 and found[0][0] == found[0][1] and self._range_follows()):
                ranges.extend(found)
                continue
            self.at += 1
            begin = self.at
            upper, named = self._member()
            if named or len(upper) != 1 or upper[0][0] != upper[0][1] or upper[0][0] < found[0][0]:
                raise _error("invalid character class range", f"{chr(found[0][0])}-{self.text[begin : self.at]}")
            ranges.append((found[0][0], upper[0][0]))
        self.at += 1
        return Class(tuple(ranges), tuple(categories), negated, flags.i)

    def _range_follows(self) -> bool:
        return self.text.startswith("-", self.at) and not self.text.startswith("-]", self.at)

    def _posix(self, end: int) -> Ranges:
        name = self.text[self.at + 2 : end]
        inverted = name.startswith("^")
        ranges = _POSIX.get(name.removeprefix("^"))
        if ranges is None:
            raise _error("invalid character class range", self.text[self.at : end + 2])
        self.at = end + 2
        return _inverse(ranges) if inverted else ranges

    def _member(self) -> tuple[Ranges, tuple[tuple[str, bool], ...]]:
        if self.at >= len(self.text):
            raise _error("missing closing ]", self.text)
        if self.text[self.at] == "\\":
            return self._escaped()
        code = ord(self.text[self.at])
        self.at += 1
        return ((code, code),), ()


def _literal(char: str, flags: _Flags) -> Class:
    return Class(((ord(char), ord(char)),), fold=flags.i)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 6


def _changed(flags: _Flags, letters: str) -> _Flags:
    on = True
    for letter in letters:
        if letter == "-":
            on = False
        else:
            flags = msgspec.structs.replace(flags, **{letter: on})
    return flags
