"""Errors of a Kubernetes API, one class a reason a caller may want to handle, each carrying the server's Status.

`from_status` is the only place that maps codes and reasons to classes; `from_response` takes whatever a server answered.
"""

from collections.abc import Mapping
from typing import Any

import orjson

__all__ = [
    "AlreadyExists",
    "ApiError",
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
]


class TransportError(Exception):
    """No answer was had: refused, reset, timed out, bad TLS. Whether the request took effect is unknown."""


class ApiError(Exception):
    """The server answered with an error; `status` is its Status object (made up from the body where it sent none)."""

    def __init__(self, code: int, reason: str, message: str, status: dict[str, Any], retry_after: float | None = None):
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.status = status
        self.retry_after = retry_after

    @property
    def causes(self) -> list[dict[str, Any]]:
        return list((self.status.get("details") or {}).get("causes") or ())

    def __str__(self) -> str:
        return f"{self.message} ({self.code} {self.reason})" if self.reason else f"{self.message} ({self.code})"


class BadRequest(ApiError):
    pass


class Unauthorized(ApiError):
    pass


class Forbidden(ApiError):
    pass


class NotFound(ApiError):
    pass


class MethodNotAllowed(ApiError):
    pass


class AlreadyExists(ApiError):
    pass


class Conflict(ApiError):
    """The object changed since it was read, or a precondition did not hold."""


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


def from_status(status: dict[str, Any], code: int | None = None, retry_after: float | None = None) -> ApiError:
    """The typed error for a Status object; `code` is the HTTP code where the Status lacks one."""
    code = int(status.get("code") or code or 500)
    reason = str(status.get("reason") or "")
    message = str(status.get("message") or reason or f"HTTP {code}")
    if retry_after is None:
        seconds = (status.get("details") or {}).get("retryAfterSeconds")
        retry_after = float(seconds) if seconds else None
    cls = _BY_REASON.get(reason) or _BY_CODE.get(code) or ApiError
    return cls(code, reason, message, status, retry_after)


def from_response(code: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """The typed error for an error answer; proxies in between answer text or HTML instead of a Status."""
    seconds = headers.get("retry-after", "").strip()
    retry_after = float(seconds) if seconds.isascii() and seconds.isdigit() else None
    try:
        status = orjson.loads(body)
    except orjson.JSONDecodeError:
        status = None
    if (
        not isinstance(status, dict)
        or status.get("kind") != "Status"
        or not isinstance(status.get("details"), dict | None)
    ):
        text = " ".join(body[:300].decode("utf-8", "replace").split())
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": text}
    return from_status(status, code, retry_after)
