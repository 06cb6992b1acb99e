"""Serving /openapi: documents are made in a thread, one at a time, and concurrent requests share them."""

import asyncio
from functools import partial

from argosy.kube.transport import Request, Response
from argosy.server.auth.identity import User
from argosy.server.http.offload import Offload
from argosy.server.openapi.documents import OpenApi

__all__ = ["OpenApiResponder"]


class OpenApiResponder:
    def __init__(self, documents: OpenApi, offload: Offload):
        self._documents = documents
        self._offload = offload
        self._making: asyncio.Future[Response | None] | None = None

    async def respond(self, request: Request, user: User) -> Response | None:
        """None when the path is not one of OpenAPI's."""
        if not request.path.startswith("/openapi"):
            return None
        documents, path, headers = self._documents, request.path, request.headers
        if documents.ready(path, headers):
            return documents.respond(path, headers)
        self._offload.admit(user.name)
        while self._making is not None:
            await asyncio.shield(self._making)
            if documents.ready(path, headers):
                return documents.respond(path, headers)
        # A task of its own, outside of users' queues: the first client may cancel, or have much other work queued.
        made = asyncio.ensure_future(self._offload.run("", partial(documents.respond, path, headers)))
        self._making = made
        made.add_done_callback(self._made)
        return await asyncio.shield(made)

    def _made(self, _: "asyncio.Future[Response | None]") -> None:
        self._making = None
