"""Other representations of a response: Tables and partial objects, by the Accept header; and YAML.

Lists of thousands are joined in a thread, from pieces that are rendered one by one, so that no single library call blocks the
interpreter for long.
"""

from collections.abc import Hashable

import msgspec
import orjson

from argosy.kube.transport import Page, Response
from argosy.kube.yamlwriter import to_yaml
from argosy.server.http.encoding import accepts, encode_list
from argosy.server.http.request import Call
from argosy.server.printers.tables import TableRequest, as_partial, as_partial_list, as_table, version_of, wants_table
from argosy.server.registry import Kind
from argosy.server.verbs.base import Api, warned
from argosy.server.watchcache.watcher import Renderer

__all__ = ["render_list", "render_object", "watch_renderer"]

#: The cost of rendering an item and its bytes, in thousandths of the cost of a written byte.
_COSTS = {"": (200, 1), "Table": (50_000, 100), "PartialObjectMetadata": (2_000, 5), "yaml": (100_000, 500)}


async def render_list(api: Api, call: Call, page: Page) -> Response:
    """The list in the requested form. Raises 406."""
    accept = call.headers.get("accept", "")
    form, wanted = accepts(accept), wants_table(accept)
    if call.verb != "list":
        wanted = None
    yaml = form == "application/yaml"
    an_item, a_byte = _COSTS["yaml" if yaml else wanted.kind.removesuffix("List") if wanted is not None else ""]
    size = (len(page.items) * an_item + sum(map(len, page.items)) * a_byte) // 1000
    api.admit(call, size)
    body = await api.run(call, size, _list, call, page, wanted, yaml=yaml)
    return warned(call, Response(200, {"content-type": form}, body))


def _list(call: Call, page: Page, wanted: TableRequest | None, *, yaml: bool) -> bytes:
    meta: dict[str, object] = {"resourceVersion": page.resource_version}
    if page.continue_token:
        meta["continue"] = page.continue_token
    if page.remaining is not None:
        meta["remainingItemCount"] = page.remaining
    if wanted is None:
        return encode_list(call.kind, page.items, meta, yaml=yaml)
    version = wanted.version
    if wanted.kind != "Table":
        return as_partial_list(page.items, list_metadata=meta, version=version, yaml=yaml)
    included = _included(call)
    return as_table(call.kind, page.items, list_metadata=meta, include_object=included, version=version, yaml=yaml)


async def render_object(api: Api, call: Call, response: Response) -> Response:
    """A whole response in the requested form. Raises 406."""
    accept = call.headers.get("accept", "")
    if not accept or accept == "application/json":
        return response
    form = accepts(accept)
    wanted = wants_table(accept)
    if call.verb != "get" or response.status != 200:
        wanted = None
    if wanted is None and form != "application/yaml":
        return response
    body = await api.run(
        call, len(response.body), _object, call, wanted, response.body, yaml=form == "application/yaml"
    )
    headers = {**response.headers, "content-type": form}
    return msgspec.structs.replace(response, headers=headers, body=body)


def _object(call: Call, wanted: TableRequest | None, body: bytes, *, yaml: bool) -> bytes:
    if wanted is not None:
        body = _shaped(call.kind, wanted, _included(call), body)
    return to_yaml(orjson.loads(body)) if yaml else body


class _WatchRenderer(msgspec.Struct, frozen=True):
    kind: Kind
    wanted: TableRequest
    included: str

    @property
    def shape(self) -> Hashable:
        return self.wanted.kind, self.wanted.version, self.included

    def render(self, value: bytes, *, first: bool) -> bytes:
        # Columns are sent once; clients remember them.
        return _shaped(self.kind, self.wanted, self.included, value, is_watch=not first)


def watch_renderer(call: Call) -> Renderer | None:
    """Renders each object of a watch in the requested form; None leaves it as it is."""
    wanted = wants_table(call.headers.get("accept", ""))
    return None if wanted is None else _WatchRenderer(call.kind, wanted, _included(call))


def _shaped(kind: Kind, wanted: TableRequest, included: str, value: bytes, *, is_watch: bool = False) -> bytes:
    if wanted.kind != "Table":
        return as_partial(value, wanted.version)
    return as_table(
        kind,
        [value],
        list_metadata=_version_of(value),
        include_object=included,
        is_watch=is_watch,
        version=wanted.version,
    )


def _included(call: Call) -> str:
    return call.query.get("includeObject") or "Metadata"


def _version_of(value: bytes) -> dict[str, str]:
    return {"resourceVersion": version_of(value)}
