"""Exec plugins: what they are told, how long their credentials are used, and how their failures read."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from argosy.kube import config, execplugin
from argosy.kube.credentials import ConfigError, Credential, CredentialProvider

V1 = "client.authentication.k8s.io/v1"


class Program:
    """A plugin that prints `status`, notes what it was told, and counts its runs."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "plugin"
        self._answer = folder / "answer"
        self._runs = folder / "runs"
        self.path.write_text(
            f'#!/bin/sh\necho "$KUBERNETES_EXEC_INFO|$1|$EXTRA" >> {self._runs}\ncat {self._answer}\ncat >/dev/null\n'
        )
        self.path.chmod(0o755)
        self.says(token="one")

    def says(self, api_version: str = V1, **status: Any) -> None:
        self.prints(orjson.dumps({"kind": "ExecCredential", "apiVersion": api_version, "status": status}))

    def prints(self, text: bytes) -> None:
        self._answer.write_bytes(text)

    @property
    def runs(self) -> list[str]:
        return self._runs.read_text().splitlines() if self._runs.exists() else []


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def provider(
    folder: Path, command: Any, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, **body: Any
) -> CredentialProvider | None:
    described = {"apiVersion": V1, "command": str(command), "interactiveMode": "Never", **body}
    content = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://h:6443", **(cluster or {})}}],
        "users": [{"name": "c", "user": {"exec": described, **(user or {})}}],
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(content))
    return config.load(str(path)).credentials


def plugin(folder: Path, command: Any, **rest: Any) -> CredentialProvider:
    found = provider(folder, command, **rest)
    assert found is not None
    return found


async def test_a_token_is_kept_until_it_is_refused(tmp_path: Path, program: Program) -> None:
    ask = plugin(tmp_path, program.path)
    assert await ask() == await ask() == Credential(authorization="Bearer one")
    assert len(program.runs) == 1
    program.says(token="two")
    assert await ask(refresh=True) == Credential(authorization="Bearer two")
    assert len(program.runs) == 2


async def test_a_credential_is_used_until_it_expires(tmp_path: Path, program: Program) -> None:
    end = datetime.now(UTC) + timedelta(hours=1)
    program.says(token="one", expirationTimestamp=end.strftime("%Y-%m-%dT%H:%M:%SZ"))
    ask = plugin(tmp_path, program.path)
    await ask()
    await ask()
    assert len(program.runs) == 1
    program.says(token="two", expirationTimestamp="2001-01-01T00:00:00Z")
    await ask(refresh=True)
    await ask()
    await ask()
    assert len(program.runs) == 4


async def test_requests_refused_at_the_same_moment_share_a_run(tmp_path: Path, program: Program) -> None:
    ask = plugin(tmp_path, program.path)
    await asyncio.gather(*(ask() for _ in range(5)))
    assert len(program.runs) == 1
    await asyncio.gather(*(ask(refresh=True) for _ in range(5)))
    assert len(program.runs) == 2


async def test_certificates_are_taken(tmp_path: Path, program: Program) -> None:
    program.says(clientCertificateData="CERT", clientKeyData="KEY")
    assert await plugin(tmp_path, program.path)() == Credential(client_certificate=b"CERT", client_key=b"KEY")


async def test_arguments_environment_and_path_are_those_of_the_kubeconfig(tmp_path: Path, program: Program) -> None:
    await plugin(tmp_path, "./plugin", args=["first"], env=[{"name": "EXTRA", "value": "given"}])()
    info, argument, extra = program.runs[0].split("|")
    assert (argument, extra) == ("first", "given")
    assert orjson.loads(info) == {"kind": "ExecCredential", "apiVersion": V1, "spec": {"interactive": False}}


async def test_the_cluster_is_told_only_where_the_kubeconfig_says_so(tmp_path: Path, program: Program) -> None:
    extension = {"name": config.EXEC_EXTENSION, "extension": {"audience": "a"}}
    cluster = {"tls-server-name": "name", "certificate-authority-data": "Q0E=", "extensions": [extension]}
    await plugin(tmp_path, program.path, cluster=cluster)()
    await plugin(tmp_path, program.path, cluster=cluster, provideClusterInfo=True)()
    without, told = (orjson.loads(run.split("|")[0])["spec"] for run in program.runs)
    assert "cluster" not in without
    assert told["cluster"] == {
        "server": "https://h:6443",
        "tls-server-name": "name",
        "certificate-authority-data": "Q0E=",
        "config": {"audience": "a"},
    }


