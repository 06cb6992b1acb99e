"""get: one object, as stored."""

from functools import partial

from argosy.kube.transport import Response
from argosy.server import status
from argosy.server.http.request import Call
from argosy.server.verbs.base import Api, answer, current
from argosy.server.verbs.list import parse_version
from argosy.server.watchcache.entry import served, served_as_stored

__all__ = ["get"]


async def get(api: Api, call: Call) -> Response:
    """The cache is never older than an acknowledged write, so it satisfies any existing version."""
    wanted = parse_version(call.query.get("resourceVersion", ""), partial(status.plain, 500))
    if wanted > api.store.version:
        raise status.version_too_large(wanted, api.store.version)
    entry = current(api, call)
    if served_as_stored(call.kind, entry):
        return answer(call, entry.value)
    await api.ready(call)
    return answer(call, await api.run(call, len(entry.value), served, call.kind, entry))
