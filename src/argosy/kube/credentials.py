"""Credentials: what a request authenticates with, and its providers: fixed ones, and tokens in a file that is renewed.

Programs that make credentials are in `execplugin` and `authprovider`; `config` chooses what a kubeconfig asks for.
"""

import base64
import datetime
import logging
from pathlib import Path
from typing import Protocol

import msgspec

from argosy.kube import clock

__all__ = [
    "ConfigError",
    "Credential",
    "CredentialProvider",
    "Fixed",
    "TokenFile",
    "bearer",
    "read",
    "token_expired",
]

log = logging.getLogger(__name__)

#: Kubelet renews service account tokens well before they expire; client-go reads them again after a minute too.
TOKEN_FILE_TTL = 60.0


class ConfigError(Exception):
    """A kubeconfig that cannot be used; the message is one line for users."""


class Credential(msgspec.Struct, frozen=True):
    """A provider's result: the value of an Authorization header, a client certificate (PEM), or both."""

    authorization: str = ""
    client_certificate: bytes = b""
    client_key: bytes = b""

    def __repr__(self) -> str:
        return "Credential(…)"


class CredentialProvider(Protocol):
    async def __call__(self, *, refresh: bool = False) -> Credential:
        """The credential to use now; with `refresh` after the server refused the last one. Raises ConfigError."""
        ...


def bearer(token: str, whose: str) -> str:
    """A token as the value of an Authorization header. Raises ConfigError, which names `whose` it is but never the token."""
    token = token.strip()
    if not token.isascii() or not token.isprintable():
        raise ConfigError(f"{whose}: the token has characters no token can have")
    return f"Bearer {token}"


class _Claims(msgspec.Struct):
    exp: float = 0.0


def token_expired(authorization: str) -> datetime.datetime | None:
    """When the JWT in an Authorization header expired; None if it has not, or is not a JWT."""
    parts = authorization.removeprefix("Bearer ").split(".")
    if len(parts) != 3:
        return None
    try:
        payload = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        claims = msgspec.json.decode(payload, type=_Claims)
        return datetime.datetime.fromtimestamp(claims.exp, datetime.UTC) if 0 < claims.exp < clock.time() else None
    except (ValueError, OverflowError, OSError):
        return None


def read(path: Path) -> bytes:
    """A file's content. Raises ConfigError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from None


class Fixed:
    def __init__(self, credential: Credential) -> None:
        self._credential = credential

    async def __call__(self, *, refresh: bool = False) -> Credential:
        return self._credential


class TokenFile:
    """A bearer token in a file that is renewed. While it cannot be read, the last token is used."""

    def __init__(self, path: Path, token: str = "") -> None:
        self._path = path
        self._credential = Credential(bearer(token, str(path))) if token else None
        self._until = 0.0

    async def __call__(self, *, refresh: bool = False) -> Credential:
        if refresh or self._credential is None or clock.monotonic() >= self._until:
            try:
                self._credential = self._read()
            except ConfigError as error:
                if self._credential is None:
                    raise
                log.warning("%s; the last token is used", error)
            self._until = clock.monotonic() + TOKEN_FILE_TTL
        return self._credential

    def _read(self) -> Credential:
        token = read(self._path).decode("ascii", "replace").strip()
        if not token:
            raise ConfigError(f"{self._path}: the token file is empty")
        return Credential(bearer(token, str(self._path)))
