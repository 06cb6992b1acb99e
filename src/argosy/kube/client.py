"""Client: every verb of the Kubernetes API over a Transport. It builds requests, decodes responses, raises typed errors.

No cache, no task: those belong to the transport and the informer. `into` chooses the type of the result: `dict`, `bytes` as
sent, or a msgspec Struct with the wanted fields; so a verb has two signatures and, in `kube.query`, one set of options. A
server's warnings go to `on_warning`; by default, each text is logged once.

Responses are checked before they are returned: an object must have metadata and the requested name, and neither too much
metadata nor too many levels; a list must end. Anything else is a BadAnswer.
"""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, TypeVar, Unpack, overload

import msgspec

from argosy.kube import query as queries
from argosy.kube import warning
from argosy.kube.discovery import Discovery, discover
from argosy.kube.errors import AnswerTooLarge, BadAnswer, Gone, from_response
from argosy.kube.jsonreader import TOO_DEEP, is_deep, may_be_deep
from argosy.kube.objects import DecodeError, Partial, decode, encode, overgrown, weight
from argosy.kube.paging import MOST_BYTES, PAGE, Paging
from argosy.kube.query import Applying, Creating, Listing, Patch, Patching, Reading, Selection, Writing
from argosy.kube.resource import Resource
from argosy.kube.shards import Shard
from argosy.kube.transport import Event, Page, Request, Response, Transport

__all__ = ["Body", "Client", "ObjectList", "Patch"]

T = TypeVar("T")
log = logging.getLogger(__name__)

#: How many different warnings are remembered.
MAX_WARNINGS = 1000
# An alias, because inside the class `list` is a verb.
Resources = list[Resource]
Body = bytes | Mapping[str, Any] | Sequence[Any] | msgspec.Struct


class ObjectList(msgspec.Struct, Generic[T], frozen=True):
    """All items of a list and the version they were read at."""

    items: list[T]
    resource_version: str


