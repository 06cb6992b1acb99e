"""Paths of the OpenAPI documents: the requests of a kind. One description of an operation serves both versions.

kubectl reads from these whether the server knows `fieldValidation`: POST, PUT and PATCH list it.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from argosy.server.crd.strategy import CustomResourceStrategy
from argosy.server.discovery import SUBRESOURCE_KINDS, SUBRESOURCE_VERBS
from argosy.server.openapi.schemas import Components
from argosy.server.registry import Kind

__all__ = ["Operation", "Style", "paths_of"]

Json = dict[str, Any]

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_STATUS = f"{_META}Status"
_STRINGS = {
    "dryRun": "When All, everything is checked and nothing is stored.",
    "fieldManager": "The name under which the changes of this request are kept.",
    "fieldValidation": "What to do about unknown and duplicate fields: Ignore, Warn (the default) or Strict.",
    "pretty": "If 'true', the output is indented.",
    "continue": "The token of the next page, from the list before.",
    "fieldSelector": "Restricts the objects by their fields.",
    "labelSelector": "Restricts the objects by their labels.",
    "resourceVersion": "The version the answer must not be older than.",
    "resourceVersionMatch": "How resourceVersion is applied to a list.",
    "propagationPolicy": "What happens to dependents: Orphan, Background or Foreground.",
}
_INTEGERS = {
    "limit": "The largest number of objects in one answer.",
    "timeoutSeconds": "How long a list or watch may take.",
    "gracePeriodSeconds": "Seconds before the object is deleted.",
}
_BOOLEANS = {
    "allowWatchBookmarks": "Send events that carry nothing but a newer version.",
    "sendInitialEvents": "Begin a watch with the present objects.",
    "watch": "Answer with a stream of changes.",
    "orphanDependents": "Deprecated: use propagationPolicy.",
    "force": "Take over fields other managers hold; only with apply.",
}
_WRITE = ("dryRun", "fieldManager", "fieldValidation")
_LIST = (
    "allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion",
    "resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch",
)  # fmt: skip
_DELETE = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_PATCHES = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
_STRATEGIC = "application/strategic-merge-patch+json"
_JSON = ("application/json", "application/yaml")


class Operation(msgspec.Struct, frozen=True):
    """One request: what it is called, takes and answers. `takes` and `answers` are names of definitions."""

    id: str
    description: str
    action: str
    kind: tuple[str, str, str]
    answers: str
    codes: tuple[str, ...]
    parameters: tuple[str, ...] = ()
    takes: str = ""
    media: tuple[str, ...] = _JSON


class Style(msgspec.Struct, frozen=True):
    """How a version of OpenAPI writes things down."""

    operation: Callable[[Operation, str], Json]
    parameter: Callable[[str, str, str, str], Json]


def paths_of(kind: Kind, components: Components, style: Style) -> Json:
    """Every path of a kind with its operations."""
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    scope = "/namespaces/{namespace}" if kind.namespaced else ""
    collection = f"{root}{scope}/{kind.plural}"
    paths: Json = {}
    _add(paths, collection, _collection(kind, components), components, style)
    _add(paths, f"{collection}/{{name}}", _item(kind, components), components, style)
    for name in sorted(kind.subresources):
        operations = _subresource(kind, name, components)
        _add(paths, f"{collection}/{{name}}/{name}", operations, components, style)
    if kind.namespaced and "list" in kind.verbs:
        everywhere = {"get": _listing(kind, components, "ForAllNamespaces")}
        _add(paths, f"{root}/{kind.plural}", everywhere, components, style)
    return paths


def _add(paths: Json, path: str, operations: dict[str, Operation], components: Components, style: Style) -> None:
    if not operations:
        return
    entry: Json = {method: style.operation(op, components.reference) for method, op in operations.items()}
    parameters = []
    if "{name}" in path:
        parameters.append(style.parameter("name", "path", "The name of the object.", "string"))
    if "{namespace}" in path:
        parameters.append(style.parameter("namespace", "path", "The namespace of the object.", "string"))
    parameters.append(style.parameter("pretty", "query", _STRINGS["pretty"], "string"))
    paths[path] = {**entry, "parameters": parameters}


def _identifier(kind: Kind) -> tuple[str, str]:
    """What goes between an operation's verb and its kind: `AppsV1`, `Namespaced`."""
    group = (kind.group or "core").removesuffix(".k8s.io")
    title = "".join(part[:1].upper() + part[1:] for part in group.replace("-", ".").split("."))
    return f"{title}{kind.version[:1].upper()}{kind.version[1:]}", "Namespaced" if kind.namespaced else ""


