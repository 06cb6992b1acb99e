"""Validation of values against a schema, compiled once to closures.

A compiled check returns None for a valid value, so the usual case allocates nothing. The checks, their order and all messages
follow kube-apiserver; CEL rules (x-kubernetes-validations) are not evaluated here.

If several alternatives of an anyOf or oneOf fail, the problems of the first one are reported; kube-apiserver picks the one that
got furthest, which is the same for alternatives of equal shape.
"""

# Each schema makes thousands of functions, and each of them would get annotations of its own.
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import orjson

from argosy.kube.regexp import compile_pattern
from argosy.server.crd.formats import string_format
from argosy.server.crd.problems import NOWHERE, Problem, composite, invalid, mistyped, under
from argosy.server.fielderrors import FieldError

__all__ = ["MAX_PROBLEMS", "Check", "compile_schema", "go_number"]

Schema = dict[str, Any]
Check = Callable[[Any], list[Problem] | None]

_JSON_TYPES: dict[type, str] = {
    str: "string", bool: "boolean", int: "integer", float: "number", dict: "object", list: "array", type(None): "null",
}  # fmt: skip
_NUMBER_FORMATS = {"integer": ("int32", "int64"), "number": ("float", "double")}
_FORMAT_OF = {int: "int64", float: "float64"}
_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
#: Problems collected per list or object: nobody reads more, and each takes more room than the value it is about.
MAX_PROBLEMS = 1000
_LARGEST_JSON_INTEGER = 2**53 - 1
_LARGEST_FLOAT = 3.4028234663852886e38


def compile_schema(schema: Schema) -> Check:
    """The check of one schema node and everything below it; patterns are assumed to have been validated."""
    checks = [
        check
        for check in (
            _type_check(schema),
            _combination_check(schema),
            _string_check(schema),
            _number_check(schema),
            _array_check(schema),
            _enum_check(schema),
            _object_check(schema),
        )
        if check is not None
    ]
    if not checks:
        return _anything
    if len(checks) == 1:
        return checks[0]
    if len(checks) == 2:
        first, second = checks

        def both(value: Any) -> list[Problem] | None:
            one, two = first(value), second(value)
            if one is None:
                return two
            return one if two is None else one + two

        return both
    rest = tuple(checks)

    def all_of_them(value: Any) -> list[Problem] | None:
        problems: list[Problem] | None = None
        for check in rest:
            found = check(value)
            if found is not None:
                problems = found if problems is None else [*problems, *found]
        return problems

    return all_of_them


def _anything(value: Any) -> None:
    return None


def _types(schema: Schema) -> tuple[str, ...]:
    if schema.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    return (schema["type"],) if schema.get("type") else ()


def _known_format(schema: Schema) -> str:
    """The format if it applies to the type; kube-apiserver ignores all others."""
    name: str = schema.get("format") or ""
    if not name:
        return ""
    types = _types(schema)
    if len(types) != 1 or types[0] == "string":
        return name if string_format(name) else ""
    return name if name in _NUMBER_FORMATS.get(types[0], ()) else ""


def _type_check(schema: Schema) -> Check | None:
    types = _types(schema)
    form = _known_format(schema)
    if not types and not form:
        return None
    expected = ",".join(types)
    allowed = {python for python, name in _JSON_TYPES.items() if name in types}
    if "number" in types:
        allowed.add(int)
    if schema.get("nullable") or not types:
        allowed.add(type(None))
    whole_floats = "integer" in types
    any_text = bool(form) and not {"integer", "number"} & set(types)
    exact = frozenset(allowed)

    def check(value: Any) -> list[Problem] | None:
        kind = type(value)
        if kind in exact:
            return None
        if kind is float and whole_floats and value.is_integer():
            return None
        if value is not None:
            if any_text and kind in (str, list):
                return None
            if form and kind is not str and kind is not list:
                return [mistyped(form, _FORMAT_OF.get(kind, ""))]
        return [mistyped(expected, _JSON_TYPES[kind])]

    return check


def _combination_check(schema: Schema) -> Check | None:
    any_of = [compile_schema(s) for s in schema.get("anyOf") or ()]
    one_of = [compile_schema(s) for s in schema.get("oneOf") or ()]
    all_of = [compile_schema(s) for s in schema.get("allOf") or ()]
    negated = compile_schema(schema["not"]) if schema.get("not") is not None else None
    if not (any_of or one_of or all_of or negated):
        return None

    def check(value: Any) -> list[Problem] | None:
        if value is None:
            return None
        problems: list[Problem] = []
        if any_of:
            problems += _any_of(any_of, value)
        if one_of:
            problems += _one_of(one_of, value)
        if all_of:
            problems += _all_of(all_of, value)
        if negated is not None and negated(value) is None:
            problems.append(composite("must not validate the schema (not)"))
        return problems or None

    return check


