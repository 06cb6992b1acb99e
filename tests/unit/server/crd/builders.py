"""Definitions and objects for the tests of custom resources."""

from typing import Any

import msgspec
import orjson

from argosy.server.crd.strategy import CustomResourceStrategy, Version

Object = dict[str, Any]


def definition(spec_schema: Object | None = None, **version: Any) -> Object:
    """A definition of Widgets whose spec has the given schema."""
    root = {
        "type": "object",
        "properties": {
            "spec": spec_schema or {"type": "object", "properties": {"name": {"type": "string"}}},
            "status": {"type": "object", "properties": {"phase": {"type": "string"}, "replicas": {"type": "integer"}}},
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": root}, **version}
            ],
        },
    }


def widget(spec: Any = None, **more: Any) -> Object:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "namespace": "default"},
        "spec": {} if spec is None else spec,
        **more,
    }


def strategy_of(crd: Object) -> CustomResourceStrategy:
    """Of the definition's first version."""
    return CustomResourceStrategy(msgspec.json.decode(orjson.dumps(crd["spec"]["versions"][0]), type=Version))
