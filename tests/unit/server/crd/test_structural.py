"""Errors here are kube-apiserver 1.36's for the same schemas."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.server.crd.structural import unevaluated_rules, validate_schema

TEXT = {"type": "string"}
EITHER = [{"type": "integer"}, {"type": "string"}]


def of(**properties):
    return {"type": "object", "properties": properties}


def array(items, kind, **more):
    return {"type": "array", "items": items, "x-kubernetes-list-type": kind, **more}


def errors(schema):
    return [str(e) for e in validate_schema(schema, "s")]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, ["s.type: Required value: must not be empty at the root"]),
        (TEXT, ['s.type: Invalid value: "string": must be object at the root']),
        (of(a={}), ["s.properties[a].type: Required value: must not be empty for specified object fields"]),
        (of(a={"type": "array", "items": {}}),
         ["s.properties[a].items.type: Required value: must not be empty for specified array items"]),
        (of(a={"type": "array"}), ["s.properties[a].items: Required value: must be specified"]),
        (of(a={"type": "foo"}),
         ['s.properties[a].type: Unsupported value: "foo": supported values: "array", "boolean", "integer", "number", '
          '"object", "string"']),
        ({**of(a=TEXT), "nullable": True}, ["s.nullable: Forbidden: nullable cannot be true at the root"]),
        (of(a={**of(b=TEXT), "additionalProperties": TEXT}),
         ["s.properties[a].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"]),
        (of(a={"type": "object", "anyOf": [{"type": "object"}]}),
         ["s.properties[a].anyOf[0].type: Forbidden: must be empty to be structural"]),
        (of(a={"type": "string", "allOf": [{"description": "x", "nullable": True}]}),
         ["s.properties[a].allOf[0].description: Forbidden: must be empty to be structural",
          "s.properties[a].allOf[0].nullable: Forbidden: must be false to be structural"]),
        (of(a={"type": "string", "pattern": "("}),
         ['s.properties[a].pattern: Invalid value: "(": must be a valid regular expression, but isn\'t: '
          "error parsing regexp: missing closing ): `(`"]),
        (of(metadata=of(labels={"type": "object"})),
         ["s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata "
          "is implicitly specified"]),
        (of(kind={"type": "string", "default": "x"}),
         ["s.properties[kind].default: Forbidden: must not be set in top-level kind"]),
        (of(a={"type": "array", "items": TEXT, "uniqueItems": True}),
         ["s.properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity "
          "becomes quadratic"]),
        (of(a=array(of(k=TEXT), "map", **{"x-kubernetes-list-map-keys": ["k"]})),
         ["s.properties[a].items.properties[k].default: Required value: this property is in "
          "x-kubernetes-list-map-keys, so it must have a default or be a required property"]),
        (of(a=array(of(k=TEXT), "set")),
         ["s.properties[a].items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with "
          "x-kubernetes-list-type=set"]),
        (of(a={"type": "integer", "default": 5, "maximum": 3}),
         ["s.properties[a].default: Invalid value: 5:  in body should be less than or equal to 3"]),
        (of(a={**of(b=TEXT), "default": {"z": 1}}),
         ['s.properties[a].default: Invalid value: {"z":1}: must not have unknown fields']),
        (of(a={"type": "object", "$ref": "#/x"}), ["s.properties[a].$ref: Forbidden: $ref is not supported"]),
        (of(a={"type": "object", "x-kubernetes-validations": [{"rule": ""}]}),
         ["s.properties[a].x-kubernetes-validations[0].rule: Required value: rule is not specified"]),
        (of(a={"type": "object", "x-kubernetes-embedded-resource": True}),
         ["s.properties[a].properties: Required value: must not be empty if x-kubernetes-embedded-resource is true "
          "without x-kubernetes-preserve-unknown-fields"]),
    ],
)  # fmt: skip
def test_a_schema_that_is_not_structural_is_refused(schema, expected):
    assert errors(schema) == expected


def test_a_rule_about_a_field_nobody_declared_is_refused():
    schema = of(a={"type": "object"})
    schema["anyOf"] = [{"properties": {"b": {"minLength": 1}}}]
    assert errors(schema) == ["s.properties[b]: Required value: because it is defined in s.anyOf[0].properties[b]"]


@pytest.mark.parametrize(
    "schema",
    [
        of(a={"x-kubernetes-int-or-string": True, "anyOf": EITHER}),
        of(a={"x-kubernetes-int-or-string": True, "allOf": [{"anyOf": EITHER}, {"maximum": 3}]}),
        of(a={"x-kubernetes-preserve-unknown-fields": True}),
        of(metadata={"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}}),
        of(a={"type": "object", "additionalProperties": True}),
        of(a=array({**of(k=TEXT), "required": ["k"]}, "map", **{"x-kubernetes-list-map-keys": ["k"]})),
        of(a={**of(b={"type": "string", "default": "x"}), "default": {}}),
    ],
)
def test_a_structural_schema_is_accepted(schema):
    assert errors(schema) == []


@pytest.mark.parametrize("keyword", ["properties", "items", "required", "maximum", "enum", "x-kubernetes-validations"])
def test_a_keyword_of_the_wrong_type_is_an_error_not_a_crash(keyword):
    found = errors(of(a={"type": "object", "additionalProperties": {"type": "object", keyword: "nonsense"}}))
    assert len(found) == 1
    assert found[0].startswith(
        f's.properties[a].additionalProperties.{keyword}: Invalid value: "nonsense": must be of type'
    )


KEYWORDS = st.sampled_from(
    ["type", "properties", "items", "anyOf", "not", "default", "pattern", "required", "enum", "additionalProperties",
     "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-int-or-string", "minimum"]
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["object", "array", "string", "map", "(a", "x"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYWORDS, inner, max_size=3),
)


@given(st.dictionaries(KEYWORDS, VALUES, max_size=4))
def test_any_schema_gets_an_answer(schema):
    assert all(str(e).startswith("s") for e in validate_schema({"type": "object", "properties": {"a": schema}}, "s"))


def test_rules_that_are_not_evaluated_are_found():
    rules = [{"rule": "self.x > 0"}]
    schema = of(a={"type": "array", "items": {"type": "object", "x-kubernetes-validations": rules}})
    assert unevaluated_rules(schema, "s") == ["s.properties[a].items.x-kubernetes-validations"]
