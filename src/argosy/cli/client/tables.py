"""Tables: any kind in the columns its server shows, as kubectl gets them."""

from typing import Any, NamedTuple

import msgspec

from argosy.cli.output.terminal import age
from argosy.kube.client import Client
from argosy.kube.errors import BadAnswer
from argosy.kube.objects import DecodeError, Metadata, decode
from argosy.kube.resource import Resource
from argosy.kube.selectors import FieldRequirement

__all__ = ["Shown", "named", "read"]

#: A server that makes no tables of a kind (an extension server may not) answers with the plain list.
_ACCEPT = "application/json;as=Table;v=v1;g=meta.k8s.io, application/json"
_PAGE = 500
_NONE = "<none>"


class Shown(NamedTuple):
    columns: list[str]
    rows: list[list[str]]


class _Column(msgspec.Struct):
    name: str
    priority: int = 0


class _Object(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()


class _Row(msgspec.Struct):
    cells: list[Any]
    object: _Object = _Object()


class _ListMetadata(msgspec.Struct, frozen=True):
    continue_token: str = msgspec.field(default="", name="continue")


class _Answer(msgspec.Struct, rename="camel"):
    """A Table, or a list."""

    kind: str = ""
    metadata: _ListMetadata = _ListMetadata()
    column_definitions: list[_Column] | None = None
    rows: list[_Row] | None = None
    items: list[_Object] | None = None


def named(name: str | None) -> str:
    """The field selector of one name; empty for all of them."""
    return str(FieldRequirement("metadata.name", "=", name)) if name is not None else ""


async def read(client: Client, resource: Resource, namespace: str | None, name: str | None) -> Shown:
    """What the server shows of a kind, or of the ones of this name, in one namespace or in all."""
    selector = named(name)
    query = [("limit", str(_PAGE)), *([("fieldSelector", selector)] if selector else [])]
    columns: list[_Column] = []
    rows: list[_Row] = []
    token = ""
    while True:
        path = resource.path(namespace)
        more = [("continue", token)] if token else []
        body = await client.request("GET", path, query=[*query, *more], headers={"accept": _ACCEPT})
        try:
            answer = decode(body, _Answer)
        except DecodeError as error:
            raise BadAnswer(f"{client.name}: the list of {resource} cannot be read: {error}") from None
        if answer.kind == "Table":
            columns = columns or answer.column_definitions or [_Column("Name")]
            rows += answer.rows or []
        else:
            columns = [_Column("Name"), _Column("Age")]
            rows += [_Row(_plain(each.metadata), each) for each in answer.items or ()]
        last, token = token, answer.metadata.continue_token
        if not token or token == last:
            break
    visible = [index for index, column in enumerate(columns) if column.priority == 0]
    where = resource.namespaced and namespace is None
    return Shown(
        [*(["NAMESPACE"] if where else []), *(columns[index].name.upper() for index in visible)],
        [
            [
                *([row.object.metadata.namespace] if where else []),
                *(_text(row.cells[index]) if index < len(row.cells) else _NONE for index in visible),
            ]
            for row in rows
        ],
    )


def _plain(metadata: Metadata) -> list[Any]:
    return [metadata.name, age(metadata.creation_timestamp)]


def _text(cell: Any) -> str:
    if cell is None:
        return _NONE
    if isinstance(cell, bool):
        return str(cell).lower()
    return cell if isinstance(cell, str) else msgspec.json.encode(cell).decode()
