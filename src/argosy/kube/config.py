"""Connections: the address of an API server and our credentials, from a kubeconfig or a pod's service account.

Static credentials (token, client certificate, basic) are read here and stay in memory. Changing ones are in `credentials`,
those made by programs in `execplugin` and `authprovider`. Nothing here opens a connection.
"""

import base64
import binascii
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from argosy.kube import execplugin, yamlreader
from argosy.kube.authprovider import AuthProvider
from argosy.kube.credentials import ConfigError, Credential, CredentialProvider, Fixed, TokenFile, bearer, read

__all__ = [
    "ConfigError",
    "Connection",
    "from_kubeconfig",
    "in_cluster",
    "load",
    "renewable",
]

log = logging.getLogger(__name__)

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
#: Where a kubeconfig's cluster has its configuration for exec plugins.
EXEC_EXTENSION = "client.authentication.k8s.io/exec"


class Connection(msgspec.Struct, frozen=True):
    """How to reach and authenticate to one API server. Certificates and keys are PEM bytes."""

    server: str
    ca_data: bytes = b""
    client_certificate: bytes = b""
    client_key: bytes = b""
    token: str = ""
    insecure: bool = False
    tls_server_name: str = ""
    proxy: str = ""
    namespace: str = "default"
    credentials: CredentialProvider | None = None

    def __repr__(self) -> str:
        return f"Connection({self.server!r})"


def load(path: str | None = None, context: str | None = None) -> Connection:
    """The connection of `context` (default: the current one) in the kubeconfig at `path`.

    Without a path: the files of $KUBECONFIG, else a pod's service account, else ~/.kube/config.
    """
    if path is not None:
        return from_kubeconfig([path], context)
    named = [name for name in os.environ.get("KUBECONFIG", "").split(os.pathsep) if name]
    if named:
        return from_kubeconfig(named, context)
    if context is None and "KUBERNETES_SERVICE_HOST" in os.environ and (SERVICE_ACCOUNT / "token").exists():
        return in_cluster()
    return from_kubeconfig([str(Path.home() / ".kube" / "config")], context)


def in_cluster(folder: Path = SERVICE_ACCOUNT, environ: Mapping[str, str] = os.environ) -> Connection:
    """The connection of a pod's service account; its token is read again when it is renewed."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise ConfigError("not in a cluster: KUBERNETES_SERVICE_HOST is not set")
    if ":" in host:
        host = f"[{host}]"
    namespace = folder / "namespace"
    return Connection(
        server=f"https://{host}:{port}",
        ca_data=read(folder / "ca.crt"),
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
        credentials=TokenFile(folder / "token"),
    )


def from_kubeconfig(paths: list[str], context: str | None = None) -> Connection:
    """The connection of one context in one or several kubeconfig files, merged by kubectl's rule: the first value wins."""
    files = _Kubeconfig(paths)
    name = context or files.current_context
    if not name:
        raise ConfigError(f"{files.label}: no context was given and current-context is not set")
    chosen = files.find("contexts", "context", name)
    if chosen is None:
        raise ConfigError(f"{files.label}: there is no context {name!r} (it has: {files.names('contexts')})")
    cluster_name = str(chosen.body.get("cluster") or "")
    cluster = files.find("clusters", "cluster", cluster_name)
    if cluster is None:
        raise ConfigError(f"{files.label}: context {name!r} names cluster {cluster_name!r}, which does not exist")
    user_name = str(chosen.body.get("user") or "")
    user = files.find("users", "user", user_name)
    if user is None and user_name:
        raise ConfigError(f"{files.label}: context {name!r} names user {user_name!r}, which does not exist")
    user = user or _Entry("", {}, cluster.folder)
    if user.body.get("as") or user.body.get("as-uid") or user.body.get("as-groups"):
        # Ignoring it would use more rights than intended.
        raise ConfigError(f"{user.label}: acting as somebody else (`as`) is not supported")
    connection = Connection(
        server=_server(cluster),
        ca_data=cluster.data("certificate-authority"),
        client_certificate=user.data("client-certificate"),
        client_key=user.data("client-key"),
        token=user.text("token"),
        insecure=cluster.body.get("insecure-skip-tls-verify") is True,
        tls_server_name=cluster.text("tls-server-name"),
        proxy=cluster.text("proxy-url"),
        namespace=chosen.text("namespace") or "default",
    )
    return msgspec.structs.replace(connection, credentials=_provider(user, cluster, connection, name, files))


def renewable(path: str | None = None, context: str | None = None) -> Connection:
    """As `load`, for long-running processes: a token or certificate in the file is read again when it is refused."""
    connection = load(path, context)
    if connection.credentials is not None or not (connection.token or connection.client_certificate):
        return connection
    return msgspec.structs.replace(connection, credentials=_ReadAgain(path, context, connection))