def _any_of(checks: list[Check], value: Any) -> list[Problem]:
    first: list[Problem] | None = None
    for check in checks:
        found = check(value)
        if found is None:
            return []
        first = first or found
    return [composite("must validate at least one schema (anyOf)"), *(first or ())]


def _one_of(checks: list[Check], value: Any) -> list[Problem]:
    results = [check(value) for check in checks]
    valid = sum(found is None for found in results)
    if valid == 1:
        return []
    if valid:
        text = f"Found {valid} valid alternatives"
        return [composite(f"must validate one and only one schema (oneOf). {text}")]
    return [composite("must validate one and only one schema (oneOf). Found none valid"), *(results[0] or ())]


def _all_of(checks: list[Check], value: Any) -> list[Problem]:
    results = [check(value) for check in checks]
    failed = [found for found in results if found is not None]
    if not failed:
        return []
    none = ". None validated" if len(failed) == len(checks) else ""
    problems = [problem for found in failed for problem in found]
    return [*problems, composite(f"must validate all the schemas (allOf){none}")]


def _string_check(schema: Schema) -> Check | None:
    longest, shortest, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern") or ""
    matches = compile_pattern(pattern).matches if pattern else None
    form: str = schema.get("format") or ""
    has_form = string_format(form) if _known_format(schema) else None
    if longest is None and shortest is None and matches is None and has_form is None:
        return None

    def check(value: Any) -> list[Problem] | None:
        if type(value) is not str:
            return None
        problems: list[Problem] = []
        if longest is not None and len(value) > longest:
            problems.append(Problem(_too_long(longest)))
        elif shortest is not None and len(value) < shortest:
            problems.append(invalid(value, f"should be at least {shortest} chars long"))
        elif matches is not None and not matches(value):
            problems.append(invalid(value, f"should match '{pattern}'"))
        if has_form is not None and not has_form(value):
            problems.append(mistyped(form, value))
        return problems or None

    return check


def _too_long(longest: int) -> Callable[[str, str], FieldError]:
    detail = f"may not be more than {longest} bytes"
    return lambda field, _: FieldError("FieldValueTooLong", field, "", detail)


def _too_many(count: int, most: int) -> Problem:
    detail = f"must have at most {most} items"
    return Problem(lambda field, _: FieldError("FieldValueTooMany", field, count, detail))


def _number_check(schema: Schema) -> Check | None:
    step, low, high = schema.get("multipleOf"), schema.get("minimum"), schema.get("maximum")
    above, below = bool(schema.get("exclusiveMinimum")), bool(schema.get("exclusiveMaximum"))
    types = _types(schema)
    kind = types[0] if len(types) == 1 else ""
    form = _known_format(schema) if kind in _NUMBER_FORMATS else ""
    if step is None and low is None and high is None and not form and kind != "integer":
        return None
    low_text = f"should be greater than {'' if above else 'or equal to '}"
    high_text = f"should be less than {'' if below else 'or equal to '}"

    def check(value: Any) -> list[Problem] | None:
        if type(value) is not int and type(value) is not float:
            return None
        problems: list[Problem] = []
        if not _fits(value, kind, form):
            with_form = f" with format {form}" if form else " (default format)"
            problems.append(_out_of_range(f"Checked value must be of type {kind}{with_form}"))
        if step is not None and type(value) is int and 0 < step < 1:
            # kube-apiserver converts the factor to an integer for integer values, and then cannot divide by it.
            problems.append(_no_factor())
        elif step is not None and not _is_multiple(value, step):
            problems.append(invalid(value, f"should be a multiple of {go_number(step, value)}"))
        if low is not None and (value <= low if above else value < low):
            problems.append(invalid(value, low_text + go_number(low, value)))
        if high is not None and (value >= high if below else value > high):
            problems.append(invalid(value, high_text + go_number(high, value)))
        return problems or None

    return check


def _out_of_range(text: str) -> Problem:
    return Problem(lambda _, name: FieldError("FieldValueInvalid", NOWHERE, "", f"{text} in {name}"))


def _no_factor() -> Problem:
    def make(field: str, path: str) -> FieldError:
        return FieldError("FieldValueInvalid", field, 0, f"factor MultipleOf declared for {path} must be positive: 0")

    return Problem(make)


