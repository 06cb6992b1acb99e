"""Auth providers: the older way of kubeconfigs to get tokens (`auth-provider`: oidc, gcp).

The kubernetes_asyncio package does the work. It is imported only when needed: it costs 40 MB and a third of a second.
"""

import asyncio
import os
from pathlib import Path
from typing import Any

from argosy.kube import clock
from argosy.kube.credentials import ConfigError, Credential, read

__all__ = ["AuthProvider"]


class AuthProvider:
    """A CredentialProvider: credentials kept until they expire."""

    #: How often the loader is asked whether its credential has expired.
    CHECK_EVERY = 30.0

    def __init__(self, label: str, context: str, paths: list[Path]) -> None:
        self._label = label
        self._context = context
        self._paths = paths
        self._loader: Any = None
        self._credential = Credential()
        self._asked = -self.CHECK_EVERY
        self._lock = asyncio.Lock()

    async def __call__(self, *, refresh: bool = False) -> Credential:
        called = clock.monotonic()
        async with self._lock:
            # Requests refused at the same moment share one refresh.
            fresh = self._asked >= called if refresh else clock.monotonic() - self._asked < self.CHECK_EVERY
            if not fresh:
                if refresh:
                    # The loader keeps a credential until it expires; one the server refused must go at once.
                    self._loader = None
                self._credential = await self._ask()
                self._asked = clock.monotonic()
            return self._credential

    async def _ask(self) -> Credential:
        try:
            from kubernetes_asyncio.client import Configuration
            from kubernetes_asyncio.config import load_kube_config
        except ImportError:
            raise ConfigError(
                f"{self._label} uses an auth provider, for which the package kubernetes_asyncio is needed"
            ) from None
        found = Configuration()
        try:
            if self._loader is None:
                paths = os.pathsep.join(str(path) for path in self._paths)
                self._loader = await load_kube_config(paths, self._context, found)
            else:
                await self._loader.load_and_set(found)
        except Exception as error:  # the loader raises anything, assertion errors included
            raise ConfigError(f"{self._label}: {_one_line(error)}") from None
        certificate, key = found.cert_file, found.key_file
        return Credential(
            authorization=str(found.api_key.get("BearerToken") or ""),
            client_certificate=read(Path(certificate)) if certificate else b"",
            client_key=read(Path(key)) if key else b"",
        )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
