"""Failures: what went wrong, in one line, and what to do about it, in another. Tracebacks are for those who ask."""

import errno
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argosy.kube.errors import ApiError, NotFound

__all__ = ["Failure", "explained"]

_ANSWERS = "is it running? `argosy up` starts one here; --kubeconfig and --context choose another"
_INSTALL = "`argosy install` installs the federation's kinds; --kubeconfig and --context choose another control plane"
_STRANGER = "is this the address of a Kubernetes API server? check `server` in the kubeconfig, and proxies on the way"
_CERTIFICATES = (
    "check certificate-authority-data and the client certificate in the kubeconfig, and the host in its `server`"
)

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
    from argosy.control.install.installer import InstallError
    from argosy.kube.config import ConfigError
    from argosy.kube.errors import ApiError, TransportError
    from argosy.server.storage.backup import BackupError
    from argosy.server.storage.base import StorageError

    if isinstance(error, Failure):
        return error
    if isinstance(error, InstallError):
        return Failure(str(error), "once this is mended, `argosy install` goes on where it was")
    if isinstance(error, ConfigError):
        return Failure(
            str(error), "--kubeconfig and --context choose another; `argosy up` makes one in .argosy/kubeconfig"
        )
    if isinstance(error, ApiError):
        return _refused(error)
    if isinstance(error, TransportError):
        return _unanswered(error)
    if isinstance(error, StorageError):
        return _storage(error)
    if isinstance(error, BackupError):
        return Failure(str(error), "nothing was changed")
    if isinstance(error, OSError):
        return _system(error)
    return Failure(
        f"{type(error).__name__}: {error}", "this is a defect of Argosy; ARGOSY_DEBUG=1 shows where it happened"
    )


def _unanswered(error: Exception) -> Failure:
    from aiohttp import ClientSSLError

    text = _INSIDES.sub("", str(error))
    if isinstance(error.__cause__, ClientSSLError):
        return Failure(f"no secure connection to the API server: {text}", _CERTIFICATES)
    if "did not answer" in text:
        return Failure(f"this is no Kubernetes API server: {text}", _STRANGER)
    return Failure(f"the API server does not answer: {text}", _ANSWERS)


def _refused(error: "ApiError") -> Failure:
    from argosy.kube.errors import BadRequest, Conflict, Forbidden, Invalid, NotFound, Unauthorized

    message = error.message
    if isinstance(error, NotFound):
        return _missing(error)
    if not error.reason and "HTML" in message:
        return Failure(f"this is no Kubernetes API server: {message}", _STRANGER)
    if isinstance(error, Unauthorized):
        return Failure(
            message, "the credentials in the kubeconfig are not (or no longer) accepted; `argosy up` writes new ones"
        )
    if isinstance(error, Forbidden):
        return Failure(
            message, "" if "denied request" in message else "ask for the right, or choose another user with --context"
        )
    if isinstance(error, BadRequest | Invalid):
        return Failure(message, "nothing was changed; correct the field named above and try again")
    if isinstance(error, Conflict):
        return Failure(message, "somebody else changed it meanwhile; try again")
    return Failure(message)


def _missing(error: "NotFound") -> Failure:
    """An object that is not there, or, where the answer names none, its whole kind."""
    from argosy.api import keys

    details = error.status.get("details") or {}
    if not details.get("name"):
        return Failure(
            "this control plane does not serve the kind that was asked for: the federation is not installed on it, or not in "
            "this version",
            _INSTALL,
        )
    if details.get("name") == keys.SYSTEM_NAMESPACE:
        return Failure(f"the federation is not installed on this control plane: {error.message}", _INSTALL)
    return Failure(error.message, "check the name, and the namespace (-n)")


def _storage(error: Exception) -> Failure:
    from argosy.server.storage.base import StorageDamaged, StorageFull

    if isinstance(error, StorageDamaged):
        return Failure(
            f"the store is not whole: {error}",
            "nothing was changed; put back what is missing, or a backup with `argosy restore`, or start with what is there by "
            "--accept-data-loss",
        )
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
