"""Error responses: one function per kind of failure, which returns the exception with kube-apiserver's Status.

Verbs raise these; the entry points (`http`, `local`) turn them into responses with `as_response`.
"""

from collections.abc import Sequence
from typing import Any

import orjson

from argosy.kube.errors import ApiError, from_status
from argosy.kube.transport import Response
from argosy.server.auth.identity import Attributes
from argosy.server.fielderrors import OMITTED, FieldError
from argosy.server.registry import Kind

__all__ = [
    "aggregate",
    "already_exists",
    "as_response",
    "bad_request",
    "conflict",
    "denied",
    "expired",
    "forbidden",
    "generated_name_taken",
    "internal",
    "invalid",
    "invalid_kind",
    "method_not_allowed",
    "namespace_not_found",
    "not_acceptable",
    "not_found",
    "not_implemented",
    "not_served",
    "other_namespace",
    "out_of_space",
    "plain",
    "precondition_failed",
    "rejected",
    "status",
    "success",
    "timeout",
    "too_large",
    "too_large_patch",
    "too_many_requests",
    "unauthorized",
    "unavailable",
    "unsupported_media_type",
    "unsupported_patch_type",
    "version_too_large",
]

#: Limits for the errors in one response.
MAX_CAUSES = 1000
MAX_CAUSE_BYTES = 1024 * 1024

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def status(code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> dict[str, Any]:
    out: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    if details is not None:
        out["details"] = details
    return out


def success(kind: Kind, name: str, uid: str) -> dict[str, Any]:
    """The response to a delete once the object is gone."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": _details(kind, name) | ({"uid": uid} if uid else {}),
    }


def as_response(error: ApiError) -> Response:
    headers = {"content-type": "application/json"}
    if error.retry_after is not None:
        headers["retry-after"] = str(max(1, round(error.retry_after)))
    if error.code == 401:
        headers["www-authenticate"] = 'Bearer realm="kubernetes"'
    return Response(error.code, headers, orjson.dumps(error.status))


def _error(
    code: int,
    reason: str,
    message: str,
    details: dict[str, Any] | None = None,
    retry_after: float | None = None,
) -> ApiError:
    return from_status(status(code, reason, message, details), retry_after=retry_after)


def _details(kind: Kind, name: str) -> dict[str, Any]:
    details = {"name": name} if name else {}
    if kind.group:
        details["group"] = kind.group
    details["kind"] = kind.plural
    return details


def not_found(kind: Kind, name: str) -> ApiError:
    return _error(404, "NotFound", f'{kind.resource} "{name}" not found', _details(kind, name))


def namespace_not_found(name: str) -> ApiError:
    return _error(404, "NotFound", f'namespaces "{name}" not found', {"name": name, "kind": "namespaces"})


def not_served() -> ApiError:
    """The path names no resource that is served."""
    return _error(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(kind: Kind, name: str, *, deleting: bool = False) -> ApiError:
    message = f'{kind.resource} "{name}" already exists'
    if deleting:
        message = f"object is being deleted: {message}"
    return _error(409, "AlreadyExists", message, _details(kind, name))


def generated_name_taken(kind: Kind, name: str) -> ApiError:
    message = (
        f'{kind.resource} "{name}" already exists, the server was not able to generate a unique name for the object'
    )
    return _error(409, "AlreadyExists", message, _details(kind, name) | {"retryAfterSeconds": 1}, 1)


def conflict(kind: Kind, name: str, why: str = MODIFIED) -> ApiError:
    message = f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}'
    return _error(409, "Conflict", message, _details(kind, name))


def precondition_failed(kind: Kind, name: str, why: str) -> ApiError:
    """As `conflict`, naming the kind where a precondition of a delete did not hold."""
    details = {"name": name} | ({"group": kind.group} if kind.group else {}) | {"kind": kind.kind}
    qualified = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    return _error(409, "Conflict", f'Operation cannot be fulfilled on {qualified} "{name}": {why}', details)


def forbidden(kind: Kind, name: str, why: str, causes: Sequence[dict[str, str]] = ()) -> ApiError:
    message = f'{kind.resource} "{name}" is forbidden: {why}' if name else f"{kind.resource} is forbidden: {why}"
    details = _details(kind, name) | ({"causes": list(causes)} if causes else {})
    return _error(403, "Forbidden", message, details)


def denied(attributes: Attributes, why: str = "") -> ApiError:
    """403 for what the user may not do, in kube-apiserver's words."""
    user = f'User "{attributes.user.name}" cannot {attributes.verb}'
    tail = f": {why}" if why else ""
    if not attributes.is_resource:
        return _error(403, "Forbidden", f'forbidden: {user} path "{attributes.path}"{tail}', {})
    resource = attributes.resource
    qualified = f"{resource}.{attributes.group}" if attributes.group else resource
    if attributes.subresource:
        resource += f"/{attributes.subresource}"
    where = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
    what = f'{user} resource "{resource}" in API group "{attributes.group}" {where}{tail}'
    named = f'{qualified} "{attributes.name}"' if attributes.name else qualified
    details = {"name": attributes.name} if attributes.name else {}
    if attributes.group:
        details["group"] = attributes.group
    details["kind"] = attributes.resource
    return _error(403, "Forbidden", f"{named} is forbidden: {what}", details)


def invalid(kind: Kind, name: str, errors: Sequence[FieldError]) -> ApiError:
    return invalid_kind(kind.group, kind.kind, name, errors)


def invalid_kind(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> ApiError:
    """422 with one cause per field error, up to a limit; equal texts appear once in the message."""
    errors = _bounded(errors)
    told = aggregate([str(error) for error in errors])
    qualified = f"{kind}.{group}" if group else kind
    details: dict[str, Any] = {"name": name} if name else {}
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    details["causes"] = [{"reason": e.reason, "message": e.message, "field": e.field} for e in errors]
    return _error(422, "Invalid", f'{qualified} "{name}" is invalid: {told}', details)


def _bounded(errors: Sequence[FieldError]) -> Sequence[FieldError]:
    """As many as somebody may read; a body can have more errors than bytes."""
    size = 0
    for index, error in enumerate(errors):
        size += len(error.field) + len(error.message)
        if index >= MAX_CAUSES or (index and size > MAX_CAUSE_BYTES):
            return [*errors[:index], FieldError("FieldValueInvalid", "", OMITTED, f"and {len(errors) - index} more")]
    return errors


def rejected() -> ApiError:
    """A JSON patch that does not apply: kube-apiserver says no more than this."""
    return _error(422, "Invalid", "the server rejected our request due to an error in our request", {})


def version_too_large(wanted: int, current: int) -> ApiError:
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    message = f"Timeout: Too large resource version: {wanted}, current: {current}"
    return _error(504, "Timeout", message, details, 1)


def aggregate(texts: Sequence[str]) -> str:
    """Several errors in one text, as in kube-apiserver."""
    told = list(dict.fromkeys(texts))
    return told[0] if len(told) == 1 else f"[{', '.join(told)}]"


def plain(code: int, message: str) -> ApiError:
    """An error without a reason, as in kube-apiserver."""
    answer = status(code, "", message)
    del answer["reason"]
    return from_status(answer)


def bad_request(message: str) -> ApiError:
    return _error(400, "BadRequest", message)


def other_namespace() -> ApiError:
    return bad_request("the namespace of the provided object does not match the namespace sent on the request")


def unauthorized() -> ApiError:
    return _error(401, "Unauthorized", "Unauthorized")


def method_not_allowed(
    message: str = "the server does not allow this method on the requested resource",
) -> ApiError:
    return _error(405, "MethodNotAllowed", message, {})


def not_acceptable() -> ApiError:
    message = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml"
    return _error(406, "NotAcceptable", message, {})


def expired(message: str, continue_token: str = "") -> ApiError:
    answer = status(410, "Expired", message)
    if continue_token:
        answer["metadata"] = {"continue": continue_token}
    return from_status(answer)


def too_large(limit: int) -> ApiError:
    return _error(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def too_large_patch(message: str) -> ApiError:
    return _error(413, "RequestEntityTooLarge", f"Request entity too large: {message}")


def unsupported_media_type(accepted: str) -> ApiError:
    message = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    return _error(415, "UnsupportedMediaType", message)


def unsupported_patch_type() -> ApiError:
    return _error(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def not_implemented(message: str) -> ApiError:
    return _error(501, "NotImplemented", message)


def too_many_requests(
    message: str = "too many requests, please try again later", seconds: int = 1, causes: Sequence[Any] = ()
) -> ApiError:
    details: dict[str, Any] = {"retryAfterSeconds": seconds} if seconds else {}
    if causes:
        details["causes"] = list(causes)
    return _error(429, "TooManyRequests", message, details, seconds or None)


def internal(message: str) -> ApiError:
    cause = {"message": message}
    return _error(500, "InternalError", f"Internal error occurred: {message}", {"causes": [cause]})


def out_of_space() -> ApiError:
    return _error(
        507, "InsufficientStorage", "the store has no room: nothing was written; free some space and try again"
    )


def unavailable(message: str) -> ApiError:
    return _error(503, "ServiceUnavailable", message, {"retryAfterSeconds": 1}, 1)


def timeout(message: str) -> ApiError:
    return _error(504, "Timeout", f"Timeout: {message}", {})
