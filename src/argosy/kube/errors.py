"""Errors of a Kubernetes API, one class per reason that a caller may want to handle, each with the server's Status.

Only `from_status` maps codes and reasons to classes; `from_response` accepts any response. Both accept any JSON: a Status with
odd fields is an error like any other.
"""

import re
from collections.abc import Mapping
from typing import Any

import orjson

__all__ = [
    "REASONS",
    "AlreadyExists",
    "AnswerTooLarge",
    "ApiError",
    "ApplyConflict",
    "BadAnswer",
    "BadRequest",
    "Conflict",
    "Forbidden",
    "Gone",
    "Invalid",
    "MethodNotAllowed",
    "NotFound",
    "ServerTimeout",
    "TooManyRequests",
    "TransportError",
    "Unauthorized",
    "Unavailable",
    "from_response",
    "from_status",
    "retry_after_of",
]


class TransportError(Exception):
    """There was no response: refused, reset, timed out, bad TLS. Whether the request took effect is unknown."""


class BadAnswer(TransportError):
    """An invalid response: not HTTP, not JSON, or not of the requested type. No part of it is used."""


class AnswerTooLarge(BadAnswer):
    """The response is larger than allowed. A list may be requested in smaller pages."""


class ApiError(Exception):
    """The server returned an error; `status` is its Status object (made from the body if it sent none)."""

    def __init__(self, code: int, reason: str, message: str, status: dict[str, Any], retry_after: float | None = None):
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.status = status
        self.retry_after = retry_after

    @property
    def causes(self) -> list[dict[str, Any]]:
        return _causes(self.status)

    def __str__(self) -> str:
        return f"{self.message} ({self.code} {self.reason})" if self.reason else f"{self.message} ({self.code})"


class BadRequest(ApiError):
    pass


class Unauthorized(ApiError):
    pass


class Forbidden(ApiError):
    @property
    def namespace_terminating(self) -> bool:
        """Whether nothing may be created because the namespace is being deleted."""
        return any(cause.get("reason") == "NamespaceTerminating" for cause in self.causes)


class NotFound(ApiError):
    pass


class MethodNotAllowed(ApiError):
    pass


class AlreadyExists(ApiError):
    pass


class Conflict(ApiError):
    """The object changed since it was read, or a precondition did not hold."""


class ApplyConflict(Conflict):
    """Fields that other managers own with other values: `fields`, each with the server's message."""

    @property
    def fields(self) -> dict[str, str]:
        return {str(cause.get("field", "")): str(cause.get("message", "")) for cause in self.causes}


class Gone(ApiError):
    """The resourceVersion is too old (410, reasons Gone and Expired): list again."""


class Invalid(ApiError):
    pass


class TooManyRequests(ApiError):
    pass


class ServerTimeout(ApiError):
    pass


class Unavailable(ApiError):
    pass


_MANAGER = "FieldManagerConflict"
#: What kube-apiserver answers, in plain text, for a group or version it does not serve.
_UNSERVED = "404 page not found"
_TITLE = re.compile(r"<title>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_BY_REASON: dict[str, type[ApiError]] = {
    "BadRequest": BadRequest,
    "Unauthorized": Unauthorized,
    "Forbidden": Forbidden,
    "NotFound": NotFound,
    "MethodNotAllowed": MethodNotAllowed,
    "AlreadyExists": AlreadyExists,
    "Conflict": Conflict,
    "Gone": Gone,
    "Expired": Gone,
    "Invalid": Invalid,
    "TooManyRequests": TooManyRequests,
    "ServerTimeout": ServerTimeout,
    "Timeout": ServerTimeout,
    "ServiceUnavailable": Unavailable,
}
#: The reasons that mean something here.
REASONS = frozenset(_BY_REASON)
_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
    503: Unavailable,
    504: ServerTimeout,
}


#: Characters of a message that are kept: it goes into conditions, events and logs, and a server may send megabytes.
LONGEST_MESSAGE = 4096
_LONGEST_REASON = 128
#: The longest Retry-After that is respected.
LONGEST_WAIT = 300.0


def from_status(status: dict[str, Any], code: int | None = None, retry_after: float | None = None) -> ApiError:
    """The typed error for a Status object; `code` is the HTTP code, if the Status lacks one."""
    said = status.get("code")
    code = said if isinstance(said, int) and 100 <= said <= 599 else code or 500
    reason = _text(status.get("reason"), _LONGEST_REASON)
    message = _text(status.get("message"), LONGEST_MESSAGE) or reason or f"HTTP {code}"
    if retry_after is None:
        retry_after = _seconds(_details(status).get("retryAfterSeconds"))
    cls = _BY_REASON.get(reason) or _BY_CODE.get(code) or ApiError
    if cls is Conflict and any(cause.get("reason") == _MANAGER for cause in _causes(status)):
        cls = ApplyConflict
    return cls(code, reason, message, status, retry_after)


def from_response(code: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """The typed error for an error response; proxies return text or HTML instead of a Status.

    Such a 404 is not NotFound: its sender knows nothing of the object, so it is no sign that the object is gone.
    """
    retry_after = retry_after_of(headers)
    try:
        status = orjson.loads(body)
    except orjson.JSONDecodeError:
        status = None
    if isinstance(status, dict) and status.get("kind") == "Status" and isinstance(status.get("details"), dict | None):
        return from_status(status, code, retry_after)
    text = body[:4000].decode("utf-8", "replace")
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": _shown(code, text)}
    if code == 404 and text.strip() != _UNSERVED:
        return ApiError(code, "", status["message"], status, retry_after)
    return from_status(status, code, retry_after)


def retry_after_of(headers: Mapping[str, str]) -> float | None:
    """Retry-After in seconds, within bounds; its date form is not used by API servers."""
    value = headers.get("retry-after", "").strip()
    return _seconds(int(value)) if value.isascii() and value.isdigit() and len(value) < 20 else None


def _seconds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        return None
    return float(min(value, LONGEST_WAIT))


def _text(value: object, longest: int) -> str:
    if not value or not isinstance(value, str):
        return ""
    return value if len(value) <= longest else f"{value[:longest]} …"


def _shown(code: int, text: str) -> str:
    """A response that is not from Kubernetes, in one line."""
    if text.lstrip().startswith("<"):
        title = _TITLE.search(text)
        named = f" {' '.join(title[1].split())[:100]!r}" if title else ""
        return f"HTTP {code} with an HTML page{named} instead of an answer of Kubernetes"
    return " ".join(text.split())[:300] or f"HTTP {code} without a message"


def _details(status: dict[str, Any]) -> dict[str, Any]:
    details = status.get("details")
    return details if isinstance(details, dict) else {}


def _causes(status: dict[str, Any]) -> list[dict[str, Any]]:
    causes = _details(status).get("causes")
    return [cause for cause in causes if isinstance(cause, dict)] if isinstance(causes, list) else []
