"""Every request file holds on a real kube-apiserver: what the embedded server is measured by is the truth.

Some ask for a version long gone, so the server is one with a past: its etcd was compacted and it was restarted since.
"""

from pathlib import Path

import pytest

from argosy.kube.errors import Gone
from argosy.testing import API_SERVER, Cluster
from argosy.testing.pytest_plugin import Kubernetes
from tests.server.replay import REQUESTS, against, load

FILES = sorted(REQUESTS.glob("*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
async def test_answers_are_those_of_kubernetes(path: Path, kubernetes: Kubernetes) -> None:
    cluster = await with_a_past(await kubernetes.shared(API_SERVER))
    replay = await against(cluster.connection(), load(path))
    assert not replay.failures, "\n".join(replay.failures)
    assert replay.passed


async def with_a_past(cluster: Cluster) -> Cluster:
    if not await has_a_past(cluster):
        await cluster.compact()
        await cluster["kube-apiserver"].stop()
        cluster["kube-apiserver"].start()
        await cluster.ready()
        assert await has_a_past(cluster)
    return cluster


async def has_a_past(cluster: Cluster) -> bool:
    client = cluster.client()
    query = [("resourceVersion", "1"), ("resourceVersionMatch", "Exact")]
    try:
        await client.request("GET", "/api/v1/secrets", query=query)
    except Gone:
        return True
    finally:
        await client.close()
    return False
