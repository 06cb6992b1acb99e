"""get: one object, as stored."""

from functools import partial

from argosy.kube.transport import Response
from argosy.server import status
from argosy.server.entry import served
from argosy.server.request import Call
from argosy.server.verbs.base import Api, answer, current
from argosy.server.verbs.list import parse_version

__all__ = ["get"]


async def get(api: Api, call: Call) -> Response:
    """The cache is never older than an acknowledged write, so any version that exists is satisfied by it."""
    wanted = parse_version(call.query.get("resourceVersion", ""), partial(status.plain, 500))
    if wanted > api.store.version:
        raise status.version_too_large(wanted, api.store.version)
    return answer(call, served(call.kind, current(api, call)))
