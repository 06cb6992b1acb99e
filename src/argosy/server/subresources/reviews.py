"""Reviews and token requests: creating one only returns an answer, and stores nothing.

`auth.reviews` and `auth.token_requests` make the answers.
"""

import orjson

from argosy.kube.transport import Response
from argosy.server import status
from argosy.server.app import Handler, Handlers
from argosy.server.auth.reviews import Reviews
from argosy.server.auth.token_requests import TokenRequests
from argosy.server.http.request import Call
from argosy.server.registry import Object
from argosy.server.subresources.shared import only_create
from argosy.server.verbs.base import Api, answer, read_object

__all__ = ["review_handlers", "token_handler"]

_KINDS = {
    ("authorization.k8s.io", "selfsubjectaccessreviews"): "SelfSubjectAccessReview",
    ("authorization.k8s.io", "selfsubjectrulesreviews"): "SelfSubjectRulesReview",
    ("authorization.k8s.io", "subjectaccessreviews"): "SubjectAccessReview",
    ("authorization.k8s.io", "localsubjectaccessreviews"): "LocalSubjectAccessReview",
    ("authentication.k8s.io", "tokenreviews"): "TokenReview",
    ("authentication.k8s.io", "selfsubjectreviews"): "SelfSubjectReview",
}


def review_handlers(api: Api, reviews: Reviews) -> Handlers:
    return {(group, plural, ""): _review(api, reviews, kind) for (group, plural), kind in _KINDS.items()}


def _review(api: Api, reviews: Reviews, kind: str) -> Handler:
    async def handle(call: Call) -> Response:
        if call.name:
            raise status.not_served()
        only_create(call)
        review = await read_object(api, call, call.write_options("CreateOptions").validation)
        # Here, not in a thread: roles and accounts change on the event loop.
        answered = reviews.answer(kind, call.user, review, call.namespace)
        if isinstance(answered, list):
            # Kubernetes names no kind here.
            raise status.invalid_kind(call.kind.group, "", "", answered)
        return await api.run(call, len(call.body), _answer, call, answered)

    return handle


def token_handler(api: Api, requests: TokenRequests) -> Handler:
    """Handles create of serviceaccounts/token."""

    async def handle(call: Call) -> Response:
        only_create(call)
        asked = call.but(kind=requests.kind)
        review = await read_object(api, asked, call.write_options("CreateOptions").validation)
        return await api.run(call, len(call.body), _answer, call, requests.answer(call, review))

    return handle


def _answer(call: Call, answered: Object) -> Response:
    return answer(call, orjson.dumps(answered), 201)
