"""get: one object, as stored."""

from argosy.kube.transport import Response
from argosy.server.entry import served
from argosy.server.request import Call
from argosy.server.verbs.base import Api, answer, current

__all__ = ["get"]


async def get(api: Api, call: Call) -> Response:
    """The cache is never older than an acknowledged write, so any requested resourceVersion is satisfied by it."""
    return answer(call, served(call.kind, current(api, call)))
