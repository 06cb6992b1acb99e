"""Bodies in and out: JSON and YAML read with limits, duplicate fields found, answers in the form that was asked for.

Protobuf is read and not written, CBOR neither: a client that also accepts JSON gets JSON.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

import orjson
import yaml

from argosy.kube.errors import ApiError
from argosy.server import protobuf, status
from argosy.server.registry import Kind

__all__ = ["BODY_TYPES", "accepts", "decode_body", "encode_list", "media_type", "to_yaml"]

BODY_TYPES = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
#: Deep enough for any real object (a CRD with deeply nested schemas has about 60 levels), far from any recursion limit.
MAX_DEPTH = 200
_FIELD = re.compile(rb'"\s*:')
_YAML_TYPES = {"application/yaml", "application/x-yaml", "text/yaml", "application/apply-patch+yaml"}


def media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def decode_body(body: bytes, content_type: str, wanted: str) -> tuple[Any, list[str]]:
    """The value in a body, and what is to be said of fields that were given twice (the last one wins, as in Go).

    `wanted` is the kind that errors name.
    """
    kind = media_type(content_type) or "application/json"
    if kind in _YAML_TYPES:
        return _decode_yaml(body, wanted)
    if kind == protobuf.MEDIA_TYPE:
        try:
            value = protobuf.decode(body)
        except protobuf.ProtobufError as error:
            raise _unrecognized(wanted, str(error)) from None
        _check_depth(value, body)  # of the JSON that messages hold
        return value, []
    if kind != "application/json":
        raise status.unsupported_media_type(BODY_TYPES)
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        text = "unexpected end of JSON input" if len(body.strip()) <= 1 else str(error)
        shown = body[:512].decode(errors="replace") if body else "<empty>"
        raise _unrecognized(wanted, f"couldn't get version/kind; json parse error: {text} ({shown})") from None
    _check_depth(value, body)
    # Written out again, the value has one quote and colon a field: when the body has no more, none was given twice.
    if len(_FIELD.findall(body)) == len(_FIELD.findall(orjson.dumps(value))):
        return value, []
    return value, _duplicates(body)


def _check_depth(value: Any, body: bytes) -> None:
    if body.count(b"{") + body.count(b"[") <= MAX_DEPTH:
        return
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return
    raise status.bad_request(f"the body is nested deeper than {MAX_DEPTH} levels")


class _Pairs(list[tuple[str, Any]]):
    """An object's fields as they were written, repetitions included."""


def _duplicates(body: bytes) -> list[str]:
    found: list[str] = []

    def walk(value: Any, path: str) -> None:
        if isinstance(value, _Pairs):
            seen: set[str] = set()
            for key, child in value:
                here = f"{path}.{key}" if path else key
                if key in seen:
                    found.append(here)
                seen.add(key)
                walk(child, here)
        elif isinstance(value, list):
            for index, child in enumerate(value):
                walk(child, f"{path}[{index}]")

    walk(json.loads(body, object_pairs_hook=_Pairs), "")
    return [f'duplicate field "{path}"' for path in dict.fromkeys(found)]


class _Loader(yaml.CSafeLoader):
    """YAML as Kubernetes reads it: keys are strings, dates are strings."""

    def __init__(self, stream: bytes):
        super().__init__(stream)
        self.duplicates: list[str] = []

    def construct_fields(self, node: yaml.MappingNode) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=True)
            name = ("true" if key else "false") if isinstance(key, bool) else str(key)
            if name in out:
                line = key_node.start_mark.line + 1
                self.duplicates.append(f'line {line}: key "{name}" already set in map')
            out[name] = self.construct_object(value_node, deep=True)
        return out


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_constructor("tag:yaml.org,2002:map", _Loader.construct_fields)


def _decode_yaml(body: bytes, wanted: str) -> tuple[Any, list[str]]:
    try:
        _check_yaml(body)
        loader = _Loader(body)
        try:
            value = loader.get_single_data()
        finally:
            loader.dispose()
    except (yaml.YAMLError, ValueError) as error:
        text = " ".join(str(error).split())
        raise _unrecognized(wanted, f"error converting YAML to JSON: {text}") from None
    told = [f"yaml: unmarshal errors:\n  {text}" for text in loader.duplicates]
    return value, told


def _check_yaml(body: bytes) -> None:
    """Refuse aliases, which can blow a small body up, and deep nesting, before anything is built."""
    depth = 0
    for event in yaml.parse(body, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not accepted in request bodies")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise yaml.YAMLError(f"nested deeper than {MAX_DEPTH} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _unrecognized(wanted: str, why: str) -> ApiError:
    return status.bad_request(f"the object provided is unrecognized (must be of type {wanted}): {why}")


def accepts(accept: str) -> str:
    """The media type of the answer: JSON, or YAML where only that is wanted. Raises 406."""
    if not accept:
        return "application/json"
    wanted = [media_type(part) for part in accept.split(",")]
    for candidate in wanted:
        if candidate in ("application/json", "*/*", "application/*"):
            return "application/json"
        if candidate == "application/yaml":
            return candidate
    raise status.not_acceptable()


def encode_list(kind: Kind, items: Sequence[bytes], meta: dict[str, object]) -> bytes:
    """A list out of objects that are encoded already.

    Copied once: a list of 10,000 is some megabytes, and the event loop waits for it.
    """
    if not kind.builtin:
        meta = {"continue": "", **meta}  # lists without a Go type of their own always say it
    head = orjson.dumps({"kind": kind.list_kind, "apiVersion": kind.api_version, "metadata": meta})[:-1]
    if not items:
        return head + b',"items":[]}'
    # Items of built-in lists do not say what they are; in the encoding it is the first thing they say.
    start = orjson.dumps({"apiVersion": kind.api_version, "kind": kind.kind})[:-1] + b","
    size = len(start) if kind.builtin else 1
    bodies = [memoryview(item)[size if item.startswith(start) else 1 :] for item in items]
    bodies[0] = memoryview(head + b',"items":[{' + bodies[0])
    bodies[-1] = memoryview(bytes(bodies[-1]) + b"]}")
    return b",{".join(bodies)


def to_yaml(body: bytes) -> bytes:
    return yaml.dump(orjson.loads(body), Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True).encode()
