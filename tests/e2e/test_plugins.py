"""`argosy up` with a plugin of somebody's package that hangs: the API server answers, others' objects go on, and it is told."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from argosy.api import keys, resources
from argosy.kube import config
from argosy.kube.client import Client
from argosy.kube.http import HttpTransport
from argosy.plan.pipeline.held import held_of
from tests.harness.eventually import PATIENCE, eventually
from tests.harness.package import Package
from tests.harness.user import DEPLOYMENTS, deployment

#: Of the 4 s the plugin has, which used to be taken from everybody.
LONGEST = 2.0


@pytest.fixture
def package(request, tmp_path):
    """It may misbehave while it is imported."""
    return Package(tmp_path / "package", getattr(request, "param", ""))


@pytest.fixture
def kubeconfig(tmp_path, package):
    """Of a federation whose Python has the package installed."""
    data = tmp_path / "data"
    environment = {**os.environ, "PYTHONPATH": str(package.folder)}

    def argosy(*arguments: str) -> None:
        command = [sys.executable, "-m", "argosy.cli", *arguments, "--data", str(data)]
        subprocess.run(command, env=environment, check=True, capture_output=True, timeout=3 * PATIENCE)

    try:
        argosy("up", "--detach", "--members", "2", "--plugin-timeout", "4s")
        yield data / "kubeconfig"
    finally:
        argosy("down")


async def test_a_plugin_that_hangs_stops_neither_the_server_nor_others(kubeconfig: Path, package: Package) -> None:
    client = Client(HttpTransport(config.load(str(kubeconfig))))
    try:
        await configure(client)
        await client.create(DEPLOYMENTS, deployment("before", 1, "asking"))
        await eventually(lambda: placements(client, "before"))

        package.behave("sleep")
        await client.create(DEPLOYMENTS, deployment("asking", 1, "asking"))
        longest = 0.0
        asked = asyncio.ensure_future(eventually(lambda: why(client, "asking")))
        while not asked.done():
            started = time.monotonic()
            await client.request("GET", "/readyz")
            longest = max(longest, time.monotonic() - started)
            await asyncio.sleep(0.02)
        assert "plugin 'Theirs' gave no answer within 4 s" in await asked
        assert longest < LONGEST
        await client.create(DEPLOYMENTS, deployment("free", 1, "free"))
        await eventually(lambda: placements(client, "free"))

        live = await client.request("GET", "/livez", query=[("verbose", "")])
        assert b"[+]plugins ok: plugin 'Theirs' gave no answer within 4 s" in live
        metrics = await client.request("GET", "/metrics")
        assert b'argosy_plugin_seconds_count{plugin="Theirs",result="failed"}' in metrics

        package.behave("")
        await eventually(lambda: placements(client, "asking"), 2 * PATIENCE)
    finally:
        await client.close()


@pytest.mark.parametrize("package", ["sleep"], indirect=True)
async def test_a_package_that_hangs_in_its_import_does_not_keep_the_others_waiting(kubeconfig: Path) -> None:
    client = Client(HttpTransport(config.load(str(kubeconfig))))
    try:
        await configure(client)
        await client.create(DEPLOYMENTS, deployment("asking", 1, "asking"))
        await client.create(DEPLOYMENTS, deployment("free", 1, "free"))
        await eventually(lambda: placements(client, "free"))
        await eventually(lambda: why(client, "asking"))
        # Said within the 30 s that loading may take; then that the plugin is not there.
        assert "plugin 'Theirs' is not there yet: argosy-theirs 1.0 is being loaded" in await why(client, "asking")
        assert not await placements(client, "asking")
    finally:
        await client.close()


async def configure(client: Client) -> None:
    body = {"apiVersion": keys.API_VERSION, "kind": "SchedulingProfile", "metadata": {"name": "asking"}}
    spec = {"plugins": {"filter": {"enabled": [{"name": "Theirs"}]}}}
    await client.create(resources.SCHEDULING_PROFILES, {**body, "spec": spec})
    for name, profile in (("asking", "asking"), ("free", "")):
        metadata = {"name": name, "namespace": "default"}
        wanted = {"schedulingMode": "Duplicate", "schedulingProfile": profile}
        body = {"apiVersion": keys.API_VERSION, "kind": "PropagationPolicy", "metadata": metadata, "spec": wanted}
        await client.create(resources.PROPAGATION_POLICIES, body)


async def federated(client: Client, name: str) -> dict:
    return await client.get(resources.federated_objects(True), f"{name}-deployments.apps", "default")


async def placements(client: Client, name: str) -> list:
    return [each for each in (await federated(client, name))["spec"].get("placements", []) if each["placement"]]


async def why(client: Client, name: str) -> str:
    held = held_of((await federated(client, name))["metadata"].get("annotations") or {})
    return held.message if held is not None else ""
