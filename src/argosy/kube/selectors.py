"""Label and field selectors: parsed from a query or an object's LabelSelector, matched, written back canonically.

The grammar, its sorting and its error texts are Kubernetes'. Not here: which fields of a kind may be selected.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec
import orjson

from argosy.kube.names import label_value_errors, qualified_name_errors

__all__ = [
    "EVERYTHING",
    "NOTHING",
    "FieldRequirement",
    "FieldSelector",
    "LabelSelector",
    "Requirement",
    "SelectorError",
    "from_expressions",
    "from_label_selector",
    "from_map",
    "from_match",
    "integer",
    "parse_field_selector",
    "parse_label_selector",
]

EQUALS: Final = "="
DOUBLE_EQUALS: Final = "=="
NOT_EQUALS: Final = "!="
IN: Final = "in"
NOT_IN: Final = "notin"
EXISTS: Final = "exists"
DOES_NOT_EXIST: Final = "!"
GREATER_THAN: Final = "gt"
LESS_THAN: Final = "lt"

#: Longer selectors are refused rather than parsed; a URL is shorter anyway.
_MAX_LENGTH: Final = 1 << 20
#: Selectors up to this length are cached; clients send the same few over and over.
_REMEMBERED: Final = 512


class SelectorError(ValueError):
    """The selector is invalid; the message is Kubernetes' own."""


class Requirement(msgspec.Struct, frozen=True):
    """One condition on one label. `values` is sorted and free of duplicates if the condition is to be written back."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """For an absent label, `!=` and `notin` hold and `=`, `in`, `gt` and `lt` do not."""
        value = labels.get(self.key)
        match self.operator:
            case "=" | "==" | "in":
                return value is not None and value in self.values
            case "!=" | "notin":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
            case _:
                return self._compares(value)

    def _compares(self, value: str | None) -> bool:
        have, bound = integer(value), integer(self.values[0] if len(self.values) == 1 else None)
        if have is None or bound is None:
            return False
        return have > bound if self.operator == GREATER_THAN else have < bound

    def __str__(self) -> str:
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "in" | "notin":
                return f"{self.key} {self.operator} ({','.join(self.values)})"
            case "gt" | "lt":
                return f"{self.key}{'>' if self.operator == GREATER_THAN else '<'}{self.values[0]}"
            case _:
                return f"{self.key}{self.operator}{self.values[0]}"


class LabelSelector(msgspec.Struct, frozen=True):
    """All requirements must hold. Without any it selects everything, unless it is NOTHING."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        if self.nothing:
            return False
        labels = labels or {}
        return all(requirement.matches(labels) for requirement in self.requirements)

    def exact(self) -> dict[str, str]:
        """The labels that must have one given value, for an index lookup before matching the rest."""
        return {r.key: r.values[0] for r in self.requirements if r.operator in ("=", "==", "in") and len(r.values) == 1}

    @property
    def empty(self) -> bool:
        return not self.requirements and not self.nothing

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)


EVERYTHING: Final = LabelSelector()
NOTHING: Final = LabelSelector(nothing=True)


def from_map(labels: Mapping[str, str] | None) -> LabelSelector:
    """Equality with every given label, as in selectors of Services and ReplicationControllers. Nothing is checked."""
    return LabelSelector(tuple(Requirement(key, EQUALS, (value,)) for key, value in sorted((labels or {}).items())))


def from_match(
    match_labels: Mapping[str, str] | None, match_expressions: Sequence[Mapping[str, Any]] | None
) -> LabelSelector:
    """The parts of a LabelSelector object; raises if an operator, key or value is invalid."""
    requirements = [_requirement(key, EQUALS, [value]) for key, value in (match_labels or {}).items()]
    for expression in match_expressions or ():
        operator = _EXPRESSION_OPERATORS.get(expression.get("operator", ""))
        if operator is None:
            raise SelectorError(f"{_quoted(expression.get('operator', ''))} is not a valid label selector operator")
        requirements.append(_requirement(expression.get("key", ""), operator, expression.get("values") or []))
    return LabelSelector(tuple(sorted(requirements, key=lambda r: r.key)))


def from_label_selector(selector: Mapping[str, Any] | None) -> LabelSelector:
    """A LabelSelector object: absent selects nothing, empty selects everything."""
    if selector is None:
        return NOTHING
    return from_match(selector.get("matchLabels"), selector.get("matchExpressions"))


def from_expressions(expressions: Iterable[Mapping[str, Any]]) -> LabelSelector:
    """The matchExpressions or matchFields of a node selector term, which may also compare by Gt and Lt.

    Nothing is checked: a term that no server would have stored selects nothing.
    """
    requirements = []
    for expression in expressions:
        operator = _TERM_OPERATORS.get(expression.get("operator", ""))
        if operator is None:
            return NOTHING
        requirements.append(Requirement(expression.get("key", ""), operator, tuple(expression.get("values") or ())))
    return LabelSelector(tuple(requirements))


