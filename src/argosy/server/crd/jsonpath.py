"""The JSONPath that printer columns and selectable fields use: fields, indexes, slices, wildcards and filters.

Kubernetes' dialect: `.spec.replicas`, `.metadata.labels['app\\.kubernetes\\.io/name']`, `.items[0]`, `[-1:]`, `[*]`,
`.status.conditions[?(@.type=="Ready")].status`. Missing keys select nothing; unions and recursive descent are refused.
"""

import operator
import re
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
import orjson

__all__ = ["JsonPath", "JsonPathError", "parse"]


class JsonPathError(ValueError):
    pass


class _Field(msgspec.Struct, frozen=True):
    name: str


class _Wildcard(msgspec.Struct, frozen=True):
    pass


class _Slice(msgspec.Struct, frozen=True):
    start: int | None
    stop: int | None
    step: int | None


class _Filter(msgspec.Struct, frozen=True):
    path: "JsonPath"
    compare: Callable[[Any, Any], bool] | None
    literal: Any


_Step: TypeAlias = _Field | _Wildcard | _Slice | _Filter

_FIELD = re.compile(r"(?:[^.\[\]\\'\"\s(){}*?,]|\\.)+")
_QUOTED = re.compile(r"""\[\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\s*\]""")
_NUMBERS = re.compile(r"\[\s*(-?\d+)?\s*(:)?\s*(-?\d+)?\s*(?::\s*(-?\d+))?\s*\]")
_COMPARISON = re.compile(r"""\s*@?((?:[^=!<>'"]|\[[^\]]*\])*?)\s*(==|!=|<=|>=|<|>)\s*(.+?)\s*""")
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


class JsonPath(msgspec.Struct, frozen=True):
    steps: "tuple[_Step, ...]"

    def find(self, value: Any) -> list[Any]:
        """All values selected, in order."""
        found = [value]
        for step in self.steps:
            found = [item for one in found for item in _select(step, one)]
        return found


def parse(text: str) -> JsonPath:
    """Parse a path, with or without braces around it and `$` in front; raises JsonPathError."""
    text = text.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1].strip()
    steps: list[_Step] = []
    at = 1 if text.startswith("$") else 0
    while at < len(text):
        step, at = _step(text, at)
        if step is not None:
            steps.append(step)
    return JsonPath(tuple(steps))


def _step(text: str, at: int) -> tuple[_Step | None, int]:
    if text.startswith("..", at):
        raise JsonPathError(f"recursive descent is not supported: {text}")
    if text[at] == ".":
        if at + 1 == len(text) or text[at + 1] == "[":
            return None, at + 1
        if text[at + 1] == "*":
            return _Wildcard(), at + 2
        at += 1
    if text[at] == "[":
        return _bracket(text, at)
    found = _FIELD.match(text, at)
    if found is None:
        raise JsonPathError(f"unexpected {text[at]!r} in {text}")
    return _Field(_unescaped(found[0])), found.end()


def _bracket(text: str, at: int) -> tuple[_Step, int]:
    if text.startswith("[*]", at):
        return _Wildcard(), at + 3
    quoted = _QUOTED.match(text, at)
    if quoted:
        return _Field(_unescaped(quoted[1] if quoted[1] is not None else quoted[2])), quoted.end()
    numbers = _NUMBERS.match(text, at)
    if numbers and (numbers[1] or numbers[2]):
        start, colon, stop, step = numbers.groups()
        if colon is None:
            index = int(start)
            return _Slice(index, index + 1 if index != -1 else None, None), numbers.end()
        if step is not None and int(step) <= 0:
            raise JsonPathError(f"step must be > 0 in {text}")
        bounds = [int(n) if n else None for n in (start, stop, step)]
        return _Slice(bounds[0], bounds[1], bounds[2]), numbers.end()
    if text.startswith("[?(", at):
        end = text.find(")]", at)
        if end < 0:
            raise JsonPathError(f"unterminated filter in {text}")
        return _filter(text[at + 3 : end]), end + 2
    raise JsonPathError(f"unrecognized array index in {text}")


def _filter(text: str) -> _Filter:
    found = _COMPARISON.fullmatch(text)
    if found is None:
        return _Filter(parse(text.strip().removeprefix("@")), None, None)
    return _Filter(parse(found[1]), _OPERATORS[found[2]], _literal(found[3]))


def _literal(text: str) -> Any:
    if len(text) > 1 and text[0] == text[-1] == "'":
        return _unescaped(text[1:-1])
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        raise JsonPathError(f"unrecognized literal {text}") from None


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _select(step: _Step, value: Any) -> list[Any]:
    if isinstance(step, _Field):
        return [value[step.name]] if type(value) is dict and step.name in value else []
    if isinstance(step, _Wildcard):
        if type(value) is dict:
            return list(value.values())
        return list(value) if type(value) is list else []
    if type(value) is not list:
        return []
    if isinstance(step, _Slice):
        return value[step.start : step.stop : step.step]
    return [item for item in value if _passes(step, item)]


def _passes(step: _Filter, item: Any) -> bool:
    found = step.path.find(item)
    if step.compare is None or not found:
        return step.compare is None and bool(found)
    try:
        return step.compare(found[0], step.literal)
    except TypeError:
        return False
