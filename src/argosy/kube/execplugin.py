"""Exec plugins: programs that print a credential (client.authentication.k8s.io v1 and v1beta1), run when one is needed.

A credential is kept until its expiry, or until a server refuses it. Concurrent requests that need one share one run. What a
plugin prints is never shown or logged, except its standard error when it fails.
"""

import asyncio
import datetime
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import orjson

from argosy.kube import clock
from argosy.kube.credentials import ConfigError, Credential, bearer

__all__ = ["ExecPlugin", "Plugin", "parse"]

_GROUP: Final = "client.authentication.k8s.io/"
_VERSIONS: Final = (f"{_GROUP}v1", f"{_GROUP}v1beta1")
_MODES: Final = ("Never", "IfAvailable", "Always")
#: Timeout of a plugin that is not interactive; a login with a browser gets more time.
PATIENCE: Final = 60.0
LOGIN_PATIENCE: Final = 600.0


class Plugin(msgspec.Struct, frozen=True):
    """One `exec` of a kubeconfig's user. `cluster` is what the program is told about the server; None means nothing."""

    label: str
    api_version: str
    command: str
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    interactive_mode: str = "IfAvailable"
    install_hint: str = ""
    cluster: Mapping[str, Any] | None = None

    def __repr__(self) -> str:
        return f"Plugin({self.label!r})"


class _Status(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: datetime.datetime | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    status: _Status | None = None


def parse(label: str, body: Mapping[str, Any], folder: Path, cluster: Mapping[str, Any]) -> Plugin:
    """The plugin of a kubeconfig's `exec`; a command with a path is relative to the kubeconfig's `folder`.

    `cluster` is passed on only if the kubeconfig says so. Raises ConfigError.
    """
    api_version = _text(label, body, "apiVersion")
    if api_version not in _VERSIONS:
        raise ConfigError(f"{label}: exec.apiVersion {api_version!r} is not one of {', '.join(_VERSIONS)}")
    command = _text(label, body, "command")
    if not command:
        raise ConfigError(f"{label}: exec.command is missing")
    mode = _text(label, body, "interactiveMode")
    if not mode and api_version == _VERSIONS[1]:
        mode = "IfAvailable"
    if mode not in _MODES:
        raise ConfigError(f"{label}: exec.interactiveMode must be one of {', '.join(_MODES)}")
    arguments = body.get("args") or []
    if not isinstance(arguments, list) or not all(isinstance(one, str) for one in arguments):
        raise ConfigError(f"{label}: exec.args must be a list of strings")
    return Plugin(
        label,
        api_version,
        str(folder / command) if os.sep in command else command,
        tuple(arguments),
        tuple(_variables(label, body.get("env") or [])),
        mode,
        _text(label, body, "installHint"),
        cluster if body.get("provideClusterInfo") is True else None,
    )


class ExecPlugin:
    """A CredentialProvider."""

    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin
        self._credential: Credential | None = None
        self._expires: float | None = None
        self._ran = 0.0
        self._lock = asyncio.Lock()

    async def __call__(self, *, refresh: bool = False) -> Credential:
        called = clock.monotonic()
        async with self._lock:
            kept = self._credential
            expired = self._expires is not None and clock.time() >= self._expires
            # A credential that came while we waited is not the refused one.
            if kept is not None and not expired and not (refresh and self._ran <= called):
                return kept
            status = await _run(self._plugin)
            self._credential = _credential(self._plugin.label, status)
            self._expires = status.expiration_timestamp.timestamp() if status.expiration_timestamp else None
            self._ran = clock.monotonic()
            return self._credential


async def _run(plugin: Plugin) -> _Status:
    interactive = _is_interactive(plugin)
    try:
        process = await asyncio.create_subprocess_exec(
            _found(plugin),
            *plugin.arguments,
            env={**os.environ, **dict(plugin.environment), "KUBERNETES_EXEC_INFO": _exec_info(plugin, interactive)},
            stdin=None if interactive else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=None if interactive else asyncio.subprocess.PIPE,
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"{plugin.label}: {plugin.command} cannot be run: {reason}") from None
    patience = LOGIN_PATIENCE if interactive else PATIENCE
    try:
        async with asyncio.timeout(patience):
            out, err = await process.communicate()
    except TimeoutError:
        raise ConfigError(f"{plugin.label}: {plugin.command} gave no credential within {patience:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        said = f": {_one_line((err or b'').decode('utf-8', 'replace'))[-300:]}" if err and err.strip() else ""
        raise ConfigError(f"{plugin.label}: {plugin.command} failed with exit code {process.returncode}{said}")
    return _status(plugin, out)


def _is_interactive(plugin: Plugin) -> bool:
    terminal = sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
    if plugin.interactive_mode == "Always" and not terminal:
        raise ConfigError(f"{plugin.label}: {plugin.command} needs input, but there is no terminal")
    return terminal and plugin.interactive_mode != "Never"


def _found(plugin: Plugin) -> str:
    path = shutil.which(plugin.command)
    if path is None:
        hint = f" ({_one_line(plugin.install_hint)})" if plugin.install_hint else ""
        raise ConfigError(f"{plugin.label}: the program {plugin.command} was not found{hint}")
    return path


def _exec_info(plugin: Plugin, interactive: bool) -> str:
    spec: dict[str, Any] = {"interactive": interactive}
    if plugin.cluster is not None:
        spec["cluster"] = plugin.cluster
    return orjson.dumps({"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": spec}).decode()


def _status(plugin: Plugin, out: bytes) -> _Status:
    try:
        answer = msgspec.json.decode(out, type=_ExecCredential)
    except msgspec.DecodeError:
        # The decoder's own message could show a part of the credential.
        raise ConfigError(f"{plugin.label}: {plugin.command} did not print an ExecCredential") from None
    if answer.kind != "ExecCredential" or answer.api_version != plugin.api_version:
        said = f"{answer.api_version or 'no apiVersion'} {answer.kind}"[:100]
        raise ConfigError(
            f"{plugin.label}: {plugin.command} printed {said!r}, not an ExecCredential of {plugin.api_version}"
        )
    status = answer.status
    if status is None or not (status.token or status.client_certificate_data or status.client_key_data):
        raise ConfigError(f"{plugin.label}: {plugin.command} printed neither a token nor a certificate")
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise ConfigError(f"{plugin.label}: {plugin.command} printed a certificate or a key, but not both")
    return status


def _credential(label: str, status: _Status) -> Credential:
    return Credential(
        bearer(status.token, label) if status.token else "",
        (status.client_certificate_data or "").encode(),
        (status.client_key_data or "").encode(),
    )


def _variables(label: str, entries: Any) -> list[tuple[str, str]]:
    wrong = ConfigError(f"{label}: exec.env must be a list of objects with a name and a value")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise wrong
    pairs = [(entry.get("name"), entry.get("value", "")) for entry in entries]
    if not all(isinstance(name, str) and name and isinstance(value, str) for name, value in pairs):
        raise wrong
    return pairs


def _text(label: str, body: Mapping[str, Any], key: str) -> str:
    value = body.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ConfigError(f"{label}: exec.{key} must be a string")
    return value


def _one_line(text: str) -> str:
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
