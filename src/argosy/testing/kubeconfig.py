"""Kubeconfigs for a cluster of the harness, credentials inside, readable by the owner only."""

import base64
from pathlib import Path
from typing import Any

from argosy.kube.yamlwriter import to_yaml
from argosy.testing.certificates import KeyPair

__all__ = ["entry", "write"]


def entry(name: str, server: str, ca: bytes, user: str, credential: KeyPair | str) -> dict[str, Any]:
    """One cluster, one user (with a client certificate or a token), one context; all but the user are called `name`."""
    if isinstance(credential, str):
        identity = {"token": credential}
    else:
        identity = {
            "client-certificate-data": _text(credential.certificate),
            "client-key-data": _text(credential.key),
        }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": server, "certificate-authority-data": _text(ca)}}],
        "users": [{"name": user, "user": identity}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
        "current-context": name,
    }


def write(path: Path, config: dict[str, Any]) -> None:
    path.touch(mode=0o600)
    path.write_text(to_yaml(config).decode())


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