def _operation(
    kind: Kind, verb: str, action: str, words: str, answers: str, codes: tuple[str, ...], suffix: str = "", **more: Any
) -> Operation:
    group, scope = _identifier(kind)
    identity = more.pop("identity", (kind.group, kind.version, kind.kind))
    tail = f"{kind.kind}{suffix}"
    return Operation(f"{verb}{group}{scope}{tail}", words, action, identity, answers, codes, **more)


def _listing(kind: Kind, components: Components, suffix: str = "") -> Operation:
    words = f"list or watch objects of kind {kind.kind}"
    operation = _operation(
        kind, "list", "list", words, components.name(kind, "List"), ("200",), suffix, parameters=_LIST
    )
    if not suffix:
        return operation
    return msgspec.structs.replace(operation, id=operation.id.replace("Namespaced", "", 1))


def _collection(kind: Kind, components: Components) -> dict[str, Operation]:
    own = components.name(kind)
    operations: dict[str, Operation] = {}
    if "list" in kind.verbs:
        operations["get"] = _listing(kind, components)
    if "create" in kind.verbs:
        codes = ("200", "201", "202")
        words = f"create {_a(kind.kind)}"
        operations["post"] = _operation(kind, "create", "post", words, own, codes, parameters=_WRITE, takes=own)
    if "deletecollection" in kind.verbs:
        words = f"delete collection of {kind.kind}"
        operations["delete"] = _operation(
            kind, "deletecollection", "deletecollection", words, _STATUS, ("200",),
            parameters=(*_DELETE, *_LIST[1:-1]), takes=f"{_META}DeleteOptions",
        )  # fmt: skip
    return operations


def _a(kind: str) -> str:
    return f"{'an' if kind[:1] in 'AEIOU' else 'a'} {kind}"


def _item(kind: Kind, components: Components) -> dict[str, Operation]:
    own = components.name(kind)
    operations: dict[str, Operation] = {}
    if "get" in kind.verbs:
        operations["get"] = _operation(kind, "read", "get", f"read the specified {kind.kind}", own, ("200",))
    if "update" in kind.verbs:
        words = f"replace the specified {kind.kind}"
        operations["put"] = _operation(kind, "replace", "put", words, own, ("200", "201"), parameters=_WRITE, takes=own)
    if "delete" in kind.verbs:
        words = f"delete {_a(kind.kind)}"
        operations["delete"] = _operation(
            kind, "delete", "delete", words, _STATUS, ("200", "202"), parameters=_DELETE, takes=f"{_META}DeleteOptions"
        )
    if "patch" in kind.verbs:
        words = f"partially update the specified {kind.kind}"
        operations["patch"] = _patch(kind, words, own)
    return operations


def _patch(kind: Kind, words: str, answers: str, suffix: str = "", **more: Any) -> Operation:
    """kubectl reads here how to patch: a custom resource has no merge keys, so strategic merge patch is left out."""
    media = _PATCHES if isinstance(kind.strategy, CustomResourceStrategy) else (*_PATCHES, _STRATEGIC)
    return _operation(
        kind, "patch", "patch", words, answers, ("200", "201"), suffix,
        parameters=(*_WRITE, "force"), takes=f"{_META}Patch", media=media, **more,
    )  # fmt: skip