class Client:
    def __init__(
        self, transport: Transport, *, field_manager: str = "argosy", on_warning: Callable[[str], None] | None = None
    ) -> None:
        self.transport = transport
        self.field_manager = field_manager
        self._on_warning = on_warning or self._log_once
        self._warned: set[str] = set()

    @property
    def name(self) -> str:
        """The server's name, for messages."""
        return self.transport.name

    @overload
    async def get(
        self, resource: Resource, name: str, namespace: str | None = None, **how: Unpack[Reading]
    ) -> dict[str, Any]: ...
    @overload
    async def get(
        self, resource: Resource, name: str, namespace: str | None = None, *, into: type[T], **how: Unpack[Reading]
    ) -> T: ...
    async def get(
        self, resource: Resource, name: str, namespace: str | None = None, *, into: Any = dict, **how: Unpack[Reading]
    ) -> Any:
        version, subresource = how.get("resource_version"), how.get("subresource")
        query = [] if version is None else [("resourceVersion", version)]
        path = queries.path(resource, namespace, name, subresource)
        return await self._object(into, "GET", path, query, name="" if subresource else name)

    @overload
    async def list(
        self, resource: Resource, namespace: str | None = None, **listing: Unpack[Listing]
    ) -> ObjectList[dict[str, Any]]: ...
    @overload
    async def list(
        self, resource: Resource, namespace: str | None = None, *, into: type[T], **listing: Unpack[Listing]
    ) -> ObjectList[T]: ...
    async def list(
        self, resource: Resource, namespace: str | None = None, *, into: Any = dict, **listing: Unpack[Listing]
    ) -> ObjectList[Any]:
        """Every object of a collection, read page by page, all at one version.

        With a `shard`, every object in it, whether or not the server supports shards.
        """
        items: list[Any] = []
        shard = listing.get("shard")
        version, size = "", 0
        try:
            async for page in self.pages(resource, namespace, **listing):
                version = page.resource_version
                items += (
                    found := [_item(raw, into, resource) for raw in page.items if shard is None or _covers(shard, raw)]
                )
                size += sum(map(weight, found)) if into is not bytes else sum(map(len, found))
                if size > MOST_BYTES:
                    raise BadAnswer(f"{self.name}: the list of {resource} takes more than {MOST_BYTES} bytes")
        except DecodeError as error:
            raise BadAnswer(f"{resource}: an item of the list cannot be read: {error}") from None
        except Gone:
            # The version of the first page was compacted before the last one was read; in one piece that cannot happen.
            if not version:
                raise
            whole: Listing = {**listing, "limit": 0, "resource_version": ""}
            return await self.list(resource, namespace, into=into, **whole)
        return ObjectList(items, version)

    async def pages(
        self, resource: Resource, namespace: str | None = None, **listing: Unpack[Listing]
    ) -> AsyncGenerator[Page, None]:
        """The pages of a list, of all shards if the server does not support them (then `shard_selector` is empty).

        Raises Gone if the list's version expires in between.
        """
        path = queries.path(resource, namespace)
        paging, version = Paging(listing.get("limit", PAGE)), listing.get("resource_version", "")
        selectors = queries.selection(listing)
        first = [("resourceVersion", version)] if version else []
        while True:
            query = [*selectors, *paging.query, *(first if not paging.token else [])]
            try:
                page = await self.transport.list(Request("GET", path, query))
            except AnswerTooLarge:
                if not paging.was_too_large():
                    raise
                continue
            self._warn(page.warnings)
            if not paging.take(page):
                raise BadAnswer(f"{self.name}: the list of {resource} does not end")
            yield page
            if not paging.token:
                return

    @overload
    async def create(
        self, resource: Resource, obj: Body, namespace: str | None = None, **how: Unpack[Creating]
    ) -> dict[str, Any]: ...
    @overload
    async def create(
        self, resource: Resource, obj: Body, namespace: str | None = None, *, into: type[T], **how: Unpack[Creating]
    ) -> T: ...
    async def create(
        self, resource: Resource, obj: Body, namespace: str | None = None, *, into: Any = dict, **how: Unpack[Creating]
    ) -> Any:
        """Create an object, or POST to a subresource of `name`. Without a namespace, the object's own is used."""
        body, name = encode(obj), how.get("name")
        names = _names(body)
        if namespace is None and resource.namespaced:
            namespace = names.namespace or None
        made = "" if name else names.name or ""
        return await self._write(into, "POST", resource, namespace, name, how, body, answered=made)

    @overload
    async def update(
        self, resource: Resource, obj: Body, namespace: str | None = None, **how: Unpack[Writing]
    ) -> dict[str, Any]: ...
    @overload
    async def update(
        self, resource: Resource, obj: Body, namespace: str | None = None, *, into: type[T], **how: Unpack[Writing]
    ) -> T: ...
    async def update(
        self, resource: Resource, obj: Body, namespace: str | None = None, *, into: Any = dict, **how: Unpack[Writing]
    ) -> Any:
        """Replace the object by `obj`, whose metadata names it; its resourceVersion, if any, must still be the stored one."""
        body = encode(obj)
        namespace, name = _named(resource, body, namespace, "an update")
        return await self._write(into, "PUT", resource, namespace, name, how, body, answered=name)

    @overload
    async def patch(
        self, resource: Resource, name: str, patch: Body, namespace: str | None = None, **how: Unpack[Patching]
    ) -> dict[str, Any]: ...
    @overload
    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Body,
        namespace: str | None = None,
        *,
        into: type[T],
        **how: Unpack[Patching],
    ) -> T: ...
    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Body,
        namespace: str | None = None,
        *,
        into: Any = dict,
        **how: Unpack[Patching],
    ) -> Any:
        """Change an object by a patch of the given kind (for server-side apply there is `apply`)."""
        kind = how.get("kind", Patch.MERGE)
        return await self._write(into, "PATCH", resource, namespace, name, how, encode(patch), kind, answered=name)

    @overload
    async def apply(
        self, resource: Resource, obj: Body, namespace: str | None = None, **how: Unpack[Applying]
    ) -> dict[str, Any]: ...
    @overload
    async def apply(
        self, resource: Resource, obj: Body, namespace: str | None = None, *, into: type[T], **how: Unpack[Applying]
    ) -> T: ...
    async def apply(
        self, resource: Resource, obj: Body, namespace: str | None = None, *, into: Any = dict, **how: Unpack[Applying]
    ) -> Any:
        """Server-side apply: create or change the object as `obj` says, and own exactly the fields in it.

        Fields of other managers with other values raise ApplyConflict, which names them; `force` takes them over.
        """
        body = encode(obj)
        namespace, name = _named(resource, body, namespace, "an apply")
        forced = [("force", "true")] if how.get("force") else []
        return await self._write(
            into, "PATCH", resource, namespace, name, how, body, Patch.APPLY, forced, answered=name
        )

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: str | None = None,
        grace_period: int | None = None,
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Delete one object: a Status when it is gone, the object when finalizers or a grace period keep it for now.

        `uid` and `resource_version` are preconditions: when they do not hold, Conflict is raised and nothing happens.
        """
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        options = queries.delete_options(propagation, grace_period, dry_run, preconditions)
        path = queries.path(resource, namespace, name)
        return await self._object(dict, "DELETE", path, (), encode(options), JSON_BODY)

    async def delete_collection(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        propagation: str | None = None,
        grace_period: int | None = None,
        dry_run: bool = False,
        **selection: Unpack[Selection],
    ) -> dict[str, Any]:
        """Delete every object of a collection that the selectors match."""
        if selection.get("shard") is not None:
            # A server without shards would delete all objects.
            raise ValueError("a shard cannot be deleted as a collection")
        query = queries.selection(selection)
        options = queries.delete_options(propagation, grace_period, dry_run, {})
        return await self._object(dict, "DELETE", queries.path(resource, namespace), query, encode(options), JSON_BODY)

    def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        resource_version: str,
        bookmarks: bool = True,
        timeout_seconds: int | None = None,
        **selection: Unpack[Selection],
    ) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        """The changes after `resource_version`, until the server ends the stream (after `timeout_seconds`, if given).

        If the server does not support shards, the changes of all of them.
        """
        query = [("watch", "true"), ("resourceVersion", resource_version)]
        query += queries.selection(selection)
        if bookmarks:
            query.append(("allowWatchBookmarks", "true"))
        if timeout_seconds is not None:
            query.append(("timeoutSeconds", str(timeout_seconds)))
        return self.transport.watch(Request("GET", queries.path(resource, namespace), query))

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str] | None = None,
        body: Body = b"",
        timeout: float | None = None,
    ) -> bytes:
        """Any request; returns the response's bytes, or raises the typed error."""
        headers = dict(headers or {})
        if body != b"" and not any(name.lower() == "content-type" for name in headers):
            headers["content-type"] = "application/json"
        response = await self.transport.send(Request(method, path, query, headers, encode(body), timeout))
        return self._body_of(response)

    async def discover(self) -> Discovery:
        """The resources the server serves, and which groups could not be read."""
        return await discover(self)

    async def api_resources(self) -> Resources:
        """The resources the server serves; groups that could not be read are logged (`discover` returns them)."""
        found = await discover(self)
        for group_version, why in found.failures.items():
            log.warning("discovery of %s failed: %s", group_version, why)
        return [*found.resources]

    async def version(self) -> dict[str, Any]:
        """The server's version: gitVersion, major, minor and the rest."""
        return self._decoded(await self.request("GET", "/version"), dict, "/version")

    async def healthz(self, timeout: float | None = None) -> str:
        """The text of /healthz, "ok" when all is well; an unhealthy server raises ApiError, a silent one TransportError."""
        body = await self.request("GET", "/healthz", headers={"accept": "text/plain, */*"}, timeout=timeout)
        return body.decode("utf-8", "replace").strip()

    async def close(self) -> None:
        await self.transport.close()

    async def _write(
        self,
        into: type[T],
        method: str,
        resource: Resource,
        namespace: str | None,
        name: str | None,
        writing: Writing,
        body: bytes,
        content_type: str = "application/json",
        further: Sequence[tuple[str, str]] = (),
        *,
        answered: str,
    ) -> T:
        """`answered` is the name that the response's object must have; empty for any."""
        path = queries.path(resource, namespace, name, writing.get("subresource"))
        query = [*queries.write(self.field_manager, writing), *further]
        return await self._object(into, method, path, query, body, {"content-type": str(content_type)}, name=answered)

    async def _object(
        self,
        into: type[T],
        method: str,
        path: str,
        query: Sequence[tuple[str, str]],
        body: bytes = b"",
        headers: Mapping[str, str] = {},
        name: str = "",
    ) -> T:
        """Checks that the response is an object, with `name` if one is given."""
        answer = self._body_of(await self.transport.send(Request(method, path, query, headers, body)))
        metadata = self._decoded(answer, Partial, path).metadata
        if name and metadata.name != name:
            raise BadAnswer(f"{self.name}: {path} answered another object, named {metadata.name[:60]!r}")
        if why := overgrown(metadata, answer):
            raise BadAnswer(f"{self.name}: {path} did not answer a Kubernetes object: {why}")
        return self._decoded(answer, into, path)

    def _body_of(self, response: Response) -> bytes:
        self._warn(warning.texts(response.headers.get("warning", "")))
        if response.status >= 300:
            raise from_response(response.status, response.headers, response.body)
        return response.body

    def _decoded(self, body: bytes, into: type[T], path: str) -> T:
        try:
            return _shallow(body, into)
        except DecodeError as error:
            raise BadAnswer(f"{self.name}: {path} did not answer a Kubernetes object: {_why(body, error)}") from None

    def _warn(self, texts: Sequence[str]) -> None:
        for text in texts:
            self._on_warning(text)

    def _log_once(self, text: str) -> None:
        if text not in self._warned and len(self._warned) < MAX_WARNINGS:
            self._warned.add(text)
            log.warning("%s warns: %s", self.name, text)


