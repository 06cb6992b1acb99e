"""Other shapes of an answer: Tables and partial objects, asked for in the Accept header; and YAML."""

from collections.abc import Callable

import msgspec
import orjson

from argosy.kube.transport import Page, Response
from argosy.server.encoding import accepts, encode_list, to_yaml
from argosy.server.registry import Kind
from argosy.server.request import Call
from argosy.server.tables import TableRequest, as_partial, as_partial_list, as_table, wants_table

__all__ = ["render_list", "render_object", "watch_renderer"]


def render_list(call: Call, page: Page) -> bytes:
    meta: dict[str, object] = {"resourceVersion": page.resource_version}
    if page.continue_token:
        meta["continue"] = page.continue_token
    if page.remaining is not None:
        meta["remainingItemCount"] = page.remaining
    wanted = wants_table(call.headers.get("accept", ""))
    if wanted is None:
        return encode_list(call.kind, page.items, meta)
    if wanted.kind == "Table":
        return as_table(
            call.kind, page.items, list_metadata=meta, include_object=_included(call), version=wanted.version
        )
    return as_partial_list(page.items, list_metadata=meta, version=wanted.version)


def render_object(call: Call, response: Response) -> Response:
    """A whole answer in the form that was asked for. Raises 406."""
    accept = call.headers.get("accept", "")
    if not accept or accept == "application/json":
        return response
    form = accepts(accept)
    wanted = wants_table(accept)
    if wanted is not None and call.verb == "get" and response.status == 200:
        response = msgspec.structs.replace(response, body=_shaped(call.kind, wanted, _included(call), response.body))
    if form == "application/yaml":
        headers = {**response.headers, "content-type": form}
        return msgspec.structs.replace(response, headers=headers, body=to_yaml(response.body))
    return response


def watch_renderer(call: Call) -> Callable[[bytes], bytes] | None:
    """What turns each object of a watch into the shape that was asked for; None leaves it as it is."""
    accept = call.headers.get("accept", "")
    wanted = wants_table(accept)
    if wanted is None:
        return None
    if wanted.kind != "Table":
        return lambda value: as_partial(value, wanted.version)
    told = False

    def render(value: bytes) -> bytes:
        # Columns are told once; clients remember them.
        nonlocal told
        again, told = told, True
        return as_table(
            call.kind,
            [value],
            list_metadata=_version_of(value),
            include_object=_included(call),
            is_watch=again,
            version=wanted.version,
        )

    return render


def _shaped(kind: Kind, wanted: TableRequest, included: str, value: bytes) -> bytes:
    if wanted.kind == "Table":
        meta = _version_of(value)
        return as_table(kind, [value], list_metadata=meta, include_object=included, version=wanted.version)
    return as_partial(value, wanted.version)


def _included(call: Call) -> str:
    return call.query.get("includeObject") or "Metadata"


def _version_of(value: bytes) -> dict[str, str]:
    return {"resourceVersion": orjson.loads(value)["metadata"].get("resourceVersion", "")}
