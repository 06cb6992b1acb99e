"""The harness itself: clusters that work, can be broken one component at a time, and leave nothing behind."""

import asyncio
import os
import signal
import socket
import struct
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from argosy.kube import config
from argosy.kube.client import Client
from argosy.kube.errors import ApiError, Forbidden, TransportError
from argosy.kube.http import HttpTransport
from argosy.kube.resource import Resource
from argosy.testing import CONTROL_PLANE, Binaries, BinariesMissing, Cluster, Options, StartError, clusters, find
from argosy.testing.pytest_plugin import Kubernetes
from tests.harness.eventually import eventually

MAPS = Resource("", "v1", "configmaps", "ConfigMap")
PODS = Resource("", "v1", "pods", "Pod")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
JOBS = Resource("batch", "v1", "jobs", "Job")


def config_map(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


def workload(kind: str, name: str, **spec: object) -> dict[str, object]:
    containers = [{"name": "main", "image": "registry.invalid/app:1"}]
    restart = {"restartPolicy": "Never"} if kind == "Job" else {}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers, **restart}}
    group = "batch/v1" if kind == "Job" else "apps/v1"
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": group, "kind": kind, "metadata": metadata, "spec": {**spec, "template": template}}


async def test_pods_run_and_are_ready_and_those_of_jobs_end(kubernetes: Kubernetes) -> None:
    cluster = await kubernetes.shared()
    client = cluster.client()
    selector = {"matchLabels": {"app": "web"}}
    await client.create(DEPLOYMENTS, workload("Deployment", "web", replicas=3, selector=selector))
    await client.create(JOBS, workload("Job", "task"))

    async def ready() -> bool:
        status = (await client.get(DEPLOYMENTS, "web", "default"))["status"]
        return bool(status.get("readyReplicas") == 3)

    async def complete() -> bool:
        return bool((await client.get(JOBS, "task", "default"))["status"].get("succeeded") == 1)

    await eventually(ready)
    await eventually(complete)
    await client.delete(DEPLOYMENTS, "web", "default")

    async def gone() -> bool:
        return not (await client.list(PODS, "default", label_selector="app=web")).items

    await eventually(gone)
    await client.close()


async def test_a_cluster_that_was_killed_starts_again_on_its_data(kubernetes: Kubernetes) -> None:
    (cluster,) = await kubernetes(1, CONTROL_PLANE)
    client = cluster.client()
    await client.create(MAPS, config_map("kept"))
    cluster.kill()
    await cluster.start()
    assert await client.get(MAPS, "kept", "default")
    await client.close()


async def test_a_kubeconfig_is_that_of_its_user(kubernetes: Kubernetes) -> None:
    cluster = await kubernetes.shared()
    whoami = partial(subprocess.run, [*cluster.kubectl, "auth", "whoami"], capture_output=True, text=True, check=False)
    asked = await asyncio.to_thread(whoami)
    assert "system:masters" in asked.stdout, asked.stderr
    admin = Client(HttpTransport(config.load(str(cluster.kubeconfig))))
    assert (await admin.version())["gitVersion"].startswith("v1.")
    await admin.close()
    path = cluster.kubeconfig_of("guest")
    assert path.stat().st_mode & 0o077 == 0
    guest = Client(HttpTransport(config.load(str(path))))
    with pytest.raises(Forbidden, match="guest"):
        await guest.list(MAPS, "default")
    await guest.close()


