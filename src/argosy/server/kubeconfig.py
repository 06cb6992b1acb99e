"""Kubeconfig files for our own servers: one entry a server, credentials inside, readable by the owner only."""

import base64
import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from argosy.kube.yamlwriter import to_yaml
from argosy.server.auth.certificates import KeyPair

__all__ = ["entry", "merged", "write"]


def entry(name: str, url: str, ca: bytes, pair: KeyPair) -> dict[str, Any]:
    """A kubeconfig with one cluster, one user with a client certificate, and a context of the same name."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": url, "certificate-authority-data": _text(ca)}}],
        "users": [
            {
                "name": f"{name}-admin",
                "user": {
                    "client-certificate-data": _text(pair.certificate),
                    "client-key-data": _text(pair.key),
                },
            }
        ],
        "contexts": [{"name": name, "context": {"cluster": name, "user": f"{name}-admin"}}],
        "current-context": name,
    }


def merged(*configs: Mapping[str, Any]) -> dict[str, Any]:
    """All of them in one; the first one's context is the current one."""
    lists = {part: [item for config in configs for item in config[part]] for part in ("clusters", "users", "contexts")}
    return {"apiVersion": "v1", "kind": "Config", **lists, "current-context": configs[0]["current-context"]}


def write(path: Path, config: Mapping[str, Any]) -> None:
    """Written by rename and never readable by others, not even for a moment. Raises OSError that names the file."""
    temporary = path.with_name(f".{path.name}.new")
    text = to_yaml(dict(config)).decode()
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise OSError(error.errno, error.strerror, str(path)) from None


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
