"""Structural schemas: whether the server can work with the schema of a custom resource definition.

A schema is structural if every value's type is given outside of anyOf, oneOf, allOf and not, if those only add value rules
about fields named outside, and if metadata is left to the server. `validate_schema` does the whole check for one version:
shape, structure, the allowed part of OpenAPI (`schema_rules`) and the defaults (`schema_defaults`).
"""

from typing import Any

from argosy.kube.regexp import PatternError, compile_pattern
from argosy.server.crd import schema_defaults, schema_rules
from argosy.server.fielderrors import FieldError, forbidden, invalid, required

__all__ = ["rule_warnings", "unevaluated_rules", "validate_schema"]

Schema = dict[str, Any]

_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_MISSING_TYPE = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
#: Keywords that shape a value, and so are not allowed inside anyOf, oneOf, allOf and not.
_SHAPING = (
    ("type", "must be empty to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
)


def validate_schema(schema: Any, path: str) -> list[FieldError]:
    """All errors in an openAPIV3Schema; `path` is its place in the definition."""
    errors = schema_rules.validate_shape(schema, path)
    if errors:
        return errors
    if schema.get("nullable"):
        errors.append(forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    structural = _invariants(schema, path, "root") + _completeness(schema, schema, path, path)
    structural.sort(key=str)
    rules = schema_rules.validate_rules(schema, path)
    if not structural and not rules:
        structural = schema_defaults.validate_defaults(schema, path)
    return errors + structural + rules


def rule_warnings(definition: dict[str, Any]) -> list[str]:
    """Warnings for the author of a definition with CEL rules, which are kept and published but not evaluated yet."""
    found = []
    for index, version in enumerate(definition["spec"].get("versions") or ()):
        path = f"spec.versions[{index}].schema.openAPIV3Schema"
        found += unevaluated_rules((version.get("schema") or {}).get("openAPIV3Schema"), path)
    return [f"{path}: rules are stored but not evaluated by this server" for path in found]


def unevaluated_rules(schema: Any, path: str) -> list[str]:
    """The paths of x-kubernetes-validations, which are stored and published, but not evaluated by this server yet."""
    if not isinstance(schema, dict):
        return []
    found = [f"{path}.x-kubernetes-validations"] if schema.get("x-kubernetes-validations") else []
    for name, node in (schema.get("properties") or {}).items():
        found += unevaluated_rules(node, f"{path}.properties[{name}]")
    for keyword in ("items", "additionalProperties"):
        found += unevaluated_rules(schema.get(keyword), f"{path}.{keyword}")
    return found


def _invariants(schema: Schema, path: str, level: str) -> list[FieldError]:
    errors: list[FieldError] = []
    properties: dict[str, Schema] = schema.get("properties") or {}
    items, additional, kind = schema.get("items"), schema.get("additionalProperties"), schema.get("type") or ""
    embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    preserve = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    int_or_string = bool(schema.get("x-kubernetes-int-or-string"))
    if kind == "array" and items is None:
        errors.append(required(f"{path}.items", "must be specified"))
    if isinstance(items, dict):
        errors += _invariants(items, f"{path}.items", "item")
    for name, node in properties.items():
        errors += _invariants(node, f"{path}.properties[{name}]", "field")
    if additional is not None:
        if level == "root":
            errors.append(forbidden(f"{path}.additionalProperties", "must not be used at the root"))
        if isinstance(additional, dict):
            errors += _invariants(additional, f"{path}.additionalProperties", "field")
        if embedded:
            text = "must not be used if x-kubernetes-embedded-resource is set"
            errors.append(forbidden(f"{path}.additionalProperties", text))
    for keyword, on in (("preserve-unknown-fields", preserve), ("embedded-resource", embedded)):
        if int_or_string and on:
            text = "must be false if x-kubernetes-int-or-string is true"
            errors.append(invalid(f"{path}.x-kubernetes-{keyword}", True, text))
    errors += _values(schema, path)
    if embedded and kind != "object":
        text = "must be object if x-kubernetes-embedded-resource is true"
        errors.append(invalid(f"{path}.type", kind, text) if kind else required(f"{path}.type", text))
    elif not kind and not int_or_string and not preserve:
        errors.append(required(f"{path}.type", _MISSING_TYPE[level]))
    if level == "root" and kind and kind != "object":
        errors.append(invalid(f"{path}.type", kind, "must be object at the root"))
    if level == "root" or embedded:
        errors += _meta_fields(properties, path, level)
    if embedded and not preserve and not properties:
        text = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        errors.append(required(f"{path}.properties", text))
    return errors


def _meta_fields(properties: dict[str, Schema], path: str, level: str) -> list[FieldError]:
    """apiVersion, kind and metadata of a resource belong to the server; a schema may only restrict names."""
    errors = [
        invalid(f"{path}.properties[{name}].type", kind, "must be string")
        for name in ("kind", "apiVersion")
        if name in properties and (kind := properties[name].get("type") or "") != "string"
    ]
    metadata = properties.get("metadata")
    if metadata is None:
        return errors
    at = f"{path}.properties[metadata]"
    if (kind := metadata.get("type") or "") != "object":
        errors.append(invalid(f"{at}.type", kind, "must be object"))
    if level == "root":
        surplus = set(metadata) - {"type", "properties", "default", "description"}
        if surplus or not set(metadata.get("properties") or ()) <= {"name", "generateName"}:
            text = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            errors.append(forbidden(at, text))
    return errors


def _values(schema: Schema, path: str) -> list[FieldError]:
    """The value rules of a node outside of combinations; two forms of int-or-string may name types."""
    errors: list[FieldError] = []
    any_of, all_of = schema.get("anyOf") or [], schema.get("allOf") or []
    if any_of != _INT_OR_STRING:
        errors += _each_nested(any_of, f"{path}.anyOf")
    for index, node in enumerate(all_of):
        if index == 0 and node.get("anyOf") == _INT_OR_STRING:
            node = {key: value for key, value in node.items() if key != "anyOf"}
        errors += _nested(node, f"{path}.allOf[{index}]")
    errors += _each_nested(schema.get("oneOf") or [], f"{path}.oneOf")
    if schema.get("not") is not None:
        errors += _nested(schema["not"], f"{path}.not")
    return errors + _pattern(schema, path)


def _pattern(schema: Schema, path: str) -> list[FieldError]:
    pattern = schema.get("pattern")
    if not pattern:
        return []
    try:
        compile_pattern(pattern)
    except PatternError as error:
        return [invalid(f"{path}.pattern", pattern, f"must be a valid regular expression, but isn't: {error}")]
    return []


def _each_nested(schemas: list[Schema], path: str) -> list[FieldError]:
    return [error for index, node in enumerate(schemas) for error in _nested(node, f"{path}[{index}]")]


def _nested(schema: Schema, path: str) -> list[FieldError]:
    errors = [forbidden(f"{path}.{keyword}", text) for keyword, text in _SHAPING if schema.get(keyword)]
    if isinstance(schema.get("additionalProperties"), dict):
        errors.append(forbidden(f"{path}.additionalProperties", "must be undefined to be structural"))
    for keyword in ("anyOf", "allOf", "oneOf"):
        errors += _each_nested(schema.get(keyword) or [], f"{path}.{keyword}")
    for keyword in ("not", "items"):
        if isinstance(schema.get(keyword), dict):
            errors += _nested(schema[keyword], f"{path}.{keyword}")
    for name, node in (schema.get("properties") or {}).items():
        errors += _nested(node, f"{path}.properties[{name}]")
        if name == "metadata":
            errors.append(forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context"))
    return errors + _pattern(schema, path)


def _completeness(rules: Schema, schema: Schema | None, path: str, rules_path: str) -> list[FieldError]:
    """Fields with rules inside combinations must exist outside, too."""
    errors: list[FieldError] = []
    for keyword in ("allOf", "anyOf", "oneOf"):
        for index, node in enumerate(rules.get(keyword) or []):
            errors += _complete_node(node, schema, path, f"{rules_path}.{keyword}[{index}]")
    if isinstance(rules.get("not"), dict):
        errors += _complete_node(rules["not"], schema, path, f"{rules_path}.not")
    return errors


def _complete_node(rules: Schema, schema: Any, path: str, rules_path: str) -> list[FieldError]:
    if not isinstance(schema, dict):
        return [required(path, f"because it is defined in {rules_path}")]
    errors = _completeness(rules, schema, path, rules_path)
    if isinstance(rules.get("items"), dict):
        errors += _complete_node(rules["items"], schema.get("items"), f"{path}.items", f"{rules_path}.items")
    known = schema.get("properties") or {}
    for name, node in (rules.get("properties") or {}).items():
        at = f"properties[{name}]"
        errors += _complete_node(node, known.get(name), f"{path}.{at}", f"{rules_path}.{at}")
    return errors
