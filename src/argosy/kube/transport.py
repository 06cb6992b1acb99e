"""Transport: how a request reaches a Kubernetes API server. Only the interface.

`kube.http` speaks HTTP(S); `server.local` calls an embedded server in the same process. Both keep the same semantics
(codes, conflicts, 410, authorisation), so a reader cannot tell which one it has.

Objects travel as bytes. `list` and `watch` hand out one `bytes` per object: over HTTP they are cut out of the body, in
process they are the server's own stored encoding, shared and never copied. Items of a list may lack apiVersion and kind,
as Kubernetes leaves them out there.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

import msgspec

__all__ = ["Event", "Page", "Request", "Response", "Transport"]


class Request(msgspec.Struct, frozen=True):
    """One API request. `path` starts with a slash, `query` keeps order and repetitions, header names are lower case."""

    method: str
    path: str
    query: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str] = {}
    body: bytes = b""
    #: Seconds until the caller gives up. None means the transport's default (a watch has none).
    timeout: float | None = None
    #: Called each time right before the request is sent, after all waiting; if it raises, the request ends.
    guard: Callable[[], None] | None = None


class Response(msgspec.Struct, frozen=True):
    """A whole response with any code; header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Page(msgspec.Struct, frozen=True):
    """One page of a list: the objects' bytes, the version they were read at, and the token of the next page."""

    items: Sequence[bytes]
    resource_version: str
    continue_token: str = ""
    remaining: int | None = None
    #: The shard of the collection, as the server states it; empty if the server returned everything.
    shard_selector: str = ""
    #: The server's warnings, such as that the version is deprecated.
    warnings: Sequence[str] = ()


class Event(NamedTuple):
    """One watch event: ADDED, MODIFIED, DELETED or BOOKMARK. ERROR never gets here: it is raised as an ApiError."""

    type: str
    object: bytes


class Transport(Protocol):
    """Raises TransportError if there is no response; `list` and `watch` raise ApiError for an error response."""

    @property
    def name(self) -> str:
        """The server's name, for messages."""
        ...

    async def send(self, request: Request) -> Response:
        """Send and read the whole answer; error codes are returned, not raised."""
        ...

    async def list(self, request: Request) -> Page:
        """GET a collection."""
        ...

    def watch(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        """GET a collection with watch=true (the caller sets the query). The iterator ends when the server ends the stream."""
        ...

    async def close(self) -> None: ...