def _fits(value: int | float, kind: str, form: str) -> bool:
    if kind == "integer":
        low, high = _RANGES[form or "int64"]
        return value == math.trunc(value) and low <= value <= high
    return form != "float" or abs(value) <= _LARGEST_FLOAT


def _is_multiple(value: int | float, step: int | float) -> bool:
    if step <= 0:
        return True
    if type(value) is int:
        return value % int(step) == 0
    return _is_json_integer(value / step if step >= 1 else 1 / step * value)


def _is_json_integer(number: float) -> bool:
    """Whether a quotient is whole in kube-apiserver: up to 2^53, and tolerating a little too much but nothing too little."""
    if abs(number) > _LARGEST_JSON_INTEGER or math.isnan(number):
        return False
    whole = math.trunc(number)
    if number == whole:
        return True
    return whole > 0 and (number - whole) / (number + whole) < 1e-9


def go_number(bound: int | float, beside: int | float = 0.0) -> str:
    """A bound as messages print it: Go's %v of a float64, or of an integer beside an integer."""
    if type(beside) is int or float(bound).is_integer():
        return str(int(bound))
    return repr(float(bound))


def _array_check(schema: Schema) -> Check | None:
    items = compile_schema(schema["items"]) if isinstance(schema.get("items"), dict) else _anything
    fewest, most = schema.get("minItems"), schema.get("maxItems")
    if items is _anything and fewest is None and most is None:
        return None

    def check(value: Any) -> list[Problem] | None:
        if type(value) is not list:
            return None
        problems: list[Problem] = []
        for index, item in enumerate(value):
            found = items(item)
            if found is not None:
                problems += under(index, found)
                if len(problems) >= MAX_PROBLEMS:
                    break
        if fewest is not None and len(value) < fewest:
            problems.append(invalid(len(value), f"should have at least {fewest} items"))
        if most is not None and len(value) > most:
            problems.append(_too_many(len(value), most))
        return problems or None

    return check


def _enum_check(schema: Schema) -> Check | None:
    values = schema.get("enum") or []
    if not values:
        return None
    texts = [v if isinstance(v, str) else _compact(v) for v in values]
    # True is 1 to Python.
    scalars = frozenset((type(v) is bool, v) for v in values if not isinstance(v, dict | list))
    others = [v for v in values if isinstance(v, dict | list)]
    detail = "supported values: " + ", ".join(f'"{text}"' for text in texts)

    def check(value: Any) -> list[Problem] | None:
        if type(value) is dict or type(value) is list:
            if any(value == other for other in others):
                return None
        elif (type(value) is bool, value) in scalars:
            return None
        return [Problem(lambda field, _: FieldError("FieldValueNotSupported", field, value, detail))]

    return check


def _compact(value: Any) -> str:
    return orjson.dumps(value).decode()


def _object_check(schema: Schema) -> Check | None:
    children = {
        name: compiled
        for name, node in (schema.get("properties") or {}).items()
        if (compiled := compile_schema(node)) is not _anything
    }
    named = frozenset(schema.get("properties") or ())
    additional = schema.get("additionalProperties")
    extra = compile_schema(additional) if isinstance(additional, dict) else None
    closed = additional is False
    required = tuple(schema.get("required") or ())
    fewest, most = schema.get("minProperties"), schema.get("maxProperties")
    if not (children or required or closed) and extra in (None, _anything) and fewest is None and most is None:
        return None

    def check(value: Any) -> list[Problem] | None:
        if type(value) is not dict:
            return None
        problems: list[Problem] = []
        if fewest is not None and len(value) < fewest:
            problems.append(invalid(len(value), f"should have at least {fewest} properties"))
        if most is not None and len(value) > most:
            problems.append(_too_many(len(value), most))
        for name, item in value.items():
            child = children.get(name)
            if child is None:
                if name in named:
                    continue
                if closed:
                    problems.append(_forbidden_property(name))
                    if len(problems) >= MAX_PROBLEMS:
                        break
                    continue
                if extra is None:
                    continue
                child = extra
            found = child(item)
            if found is not None:
                problems += under(name, found)
            if len(problems) >= MAX_PROBLEMS:
                break
        problems += [Problem(_required, name) for name in required if name not in value]
        return problems or None

    return check


def _required(field: str, _: str) -> FieldError:
    return FieldError("FieldValueRequired", field, "")


def _forbidden_property(name: str) -> Problem:
    def make(field: str, path: str) -> FieldError:
        return FieldError("FieldValueInvalid", field, "", f"{path}.{name} in body is a forbidden property")

    return Problem(make)
