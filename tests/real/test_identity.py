"""A member's address is pointed to another stock cluster, which has as good a certificate and accepts the same credentials.

What that one was asked to change is in its audit log: nothing.
"""

import asyncio
from typing import Any

import pytest

from argosy.api import keys
from argosy.testing import Cluster, Options
from argosy.testing.pytest_plugin import Kubernetes
from tests.harness.membership import changing
from tests.harness.relay import Relay
from tests.harness.user import DEPLOYMENTS, exists
from tests.real.hub import Hub

#: Who we are to the wrong one.
US = "federation"
REASON = "ClusterIdentityChanged"


async def _accept(cluster: Cluster, token: str) -> None:
    """From now on the token of another cluster's administrator is one of this one's too."""
    with (cluster.folder / "tokens.csv").open("a") as tokens:
        tokens.write(f'{token},{US},{US},"system:masters"\n')
    await cluster["kube-apiserver"].stop()
    cluster["kube-apiserver"].start()
    await cluster.ready()


def _writes(cluster: Cluster) -> list[dict[str, Any]]:
    return [event for event in cluster.audit if event["user"].get("username") == US]


@pytest.mark.parametrize("cut", [True, False], ids=["cut", "kept"])
async def test_another_cluster_at_the_address_gets_no_write(kubernetes: Kubernetes, cut: bool) -> None:
    """Whether connections that are open go on, to the right one, or end. Watches are open all the time."""
    right, wrong = await kubernetes(2, Options(nodes=0, audit=True))
    await _accept(wrong, right.token)
    probe = wrong.client()
    both = right.authority.certificate + wrong.authority.certificate
    async with Relay("127.0.0.1", right.ports.apiserver) as relay, Hub(right) as hub:
        await hub.take_in(
            {keys.SECRET_CA: both, keys.SECRET_BOOTSTRAP_TOKEN: right.token.encode()}, apiEndpoint=relay.url
        )
        names = [f"web-{number}" for number in range(8)]
        for name in names:
            await hub.propagates(name)
        async with changing(hub, names[1:]):
            await hub.eventually(lambda: relay.connections > 2)
            relay.lead_to(wrong.ports.apiserver)
            if cut:
                relay.cut()
            await hub.told(REASON, "is not the one that joined", "m1 --reclaim")
            assert (await hub.condition("Ready"))[:2] == ("Unknown", REASON)
            await hub.client.delete(DEPLOYMENTS, names[0], hub.namespace)
            await asyncio.sleep(5.0)
        assert _writes(wrong) == []
        assert (await probe.list(DEPLOYMENTS)).items == []
        assert await hub.exists(DEPLOYMENTS, names[0], hub.namespace), "its copy is there, and nobody saw it go"
        assert await exists(hub.member("m1"), DEPLOYMENTS, names[0], hub.namespace)
        relay.lead_to(right.ports.apiserver)
        relay.cut()
        await hub.eventually(lambda: hub.ready_clusters() == ["m1"])
        await hub.propagates("after")

        async def removed() -> bool:
            return not await exists(hub.member("m1"), DEPLOYMENTS, names[0], hub.namespace)

        await hub.eventually(removed)
        assert _writes(wrong) == []
    await probe.close()
