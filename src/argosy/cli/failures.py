"""Failures: what went wrong, in one line, and what to do about it, in another. Tracebacks are for those who ask."""

import errno
import re

__all__ = ["Failure", "explained"]

_ANSWERS = "is it running? `argosy up` starts one here; --kubeconfig and --context choose another"


#: What the HTTP library says of its own objects.
_INSIDES = re.compile(r" ssl:(<[^>]*>|\w+)")


class Failure(Exception):
    """Ends the command. `message` is one line, `hint` says what to try."""

    def __init__(self, message: str, hint: str = "", code: int = 1):
        super().__init__(message)
        self.message = _one_line(message)
        self.hint = _one_line(hint)
        self.code = code


def explained(error: Exception) -> Failure:
    """Any exception as a Failure."""
    from argosy.kube.config import ConfigError
    from argosy.kube.errors import ApiError, TransportError
    from argosy.server.storage.base import StorageError

    if isinstance(error, Failure):
        return error
    if isinstance(error, ConfigError):
        return Failure(
            str(error), "--kubeconfig and --context choose another; `argosy up` makes one in .argosy/kubeconfig"
        )
    if isinstance(error, ApiError):
        return Failure(error.message, _api_hint(error))
    if isinstance(error, TransportError):
        return Failure(f"the API server does not answer: {_INSIDES.sub('', str(error))}", _ANSWERS)
    if isinstance(error, StorageError):
        return _storage(error)
    if isinstance(error, OSError):
        return _system(error)
    return Failure(
        f"{type(error).__name__}: {error}", "this is a defect of Argosy; ARGOSY_DEBUG=1 shows where it happened"
    )


def _api_hint(error: Exception) -> str:
    from argosy.kube.errors import BadRequest, Conflict, Forbidden, Invalid, NotFound, Unauthorized

    if isinstance(error, Unauthorized):
        return "the credentials in the kubeconfig are not (or no longer) accepted; `argosy up` writes new ones"
    if isinstance(error, Forbidden):
        return "ask for the right, or choose another user with --context"
    if isinstance(error, NotFound):
        return "check the name, and the namespace (-n)"
    if isinstance(error, BadRequest | Invalid):
        return "nothing was changed; correct the field named above and try again"
    if isinstance(error, Conflict):
        return "somebody else changed it meanwhile; try again"
    return ""


def _storage(error: Exception) -> Failure:
    from argosy.server.storage.base import StorageFull

    if isinstance(error, StorageFull):
        return Failure(
            str(error), "make room on the disk, or choose another folder with --data; nothing written is lost"
        )
    cause = error.__cause__
    if isinstance(cause, OSError):
        return Failure(str(error), _system(cause).hint)
    return Failure(str(error), "choose another folder with --data")


def _system(error: OSError) -> Failure:
    where = f"{error.filename}: " if error.filename else ""
    text = f"{where}{error.strerror or error}"
    if error.errno == errno.ENOSPC:
        return Failure(text, "make room on the disk, or choose another folder with --data; nothing written is lost")
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return Failure(text, "choose a folder you may write to with --data")
    if error.errno == errno.EADDRINUSE:
        return Failure(text, "choose another port with --port, or none for a free one")
    return Failure(text)


def _one_line(text: str) -> str:
    return " ".join(text.split())
