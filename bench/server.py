"""The embedded API server beside a stock kube-apiserver on etcd: create, get, list, watch fan-out, per core used.

Both store durably (fsync before the answer). The same load generator, in its own process, drives one after the other.
"""

import asyncio
import contextlib
import json
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from argosy.kube import config
from bench.peer import binaries, kube_apiserver
from bench.processes import argosy, child, pid_of, run, until
from bench.report import Report, parser
from bench.usage import cpu_seconds, resident_mib

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "load-{n}", "labels": {"app": "load", "tier": "backend"}},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "load-{n}"}},
        "template": {
            "metadata": {"labels": {"app": "load-{n}", "tier": "backend"}},
            "spec": {
                "containers": [
                    {
                        "name": "main",
                        "image": "registry.example/team/app:1.2.3",
                        "ports": [{"containerPort": 8080}],
                        "env": [{"name": "MODE", "value": "production"}, {"name": "SHARD", "value": "{n}"}],
                        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
                    }
                ]
            },
        },
    },
}
COLLECTION = "/apis/apps/v1/namespaces/default/deployments"


class Subject:
    """A server under load: where it is and which processes do its work."""

    def __init__(self, name: str, connection: config.Connection, pids: list[int]):
        self.name = name
        self.pids = pids
        parts = urlsplit(connection.server)
        self.job = {
            "host": parts.hostname,
            "port": parts.port,
            "ca": connection.ca_data.decode(),
            "certificate": connection.client_certificate.decode(),
            "key": connection.client_key.decode(),
        }

    async def run(self, **job: Any) -> dict[str, Any]:
        """One load; the answer with the server's CPU seconds added."""
        before = cpu_seconds(*self.pids)
        generator = await _generator(self.job | job)
        output, _ = await generator.communicate()
        result: dict[str, Any] = json.loads(output.splitlines()[-1])
        result["cpu"] = cpu_seconds(*self.pids) - before
        return result

    async def fan_out(self, watches: int, writes: int) -> dict[str, Any]:
        """One writer changes an object while many watch it."""
        path = f"{COLLECTION}?watch=true&resourceVersion={{rv}}&fieldSelector=metadata.name%3Dload-0"
        current = await self.run(kind="closed", method="GET", path=f"{COLLECTION}/load-0", count=1, connections=1)
        assert current["codes"] == {"200": 1}
        version = await self._version()
        watching = await _generator(
            self.job | {"kind": "watch", "path": path.format(rv=version), "connections": watches, "events": writes}
        )
        assert watching.stdout is not None
        await watching.stdout.readline()
        before, started = cpu_seconds(*self.pids), time.perf_counter()
        patch = json.dumps({"metadata": {"labels": {"count": "n{n}"}}})
        await self._patch_many(writes, patch)
        output, _ = await watching.communicate()
        result: dict[str, Any] = json.loads(output.splitlines()[-1])
        result["seconds"] = time.perf_counter() - started
        result["cpu"] = cpu_seconds(*self.pids) - before
        return result

    async def _version(self) -> str:
        from argosy.kube.client import Client
        from argosy.kube.http import HttpTransport
        from argosy.kube.resource import Resource

        client = Client(HttpTransport(self._connection()))
        try:
            resource = Resource("apps", "v1", "deployments", "Deployment")
            found = await client.get(resource, "load-0", "default")
            return str(found["metadata"]["resourceVersion"])
        finally:
            await client.close()

    async def _patch_many(self, count: int, patch: str) -> None:
        from argosy.kube.client import Client
        from argosy.kube.http import HttpTransport
        from argosy.kube.resource import Resource

        client = Client(HttpTransport(self._connection()))
        resource = Resource("apps", "v1", "deployments", "Deployment")
        try:
            for number in range(count):
                await client.patch(
                    resource, "load-0", patch.replace("{n}", str(number)).encode(), "default", into=bytes
                )
        finally:
            await client.close()

    def _connection(self) -> config.Connection:
        return config.Connection(
            server=f"https://{self.job['host']}:{self.job['port']}",
            ca_data=str(self.job["ca"]).encode(),
            client_certificate=str(self.job["certificate"]).encode(),
            client_key=str(self.job["key"]).encode(),
        )


