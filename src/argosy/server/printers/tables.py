"""Other representations of a response: Table, for kubectl, and PartialObjectMetadata, for clients that need only metadata.

Input objects are as stored, encoded or decoded; the output is encoded. The clock is read once per response, for ages.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import orjson

from argosy.kube import clock
from argosy.server import status
from argosy.server.crd.strategy import CustomResourceStrategy
from argosy.server.http.accept import media_types
from argosy.server.http.encoding import compose
from argosy.server.printers import builtin_printer
from argosy.server.printers.base import Printer
from argosy.server.registry import Kind

__all__ = ["TableRequest", "as_partial", "as_partial_list", "as_table", "version_of", "wants_table"]

_SHAPES = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
_VERSIONS = ("v1", "v1beta1")
_JSON = ("application/json", "application/*", "*/*")


class TableRequest(msgspec.Struct, frozen=True):
    """What the client wants instead of the object: the shape's kind and its version of meta.k8s.io."""

    kind: str
    version: str = "v1"

    @property
    def content_type(self) -> str:
        return f"application/json;as={self.kind};v={self.version};g=meta.k8s.io"


def wants_table(accept: str) -> TableRequest | None:
    """The representation in the first supported entry of an Accept header; None for the object itself.

    Raises 406 if only unknown representations are accepted.
    """
    if "as=" not in accept:
        return None
    for media in media_types(accept):
        if media.type not in _JSON and media.type != "application/yaml":
            continue
        kind, group, version = media.shape
        if not kind:
            return None
        if kind in _SHAPES and group == "meta.k8s.io" and version in _VERSIONS:
            return TableRequest(kind, version)
    raise status.not_acceptable()


def as_table(
    kind: Kind,
    items: Sequence[bytes | dict[str, Any]],
    *,
    list_metadata: Mapping[str, Any],
    include_object: str = "Metadata",
    is_watch: bool = False,
    version: str = "v1",
    yaml: bool = False,
) -> bytes:
    """The Table of some objects of a kind. `include_object` is Metadata, Object or None; raises 400 for anything else.

    `is_watch` leaves the columns out: in a watch each event is a Table of one row, and only the first names the columns.
    """
    _check_included(include_object)
    printer = _printer(kind)
    now = clock.time()
    rows = [orjson.dumps(_row(printer, kind, item, include_object, version, now)) for item in items]
    columns = None if is_watch else [_definition(column) for column in printer.columns]
    head = {"kind": "Table", "apiVersion": f"meta.k8s.io/{version}", "metadata": dict(list_metadata)}
    return compose({**head, "columnDefinitions": columns}, "rows", rows, yaml=yaml)


def _printer(kind: Kind) -> Printer:
    if isinstance(kind.strategy, CustomResourceStrategy):
        return kind.strategy.printer
    return builtin_printer(kind.group, kind.kind)


def _definition(column: Any) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.structs.asdict(column)
    return fields


def _row(
    printer: Printer, kind: Kind, item: bytes | dict[str, Any], include: str, version: str, now: float
) -> dict[str, Any]:
    obj: dict[str, Any] = item if isinstance(item, dict) else orjson.loads(item)
    row: dict[str, Any] = {"cells": printer.cells(obj, now)}
    if printer.conditions is not None and (conditions := printer.conditions(obj)):
        row["conditions"] = conditions
    match include:
        case "None":
            row["object"] = None
        case "Object":
            row["object"] = {"kind": kind.kind, "apiVersion": kind.api_version, **obj}
        case _:
            row["object"] = _partial(obj, version)
    return row


def _partial(obj: dict[str, Any], version: str) -> dict[str, Any]:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": obj.get("metadata") or {},
    }


class _MetadataOnly(msgspec.Struct):
    """Decodes only the place of the metadata, whose bytes are copied."""

    metadata: msgspec.Raw = msgspec.Raw(b"{}")


class _Version(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Versioned(msgspec.Struct):
    metadata: _Version = msgspec.field(default_factory=_Version)


_metadata = msgspec.json.Decoder(_MetadataOnly).decode
_versioned = msgspec.json.Decoder(_Versioned).decode


def as_partial(item: bytes, version: str = "v1") -> bytes:
    """The PartialObjectMetadata of an encoded object."""
    raw = bytes(_metadata(item).metadata)
    return b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/%b","metadata":%b}' % (version.encode(), raw)


def as_partial_list(
    items: Sequence[bytes], *, list_metadata: Mapping[str, Any], version: str = "v1", yaml: bool = False
) -> bytes:
    head = {
        "kind": "PartialObjectMetadataList",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": dict(list_metadata),
    }
    return compose(head, "items", [as_partial(item, version) for item in items], yaml=yaml)


def version_of(item: bytes) -> str:
    """The resourceVersion of an encoded object."""
    return _versioned(item).metadata.resource_version


def _check_included(include_object: str) -> None:
    if include_object in ("Metadata", "Object", "None"):
        return
    raise status.bad_request(
        f'Unable to convert to Table as requested: includeObject: Invalid value: "{include_object}": '
        "must be 'Metadata', 'Object', 'None', or empty"
    )