class _ReadAgain:
    """Reads a kubeconfig's user again, since somebody may have renewed the credentials."""

    def __init__(self, path: str | None, context: str | None, connection: Connection) -> None:
        self._path = path
        self._context = context
        self._credential = _credential_of(connection)

    async def __call__(self, *, refresh: bool = False) -> Credential:
        if refresh:
            try:
                self._credential = _credential_of(load(self._path, self._context))
            except ConfigError as error:
                log.warning("%s; the last credentials are used", error)
        return self._credential


def _credential_of(connection: Connection) -> Credential:
    authorization = bearer(connection.token, connection.server) if connection.token else ""
    return Credential(authorization, connection.client_certificate, connection.client_key)


class _Entry(msgspec.Struct, frozen=True):
    """One named cluster, user or context, and the folder its relative paths start from."""

    label: str
    body: dict[str, Any]
    folder: Path

    def text(self, key: str) -> str:
        value = self.body.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise ConfigError(f"{self.label}: {key} must be a string")
        return value

    def data(self, key: str) -> bytes:
        """PEM bytes given in base64 under `<key>-data`, else in the file named by `key`."""
        inline = self.text(f"{key}-data")
        if inline:
            try:
                return base64.b64decode(inline, validate=True)
            except (binascii.Error, ValueError):
                raise ConfigError(f"{self.label}: {key}-data is not base64") from None
        name = self.text(key)
        return read(self.folder / Path(name).expanduser()) if name else b""


class _Kubeconfig:
    def __init__(self, paths: list[str]) -> None:
        self.paths = [Path(path).expanduser() for path in paths]
        self.label = os.pathsep.join(str(path) for path in self.paths)
        self.current_context = ""
        self._files: list[tuple[Path, dict[str, Any]]] = []
        for path in self.paths:
            # A file missing from a list of several is skipped, as kubectl does.
            if len(self.paths) > 1 and not path.exists():
                continue
            content = _parse(path)
            self._files.append((path, content))
            self.current_context = self.current_context or str(content.get("current-context") or "")
        if not self._files:
            raise ConfigError(f"{self.label}: no such file")

    def _entries(self, section: str) -> list[tuple[Path, dict[str, Any]]]:
        found = []
        for path, content in self._files:
            entries = content.get(section) or []
            if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
                raise ConfigError(f"{path}: {section} must be a list of objects with a name")
            found += [(path, entry) for entry in entries]
        return found

    def find(self, section: str, key: str, name: str) -> _Entry | None:
        for path, entry in self._entries(section):
            if name and entry.get("name") == name:
                body = entry.get(key) or {}
                if not isinstance(body, dict):
                    raise ConfigError(f"{path}: {key} of {name!r} must be an object")
                return _Entry(f"{path}: {key} {name!r}", body, path.parent)
        return None

    def names(self, section: str) -> str:
        return ", ".join(sorted({str(entry.get("name")) for _, entry in self._entries(section)})) or "none"


def _parse(path: Path) -> dict[str, Any]:
    try:
        content = yamlreader.read(path.read_bytes()).value
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from None
    except yamlreader.YamlError as error:
        where = f" in line {error.line}" if error.line else ""
        raise ConfigError(f"{path}: not valid YAML{where}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: not a kubeconfig")
    return content


def _server(cluster: _Entry) -> str:
    server = cluster.text("server").rstrip("/")
    try:
        parts = urlsplit(server)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        valid = False
    if not valid:
        raise ConfigError(f"{cluster.label}: server {server!r} is not an http or https URL")
    return server


def _provider(
    user: _Entry, cluster: _Entry, connection: Connection, context: str, files: _Kubeconfig
) -> CredentialProvider | None:
    """The provider of a user's credentials. As with kubectl, static ones in the file win over programs."""
    if user.text("tokenFile"):
        return TokenFile(user.folder / Path(user.text("tokenFile")).expanduser(), connection.token)
    if connection.token:
        return None
    if user.text("username"):
        pair = f"{user.text('username')}:{user.text('password')}"
        return Fixed(Credential(authorization="Basic " + base64.b64encode(pair.encode()).decode()))
    if connection.client_certificate:
        return None
    if body := user.body.get("exec"):
        if not isinstance(body, dict):
            raise ConfigError(f"{user.label}: exec must be an object")
        return execplugin.ExecPlugin(
            execplugin.parse(user.label, body, user.folder, _told_to_plugins(cluster, connection))
        )
    if user.body.get("auth-provider"):
        return AuthProvider(user.label, context, files.paths)
    return None


def _told_to_plugins(cluster: _Entry, connection: Connection) -> dict[str, Any]:
    told: dict[str, Any] = {
        "server": connection.server,
        "tls-server-name": connection.tls_server_name,
        "insecure-skip-tls-verify": connection.insecure,
        "certificate-authority-data": base64.b64encode(connection.ca_data).decode(),
        "proxy-url": connection.proxy,
    }
    for extension in cluster.body.get("extensions") or ():
        if isinstance(extension, dict) and extension.get("name") == EXEC_EXTENSION:
            told["config"] = extension.get("extension")
    return {key: value for key, value in told.items() if value or key == "config"}
