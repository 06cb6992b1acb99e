"""Bad input on stock Kubernetes: a control plane that refuses us, has nothing of ours, or does not let us do what we must.

One line that says what is wrong, one that says what to do, the exit code, no traceback, and nothing written. What needs no
kube-apiserver is in tests/e2e/test_cli_bad_input.py.
"""

import asyncio
import datetime
import sys
from pathlib import Path

import msgspec
import yaml

from argosy.api import keys, rights
from argosy.control.install.installer import install
from argosy.kube.client import Client
from argosy.testing import CONTROL_PLANE, Cluster
from argosy.testing import kubeconfig as kubeconfigs
from argosy.testing.certificates import Authority
from argosy.testing.pytest_plugin import Kubernetes
from tests.harness.eventually import eventually
from tests.harness.user import NAMESPACES, exists

POLICY = f"""apiVersion: {keys.API_VERSION}
kind: ClusterPropagationPolicy
metadata: {{name: all}}
spec: {{schedulingMode: Duplicate}}
"""


class Said(msgspec.Struct, frozen=True):
    error: str
    hint: str


class Commands:
    """The commands that talk to a control plane, each run with a kubeconfig of it, a few at once: starting Python takes long."""

    def __init__(self, folder: Path, member: Path):
        policy = folder / "policy.yaml"
        policy.write_text(POLICY)
        self._commands = {
            "get": ["get", "clusters"],
            "apply": ["apply", "-f", str(policy)],
            "install": ["install"],
            "join": ["join", "x", "--kubeconfig", str(member), "--timeout", "5"],
            "controllers": ["controllers", "--no-install", "--port", "0"],
        }
        self._turns = asyncio.Semaphore(4)

    async def __call__(self, control_plane: Path, *names: str) -> dict[str, Said]:
        chosen = names or tuple(self._commands)
        answers = await asyncio.gather(*(self._fails(control_plane, self._commands[name]) for name in chosen))
        return dict(zip(chosen, answers, strict=True))

    async def _fails(self, control_plane: Path, arguments: list[str]) -> Said:
        async with self._turns:
            run = await asyncio.create_subprocess_exec(
                *[sys.executable, "-m", "argosy.cli", "--kubeconfig", str(control_plane), *arguments],
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            out, err = await asyncio.wait_for(run.communicate(), 120)
        said = err.decode()
        assert run.returncode == 1, (arguments, run.returncode, out, said)
        assert "Traceback" not in said
        assert b"installed" not in out
        [error] = [line for line in said.splitlines() if line.startswith("error: ")]
        [hint] = [line for line in said.splitlines() if line.startswith("hint: ")]
        return Said(error, hint)


def _write(path: Path, config: dict[str, object]) -> Path:
    path.write_text(yaml.safe_dump(config))
    return path


def _expired(cluster: Cluster, path: Path) -> Path:
    pair = cluster.authority.client("admin", ["system:masters"], datetime.timedelta(days=-2))
    return _write(path, kubeconfigs.entry("x", cluster.server, cluster.authority.certificate, "admin", pair))


def _distrusting(cluster: Cluster, path: Path) -> Path:
    """It takes another authority's word only."""
    other = Authority("another").certificate
    return _write(path, kubeconfigs.entry("x", cluster.server, other, "admin", cluster.token))


def _stranger(cluster: Cluster, path: Path) -> Path:
    return _write(path, kubeconfigs.entry("x", cluster.server, cluster.authority.certificate, "admin", "no-such-token"))


async def test_each_failure_is_told_in_one_line(kubernetes: Kubernetes, tmp_path: Path) -> None:
    [cluster] = await kubernetes(1, msgspec.structs.replace(CONTROL_PLANE, audit=True))
    commands = Commands(tmp_path, cluster.kubeconfig)
    client = cluster.client()
    try:
        await _bare_control_plane(cluster, client, commands, tmp_path)
        await install(client)
        nobody, _ = await asyncio.gather(
            commands(cluster.kubeconfig_of("nobody"), "get", "apply", "join", "controllers"),
            _the_one_right_that_is_missing_is_named(cluster, commands),
        )
    finally:
        await client.close()
    assert 'cannot list resource "federatedclusters" in API group "core.kubeadmiral.io"' in nobody["get"].error
    assert 'cannot get resource "clusterpropagationpolicies" in API group' in nobody["apply"].error
    assert 'User "nobody" cannot get resource "federatedclusters"' in nobody["join"].error
    assert "may not get propagationpolicies.core.kubeadmiral.io" in nobody["controllers"].error
    assert "more" in nobody["controllers"].error
    assert "--controllers-user" in nobody["controllers"].hint


async def _bare_control_plane(cluster: Cluster, client: Client, commands: Commands, folder: Path) -> None:
    """Nothing of ours is in it yet, and nothing is when all of these have failed."""
    began = len(cluster.audit)
    expired, distrusting, stranger, bare, nobody = await asyncio.gather(
        commands(_expired(cluster, folder / "expired")),
        commands(_distrusting(cluster, folder / "distrusting")),
        commands(_stranger(cluster, folder / "stranger"), "get", "controllers"),
        commands(cluster.kubeconfig, "get", "apply", "join", "controllers"),
        commands(cluster.kubeconfig_of("nobody"), "install"),
    )
    for said in expired.values():
        assert "the client certificate expired on" in said.error
        assert "no longer" in said.hint
    for said in distrusting.values():
        assert "no secure connection to the API server" in said.error
        assert "certificate verify failed" in said.error
        assert "certificate-authority-data" in said.hint
    for said in stranger.values():
        assert "Unauthorized" in said.error
    for name, said in bare.items():
        assert "`argosy install`" in said.hint, (name, said)
        assert any(word in said.error for word in (keys.API_VERSION, "not serve", "not installed")), (name, said)
    # The member, which is the control plane itself here, was not touched before the control plane was known to be one.
    written = [event for event in cluster.audit[began:] if event["user"].get("username") == "admin"]
    assert not [event for event in written if event["responseStatus"]["code"] < 300]
    assert 'User "nobody" cannot' in nobody["install"].error
    assert 'API group "' in nobody["install"].error
    assert not await exists(client, NAMESPACES, keys.SYSTEM_NAMESPACE), "somebody without rights installed something"


async def _the_one_right_that_is_missing_is_named(cluster: Cluster, commands: Commands) -> None:
    some = rights.manifests([], [rights.user("somebody")])
    for manifest in some:
        for rule in manifest.get("rules", ()):
            if rule["resources"] == ["events"]:
                rule["verbs"] = ["create"]
        if "rules" in manifest or "subjects" in manifest:
            manifest["metadata"]["name"] = f"somebody-{manifest['metadata']['name']}"
        if "roleRef" in manifest:
            manifest["roleRef"]["name"] = manifest["metadata"]["name"]
    await _apply(cluster, some)

    async def told() -> bool:
        answer = await commands(cluster.kubeconfig_of("somebody"), "controllers")
        return answer["controllers"].error == "error: the controllers' user may not patch events"

    await eventually(told, 60.0, "the one right that is missing is named")


async def _apply(cluster: Cluster, manifests: list[dict[str, object]]) -> None:
    run = await asyncio.create_subprocess_exec(
        *cluster.kubectl,
        *["apply", "--server-side", "--force-conflicts", "-f", "-"],
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
    )
    await run.communicate(yaml.safe_dump_all(manifests).encode())
    assert run.returncode == 0