async def test_a_control_plane_for_a_federation_runs_no_templates(kubernetes: Kubernetes) -> None:
    options = Options(nodes=CONTROL_PLANE.nodes, controllers=CONTROL_PLANE.controllers, audit=True)
    (plane,) = await kubernetes(1, options)
    assert set(plane.components) == {"etcd", "kube-apiserver", "kube-controller-manager"}
    client = plane.client()
    selector = {"matchLabels": {"app": "web"}}
    await client.create(DEPLOYMENTS, workload("Deployment", "web", replicas=3, selector=selector))
    await client.create(MAPS, config_map("owner"))
    owner = await client.get(MAPS, "owner", "default")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    owned = config_map("owned")
    owned["metadata"] = {"name": "owned", "namespace": "default", "ownerReferences": [reference]}
    await client.create(MAPS, owned)
    await client.delete(MAPS, "owner", "default", uid=owner["metadata"]["uid"])

    async def collected() -> bool:
        return "owned" not in {one["metadata"]["name"] for one in (await client.list(MAPS, "default")).items}

    # The garbage collector has run; the deployment controller, had there been one, would have long before.
    await eventually(collected, 30)
    assert "observedGeneration" not in (await client.get(DEPLOYMENTS, "web", "default")).get("status", {})
    written = [
        (one["verb"], one["objectRef"].get("name")) for one in plane.audit if one["user"].get("username") == "admin"
    ]
    assert written == [("create", "web"), ("create", "owner"), ("create", "owned"), ("delete", "owner")]
    await client.close()


async def test_a_component_is_killed_paused_and_started_again(kubernetes: Kubernetes) -> None:
    (cluster,) = await kubernetes(1, CONTROL_PLANE)
    client, hasty = cluster.client(), cluster.client(timeout=1.0)
    await client.create(MAPS, config_map("a"))
    cluster["kube-apiserver"].kill()
    with pytest.raises(TransportError):
        await hasty.get(MAPS, "a", "default")
    cluster["kube-apiserver"].start()
    await cluster.ready()
    assert await client.get(MAPS, "a", "default")
    cluster["kube-apiserver"].pause()
    with pytest.raises(TransportError, match="no answer"):
        await hasty.get(MAPS, "a", "default")
    cluster["kube-apiserver"].resume()
    assert await eventually(lambda: client.get(MAPS, "a", "default"))
    await client.close()
    await hasty.close()


async def test_nothing_has_a_socket_beyond_loopback(kubernetes: Kubernetes) -> None:
    cluster = await kubernetes.shared()
    client = cluster.client()
    # What would be dialled in the cluster is not: neither a node for logs nor a pod for a proxy.
    pod = {"containers": [{"name": "main", "image": "registry.invalid/app:1"}]}
    metadata = {"name": "talker", "namespace": "default"}
    await client.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod})

    async def address() -> str:
        return str((await client.get(PODS, "talker", "default"))["status"].get("podIP", ""))

    assert await eventually(address)
    for path in ("talker/proxy/", "talker/log"):
        with pytest.raises(ApiError, match=r"nowhere\.sock"):
            await client.request("GET", f"/api/v1/namespaces/default/pods/{path}", timeout=5)
    seen = {pair for component in cluster.components.values() for pair in sockets(component.pid or 0)}
    assert seen
    assert [pair for pair in seen if not all(one.startswith(("127.", "0.0.0.0", "::1")) for one in pair)] == []
    await client.close()


async def test_a_component_that_does_not_start_is_named_with_its_log(kubernetes: Kubernetes) -> None:
    options = Options(nodes=0, apiserver_arguments=["--no-such-flag"])
    with pytest.raises(StartError, match=r"kube-apiserver of cluster-1 ended(.|\n)*no-such-flag"):
        await kubernetes(1, options)


def test_missing_binaries_are_one_line_that_says_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(BinariesMissing, match="make kubernetes"):
        find({"ARGOSY_CACHE": str(tmp_path)})
    with pytest.raises(BinariesMissing, match="has no etcd"):
        find({"KUBEBUILDER_ASSETS": str(tmp_path)})


