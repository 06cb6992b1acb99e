"""Regular expressions of schemas: Go's syntax (RE2), matched in time linear in the text.

Python's own `re` backtracks, so a pattern somebody else wrote could hang the server, and its syntax differs from what
CRD authors test against. Here a pattern becomes a nondeterministic automaton whose sets of states are remembered as they
are met, so the usual text costs one dictionary look-up a character. Only whether a text matches is answered: no groups.
"""

from collections.abc import Callable

from argosy.server.crd.regexp_syntax import (
    Any,
    Assertion,
    Choice,
    Class,
    Node,
    PatternError,
    Repeat,
    Sequence,
    parse,
)

__all__ = ["Matcher", "PatternError", "compile_pattern"]

#: Repetitions are unrolled; beyond this many states a pattern is refused, as Go refuses repeats above 1000.
_STATES = 20_000
#: Remembered transitions of one pattern; the memory starts anew when full.
_REMEMBERED = 5_000

_MATCH = -1

Matcher = Callable[[str], bool]


def compile_pattern(pattern: str) -> Matcher:
    """A function telling whether a text contains a match; raises PatternError with Go's words."""
    return _Automaton(parse(pattern)).matches


class _Step:
    """What is known after some characters: the states reached, and the character before (None at the start)."""

    __slots__ = ("before", "matched", "next", "states")

    def __init__(self, states: frozenset[int], before: str | None):
        self.states = states
        self.before = before
        self.next: dict[str, _Step | None] = {}
        self.matched: bool | None = None


class _Automaton:
    """States are numbers: `_edges` lists what follows without a character, `_takes` what needs one."""

    def __init__(self, tree: Node):
        self._edges: list[list[tuple[str, int]]] = []
        self._takes: list[tuple[Class | Any, int] | None] = []
        self._built = 0
        self._start = self._build(tree, _MATCH)
        self._forget()

    def matches(self, text: str) -> bool:
        step = self._first
        for char in text:
            try:
                following = step.next[char]
            except KeyError:
                following = self._advance(step, char)
            if following is None:
                return True
            step = following
        if step.matched is None:
            step.matched = _MATCH in self._reach(step, None)
        return step.matched

    def _advance(self, step: _Step, char: str) -> _Step | None:
        """The step after `char`; None when a match was complete in front of it."""
        reached = self._reach(step, char)
        result: _Step | None = None
        if _MATCH not in reached:
            after = set()
            for state in reached:
                taken = self._takes[state]
                if taken is not None and taken[0].accepts(char):
                    after.add(taken[1])
            result = self._interned(frozenset(after), char)
        if self._remembered >= _REMEMBERED:
            self._forget()
        step.next[char] = result
        self._remembered += 1
        return result

    def _forget(self) -> None:
        self._remembered = 0
        self._first = _Step(frozenset(), None)
        self._steps: dict[tuple[frozenset[int], int], _Step] = {}

    def _interned(self, states: frozenset[int], char: str) -> _Step:
        """Equal steps are one object, else the memory would be a tree as deep as the text."""
        return self._steps.setdefault((states, _kind(char)), _Step(states, char))

    def _reach(self, step: _Step, following: str | None) -> set[int]:
        """All states without another character, a match being allowed to begin here too."""
        reached: set[int] = set()
        waiting = [self._start, *step.states]
        while waiting:
            state = waiting.pop()
            if state in reached:
                continue
            reached.add(state)
            if state == _MATCH:
                continue
            for condition, target in self._edges[state]:
                if not condition or _holds(condition, step.before, following):
                    waiting.append(target)
        return reached

    def _new(self) -> int:
        if len(self._edges) >= _STATES:
            raise PatternError("expression too large")
        self._edges.append([])
        self._takes.append(None)
        return len(self._edges) - 1

    def _build(self, node: Node, target: int) -> int:
        """States for `node` that lead on to `target`; returns the entry."""
        self._built += 1
        if self._built > 4 * _STATES:  # repetitions of nothing make no states, yet take their time
            raise PatternError("expression too large")
        if isinstance(node, Sequence):
            for part in reversed(node.parts):
                target = self._build(part, target)
            return target
        if isinstance(node, Choice):
            entry = self._new()
            for part in node.parts:
                self._edges[entry].append(("", self._build(part, target)))
            return entry
        if isinstance(node, Assertion):
            entry = self._new()
            self._edges[entry].append((node.kind, target))
            return entry
        if isinstance(node, Repeat):
            return self._repeat(node, target)
        entry = self._new()
        self._takes[entry] = (node, target)
        return entry

    def _repeat(self, node: Repeat, target: int) -> int:
        if node.most is None:
            loop = self._new()
            self._edges[loop].append(("", target))
            self._edges[loop].append(("", self._build(node.part, loop)))
            target = loop
        else:
            leave = target
            for _ in range(node.most - node.least):
                optional = self._new()
                self._edges[optional].append(("", leave))
                self._edges[optional].append(("", self._build(node.part, target)))
                target = optional
        for _ in range(node.least):
            target = self._build(node.part, target)
        return target


def _is_word(char: str | None) -> bool:
    return char is not None and (char == "_" or (char.isascii() and char.isalnum()))


def _kind(char: str | None) -> int:
    """What assertions can tell apart about the character before."""
    if char is None:
        return 0
    if char == "\n":
        return 1
    return 2 if _is_word(char) else 3


def _holds(condition: str, before: str | None, following: str | None) -> bool:
    match condition:
        case "text-start":
            return before is None
        case "text-end":
            return following is None
        case "line-start":
            return before is None or before == "\n"
        case "line-end":
            return following is None or following == "\n"
        case "boundary":
            return _is_word(before) != _is_word(following)
        case _:
            return _is_word(before) == _is_word(following)