_EXPRESSION_OPERATORS: Final = {"In": IN, "NotIn": NOT_IN, "Exists": EXISTS, "DoesNotExist": DOES_NOT_EXIST}
_TERM_OPERATORS: Final = {**_EXPRESSION_OPERATORS, "Gt": GREATER_THAN, "Lt": LESS_THAN}


def parse_label_selector(text: str) -> LabelSelector:
    """A `labelSelector` query parameter, `kubectl -l`, or a CLI flag."""
    if not text:
        return EVERYTHING
    return _remembered_labels(text) if len(text) <= _REMEMBERED else _parsed_labels(text)


def _parsed_labels(text: str) -> LabelSelector:
    if len(text) > _MAX_LENGTH:
        raise SelectorError("selector is too long")
    requirements = _Parser(list(_tokens(text))).selector()
    return LabelSelector(tuple(sorted(requirements, key=lambda r: r.key)))


_remembered_labels = lru_cache(maxsize=1024)(_parsed_labels)


def _requirement(key: str, operator: str, values: Iterable[str]) -> Requirement:
    values = tuple(values)
    wrong = (
        [f"key: Invalid value: {_quoted(key)}: {'; '.join(messages)}"]
        if (messages := qualified_name_errors(key))
        else []
    )
    shown = orjson.dumps(list(values)).decode()
    if operator in (IN, NOT_IN) and not values:
        wrong.append(f"values: Invalid value: {shown}: for 'in', 'notin' operators, values set can't be empty")
    if operator in (EXISTS, DOES_NOT_EXIST) and values:
        wrong.append(f"values: Invalid value: {shown}: values set must be empty for exists and does not exist")
    if operator in (GREATER_THAN, LESS_THAN):
        wrong += [
            f"values[{i}]: Invalid value: {_quoted(value)}: for 'Gt', 'Lt' operators, the value must be an integer"
            for i, value in enumerate(values)
            if integer(value) is None
        ]
    for i, value in enumerate(values):
        if messages := label_value_errors(value):
            wrong.append(f"values[{i}][{key}]: Invalid value: {_quoted(value)}: {'; '.join(messages)}")
    if wrong:
        raise SelectorError(wrong[0] if len(wrong) == 1 else f"[{', '.join(wrong)}]")
    return Requirement(key, operator, tuple(sorted(set(values))))


def integer(value: str | None) -> int | None:
    """A 64-bit decimal as Go's ParseInt reads it: a sign and ASCII digits, no blanks or underscores."""
    if value is None or len(value) > 20 or not value.isascii():
        return None
    digits = value[1:] if value[:1] in ("+", "-") else value
    if not digits.isdigit():
        return None
    number = int(value)
    return number if -(2**63) <= number < 2**63 else None


def _quoted(value: Any) -> str:
    return orjson.dumps(value).decode()


class _Token(NamedTuple):
    kind: str
    text: str


_SYMBOLS: Final = "=!(),><"
_END: Final = _Token("end", "")


def _tokens(text: str) -> Iterator[_Token]:
    position, length = 0, len(text)
    while position < length:
        char = text[position]
        if char in " \t\r\n":
            position += 1
            continue
        if char in _SYMBOLS:
            symbol = text[position : position + 2] if text[position : position + 2] in ("==", "!=") else char
            position += len(symbol)
            yield _Token(symbol, symbol)
            continue
        start = position
        while position < length and text[position] not in _SYMBOLS and text[position] not in " \t\r\n":
            position += 1
        word = text[start:position]
        yield _Token(word if word in (IN, NOT_IN) else "word", word)
    yield _END