def _subresource(kind: Kind, name: str, components: Components) -> dict[str, Operation]:
    group, version, answered = SUBRESOURCE_KINDS.get(name, ("", "", kind.kind))
    identity = (group, version, answered) if version else (kind.group, kind.version, answered)
    definition = components.named(*identity) or components.name(kind)
    suffix, words = name.capitalize(), f"{name} of the specified {kind.kind}"
    operations: dict[str, Operation] = {}
    for verb in SUBRESOURCE_VERBS.get(name, ("get", "update", "patch")):
        if verb == "get":
            operations["get"] = _operation(
                kind, "read", "get", f"read {words}", definition, ("200",), suffix, identity=identity
            )
        elif verb == "update":
            operations["put"] = _operation(
                kind, "replace", "put", f"replace {words}", definition, ("200", "201"), suffix,
                identity=identity, parameters=_WRITE, takes=definition,
            )  # fmt: skip
        elif verb == "create":
            operations["post"] = _operation(
                kind, "create", "post", f"create {words}", definition, ("200", "201", "202"), suffix,
                identity=identity, parameters=_WRITE, takes=definition,
            )  # fmt: skip
        elif verb == "patch":
            operations["patch"] = _patch(kind, f"partially update {words}", definition, suffix, identity=identity)
    return operations


_RESPONSES = {"200": "OK", "201": "Created", "202": "Accepted"}


def _query(name: str, style: Style) -> Json:
    for described, kind in ((_STRINGS, "string"), (_INTEGERS, "integer"), (_BOOLEANS, "boolean")):
        if name in described:
            return style.parameter(name, "query", described[name], kind)
    raise KeyError(name)


def _common(operation: Operation) -> Json:
    group, version, kind = operation.kind
    return {
        "x-kubernetes-action": operation.action,
        "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": kind},
    }


def _v3_operation(operation: Operation, reference: str) -> Json:
    def content(definition: str, media: tuple[str, ...]) -> Json:
        return {name: {"schema": {"$ref": reference + definition}} for name in media}

    responses: Json = {
        code: {"description": _RESPONSES[code], "content": content(operation.answers, _JSON)}
        for code in operation.codes
    }
    result: Json = {
        "description": operation.description,
        "operationId": operation.id,
        "parameters": [_query(name, V3) for name in operation.parameters],
        "responses": {**responses, "401": {"description": "Unauthorized"}},
        **_common(operation),
    }
    if operation.takes:
        result["requestBody"] = {
            "content": content(operation.takes, operation.media),
            "required": operation.action in ("post", "put", "patch"),
        }
    return result


def _v3_parameter(name: str, place: str, description: str, kind: str) -> Json:
    parameter: Json = {"name": name, "in": place, "description": description, "schema": {"type": kind}}
    return {**parameter, "required": True} if place == "path" else parameter


def _v2_operation(operation: Operation, reference: str) -> Json:
    parameters = [_query(name, V2) for name in operation.parameters]
    if operation.takes:
        body: Json = {"name": "body", "in": "body", "schema": {"$ref": reference + operation.takes}}
        parameters.insert(0, {**body, "required": operation.action in ("post", "put", "patch")})
    answer = {"$ref": reference + operation.answers}
    responses: Json = {code: {"description": _RESPONSES[code], "schema": answer} for code in operation.codes}
    return {
        "description": operation.description,
        "operationId": operation.id,
        "consumes": list(operation.media) if operation.action == "patch" else ["*/*"],
        "produces": list(_JSON),
        "schemes": ["https"],
        "parameters": parameters,
        "responses": {**responses, "401": {"description": "Unauthorized"}},
        **_common(operation),
    }


def _v2_parameter(name: str, place: str, description: str, kind: str) -> Json:
    parameter: Json = {"name": name, "in": place, "description": description, "type": kind, "uniqueItems": True}
    return {**parameter, "required": True} if place == "path" else parameter


V3 = Style(_v3_operation, _v3_parameter)
V2 = Style(_v2_operation, _v2_parameter)
