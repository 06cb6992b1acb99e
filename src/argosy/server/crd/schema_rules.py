"""The part of OpenAPI that a definition may use, and the rules for list types, map types and CEL rules."""

from typing import Any

import msgspec

from argosy.server.fielderrors import FieldError, forbidden, invalid, not_supported, required

__all__ = ["validate_rules", "validate_shape"]

Schema = dict[str, Any]

_TYPES = ["array", "boolean", "integer", "number", "object", "string"]
_META = ("metadata", "kind", "apiVersion")
_REASONS = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"]
_NUMBER: tuple[type, ...] = (int, float)
_KEYWORD_TYPES: dict[str, tuple[type, ...]] = {
    "type": (str,), "format": (str,), "title": (str,), "description": (str,), "pattern": (str,),
    "maximum": _NUMBER, "minimum": _NUMBER, "multipleOf": _NUMBER,
    "exclusiveMaximum": (bool,), "exclusiveMinimum": (bool,), "uniqueItems": (bool,), "nullable": (bool,),
    "maxLength": (int,), "minLength": (int,), "maxItems": (int,), "minItems": (int,),
    "maxProperties": (int,), "minProperties": (int,),
    "enum": (list,), "required": (list,), "allOf": (list,), "anyOf": (list,), "oneOf": (list,),
    "properties": (dict,), "not": (dict,), "items": (dict, list), "additionalProperties": (dict, bool),
    "x-kubernetes-preserve-unknown-fields": (bool,), "x-kubernetes-embedded-resource": (bool,),
    "x-kubernetes-int-or-string": (bool,), "x-kubernetes-list-type": (str,), "x-kubernetes-map-type": (str,),
    "x-kubernetes-list-map-keys": (list,), "x-kubernetes-validations": (list,),
}  # fmt: skip
_UNSUPPORTED = (
    ("id", "id is not supported"),
    ("additionalItems", "additionalItems is not supported"),
    ("patternProperties", "patternProperties is not supported"),
    ("definitions", "definitions is not supported"),
    ("dependencies", "dependencies is not supported"),
    ("$ref", "$ref is not supported"),
)


def validate_shape(schema: Any, path: str) -> list[FieldError]:
    """Every keyword must have its JSON type, which the rules below rely on."""
    if not isinstance(schema, dict):
        return [invalid(path, schema, "must be a schema object")]
    errors: list[FieldError] = []
    for keyword, types in _KEYWORD_TYPES.items():
        value = schema.get(keyword)
        if value is None:
            continue
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            errors.append(invalid(f"{path}.{keyword}", value, f"must be of type {_named(types)}"))
    if errors:
        return errors
    errors += [
        invalid(f"{path}.{keyword}", schema[keyword], "must be a list of strings")
        for keyword in ("required", "x-kubernetes-list-map-keys")
        if not all(isinstance(item, str) for item in schema.get(keyword) or ())
    ]
    if not all(isinstance(rule, dict) for rule in schema.get("x-kubernetes-validations") or ()):
        errors.append(invalid(f"{path}.x-kubernetes-validations", "", "must be a list of objects"))
    for name, node in _subschemas(schema):
        errors += validate_shape(node, f"{path}.{name}")
    return errors


def _named(types: tuple[type, ...]) -> str:
    names = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
    return " or ".join(names[t] for t in types)


def _subschemas(schema: Schema) -> list[tuple[str, Any]]:
    nodes = [(f"properties[{name}]", node) for name, node in (schema.get("properties") or {}).items()]
    for keyword in ("allOf", "anyOf", "oneOf"):
        nodes += [(f"{keyword}[{index}]", node) for index, node in enumerate(schema.get(keyword) or [])]
    nodes += [(k, schema[k]) for k in ("not", "items", "additionalProperties") if isinstance(schema.get(k), dict)]
    return nodes


class _Place(msgspec.Struct, frozen=True):
    """What a node inherits from its parents."""

    root: bool = False
    inside_metadata: bool = False
    no_defaults: str = ""


def validate_rules(schema: Schema, path: str) -> list[FieldError]:
    return _rules(schema, path, _Place(root=True))


def _rules(schema: Schema, path: str, place: _Place) -> list[FieldError]:
    errors = _keywords(schema, path, place)
    additional = schema.get("additionalProperties")
    if additional not in (None, True) and schema.get("properties"):
        text = "additionalProperties and properties are mutual exclusive"
        errors.append(forbidden(f"{path}.additionalProperties", text))
    for name, node in _subschemas(schema):
        errors += _rules(node, f"{path}.{name}", _inner(schema, name, place))
    errors += _map_type(schema, path) + _list_type(schema, path)
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        errors += _cel_rule(rule, f"{path}.x-kubernetes-validations[{index}]")
    return errors


def _inner(schema: Schema, name: str, place: _Place) -> _Place:
    if name == "additionalProperties" and place.inside_metadata:
        why = "inside additionalProperties applying to object metadata"
        return msgspec.structs.replace(place, root=False, no_defaults=why)
    resource = place.root or schema.get("x-kubernetes-embedded-resource")
    field = name.removeprefix("properties[").removesuffix("]")
    if resource and field != name and field in _META:
        why = f"in top-level {field}" if place.root else place.no_defaults
        return _Place(inside_metadata=True, no_defaults=why)
    return msgspec.structs.replace(place, root=False)


