"""The peer: a stock kube-apiserver on etcd, durable (fsync), on loopback, for benchmarks that compare with it."""

import contextlib
from collections.abc import AsyncIterator

import msgspec

from argosy.kube import config
from argosy.testing import API_SERVER, BinariesMissing, clusters
from bench.processes import go_on_without, pid_of

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


@contextlib.asynccontextmanager
async def kube_apiserver() -> AsyncIterator[Peer | None]:
    """None where the binaries are missing; with CI=true that ends the benchmark."""
    async with contextlib.AsyncExitStack() as stack:
        try:
            (cluster,) = await stack.enter_async_context(clusters(1, OPTIONS))
        except BinariesMissing as error:
            go_on_without(error)
            yield None
            return
        client = cluster.client()
        try:
            version = (await client.version())["gitVersion"]
        finally:
            await client.close()
        pids = [pid_of(cluster[name]) for name in ("etcd", "kube-apiserver")]
        yield Peer(config.load(str(cluster.kubeconfig)), pids, version)
