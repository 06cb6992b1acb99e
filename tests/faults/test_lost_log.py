"""A server was killed, and then somebody removed or cut off the log of its store: it does not start as if nothing happened."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from argosy.kube.errors import Gone
from tests.faults.served import Served
from tests.harness.federation import CONFIGMAPS

NAMESPACE = "default"


async def killed(folder: Path) -> dict[str, int]:
    """Versions by name, all acknowledged by a server that was killed then."""
    acknowledged = {}
    async with Served(folder) as server:
        for number in range(50):
            body = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": f"map-{number}", "namespace": NAMESPACE},
            }
            created = await server.client.create(CONFIGMAPS, body)
            acknowledged[f"map-{number}"] = int(created["metadata"]["resourceVersion"])
        server.process.send_signal(signal.SIGKILL)
        await server.process.wait()
    return acknowledged


async def refusal(*arguments: str) -> list[str]:
    """What a command says that fails: one line what, one line what to do."""
    command = [sys.executable, "-m", "argosy.cli", *arguments]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, told = await asyncio.wait_for(process.communicate(), 30)
    finally:
        if process.returncode is None:
            process.kill()
    assert (process.returncode, out) == (1, b""), told.decode()
    lines = told.decode().splitlines()
    assert len(lines) == 2, told.decode()
    return lines


def names(maps: list[dict[str, Any]]) -> list[str]:
    return [each["metadata"]["name"] for each in maps if each["metadata"]["name"].startswith("map-")]


async def first_event(server: Served, since: str) -> None:
    async with server.client.watch(CONFIGMAPS, NAMESPACE, resource_version=since) as events:
        async for _ in events:
            return


@pytest.mark.parametrize("kept", [0.0, 0.5])
async def test_a_server_whose_log_is_lost_is_refused_until_that_is_accepted(tmp_path: Path, kept: float) -> None:
    acknowledged = await killed(tmp_path)
    log = tmp_path / "store" / "store.db-wal"
    content = log.read_bytes()[: int(log.stat().st_size * kept)]
    if content:
        log.write_bytes(content)
    else:
        log.unlink()
    error, _ = await refusal("backup", str(tmp_path / "file"), "--data", str(tmp_path))
    assert "the store in" in error
    assert "is not whole" in error
    error, hint = await refusal("server", "--data", str(tmp_path), "--port", "0")
    assert error.startswith("error: the store is not whole: ")
    assert f"writes up to version {max(acknowledged.values())} were acknowledged" in error
    assert "--accept-data-loss" in hint

    command = ("argosy.cli", "server", "--data", str(tmp_path), "--port", "0", "--accept-data-loss")
    async with Served(tmp_path, *command) as server:
        listed = await server.client.list(CONFIGMAPS, NAMESPACE)
        assert len(names(listed.items)) < 50
        assert int(listed.resource_version) > max(acknowledged.values())
        with pytest.raises(Gone):
            await first_event(server, str(max(acknowledged.values())))
    async with Served(tmp_path) as server:
        assert names((await server.client.list(CONFIGMAPS, NAMESPACE)).items) == names(listed.items)
