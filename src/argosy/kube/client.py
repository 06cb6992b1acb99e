"""Client: every verb of the Kubernetes API over a Transport. It builds requests, decodes answers, raises typed errors.

No state, no cache, no task: those are the transport's and the informer's. `into` chooses what an answer becomes: `dict`,
`bytes` as sent, or a msgspec Struct that names the fields wanted.
"""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from typing import Any, Generic, TypeVar, overload

import msgspec

from argosy.kube.discovery import Discovery, discover
from argosy.kube.errors import Gone, TransportError, from_response
from argosy.kube.objects import DecodeError, Metadata, Partial, decode, encode
from argosy.kube.resource import Resource
from argosy.kube.transport import Event, Page, Request, Response, Transport

__all__ = ["Body", "Client", "ObjectList", "Patch"]

T = TypeVar("T")
log = logging.getLogger(__name__)

# Aliases, because inside the class `list` is a verb.
Query = list[tuple[str, str]]
Resources = list[Resource]
Body = bytes | Mapping[str, Any] | Sequence[Any] | msgspec.Struct


class Patch(StrEnum):
    """The kinds of patch, by their content types."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class ObjectList(msgspec.Struct, Generic[T], frozen=True):
    """All items of a list and the version they were read at."""

    items: list[T]
    resource_version: str


class Client:
    def __init__(self, transport: Transport, *, field_manager: str = "argosy") -> None:
        self.transport = transport
        self.field_manager = field_manager

    @overload
    async def get(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
        resource_version: str | None = None,
    ) -> dict[str, Any]: ...
    @overload
    async def get(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        into: type[T],
        subresource: str | None = None,
        resource_version: str | None = None,
    ) -> T: ...
    async def get(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        into: type[Any] = dict,
        subresource: str | None = None,
        resource_version: str | None = None,
    ) -> Any:
        query = [] if resource_version is None else [("resourceVersion", resource_version)]
        return await self._object(into, "GET", _path(resource, namespace, name, subresource), query)

    @overload
    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 500,
        resource_version: str = "",
    ) -> ObjectList[dict[str, Any]]: ...
    @overload
    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 500,
        resource_version: str = "",
        into: type[T],
    ) -> ObjectList[T]: ...
    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 500,
        resource_version: str = "",
        into: type[Any] = dict,
    ) -> ObjectList[Any]:
        """Every object of a collection, read page by page, all at one version."""
        items: list[Any] = []
        version = ""
        try:
            async for page in self.pages(
                resource,
                namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                limit=limit,
                resource_version=resource_version,
            ):
                version = page.resource_version
                items += [_item(raw, into, resource) for raw in page.items]
        except DecodeError as error:
            raise TransportError(f"{resource}: an item of the list cannot be read: {error}") from None
        except Gone:
            # The version of the first page was compacted away before the last one was read; in one piece it cannot be.
            if not items:
                raise
            return await self.list(
                resource, namespace, label_selector=label_selector, field_selector=field_selector, limit=0, into=into
            )
        return ObjectList(items, version)

    async def pages(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 500,
        resource_version: str = "",
    ) -> AsyncGenerator[Page, None]:
        """A list as it comes. Raises Gone when it took so long that its version is no longer there."""
        path = _path(resource, namespace)
        selectors = _selectors(label_selector, field_selector)
        if limit > 0:
            selectors.append(("limit", str(limit)))
        start = [("resourceVersion", resource_version)] if resource_version else []
        while True:
            page = await self.transport.list(Request("GET", path, [*selectors, *start]))
            yield page
            if not page.continue_token:
                return
            start = [("continue", page.continue_token)]

    @overload
    async def create(
        self,
        resource: Resource,
        obj: Body,
        namespace: str | None = None,
        *,
        name: str | None = None,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> dict[str, Any]: ...
    @overload
    async def create(
        self,
        resource: Resource,
        obj: Body,
        namespace: str | None = None,
        *,
        name: str | None = None,
        subresource: str | None = None,
        dry_run: bool = False,
        into: type[T],
    ) -> T: ...
    async def create(
        self,
        resource: Resource,
        obj: Body,
        namespace: str | None = None,
        *,
        name: str | None = None,
        subresource: str | None = None,
        dry_run: bool = False,
        into: type[Any] = dict,
    ) -> Any:
        """Create an object, or POST to a subresource of `name`. Without a namespace, the object's own is used."""
        body = encode(obj)
        if namespace is None and resource.namespaced:
            namespace = _metadata(body).namespace or None
        path = _path(resource, namespace, name, subresource)
        return await self._object(into, "POST", path, self._write_query(dry_run), body, JSON_BODY)

    @overload
    async def update(
        self,
        resource: Resource,
        obj: Body,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> dict[str, Any]: ...
    @overload
    async def update(
        self,
        resource: Resource,
        obj: Body,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
        dry_run: bool = False,
        into: type[T],
    ) -> T: ...
    async def update(
        self,
        resource: Resource,
        obj: Body,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
        dry_run: bool = False,
        into: type[Any] = dict,
    ) -> Any:
        """Replace the object by `obj`, whose metadata names it; its resourceVersion, if any, must still be the stored one."""
        body = encode(obj)
        metadata = _metadata(body)
        if not metadata.name:
            raise ValueError("an update needs metadata.name")
        if namespace is None and resource.namespaced:
            namespace = metadata.namespace or None
        path = _path(resource, namespace, metadata.name, subresource)
        return await self._object(into, "PUT", path, self._write_query(dry_run), body, JSON_BODY)

    @overload
    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Body,
        namespace: str | None = None,
        *,
        kind: Patch = Patch.MERGE,
        subresource: str | None = None,
        field_manager: str | None = None,
        force: bool = False,
        dry_run: bool = False,
    ) -> dict[str, Any]: ...
    @overload
    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Body,
        namespace: str | None = None,
        *,
        kind: Patch = Patch.MERGE,
        subresource: str | None = None,
        field_manager: str | None = None,
        force: bool = False,
        dry_run: bool = False,
        into: type[T],
    ) -> T: ...
    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Body,
        namespace: str | None = None,
        *,
        kind: Patch = Patch.MERGE,
        subresource: str | None = None,
        field_manager: str | None = None,
        force: bool = False,
        dry_run: bool = False,
        into: type[Any] = dict,
    ) -> Any:
        """Change an object by a patch of the given kind; `force` takes fields from other managers (apply only)."""
        query = self._write_query(dry_run, field_manager)
        if force:
            query.append(("force", "true"))
        path = _path(resource, namespace, name, subresource)
        return await self._object(into, "PATCH", path, query, encode(patch), {"content-type": str(kind)})

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
        options = _delete_options(propagation, grace_period, preconditions)
        path = _path(resource, namespace, name)
        return await self._object(dict, "DELETE", path, self._dry_run(dry_run), encode(options), JSON_BODY)

    async def delete_collection(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        propagation: str | None = None,
        grace_period: int | None = None,
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Delete every object of a collection that the selectors match."""
        query = [*_selectors(label_selector, field_selector), *self._dry_run(dry_run)]
        options = _delete_options(propagation, grace_period, {})
        return await self._object(dict, "DELETE", _path(resource, namespace), query, encode(options), JSON_BODY)

    def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        bookmarks: bool = True,
        timeout_seconds: int | None = None,
    ) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        """The changes after `resource_version`, until the server ends the stream (after `timeout_seconds`, if given)."""
        query = [("watch", "true"), ("resourceVersion", resource_version)]
        query += _selectors(label_selector, field_selector)
        if bookmarks:
            query.append(("allowWatchBookmarks", "true"))
        if timeout_seconds is not None:
            query.append(("timeoutSeconds", str(timeout_seconds)))
        return self.transport.watch(Request("GET", _path(resource, namespace), query))

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
        """Any request; the answer's bytes, or the typed error of an error answer."""
        headers = dict(headers or {})
        if body != b"" and not any(name.lower() == "content-type" for name in headers):
            headers["content-type"] = "application/json"
        response = await self.transport.send(Request(method, path, query, headers, encode(body), timeout))
        return _body_of(response)

    async def discover(self) -> Discovery:
        """What the server serves, and which groups could not be read."""
        return await discover(self)

    async def api_resources(self) -> Resources:
        """The resources the server serves; groups that could not be read are logged (see `discover` to tell them)."""
        found = await discover(self)
        for group_version, why in found.failures.items():
            log.warning("discovery of %s failed: %s", group_version, why)
        return [*found.resources]

    async def version(self) -> dict[str, Any]:
        """The server's version: gitVersion, major, minor and the rest."""
        return _decoded(await self.request("GET", "/version"), dict, "/version")

    async def healthz(self, timeout: float | None = None) -> str:
        """The text of /healthz, "ok" when all is well; an unhealthy server raises ApiError, a silent one TransportError."""
        body = await self.request("GET", "/healthz", headers={"accept": "text/plain, */*"}, timeout=timeout)
        return body.decode("utf-8", "replace").strip()

    async def close(self) -> None:
        await self.transport.close()

    async def _object(
        self,
        into: type[T],
        method: str,
        path: str,
        query: Sequence[tuple[str, str]],
        body: bytes = b"",
        headers: Mapping[str, str] = {},
    ) -> T:
        response = await self.transport.send(Request(method, path, query, headers, body))
        return _decoded(_body_of(response), into, path)

    def _write_query(self, dry_run: bool, field_manager: str | None = None) -> Query:
        return [("fieldManager", field_manager or self.field_manager), *self._dry_run(dry_run)]

    @staticmethod
    def _dry_run(dry_run: bool) -> Query:
        return [("dryRun", "All")] if dry_run else []


JSON_BODY = {"content-type": "application/json"}


def _path(resource: Resource, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
    for part in (namespace, name):
        # Names come from users' objects; one with a slash would address something else.
        if part is not None and (part in (".", "..") or "/" in part or "%" in part):
            raise ValueError(f"{part!r} is not a name")
    return resource.path(namespace, name, subresource)


def _selectors(label_selector: str, field_selector: str) -> Query:
    query = []
    if label_selector:
        query.append(("labelSelector", label_selector))
    if field_selector:
        query.append(("fieldSelector", field_selector))
    return query


def _delete_options(
    propagation: str | None, grace_period: int | None, preconditions: Mapping[str, str | None]
) -> dict[str, Any]:
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if propagation is not None:
        options["propagationPolicy"] = propagation
    if grace_period is not None:
        options["gracePeriodSeconds"] = grace_period
    held = {key: value for key, value in preconditions.items() if value is not None}
    if held:
        options["preconditions"] = held
    return options


def _metadata(body: bytes) -> Metadata:
    try:
        return decode(body, Partial).metadata
    except DecodeError as error:
        raise ValueError(f"not an object: {error}") from None


def _body_of(response: Response) -> bytes:
    if response.status >= 300:
        raise from_response(response.status, response.headers, response.body)
    return response.body


def _decoded(body: bytes, into: type[T], path: str) -> T:
    try:
        return decode(body, into)
    except DecodeError as error:
        raise TransportError(f"{path} did not answer a Kubernetes object: {error}") from None


def _item(raw: bytes, into: type[Any], resource: Resource) -> Any:
    value = decode(raw, into)
    # Kubernetes leaves these out of list items, where every item has the same.
    if into is dict and ("kind" not in value or "apiVersion" not in value):
        return {"apiVersion": resource.api_version, "kind": resource.kind, **value}
    return value