def test_a_binary_that_was_changed_is_not_used(tmp_path: Path, kubernetes: Kubernetes) -> None:
    used: Binaries = find()
    if not (used.folder / "manifest.json").exists():
        pytest.skip("the binaries are from KUBEBUILDER_ASSETS, which has no manifest")
    copy = tmp_path / "kubernetes" / used.folder.name
    copy.mkdir(parents=True)
    for path in used.folder.iterdir():
        if path.is_file():
            (copy / path.name).symlink_to(path)
    assert find({"ARGOSY_CACHE": str(tmp_path)}).folder == copy
    (copy / "etcd").unlink()
    (copy / "etcd").write_bytes(b"something else")
    with pytest.raises(BinariesMissing, match="SHA-256"):
        find({"ARGOSY_CACHE": str(tmp_path)})


_VICTIM = """
import asyncio, sys
from argosy.testing import CONTROL_PLANE, clusters

async def main():
    async with clusters(1, CONTROL_PLANE) as (cluster,):
        cluster["kube-controller-manager"].pause()
        print(cluster.folder.parent, *(one.pid for one in cluster.components.values()), flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


async def test_nothing_is_left_when_the_process_is_killed(kubernetes: Kubernetes) -> None:
    victim = await asyncio.create_subprocess_exec(sys.executable, "-c", _VICTIM, stdout=asyncio.subprocess.PIPE)
    assert victim.stdout is not None
    folder, *pids = (await victim.stdout.readline()).decode().split()
    assert len(pids) == 3
    assert all(alive(int(pid)) for pid in pids)
    victim.send_signal(signal.SIGKILL)
    await victim.wait()
    await eventually(lambda: not any(alive(int(pid)) for pid in pids))
    await eventually(lambda: not Path(folder).exists())


async def test_nothing_is_left_when_a_test_is_over(kubernetes: Kubernetes, tmp_path: Path) -> None:
    # A lock held here must not outlive us in a component, though the descriptor says it may be inherited.
    lock = os.open(tmp_path / "lock", os.O_CREAT | os.O_RDWR)
    os.set_inheritable(lock, True)
    async with clusters(1, CONTROL_PLANE) as (cluster,):
        pids = [one.pid or 0 for one in cluster.components.values()]
        assert str(cluster["etcd"].log) in files(pids[0])
        assert not any(str(tmp_path / "lock") in files(pid) for pid in pids)
    assert not any(alive(pid) for pid in pids)
    assert not cluster.folder.parent.exists()
    os.close(lock)


async def test_two_clusters_are_two(kubernetes: Kubernetes) -> None:
    east, west = await kubernetes(2, CONTROL_PLANE)
    here, there = east.client(), west.client()
    await here.create(MAPS, config_map("a"))
    assert not [one for one in (await there.list(MAPS, "default")).items if one["metadata"]["name"] == "a"]
    assert names_of(east).isdisjoint(names_of(west))
    await here.close()
    await there.close()


def names_of(cluster: Cluster) -> set[object]:
    return {cluster.name, cluster.server, cluster.folder}


def alive(pid: int) -> bool:
    try:
        # A zombie has ended; whoever inherits it will collect it.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def files(pid: int) -> list[str]:
    """What a process has open that has a path."""
    found = []
    for path in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(os.readlink(path))
        except FileNotFoundError:
            continue
    return [target for target in found if target.startswith("/")]


def sockets(pid: int) -> list[tuple[str, str]]:
    """Local and remote address of every internet socket of a process."""
    inodes = set()
    for path in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(path)
        except FileNotFoundError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    found = []
    for table in ("tcp", "udp", "tcp6", "udp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[9] in inodes:
                found.append((address_of(fields[1]), address_of(fields[2])))
    return found


def address_of(field: str) -> str:
    """An address of /proc/net: words of four bytes, each in the machine's own order."""
    digits = field.split(":")[0]
    raw = b"".join(struct.pack("=I", int(digits[at : at + 8], 16)) for at in range(0, len(digits), 8))
    if len(raw) == 16 and raw.startswith(bytes(10) + b"\xff\xff"):
        raw = raw[12:]
    if raw == bytes(16):
        return "0.0.0.0"
    return socket.inet_ntop(socket.AF_INET if len(raw) == 4 else socket.AF_INET6, raw)
