"""`argosy controllers` as a process on a stock control plane: it installs, joins, propagates, cleans up, and says why not."""

from argosy.api import keys, resources
from argosy.kube.client import Client
from argosy.kube.errors import NotFound
from argosy.testing.pytest_plugin import Kubernetes
from tests.harness.user import CONFIGMAPS, DEPLOYMENTS, NAMESPACES, exists
from tests.real.controllers import StockFederation, settled, stock_federation


async def test_one_process_carries_objects_to_members_and_back(kubernetes: Kubernetes) -> None:
    async with stock_federation(kubernetes, members=2) as fed:
        controllers = fed.controllers("controllers")
        await fed.leading(controllers)
        await fed.join_all()
        await fed.namespaces("team")
        fed.namespace = "team"
        await fed.configure("settings", {"a": "1"})
        await fed.deploy("web", replicas=2)
        await fed.eventually_replicas({"m1": 2, "m2": 2})
        await fed.scale("web", 3)
        await fed.eventually_replicas({"m1": 3, "m2": 3})
        copy = await fed.member("m1").get(CONFIGMAPS, "settings", "team")
        assert keys.BUCKET_LABEL not in copy["metadata"]["labels"], "buckets are for shards"
        # Drift, then deletion.
        await fed.member("m2").patch(DEPLOYMENTS, "web", {"spec": {"replicas": 7}}, "team")
        await fed.eventually_replicas({"m1": 3, "m2": 3})
        await fed.client.delete(DEPLOYMENTS, "web", "team")
        await fed.eventually_replicas({})
        await fed.eventually(lambda: _gone(fed.client, "web-deployments.apps"), "the federated object is gone")

        # A restart writes nothing.
        await settled(fed)
        await controllers.process.stop()
        again = fed.controllers("again")
        await fed.leading(again)
        await settled(fed)
        holder = await fed.holder()
        written = [write for write in fed.writes() if write.identity == holder]
        assert {write.resource for write in written} <= {"federatedclusters", "events"}, written

        await fed.client.delete(NAMESPACES, "team")
        await fed.eventually(lambda: _lacks(fed, "team"), "the namespace is gone everywhere")
        assert "Traceback" not in controllers.log + again.log


async def _gone(client: Client, name: str) -> bool:
    try:
        await client.get(resources.FEDERATED_OBJECTS, name, "team")
    except NotFound:
        return True
    return False


async def _lacks(fed: StockFederation, namespace: str) -> bool:
    clients = [fed.client, *(fed.member(name) for name in fed.names)]
    return not any([await exists(client, NAMESPACES, namespace) for client in clients])
