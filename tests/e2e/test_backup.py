"""A federation is backed up while it runs, goes on, and comes back from the backup: members lose nothing by it."""

import json
import os
import sqlite3
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml

from tests.e2e.conftest import Cli
from tests.harness.commands import argosy

NOWHERE = """
apiVersion: core.kubeadmiral.io/v1alpha1
kind: FederatedCluster
metadata: {name: nowhere}
spec: {apiEndpoint: "https://127.0.0.1:9", secretRef: {name: nowhere}}
"""
LABELS = {"kubeadmiral.io/propagation-policy-name": "divided"}


def manifest(tmp_path: Path, name: str) -> str:
    container = {"name": "main", "image": "nginx:1.29"}
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": LABELS},
        "spec": {
            "replicas": 6,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}},
        },
    }
    path = tmp_path / f"{name}.yaml"
    path.write_text(yaml.safe_dump(body))
    return str(path)


def copies(cli: Cli, name: str) -> dict[str, tuple[str, int]]:
    """Uid and generation of a Deployment's copies, by member: asked of the members themselves."""
    found = {}
    for member in ("member-1", "member-2"):
        said = cli("--context", member, "patch", f"deploy/{name}", "-p", "{}", "-o", "json")
        if said.code == 0:
            metadata = json.loads(said.out)["metadata"]
            found[member] = metadata["uid"], metadata["generation"]
    return found


