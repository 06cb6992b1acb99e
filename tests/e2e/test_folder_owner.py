"""One process owns a data folder, whatever the command: everybody else is refused before anything in it has changed."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from argosy.cli.local.folder import DataFolder
from argosy.server.embedded import EmbeddedServer
from tests.e2e.conftest import Cli
from tests.faults.served import Served
from tests.harness.commands import Said, argosy


def content(folder: Path) -> dict[str, bytes]:
    """What nobody but the owner may change: keys and addresses."""
    names = ["kubeconfig", "owner.pid", "members/kubeconfig", "members/ports.json", "control-plane/owner.pid"]
    found = {name: (folder / name).read_bytes() for name in names if (folder / name).exists()}
    return found | {path.name: path.read_bytes() for path in (folder / "control-plane" / "pki").iterdir()}


@pytest.mark.parametrize(
    "command",
    [
        ["server", "--port", "0", "--data", "DATA"],
        ["server", "--port", "0", "--data", "DATA/control-plane"],
        ["server", "--port", "0", "--data", "DATA/members/members/member-1"],
        ["server", "--port", "0", "--storage", "memory", "--data", "DATA"],
        ["sim", "--members", "1", "--data", "DATA"],
        ["sim", "--members", "1", "--data", "DATA/control-plane"],
        ["sim", "--members", "1", "--data", "DATA/members"],
        ["up", "--data", "DATA"],
        ["up", "--detach", "--data", "DATA/control-plane"],
    ],
    ids=" ".join,
)
def test_nobody_else_works_in_the_folder_of_a_running_up(cli: Cli, tmp_path: Path, command: list[str]) -> None:
    alias = tmp_path / "alias"
    alias.symlink_to(cli.data)
    pid = DataFolder(cli.data).up.running()
    before, inside = content(cli.data), sorted(cli.data.iterdir())
    # In a process of its own, and by its other names in this one, which takes a tenth of the time.
    runs = {str(cli.data): argosy, str(alias): cli.bare, f"{cli.data}/../{cli.data.name}": cli.bare}
    for name, run in runs.items():
        said = refused([part.replace("DATA", name) for part in command], run)
        assert f"error: the data folder {cli.data}" in said.lines[0]
        assert f"is in use by argosy up (process {pid})" in said.lines[0] or "members of argosy up" in said.lines[0]
        assert "--data chooses another folder" in said.lines[1]
    assert content(cli.data) == before
    assert sorted(cli.data.iterdir()) == inside
    assert "member-1" in cli.ok("get", "clusters", "-o", "name")


def refused(command: list[str], run: Callable[..., Said] = argosy) -> Said:
    said = run(*command)
    assert (said.code, len(said.lines)) == (1, 2), said.err
    return said


async def test_up_does_not_start_on_the_folder_of_a_server(tmp_path: Path) -> None:
    async with Served(tmp_path / "data") as server:
        before = (tmp_path / "data" / "kubeconfig").read_bytes()
        for arguments in (["up"], ["up", "--detach"], ["down"]):
            said = await asyncio.to_thread(refused, [*arguments, "--data", str(tmp_path / "data")])
            assert f"in use by argosy server (process {server.process.pid})" in said.lines[0]
        assert (tmp_path / "data" / "kubeconfig").read_bytes() == before
        assert not (tmp_path / "data" / "control-plane").exists()
        assert await server.client.healthz() == "ok"


async def test_up_does_not_start_around_a_server(tmp_path: Path) -> None:
    async with Served(tmp_path / "data" / "control-plane") as server:
        for arguments in ([], ["--detach"]):
            said = await asyncio.to_thread(refused, ["up", *arguments, "--data", str(tmp_path / "data")])
            assert f"in use by argosy server (process {server.process.pid})" in said.lines[0]
        assert not (tmp_path / "data" / "kubeconfig").exists()


def test_up_leaves_members_alone_that_somebody_else_started(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "members"
    command = [sys.executable, "-m", "argosy.cli", "sim", "--members", "1", "--data", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as clusters:
        try:
            assert clusters.stdout is not None
            assert "https://" in clusters.stdout.readline()
            said = refused(["up", "--detach", "--members", "1", "--data", str(tmp_path / "data")])
            assert f"in use by argosy sim (process {clusters.pid})" in said.lines[0]
            assert "nothing is running" in argosy("down", "--data", str(tmp_path / "data")).out
            assert clusters.poll() is None
        finally:
            clusters.terminate()
            clusters.wait(20)


#: As versions before `owner.pid` did it.
EARLIER = """
import fcntl, os, sys, time
file = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR, 0o600)
fcntl.flock(file, fcntl.LOCK_EX)
os.pwrite(file, f"{os.getpid()}\\n".encode(), 0)
print("locked", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize(
    ("name", "what"), [("up.pid", "argosy up"), ("sim.pid", "argosy sim"), ("members/sim.pid", "argosy sim")]
)
def test_nobody_works_in_the_folder_of_a_process_of_an_earlier_version(tmp_path: Path, name: str, what: str) -> None:
    data, file = tmp_path / "data", tmp_path / "file"
    (data / "members").mkdir(parents=True)
    file.touch()
    commands = [["up"], ["up", "--detach"]]
    if "/" not in name:
        commands += [["restore", str(file)], ["server", "--port", "0"], ["sim", "--members", "1"]]
    command = [sys.executable, "-c", EARLIER, str(data / name)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as earlier:
        try:
            assert earlier.stdout is not None
            assert earlier.stdout.readline()
            for arguments in commands:
                said = refused([*arguments, "--data", str(data)])
                assert f"is in use by {what} of an earlier version (process {earlier.pid})" in said.lines[0]
                assert "Ctrl-C there, or SIGTERM" in said.lines[1], "`argosy down` would not find it"
            assert sorted(path.name for path in data.iterdir()) == sorted({"members", Path(name).parts[0]})
        finally:
            earlier.kill()


async def test_nothing_is_restored_under_a_server_that_claimed_no_folder(tmp_path: Path) -> None:
    """As all of earlier versions did not: the store itself says that somebody has it."""
    data, file = tmp_path / "data", tmp_path / "file"
    server = EmbeddedServer(data)
    await server.start()
    said = await asyncio.to_thread(argosy, "backup", str(file), "--data", str(data))
    assert said.code == 0, said.err
    before = sorted(data.iterdir())
    said = await asyncio.to_thread(refused, ["restore", str(file), "--data", str(data)])
    assert f"{data / 'store'} is in use by another server" in said.lines[0]
    assert sorted(path for path in data.iterdir() if path.name != "owner.pid") == before
    await server.stop()
    assert (await asyncio.to_thread(argosy, "restore", str(file), "--data", str(data))).code == 0