JSON_BODY = {"content-type": "application/json"}


class _Names(msgspec.Struct):
    name: str | None = None
    namespace: str | None = None


class _Named(msgspec.Struct):
    metadata: _Names = msgspec.field(default_factory=_Names)


def _names(body: bytes) -> _Names:
    """The fields of a body that address the object; the server validates the rest."""
    try:
        return decode(body, _Named).metadata
    except DecodeError as error:
        raise ValueError(f"not an object: {error}") from None


def _named(resource: Resource, body: bytes, namespace: str | None, what: str) -> tuple[str | None, str]:
    """The namespace (the object's own where none is given) and name of the object in a body."""
    names = _names(body)
    if not names.name:
        raise ValueError(f"{what} needs metadata.name")
    if namespace is None and resource.namespaced:
        namespace = names.namespace or None
    return namespace, names.name


def _why(body: bytes, error: DecodeError) -> str:
    return "it is an HTML page" if body.lstrip()[:1] == b"<" else str(error)


def _covers(shard: Shard, raw: bytes) -> bool:
    return shard.covers(decode(raw, Partial).metadata.uid)


def _shallow(raw: bytes, into: type[T]) -> T:
    """A value nested deeper could be decoded, but not encoded again."""
    value = decode(raw, into)
    if into is dict and may_be_deep(raw) and is_deep(value):
        raise DecodeError(TOO_DEEP)
    return value


def _item(raw: bytes, into: type[Any], resource: Resource) -> Any:
    value = _shallow(raw, into)
    if why := overgrown(getattr(value, "metadata", None), raw):
        raise DecodeError(why)
    # Kubernetes leaves these out of list items, where every item has the same.
    if into is dict and ("kind" not in value or "apiVersion" not in value):
        return {"apiVersion": resource.api_version, "kind": resource.kind, **value}
    return value