def test_a_federation_comes_back_from_a_backup_and_members_lose_nothing(tmp_path: Path) -> None:
    cli, file = Cli(tmp_path / "data"), tmp_path / "backup.tar.gz"
    up = ["up", "--detach", "--members", "2", "--data", str(cli.data)]
    try:
        assert argosy(*up, "--example").code == 0
        cli.ok("apply", "-f", manifest(tmp_path, "old"))
        cli.ok("status", "deployment/old", "--wait")
        said = cli.bare("backup", str(file), "--data", str(cli.data))
        assert said.code == 0, said.err
        assert "It holds secrets" in said.out
        assert file.stat().st_mode & 0o777 == 0o600
        again = cli.bare("backup", str(file), "--data", str(cli.data))
        assert (again.code, again.lines[0]) == (1, f"error: {file} is there already")
        assert cli.bare("backup", str(file), "--data", str(cli.data), "--force").code == 0

        cli.ok("apply", "-f", manifest(tmp_path, "new"))
        cli.ok("status", "deployment/new", "--wait")
        cli.ok("delete", "deployment/old")
        web, new = copies(cli, "web"), copies(cli, "new")
        assert set(web) == set(new) == {"member-1", "member-2"}
        version = int(
            json.loads(cli.ok("patch", "deploy/new", "-p", "{}", "-o", "json"))["metadata"]["resourceVersion"]
        )
        running = cli.bare("restore", str(file), "--data", str(cli.data))
        assert (running.code, "is in use by argosy up" in running.lines[0]) == (1, True)

        assert argosy("down", "--data", str(cli.data)).code == 0
        said = argosy("restore", str(file), "--data", str(cli.data))
        assert said.code == 0, said.err
        assert "The fleet is paused" in said.out
        assert len(list((cli.data / "control-plane").glob("store.before-*"))) == 1
        before = (cli.data / "kubeconfig").read_text()
        assert argosy(*up).code == 0
        assert (cli.data / "kubeconfig").read_text() == before, "who had access has it"

        report = json.loads(cli.ok("orphans", "-o", "json"))
        assert report["paused"]
        assert report["restoredFrom"]
        assert not report["notLookedAt"]
        assert [
            (each["cluster"], each["name"]) for each in report["orphans"] if each["type"] == "deployments.apps"
        ] == [
            ("member-1", "new"),
            ("member-2", "new"),
        ]
        (came_back,) = (each for each in report["missing"] if each["type"] == "deployments.apps")
        assert came_back["name"] == "old"
        assert (came_back["goneFrom"], came_back["stillIn"]) == (["member-1", "member-2"], [])
        assert came_back["why"] == "deleted since, came back"
        table = cli.ok("orphans")
        assert "deployments.apps/new" in table
        assert "argosy resume fleet" in table
        assert cli("orphans", "--exit-code").code == 3
        assert "the fleet is paused" in cli.ok("status", "deployment/old")
        assert copies(cli, "old") == {}, "what was deleted is not made again behind anybody's back"

        cli.ok("resume", "fleet")
        cli.ok("status", "deployment/old", "--wait")
        assert set(copies(cli, "old")) == {"member-1", "member-2"}
        assert (copies(cli, "web"), copies(cli, "new")) == (web, new), "the same objects, untouched"
        changed = json.loads(cli.ok("label", "deploy/web", "a=b", "-o", "json"))
        assert int(changed["metadata"]["resourceVersion"]) > version, "no version is used twice"

        nowhere = tmp_path / "nowhere.yaml"
        nowhere.write_text(NOWHERE)
        cli.ok("apply", "-f", str(nowhere))
        said = cli("orphans")
        assert (said.code, "nowhere could not be looked at" in said.lines[0]) == (1, True)
        assert "deployments.apps/new" in said.out, "what could be found out is told all the same"
    finally:
        argosy("down", "--data", str(cli.data))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of a small server."""
    folder = tmp_path_factory.mktemp("made")
    command = [sys.executable, "-m", "argosy.cli", "server", "--port", "0", "--data", str(folder / "data")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline()
        said = argosy("backup", str(folder / "file"), "--data", str(folder / "data"))
        server.terminate()
    assert said.code == 0, said.err
    return folder / "file"


@pytest.mark.parametrize("fault", ["cut off", "overwritten", "another file", "newer", "swapped"])
def test_a_backup_that_is_not_whole_changes_nothing(made: Path, tmp_path: Path, fault: str) -> None:
    content, damaged = made.read_bytes(), tmp_path / "damaged"
    if fault == "cut off":
        damaged.write_bytes(content[: len(content) // 2])
    elif fault == "overwritten":
        damaged.write_bytes(content[:1000] + os.urandom(200) + content[1200:])
    elif fault == "another file":
        damaged.write_bytes(b"not a backup")
    else:
        repacked(made, damaged, newer=fault == "newer")
    data = tmp_path / "data"
    assert argosy("restore", str(made), "--data", str(data)).code == 0
    before = {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}
    said = argosy("restore", str(damaged), "--data", str(data))
    assert (said.code, len(said.lines)) == (1, 2), said.err
    assert str(damaged) in said.lines[0]
    after = {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}
    whose = ("owner.pid", "lock")  # who had it last
    assert {path: after[path] for path in after if path.name not in whose} == {
        path: before[path] for path in before if path.name not in whose
    }
    assert after.keys() == before.keys()


def repacked(source: Path, target: Path, *, newer: bool) -> None:
    """The same backup of a newer version, or with another store in it than its manifest says."""
    with tarfile.open(source) as old, tarfile.open(target, "w:gz") as new:
        for entry in old:
            stream = old.extractfile(entry)
            assert stream is not None
            content = stream.read()
            if newer and entry.name == "manifest.json":
                content = content.replace(b'"format": 1', b'"format": 2')
            if not newer and entry.name == "store.db":
                content = content[:-4096] + bytes(4096)
            part = target.with_name("part")
            part.write_bytes(content)
            new.add(part, entry.name)


def test_a_restore_that_was_interrupted_is_told_and_can_be_repeated(made: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    folder = data / "control-plane"
    assert argosy("restore", str(made), "--data", str(data)).code == 0
    (folder / "restoring").touch()
    (folder / "store").rename(folder / "store.before-1")
    said = argosy("server", "--data", str(folder), "--port", "0")
    assert said.code == 1
    assert "was interrupted" in said.lines[0]
    assert argosy("restore", str(made), "--data", str(data)).code == 0
    assert not (folder / "restoring").exists()
    assert (folder / "store.before-1").exists()


def test_a_backup_under_load_is_of_one_moment(tmp_path: Path) -> None:
    """Two ConfigMaps are written one after the other; no copy has the second one ahead of the first."""
    writer = tmp_path / "writer.py"
    writer.write_text(WRITER)
    with subprocess.Popen([sys.executable, str(writer), str(tmp_path / "data")], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline()
            for number in range(5):
                file = tmp_path / f"file-{number}"
                said = argosy("backup", str(file), "--data", str(tmp_path / "data"))
                assert said.code == 0, said.err
                with tarfile.open(file) as archive:
                    archive.extract("store.db", tmp_path, filter="data")
                store = sqlite3.connect(tmp_path / "store.db")
                newest = store.execute("SELECT key, max(version) FROM log GROUP BY key").fetchall()
                versions = [version for _, version in sorted(newest)]
                store.close()
                assert len(versions) == 50
                assert max(versions) - min(versions) == 49, "the last round of writes, or one that is under way"
        finally:
            process.kill()


#: The first writes are long, so that a copy takes several steps; the others come at a disk's pace, wherever the store is, or it
#: would grow as fast as it is copied.
WRITER = """
import asyncio, sys
from pathlib import Path
from argosy.server.storage.sqlite import SqliteStorage

async def main():
    storage = SqliteStorage(Path(sys.argv[1]) / "store")
    await storage.open(lambda changes: None, lambda writes, seconds: None)
    heads = [await storage.create(f"g/k/{n:02}", lambda v: b"x" * 300_000) for n in range(50)]
    print("ready", flush=True)
    while True:
        for n in range(50):
            heads[n] = await storage.replace(f"g/k/{n:02}", heads[n].version, lambda v: b"x" * 3000)
            await asyncio.sleep(0.002)

asyncio.run(main())
"""
