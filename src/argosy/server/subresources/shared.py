"""Shared by subresources that act instead of being stored: they only support create."""

import orjson

from argosy.kube.transport import Response
from argosy.server import status
from argosy.server.http.request import Call
from argosy.server.verbs.base import answer

__all__ = ["done", "only_create"]

_SUCCESS = orjson.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})


def only_create(call: Call) -> None:
    """Raises 405 for any other verb."""
    if call.verb != "create":
        raise status.method_not_allowed()


def done(call: Call) -> Response:
    return answer(call, _SUCCESS, 201)
