"""Bodies in and out: JSON and YAML parsed with limits, duplicate fields found, responses in the requested form.

Protobuf is read and not written, CBOR neither: a client that also accepts JSON gets JSON.
"""

from collections.abc import Sequence
from typing import Any, cast

import orjson

from argosy.kube import jsonreader, yamlreader
from argosy.kube.errors import ApiError
from argosy.kube.yamlwriter import to_yaml
from argosy.server import protobuf, status
from argosy.server.registry import Kind

__all__ = [
    "BODY_TYPES",
    "YAML_ERRORS",
    "accepts",
    "compose",
    "decode_body",
    "encode_list",
    "finished",
    "media_type",
    "quoted",
]

BODY_TYPES = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
#: All errors of one YAML body are one text of several lines, and one warning per line.
YAML_ERRORS = "yaml: unmarshal errors:\n"
#: Items of a list that are joined at once.
_PIECE = 256
_LARGE = 4 * 1024 * 1024
_LONGEST_NAME = 1024
_YAML_TYPES = {"application/yaml", "application/x-yaml", "text/yaml", "application/apply-patch+yaml"}


def media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def decode_body(body: bytes, content_type: str, wanted: str) -> tuple[Any, list[str]]:
    """The value in a body, and messages about duplicate fields (the last one wins, as in Go).

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
        if jsonreader.may_be_deep(body) and jsonreader.is_deep(value):  # the JSON that messages hold
            raise _unrecognized(wanted, jsonreader.TOO_DEEP)
        return value, []
    if kind != "application/json":
        raise status.unsupported_media_type(BODY_TYPES)
    try:
        value = jsonreader.read(body)
        twice = jsonreader.duplicates(body, value)
    except jsonreader.JsonError as error:
        text = "unexpected end of JSON input" if len(body.strip()) <= 1 else str(error)
        shown = body[:512].decode(errors="replace") if body else "<empty>"
        raise _unrecognized(wanted, f"couldn't get version/kind; json parse error: {text} ({shown})") from None
    return value, [f"duplicate field {quoted(path)}" for path in twice]


def _decode_yaml(body: bytes, wanted: str) -> tuple[Any, list[str]]:
    try:
        document = yamlreader.read(body)
    except yamlreader.YamlError as error:
        raise _unrecognized(wanted, str(error)) from None
    if not document.duplicates:
        return document.value, []
    lines = (f"  line {twice.line}: key {quoted(twice.name)} already set in map" for twice in document.duplicates)
    return document.value, [YAML_ERRORS + "\n".join(lines)]


def quoted(text: str) -> str:
    """A name inside an error; a very long one is cut."""
    return orjson.dumps(text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}...").decode()


def _unrecognized(wanted: str, why: str) -> ApiError:
    return status.bad_request(f"the object provided is unrecognized (must be of type {wanted}): {why}")


def accepts(accept: str) -> str:
    """The media type of the response: JSON, or YAML if only that is accepted. Raises 406."""
    if not accept:
        return "application/json"
    wanted = [media_type(part) for part in accept.split(",")]
    for candidate in wanted:
        if candidate in ("application/json", "*/*", "application/*"):
            return "application/json"
        if candidate == "application/yaml":
            return candidate
    raise status.not_acceptable()


def encode_list(kind: Kind, items: Sequence[bytes], meta: dict[str, object], *, yaml: bool = False) -> bytes:
    """A list of objects that are encoded already."""
    if not kind.builtin:
        meta = {"continue": "", **meta}  # lists without a Go type of their own always have it
    head = {"kind": kind.list_kind, "apiVersion": kind.api_version, "metadata": meta}
    # Items of built-in lists have no apiVersion and kind, which come first in the encoding.
    said = orjson.dumps({"apiVersion": kind.api_version, "kind": kind.kind})[:-1] + b"," if kind.builtin else b"{"
    return compose(head, "items", items, said, yaml=yaml)


def compose(
    head: dict[str, Any], field: str, items: Sequence[bytes], cut: bytes = b"{", *, yaml: bool = False
) -> bytes:
    """`head` with one more field, an array of encoded objects; `cut` is left out where they begin with it.

    A list of 10,000 is some megabytes: it is copied once, and in pieces, since copying a piece blocks everything else.
    """
    if not items:
        return to_yaml({**head, field: []}) if yaml else orjson.dumps({**head, field: []})
    size = len(cut)
    if yaml:
        whole = bytearray(to_yaml(head) + f"{field}:\n".encode())
        for item in items:
            whole += to_yaml([orjson.loads(b"{" + item[size if item.startswith(cut) else 1 :])], 1)
        return finished(whole)
    whole = bytearray(orjson.dumps(head)[:-1] + b',"%b":[' % field.encode())
    for start in range(0, len(items), _PIECE):
        whole += b",{" if start else b"{"
        some = items[start : start + _PIECE]
        whole += b",{".join([memoryview(item)[size if item.startswith(cut) else 1 :] for item in some])
    whole += b"]}"
    return finished(whole)


def finished(pieces: bytearray) -> bytes:
    """A body that was joined piece by piece."""
    # Copying a large one once more, only to change its type, would take as long as everything before.
    return cast(bytes, pieces) if len(pieces) > _LARGE else bytes(pieces)
