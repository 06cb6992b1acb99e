"""Messages and causes here were taken from kube-apiserver 1.36 with the same schema and the same objects."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.server.crd.problems import fields
from argosy.server.crd.validation import compile_schema

ALTERNATIVES = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
NEEDS_A, NEEDS_B = {"required": ["a"]}, {"required": ["b"]}


def found(schema, value):
    root = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"x": schema}}}}
    return [str(e) for e in fields(compile_schema(root)({"spec": {"x": value}}) or ())]


@pytest.mark.parametrize(
    ("schema", "value", "errors"),
    [
        ({"type": "string", "maxLength": 5}, "abcdefg", ["spec.x: Too long: may not be more than 5 bytes"]),
        ({"type": "string", "minLength": 2}, "a",
         ['spec.x: Invalid value: "a": spec.x in body should be at least 2 chars long']),
        ({"type": "string", "pattern": "^[a-z]+$"}, "A",
         ["spec.x: Invalid value: \"A\": spec.x in body should match '^[a-z]+$'"]),
        ({"type": "integer", "maximum": 10}, 11,
         ["spec.x: Invalid value: 11: spec.x in body should be less than or equal to 10"]),
        ({"type": "number", "minimum": 0.5, "exclusiveMinimum": True}, 0.5,
         ["spec.x: Invalid value: 0.5: spec.x in body should be greater than 0.5"]),
        ({"type": "integer", "multipleOf": 5}, 7, ["spec.x: Invalid value: 7: spec.x in body should be a multiple of 5"]),
        ({"type": "boolean"}, "y", ['spec.x: Invalid value: "string": spec.x in body must be of type boolean: "string"']),
        ({"type": "string", "enum": ["Duplicate", "Divide"]}, "X",
         ['spec.x: Unsupported value: "X": supported values: "Duplicate", "Divide"']),
        ({"type": "string", "format": "date-time"}, "soon",
         ['spec.x: Invalid value: "soon": spec.x in body must be of type date-time: "soon"']),
        ({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}, True,
         ['spec.x: Invalid value: "boolean": spec.x in body must be of type integer,string: "boolean"',
          '<nil>: Invalid value: "": "spec.x" must validate at least one schema (anyOf)',
          'spec.x: Invalid value: "boolean": spec.x in body must be of type integer: "boolean"']),
        ({"type": "array", "items": {"type": "string"}, "maxItems": 1}, ["a", 2],
         ['spec.x[1]: Invalid value: "integer": spec.x[1] in body must be of type string: "integer"',
          "spec.x: Too many: 2: must have at most 1 items"]),
        ({"type": "array", "items": {"type": "string"}, "minItems": 1}, [],
         ["spec.x: Invalid value: 0: spec.x in body should have at least 1 items"]),
        ({"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 1}, {"a": 1, "b": "x"},
         ["spec.x: Too many: 2: must have at most 1 items",
          'spec.x.a: Invalid value: "integer": spec.x.a in body must be of type string: "integer"']),
        ({"type": "integer", "format": "int32"}, 1.5,
         ['spec.x: Invalid value: "float64": spec.x in body must be of type int32: "float64"',
          '<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.x']),
        ({"type": "integer", "format": "int32"}, 99999999999,
         ['<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.x']),
        ({**ALTERNATIVES, "oneOf": [NEEDS_A, NEEDS_B]}, {},
         ['<nil>: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). Found none valid',
          "spec.x.a: Required value"]),
        ({**ALTERNATIVES, "oneOf": [NEEDS_A, NEEDS_B]}, {"a": "1", "b": "2"},
         ['<nil>: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). Found 2 valid alternatives']),
        ({**ALTERNATIVES, "anyOf": [NEEDS_A, NEEDS_B]}, {},
         ['<nil>: Invalid value: "": "spec.x" must validate at least one schema (anyOf)', "spec.x.a: Required value"]),
        ({**ALTERNATIVES, "allOf": [NEEDS_A, NEEDS_B]}, {},
         ["spec.x.a: Required value", "spec.x.b: Required value",
          '<nil>: Invalid value: "": "spec.x" must validate all the schemas (allOf). None validated']),
        ({**ALTERNATIVES, "not": NEEDS_A}, {"a": "1"},
         ['<nil>: Invalid value: "": "spec.x" must not validate the schema (not)']),
        ({"type": "string"}, None, ['spec.x: Invalid value: "null": spec.x in body must be of type string: "null"']),
    ],
)  # fmt: skip
def test_a_bad_value_is_told_in_kube_apiservers_words(schema, value, errors):
    assert found(schema, value) == errors


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, 2.0),
        ({"type": "number"}, 2),
        ({"type": "string", "nullable": True}, None),
        ({"x-kubernetes-int-or-string": True}, "80"),
        ({"x-kubernetes-int-or-string": True}, 80),
        ({"type": "string", "format": "made-up"}, "anything"),
        ({"type": "string", "maxLength": 2}, "éé"),
        ({"type": "object"}, {"anything": 1}),
        ({"enum": [1, True, None]}, True),
        ({**ALTERNATIVES, "oneOf": [NEEDS_A, NEEDS_B]}, {"b": "1"}),
    ],
)
def test_a_good_value_passes(schema, value):
    assert found(schema, value) == []


def test_a_boolean_is_no_number():
    assert found({"type": "integer"}, True) == [
        'spec.x: Invalid value: "boolean": spec.x in body must be of type integer: "boolean"'
    ]
    assert found({"type": "integer", "enum": [1]}, True)[-1] == 'spec.x: Unsupported value: true: supported values: "1"'


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)
SCHEMA = {
    "type": "object",
    "required": ["a"],
    "properties": {
        "a": {"type": "string", "format": "date-time", "pattern": "^a*$"},
        "b": {"type": "array", "items": {"type": "integer", "multipleOf": 2, "minimum": -5}, "maxItems": 2},
        "c": {"type": "object", "additionalProperties": {"type": "number"}, "minProperties": 1},
    },
    "anyOf": [{"required": ["b"]}, {"required": ["c"]}],
}


@given(JSON)
def test_any_json_gets_an_answer(value):
    problems = compile_schema(SCHEMA)(value)
    assert problems is None or all(str(e) for e in fields(problems))