class _Parser:
    """Recursive descent over the tokens; `in` and `notin` are words wherever no operator is expected."""

    def __init__(self, tokens: list[_Token]):
        self._tokens = tokens
        self._position = 0

    def selector(self) -> list[Requirement]:
        found: list[Requirement] = []
        if self._peek().kind not in ("word", "!", "end"):
            raise SelectorError(f"found '{self._peek().text}', expected: !, identifier, or 'end of string'")
        while self._peek().kind != "end":
            try:
                found.append(self._requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            token = self._next()
            if token.kind == "end":
                break
            if token.kind != ",":
                raise SelectorError(f"found '{token.text}', expected: ',' or 'end of string'")
            if self._peek().kind not in ("word", "!"):
                raise SelectorError(f"found '{self._peek().text}', expected: identifier after ','")
        return found

    def _requirement(self) -> Requirement:
        token = self._next()
        negated = token.kind == "!"
        if negated:
            token = self._next()
        if token.kind != "word":
            raise SelectorError(f"found '{token.text}', expected: identifier")
        key = token.text
        if messages := qualified_name_errors(key):
            raise SelectorError(f"<nil>: Invalid value: {_quoted(key)}: {'; '.join(messages)}")
        if negated:
            return _requirement(key, DOES_NOT_EXIST, ())
        if self._peek().kind in ("end", ","):
            return _requirement(key, EXISTS, ())
        operator = self._operator()
        values = self._value_set() if operator in (IN, NOT_IN) else self._exact_value()
        return _requirement(key, operator, sorted(values))

    def _operator(self) -> str:
        token = self._tokens[self._position]
        self._position += 1
        operator = _OPERATOR_TOKENS.get(token.kind)
        if operator is None:
            raise SelectorError(f"found '{token.text}', expected: in, notin, =, ==, !=, gt, lt")
        return operator

    def _value_set(self) -> set[str]:
        token = self._next()
        if token.kind != "(":
            raise SelectorError(f"found '{token.text}' expected: '('")
        if self._peek().kind not in ("word", ",", ")"):
            raise SelectorError(f"found '{self._peek().text}', expected: ',', ')' or identifier")
        values: set[str] = set()
        expects_value = True
        while True:
            token = self._next()
            if token.kind == "word" and expects_value:
                values.add(token.text)
                expects_value = False
            elif token.kind == ",":
                if expects_value:
                    values.add("")
                expects_value = True
            elif token.kind == ")":
                if expects_value:
                    values.add("")
                return values
            else:
                expected = "',', or identifier" if expects_value else "',' or ')'"
                raise SelectorError(f"found '{token.text}', expected: {expected}")

    def _exact_value(self) -> set[str]:
        if self._peek().kind in ("end", ","):
            return {""}
        token = self._next()
        if token.kind != "word":
            raise SelectorError(f"found '{token.text}', expected: identifier")
        return {token.text}

    def _peek(self) -> _Token:
        token = self._tokens[self._position]
        return _Token("word", token.text) if token.kind in (IN, NOT_IN) else token

    def _next(self) -> _Token:
        token = self._peek()
        if token.kind != "end":
            self._position += 1
        return token


_OPERATOR_TOKENS: Final = {
    IN: IN,
    NOT_IN: NOT_IN,
    "=": EQUALS,
    "==": DOUBLE_EQUALS,
    "!=": NOT_EQUALS,
    ">": GREATER_THAN,
    "<": LESS_THAN,
}


class FieldRequirement(NamedTuple):
    """One condition on one field; the operator is "=" or "!="."""

    field: str
    operator: str
    value: str

    def __str__(self) -> str:
        escaped = self.value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
        return f"{self.field}{self.operator}{escaped}"


class FieldSelector(msgspec.Struct, frozen=True):
    """All requirements must hold; without any it selects everything."""

    requirements: tuple[FieldRequirement, ...] = ()

    def __iter__(self) -> Iterator[FieldRequirement]:
        return iter(self.requirements)

    def matches(self, get: Callable[[str], str]) -> bool:
        """`get` returns a field's value by its name, "" if it is absent."""
        return all((get(r.field) == r.value) is (r.operator == EQUALS) for r in self.requirements)

    def exact(self) -> dict[str, str]:
        return {r.field: r.value for r in self.requirements if r.operator == EQUALS}

    @property
    def empty(self) -> bool:
        return not self.requirements

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)


def parse_field_selector(text: str) -> FieldSelector:
    """A `fieldSelector` query parameter; a backslash escapes a backslash, a comma or an equals sign in a value."""
    return _remembered_fields(text) if len(text) <= _REMEMBERED else _parsed_fields(text)


def _parsed_fields(text: str) -> FieldSelector:
    if len(text) > _MAX_LENGTH:
        raise SelectorError("selector is too long")
    found = []
    for term in sorted(_terms(text)):
        if not term:
            continue
        split = _split_term(term)
        if split is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{term}'")
        field, operator, value = split
        if field or value:  # Kubernetes lets a bare operator stand for nothing
            found.append(FieldRequirement(field, operator, _unescaped(value)))
    return FieldSelector(tuple(found))


_remembered_fields = lru_cache(maxsize=1024)(_parsed_fields)


def _terms(text: str) -> list[str]:
    terms, start, escaped = [], 0, False
    for position, char in enumerate(text):
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == ",":
            terms.append(text[start:position])
            start = position + 1
    terms.append(text[start:])
    return terms


def _split_term(term: str) -> tuple[str, str, str] | None:
    for position in range(len(term)):
        for operator in (NOT_EQUALS, DOUBLE_EQUALS, EQUALS):
            if term.startswith(operator, position):
                canonical = NOT_EQUALS if operator == NOT_EQUALS else EQUALS
                return term[:position], canonical, term[position + len(operator) :]
    return None


def _unescaped(value: str) -> str:
    if "\\" not in value and "=" not in value:
        return value
    out, escaped = [], False
    for char in value:
        if escaped:
            if char not in "\\,=":
                raise SelectorError(f"invalid field selector: invalid escape sequence: \\{char}")
            out.append(char)
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == "=":
            raise SelectorError(f"invalid field selector: unescaped character in value: {ord(char)}")
        else:
            out.append(char)
    if escaped:
        raise SelectorError("invalid field selector: invalid escape sequence: \\")
    return "".join(out)
