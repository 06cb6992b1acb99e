"""The peer: a stock kube-apiserver on etcd, durable (fsync), on loopback, for benchmarks that compare with it."""

import contextlib
import os
import sys
from collections.abc import AsyncIterator

import msgspec

from argosy.kube import config
from argosy.testing import API_SERVER, Binaries, BinariesMissing, clusters, find
from bench.processes import pid_of

#: Alone, so that its CPU time is that of the requests; as many requests at once as the load has connections.
OPTIONS = msgspec.structs.replace(
    API_SERVER,
    controllers=(),
    fsync=True,
    apiserver_arguments=("--max-requests-inflight=3000", "--max-mutating-requests-inflight=1000"),
)


class Peer(msgspec.Struct, frozen=True):
    """A running kube-apiserver: its connection, and the processes whose CPU time counts."""

    connection: config.Connection
    pids: list[int]
    version: str


def binaries() -> Binaries | None:
    """None where they are missing, with a line that says how to get them; with CI=true that ends the benchmark."""
    try:
        return find()
    except BinariesMissing as missing:
        print(f"no kube-apiserver to compare with: {missing}", file=sys.stderr)
        if os.environ.get("CI") == "true":
            raise SystemExit(1) from None
        return None


@contextlib.asynccontextmanager
async def kube_apiserver(binaries: Binaries) -> AsyncIterator[Peer]:
    async with clusters(1, OPTIONS, binaries=binaries) as (cluster,):
        client = cluster.client()
        try:
            version = (await client.version())["gitVersion"]
        finally:
            await client.close()
        pids = [pid_of(cluster[name]) for name in ("etcd", "kube-apiserver")]
        yield Peer(config.load(str(cluster.kubeconfig)), pids, version)