async def test_what_is_written_in_the_kubeconfig_wins_over_the_plugin(tmp_path: Path, program: Program) -> None:
    assert provider(tmp_path, program.path, user={"token": "static"}) is None
    assert program.runs == []


async def test_older_plugins_work(tmp_path: Path, program: Program) -> None:
    beta = "client.authentication.k8s.io/v1beta1"
    program.says(beta, token="old")
    ask = plugin(tmp_path, program.path, apiVersion=beta, interactiveMode=None)
    assert await ask() == Credential(authorization="Bearer old")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"apiVersion": "v1"}, "exec.apiVersion 'v1' is not one of"),
        ({"apiVersion": 1}, "exec.apiVersion must be a string"),
        ({"command": ""}, "exec.command is missing"),
        ({"interactiveMode": None}, "exec.interactiveMode must be one of Never, IfAvailable, Always"),
        ({"args": "x"}, "exec.args must be a list of strings"),
        ({"env": [{"value": "x"}]}, "exec.env must be a list of objects with a name and a value"),
        ({"env": {"a": "b"}}, "exec.env must be a list"),
    ],
)
def test_a_plugin_described_badly_is_one_line(tmp_path: Path, body: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        provider(tmp_path, **{"command": "x", **body})
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("printed", "says"),
    [
        (b"s3cret", "did not print an ExecCredential"),
        (b"[]", "did not print an ExecCredential"),
        (
            b'{"kind":"ExecCredential","apiVersion":"v2","status":{"token":"s3cret"}}',
            "printed 'v2 ExecCredential', not",
        ),
        (orjson.dumps({"kind": "ExecCredential", "apiVersion": V1}), "neither a token nor a certificate"),
        (orjson.dumps({"kind": "ExecCredential", "apiVersion": V1, "status": {}}), "neither a token nor a certificate"),
        (
            orjson.dumps({"kind": "ExecCredential", "apiVersion": V1, "status": {"clientKeyData": "s3cret"}}),
            "a certificate or a key, but not both",
        ),
        (
            orjson.dumps({"kind": "ExecCredential", "apiVersion": V1, "status": {"token": "s3cret\nx"}}),
            "characters no token can have",
        ),
    ],
)
async def test_a_plugin_that_prints_nonsense_is_one_line(
    tmp_path: Path, program: Program, printed: bytes, says: str
) -> None:
    program.prints(printed)
    with pytest.raises(ConfigError) as caught:
        await plugin(tmp_path, program.path)()
    assert says in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_a_plugin_that_fails_says_why(tmp_path: Path, program: Program) -> None:
    program.path.write_text("#!/bin/sh\necho 'log in\nfirst' >&2\nexit 3\n")
    with pytest.raises(ConfigError, match="failed with exit code 3: log in first"):
        await plugin(tmp_path, program.path)()


async def test_a_plugin_that_is_not_there_is_told_with_its_hint(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no-such-plugin was not found \(install it first\)"):
        await plugin(tmp_path, "no-such-plugin", installHint="install it\n first")()
    (tmp_path / "file").write_text("no program")
    with pytest.raises(ConfigError, match="was not found"):
        await plugin(tmp_path, "./file")()


async def test_a_plugin_that_hangs_is_given_up_on(
    tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execplugin, "PATIENCE", 0.2)
    program.path.write_text("#!/bin/sh\nexec sleep 600\n")
    started = time.monotonic()
    with pytest.raises(ConfigError, match=r"gave no credential within 0\.2 s"):
        await plugin(tmp_path, program.path)()
    assert time.monotonic() - started < 60


async def test_one_that_must_ask_somebody_needs_a_terminal(tmp_path: Path, program: Program) -> None:
    with pytest.raises(ConfigError, match="there is no terminal"):
        await plugin(tmp_path, program.path, interactiveMode="Always")()
    assert program.runs == []


async def test_after_a_failure_it_is_run_again(tmp_path: Path, program: Program) -> None:
    ask = plugin(tmp_path, program.path)
    program.prints(b"")
    with pytest.raises(ConfigError):
        await ask()
    program.says(token="late")
    assert await ask() == Credential(authorization="Bearer late")