def _keywords(schema: Schema, path: str, place: _Place) -> list[FieldError]:
    errors = []
    kind = schema.get("type") or ""
    if kind and kind not in _TYPES:
        errors.append(not_supported(f"{path}.type", kind, _TYPES))
    if schema.get("default") is not None and place.no_defaults:
        errors.append(forbidden(f"{path}.default", f"must not be set {place.no_defaults}"))
    errors += [forbidden(f"{path}.{keyword}", text) for keyword, text in _UNSUPPORTED if schema.get(keyword)]
    if kind == "null":
        text = "type cannot be set to null, use nullable as an alternative"
        errors.append(forbidden(f"{path}.type", text))
    if isinstance(schema.get("items"), list):
        errors.append(forbidden(f"{path}.items", "items must be a schema object and not an array"))
    if place.inside_metadata and schema.get("x-kubernetes-embedded-resource"):
        errors.append(forbidden(f"{path}.x-kubernetes-embedded-resource", "must not be used inside of resource meta"))
    if schema.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        errors.append(forbidden(f"{path}.uniqueItems", text))
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        errors.append(invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined"))
    return errors


def _must_have_type(schema: Schema, path: str, wanted: str, keyword: str) -> list[FieldError]:
    kind = schema.get("type") or ""
    if kind == wanted:
        return []
    text = f"must be {wanted} if {keyword} is specified"
    return [invalid(f"{path}.type", kind, text) if kind else required(f"{path}.type", text)]


def _map_type(schema: Schema, path: str) -> list[FieldError]:
    map_type = schema.get("x-kubernetes-map-type")
    if map_type is None:
        return []
    errors = _must_have_type(schema, path, "object", "x-kubernetes-map-type")
    if map_type not in ("atomic", "granular"):
        errors.append(not_supported(f"{path}.x-kubernetes-map-type", map_type, ["atomic", "granular"]))
    return errors


def _list_type(schema: Schema, path: str) -> list[FieldError]:
    list_type, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or []
    errors: list[FieldError] = []
    at = f"{path}.x-kubernetes-list-type"
    if keys and list_type != "map":
        text = "must be map if x-kubernetes-list-map-keys is non-empty"
        errors.append(required(at, text) if list_type is None else invalid(at, list_type, text))
    if list_type is None:
        return errors
    errors += _must_have_type(schema, path, "array", "x-kubernetes-list-type")
    if list_type not in ("atomic", "set", "map"):
        errors.append(not_supported(at, list_type, ["atomic", "set", "map"]))
    items = schema.get("items")
    if list_type == "set" and isinstance(items, dict):
        errors += _set_items(items, f"{path}.items")
    if list_type == "map":
        errors += _map_items(items, keys, path)
    if list_type in ("set", "map") and isinstance(items, dict) and items.get("nullable"):
        text = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        errors.append(forbidden(f"{path}.items.nullable", text))
    return errors


def _set_items(items: Schema, path: str) -> list[FieldError]:
    text = "must be atomic as item of a list with x-kubernetes-list-type=set"
    if items.get("type") == "array" and (kind := items.get("x-kubernetes-list-type")) not in (None, "atomic"):
        return [invalid(f"{path}.x-kubernetes-list-type", kind, text)]
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        return [invalid(f"{path}.x-kubernetes-map-type", items.get("x-kubernetes-list-type"), text)]
    return []


def _map_items(items: Any, keys: list[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    keys_path = f"{path}.x-kubernetes-list-map-keys"
    if not keys:
        errors.append(required(keys_path, "must not be empty if x-kubernetes-list-type is map"))
    if items is None:
        errors.append(required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map"))
    if not isinstance(items, dict):
        return errors
    kind = items.get("type") or ""
    if kind != "object":
        text = "must be object if parent array's x-kubernetes-list-type is map"
        return [*errors, invalid(f"{path}.items.type", kind, text)]
    properties = items.get("properties") or {}
    for index, key in enumerate(keys):
        if key in keys[:index]:
            errors.append(invalid(keys_path, keys, "must not contain duplicate entries"))
        if key not in properties:
            errors.append(invalid(keys_path, keys, "entries must all be names of item properties"))
            continue
        node, at = properties[key], f"{path}.items.properties[{key}]"
        if node.get("type") in ("array", "object"):
            text = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            errors.append(invalid(f"{at}.type", kind, text))
        if key not in (items.get("required") or ()) and node.get("default") is None:
            text = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            errors.append(required(f"{at}.default", text))
        if node.get("nullable"):
            text = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
            errors.append(forbidden(f"{at}.nullable", text))
    return errors


def _cel_rule(rule: dict[str, Any], path: str) -> list[FieldError]:
    """The form of a rule; whether its expression compiles is unknown without a CEL library."""
    errors: list[FieldError] = []
    text, message = str(rule.get("rule") or "").strip(), str(rule.get("message") or "")
    if not text:
        errors.append(required(f"{path}.rule", "rule is not specified"))
    elif message and not message.strip():
        errors.append(invalid(f"{path}.message", message, "must be non-empty if specified"))
    elif "\n" in message.strip():
        errors.append(invalid(f"{path}.message", message, "must not contain line breaks"))
    elif "\n" in text and not message.strip():
        errors.append(required(f"{path}.message", "message must be specified if rule contains line breaks"))
    expression = rule.get("messageExpression")
    if expression and not str(expression).strip():
        errors.append(required(f"{path}.messageExpression", "messageExpression must be non-empty if specified"))
    reason = rule.get("reason")
    if reason is not None and reason not in _REASONS:
        errors.append(not_supported(f"{path}.reason", reason, _REASONS))
    return errors
