"""Token requests: a create of serviceaccounts/token returns a token of that account."""

import datetime
from collections.abc import Callable
from functools import partial

from msgspec import structs

from argosy.kube.timestamps import timestamp
from argosy.server import status
from argosy.server.auth.binding import BoundObjects
from argosy.server.auth.tokens import ServiceAccountTokens
from argosy.server.fielderrors import FieldError, invalid
from argosy.server.http.request import Call
from argosy.server.registry import Kind, Object
from argosy.server.watchcache.entry import Entry

__all__ = ["TokenRequests", "token_request"]

_MIN_SECONDS, _MAX_SECONDS, _DEFAULT_SECONDS = 600, 1 << 32, 3600


class TokenRequests:
    """Reads accounts from the store through `get`, by key. `kind` is that of the request's body."""

    def __init__(
        self, kind: Kind, tokens: ServiceAccountTokens, bound: BoundObjects, get: Callable[[str], Entry | None]
    ):
        self.kind = kind
        self._tokens = tokens
        self._bound = bound
        self._get = get

    def answer(self, call: Call, review: Object) -> Object:
        """The answered request; its field types were checked. Raises what kube-apiserver does, in its order."""
        named, namespace, name = review["metadata"], call.namespace, call.name
        if named.get("namespace") not in (None, "", namespace):
            raise status.other_namespace()
        if named.get("name") not in (None, "", name):
            wrong = invalid("metadata.name", named["name"], "must match the service account name if specified")
            raise status.invalid(self.kind, name, [wrong])
        account = self._get(f"core/serviceaccounts/{namespace}/{name}")
        if account is None:
            raise status.not_found(call.kind, name)
        uid = named.get("uid")
        if uid not in (None, "", account.uid):
            text = f"the UID in the token request ({uid}) does not match the UID of the service account ({account.uid})"
            raise status.conflict(structs.replace(self.kind, plural=self.kind.kind), name, text)
        bound = partial(self._bound.claims, namespace, name)
        answered = token_request(self._tokens, account.decode(), review, bound)
        if isinstance(answered, list):
            raise status.invalid(self.kind, "", answered)
        return answered


def token_request(
    tokens: ServiceAccountTokens,
    account: Object,
    review: Object,
    bound: Callable[[Object | None], Object] = lambda reference: {},
) -> Object | list[FieldError]:
    """The response for a stored account, or the errors in the request; `bound`: claims about one more object."""
    spec: Object = {"boundObjectRef": None, **(review.get("spec") or {})}
    given = spec.get("expirationSeconds")
    seconds = _DEFAULT_SECONDS if given is None else int(given)
    if seconds < _MIN_SECONDS:
        return [invalid("spec.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")]
    if seconds > _MAX_SECONDS:
        return [invalid("spec.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")]
    metadata = account["metadata"]
    namespace, name, uid = metadata["namespace"], metadata["name"], metadata["uid"]
    audiences = list(spec.get("audiences") or [tokens.issuer])
    claims = bound(spec["boundObjectRef"])
    token, expires = tokens.sign(namespace, name, uid, audiences=audiences, seconds=seconds, bound=claims)
    identity = {"name": name, "namespace": namespace, "uid": uid, "creationTimestamp": _time(expires - seconds)}
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {**(review.get("metadata") or {}), **identity},
        "spec": {**spec, "audiences": audiences, "expirationSeconds": seconds},
        "status": {"token": token, "expirationTimestamp": _time(expires)},
    }


def _time(seconds: int) -> str:
    return timestamp(datetime.datetime.fromtimestamp(seconds, datetime.UTC))