async def _generator(job: dict[str, Any]) -> asyncio.subprocess.Process:
    process = await child("bench.load")
    assert process.stdin is not None
    process.stdin.write(json.dumps(job).encode() + b"\n")
    await process.stdin.drain()
    return process


@contextlib.asynccontextmanager
async def embedded() -> AsyncIterator[tuple[config.Connection, int, float]]:
    """`argosy server` in its own process on SQLite; with its start time."""
    with tempfile.TemporaryDirectory(prefix="argosy-bench-") as folder:
        started = time.perf_counter()
        server = argosy("server", Path(folder), "server", "--data", folder, "--port", "0")
        try:
            path = Path(folder) / "kubeconfig"
            await until(server, path.exists)
            seconds = time.perf_counter() - started
            yield config.load(str(path)), pid_of(server), seconds
        finally:
            await server.stop()


async def measure(subject: Subject, size: dict[str, int]) -> dict[str, float]:
    """Figures by name: rates per second of wall time and per second of the server's CPU time."""
    figures: dict[str, float] = {"idle": resident_mib(*subject.pids)}
    body = json.dumps(DEPLOYMENT)
    created = await subject.run(
        kind="closed", method="POST", path=COLLECTION, body=body, count=size["objects"], connections=32
    )
    assert created["codes"] == {"201": size["objects"]}, created["codes"]
    read = await subject.run(
        kind="closed", method="GET", path=f"{COLLECTION}/load-0", count=size["gets"], connections=32
    )
    assert read["codes"] == {"200": size["gets"]}, read["codes"]
    listed = await subject.run(kind="closed", method="GET", path=COLLECTION, count=size["lists"], connections=2)
    assert listed["codes"] == {"200": size["lists"]}, listed["codes"]
    fanned = await subject.fan_out(size["watches"], size["writes"])
    for name, result, count in (
        ("create", created, size["objects"]),
        ("get", read, size["gets"]),
        ("list", listed, size["lists"]),
        ("watch events", fanned, fanned["events"]),
    ):
        figures[f"{name}/s"] = count / result["seconds"]
        figures[f"{name} per cpu s"] = count / max(result["cpu"], 0.01)
    figures["create p99 ms"] = created["p99"] * 1000
    figures["loaded"] = resident_mib(*subject.pids)
    return figures


_BARS = {"create": 5.0, "get": 4.0, "list": 5.0, "watch events": 3.0}


async def main() -> None:
    arguments = parser(__doc__ or "").parse_args()
    size = {"objects": 10_000, "gets": 20_000, "lists": 30, "watches": 500, "writes": 100}
    if arguments.quick:
        size = {"objects": 2_000, "gets": 4_000, "lists": 10, "watches": 100, "writes": 50}
    report = Report("server", size)
    stock = binaries()
    async with embedded() as (connection, pid, start):
        ours = await measure(Subject("argosy", connection, [pid]), size)
    theirs: dict[str, float] | None = None
    if stock is not None:
        async with kube_apiserver(stock) as peer:
            report.versions["kube-apiserver"] = peer.version
            theirs = await measure(Subject("kube-apiserver", peer.connection, peer.pids), size)
    report.add("ready after", start, "s", "lower", 0.7)
    report.add("resident, idle", ours["idle"], "MiB", "lower", 60)
    report.add(f"resident, {size['objects']} Deployments", ours["loaded"], "MiB", "lower")
    for name, bar in _BARS.items():
        report.add(f"{name}", ours[f"{name}/s"], "/s")
        report.add(f"{name}, per core used", ours[f"{name} per cpu s"], "/s")
        if theirs is not None:
            report.add(f"{name}, kube-apiserver + etcd", theirs[f"{name}/s"], "/s")
            report.add(f"{name}, kube-apiserver + etcd per core", theirs[f"{name} per cpu s"], "/s")
            ratio = ours[f"{name} per cpu s"] / theirs[f"{name} per cpu s"]
            report.add(f"{name}, ratio per core", ratio, "×", "higher", bar)
    report.add("create p99", ours["create p99 ms"], "ms", "lower")
    report.finish(arguments)


if __name__ == "__main__":
    run(main())
