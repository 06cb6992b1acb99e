"""The peer: a stock kube-apiserver on etcd, durable (fsync), on loopback, for benchmarks that compare with it.

Found through $KUBEBUILDER_ASSETS (envtest's convention), the project's cache folder, or $PATH; absent, the benchmark says so.
"""

import asyncio
import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from argosy.kube import config
from argosy.kube.client import Client
from argosy.kube.errors import ApiError, TransportError
from argosy.kube.http import HttpTransport
from argosy.server.auth.certificates import Authority

_CACHE = Path(__file__).resolve().parent.parent / ".cache" / "kubernetes"


def find(binary: str) -> Path | None:
    for folder in (os.environ.get("KUBEBUILDER_ASSETS"), _CACHE):
        if folder and (path := Path(folder) / binary).exists():
            return path
    found = shutil.which(binary)
    return Path(found) if found else None


class Peer:
    """A running kube-apiserver: its connection, and the processes whose CPU time counts."""

    def __init__(self, connection: config.Connection, processes: list[subprocess.Popen[bytes]], version: str):
        self.connection = connection
        self.processes = processes
        self.version = version


@contextlib.asynccontextmanager
async def kube_apiserver() -> AsyncIterator[Peer | None]:
    """None where the binaries are not found."""
    apiserver, etcd = find("kube-apiserver"), find("etcd")
    if apiserver is None or etcd is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="argosy-bench-") as name:
        folder = Path(name)
        processes: list[subprocess.Popen[bytes]] = []
        try:
            yield await _start(folder, apiserver, etcd, processes)
        finally:
            for process in reversed(processes):
                process.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(10)
                process.kill()


async def _start(folder: Path, apiserver: Path, etcd: Path, processes: list[subprocess.Popen[bytes]]) -> Peer:
    client_port, peer_port, port = _free_port(), _free_port(), _free_port()
    authority = Authority.ephemeral()
    pair = authority.issue("kube-apiserver", names=["127.0.0.1"], server=True)
    admin = authority.issue("admin", groups=["system:masters"])
    files = {
        "ca.crt": authority.certificate,
        "server.crt": pair.certificate,
        "server.key": pair.key,
    }
    for file, content in files.items():
        (folder / file).write_bytes(content)
        (folder / file).chmod(0o600)
    url = f"http://127.0.0.1:{client_port}"
    peer_url = f"http://127.0.0.1:{peer_port}"
    processes.append(
        _run(
            folder / "etcd.log",
            [
                str(etcd),
                f"--data-dir={folder / 'etcd'}",
                f"--listen-client-urls={url}",
                f"--advertise-client-urls={url}",
                f"--listen-peer-urls={peer_url}",
                f"--initial-advertise-peer-urls={peer_url}",
                f"--initial-cluster=default={peer_url}",
            ],
        )
    )
    processes.append(
        _run(
            folder / "apiserver.log",
            [
                str(apiserver),
                f"--etcd-servers={url}",
                f"--secure-port={port}",
                "--bind-address=127.0.0.1",
                "--advertise-address=198.51.100.1",
                f"--tls-cert-file={folder / 'server.crt'}",
                f"--tls-private-key-file={folder / 'server.key'}",
                f"--client-ca-file={folder / 'ca.crt'}",
                f"--service-account-key-file={folder / 'server.crt'}",
                f"--service-account-signing-key-file={folder / 'server.key'}",
                "--service-account-issuer=https://kubernetes.default.svc",
                "--service-cluster-ip-range=10.96.0.0/16",
                "--authorization-mode=RBAC",
                "--max-requests-inflight=3000",
                "--max-mutating-requests-inflight=1000",
            ],
        )
    )
    connection = config.Connection(
        server=f"https://127.0.0.1:{port}",
        ca_data=authority.certificate,
        client_certificate=admin.certificate,
        client_key=admin.key,
    )
    client = Client(HttpTransport(connection))
    try:
        for _ in range(300):
            try:
                await client.request("GET", "/readyz")
                break
            except (ApiError, TransportError):
                if any(process.poll() is not None for process in processes):
                    raise RuntimeError(f"it ended:\n{(folder / 'apiserver.log').read_text()[-2000:]}") from None
                await asyncio.sleep(0.1)
        else:
            raise RuntimeError(
                f"kube-apiserver did not become ready:\n{(folder / 'apiserver.log').read_text()[-2000:]}"
            )
        version = (await client.version())["gitVersion"]
    finally:
        await client.close()
    return Peer(connection, processes, version)


def _run(log: Path, command: list[str]) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
