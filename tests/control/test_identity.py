"""Another cluster answers at a member's address, with a good certificate, and it accepts the credentials. It is not touched."""

import asyncio
import base64
from typing import Any

import msgspec
import pytest

from argosy.api import keys, resources
from argosy.server.embedded import ADMIN, EmbeddedServer
from tests.harness.federation import QUICK, add_node
from tests.harness.membership import Double, Party, changing, encoded
from tests.harness.relay import Relay
from tests.harness.router import Router
from tests.harness.servers import new_server
from tests.harness.user import DEPLOYMENTS, NAMESPACES, SECRETS, cluster_secret, exists, federated_cluster

REASON = "ClusterIdentityChanged"
TOKEN = "a-token-of-both"
#: Asked again after so long; the default is for production.
TIMINGS = msgspec.structs.replace(QUICK, identity_period=0.2, identity_recheck=0.3)
reroutes = pytest.mark.real_time("it is a matter of single connections where a relay leads")
routes = pytest.mark.real_time("the router is one of HTTP")


class Rerouted(Party):
    """m1 is reached through a relay."""

    def __init__(self, **options: Any):
        super().__init__(accounts=False, timings=TIMINGS, **options)
        self.relay: Relay | None = None

    async def join(self, name: str, **spec: Any) -> None:
        self.relay = await Relay("127.0.0.1", self.servers[name].port).__aenter__()
        await super().join(name, apiEndpoint=self.relay.url, **spec)

    async def __aexit__(self, *_: object) -> None:
        await super().__aexit__()
        if self.relay is not None:
            await self.relay.__aexit__()

    async def ready(self) -> bool:
        return (await self.condition("Ready"))[0] == "True"


async def _prepared(double: Double, server: EmbeddedServer) -> None:
    await add_node(server.client(), "node", cpu=16)
    double.writes.clear()


@pytest.mark.parametrize("cut", [True, False], ids=["cut", "kept"])
@reroutes
async def test_another_cluster_at_the_address_is_not_written_to(cut):
    """Whether connections that are open go on, to the right one, or end."""
    async with Rerouted() as fed:
        double = Double(fed.servers["m1"])
        async with double as other:
            await _prepared(double, other)
            await fed.policy()
            names = [f"web-{number}" for number in range(8)]
            for name in names:
                await fed.propagates(name)
            async with changing(fed, names[1:]):
                await fed.eventually(lambda: fed.relay.connections > 2)
                fed.relay.lead_to(other.port)
                if cut:
                    fed.relay.cut()
                await fed.told(REASON, "is not the one that joined", "m1 --reclaim")
                assert (await fed.condition("Ready"))[:2] == ("Unknown", REASON)
                await fed.client.delete(DEPLOYMENTS, names[0], fed.namespace)
                await asyncio.sleep(1.0)
            assert double.writes == []
            assert await fed.exists(DEPLOYMENTS, names[0], fed.namespace), "its copy is there, and nobody saw it go"
            assert await exists(fed.member("m1"), DEPLOYMENTS, names[0], fed.namespace)
            await fed.eventually(lambda: fed.events(REASON))
            fed.relay.lead_to(fed.servers["m1"].port)
            fed.relay.cut()
            await fed.eventually(fed.ready)
            await fed.granted()
            await fed.propagates("after")

            async def removed() -> bool:
                return not await exists(fed.member("m1"), DEPLOYMENTS, names[0], fed.namespace)

            await fed.eventually(removed)
            assert double.writes == []


@reroutes
async def test_nor_is_one_that_carries_the_mark_of_the_member():
    """As a backup of the member's objects does that is restored in another cluster."""
    async with Rerouted() as fed:
        double = Double(fed.servers["m1"])
        async with double as other:
            namespace = await fed.member("m1").get(NAMESPACES, keys.SYSTEM_NAMESPACE)
            metadata = {key: namespace["metadata"][key] for key in ("name", "annotations")}
            await other.client().create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
            await _prepared(double, other)
            await fed.policy()
            fed.relay.lead_to(other.port)
            fed.relay.cut()
            await fed.deploy("web", replicas=1)
            await fed.told(REASON, "has the uid", namespace["metadata"]["uid"])
            assert double.writes == []


@reroutes
async def test_nor_by_controllers_that_come_later():
    """What the member is known by is on record."""
    async with Rerouted() as fed:
        double = Double(fed.servers["m1"])
        async with double as other:
            await fed.policy()
            await fed.propagates("before")
            recorded = (await fed.cluster()).metadata.annotations[keys.MEMBER_UID]
            namespace = await fed.member("m1").get(NAMESPACES, keys.SYSTEM_NAMESPACE)
            assert recorded == namespace["metadata"]["uid"]
            await fed.stop_controllers()
            metadata = {key: namespace["metadata"][key] for key in ("name", "annotations")}
            await other.client().create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
            await _prepared(double, other)
            fed.relay.lead_to(other.port)
            fed.relay.cut()
            await fed.start_controllers()
            await fed.deploy("web", replicas=1)
            await fed.told(REASON, "has the uid")
            assert double.writes == []


@pytest.mark.parametrize("marked", [True, False], ids=["marked", "fresh"])
@reroutes
async def test_nor_is_it_left_in_the_place_of_the_member(marked):
    """What carries the mark is not deleted there, and what does not have it does not let the member go."""
    async with Rerouted() as fed:
        double = Double(fed.servers["m1"])
        async with double as other:
            if marked:
                namespace = await fed.member("m1").get(NAMESPACES, keys.SYSTEM_NAMESPACE)
                metadata = {key: namespace["metadata"][key] for key in ("name", "annotations")}
                await other.client().create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
            await _prepared(double, other)
            fed.relay.lead_to(other.port)
            fed.relay.cut()
            await fed.client.delete(resources.FEDERATED_CLUSTERS, "m1")

            async def told() -> bool:
                found = await fed.events("HandleTerminatingClusterFailed")
                return any(
                    "not the one that joined" in str(each) and "unjoin m1 --force" in str(each) for each in found
                )

            await fed.eventually(told)
            assert keys.CLUSTER_FINALIZER in (await fed.cluster()).metadata.finalizers
            assert double.writes == []
            assert await exists(fed.member("m1"), NAMESPACES, keys.SYSTEM_NAMESPACE)
            fed.relay.lead_to(fed.servers["m1"].port)
            fed.relay.cut()
            await fed.eventually(fed.has_left)
            await fed.eventually(fed.is_clean)
            assert double.writes == []


@reroutes
async def test_a_member_of_an_earlier_version_is_known_from_its_first_use_on():
    async with Rerouted() as fed:
        await fed.stop_controllers()
        gone = {"metadata": {"annotations": {keys.MEMBER_UID: None}}}
        await fed.client.patch(resources.FEDERATED_CLUSTERS, "m1", gone)
        await fed.start_controllers()

        async def recorded() -> bool:
            return keys.MEMBER_UID in (await fed.cluster()).metadata.annotations

        await fed.eventually(recorded)
        assert await fed.ready()


class Again(Party):
    """m1's manifest was taken from another control plane, or from before it left, with all that was on record then."""

    def __init__(self) -> None:
        super().__init__(accounts=False, timings=TIMINGS)
        self.servers["m1"] = new_server(tokens={TOKEN: ADMIN})

    async def join(self, name: str, **spec: Any) -> None:
        server = self.servers[name]
        data = {keys.SECRET_CA: server.authority.certificate, keys.SECRET_BOOTSTRAP_TOKEN: TOKEN.encode()}
        await self.client.create(SECRETS, cluster_secret(name, encoded(data)))
        manifest = federated_cluster(name, server.url)
        manifest["metadata"]["annotations"] = {keys.MEMBER_UID: "of-another-time"}
        await self.client.create(resources.FEDERATED_CLUSTERS, manifest)


async def test_what_is_on_record_is_of_the_cluster_that_joined():
    async with Again() as fed:
        namespace = await fed.member("m1").get(NAMESPACES, keys.SYSTEM_NAMESPACE)
        assert (await fed.cluster()).metadata.annotations[keys.MEMBER_UID] == namespace["metadata"]["uid"]
        assert (await fed.condition("Ready"))[0] == "True"


# Where each request goes is decided in between: no connection tells.


class Routed(Party):
    """m1 is reached through a router, with a token."""

    def __init__(self, **options: Any):
        super().__init__(accounts=False, **options)
        self.servers["m1"] = new_server(tokens={TOKEN: ADMIN})
        self.router = Router(self.servers["m1"])

    async def join(self, name: str, **spec: Any) -> None:
        await self.router.__aenter__()
        token = base64.b64encode(TOKEN.encode()).decode()
        ca = base64.b64encode(self.servers[name].authority.certificate).decode()
        data = {keys.SECRET_CA: ca, keys.SECRET_BOOTSTRAP_TOKEN: token}
        await self.client.create(SECRETS, cluster_secret(name, data))
        await self.client.create(resources.FEDERATED_CLUSTERS, federated_cluster(name, self.router.url))

    async def __aexit__(self, *_: object) -> None:
        await super().__aexit__()
        await self.router.__aexit__()


@routes
async def test_who_answers_is_asked_again_on_connections_that_live():
    asked_each_time = msgspec.structs.replace(TIMINGS, identity_period=0.0)
    async with Routed(timings=asked_each_time) as fed:
        double = Double(fed.servers["m1"], {TOKEN: ADMIN})
        async with double as other:
            await _prepared(double, other)
            await fed.policy()
            await fed.propagates("before")
            fed.router.target = other
            await fed.deploy("web", replicas=1)
            await fed.set_image("nginx:2", "before")
            await fed.told(REASON, "is not the one that joined")
            assert double.writes == []
            fed.router.target = fed.servers["m1"]
            await fed.granted()
            await fed.eventually_replicas({"m1": 1}, "web")


@routes
async def test_what_another_cluster_does_not_have_is_not_taken_for_gone():
    """It answers for the first time when it is asked for the copy."""
    async with Routed(timings=TIMINGS) as fed:
        double = Double(fed.servers["m1"], {TOKEN: ADMIN})
        async with double as other:
            await _prepared(double, other)
            await fed.policy()
            await fed.propagates("web")
            fed.router.turn_at(f"GET /apis/apps/v1/namespaces/{fed.namespace}/deployments/web", other)
            await fed.client.delete(DEPLOYMENTS, "web", fed.namespace)
            await fed.told(REASON, "is not the one that joined")
            assert await fed.exists(DEPLOYMENTS, "web", fed.namespace)
            assert await exists(fed.member("m1"), DEPLOYMENTS, "web", fed.namespace)
            fed.router.target = fed.servers["m1"]

            async def gone() -> bool:
                return not await fed.exists(DEPLOYMENTS, "web", fed.namespace)

            await fed.eventually(gone)
            assert not await exists(fed.member("m1"), DEPLOYMENTS, "web", fed.namespace)
            assert double.writes == []


async def test_a_copy_that_was_replaced_while_nobody_looked_is_noticed_and_repaired():
    """Its generation is the one on record: another object counts from the beginning."""
    async with Party(accounts=False) as fed:
        await fed.policy()
        await fed.propagates("web")
        await fed.eventually(lambda: _recorded(fed))
        await fed.stop_controllers()
        copy = await fed.member("m1").get(DEPLOYMENTS, "web", fed.namespace)
        await fed.member("m1").delete(DEPLOYMENTS, "web", fed.namespace)
        kept = {key: copy["metadata"][key] for key in ("name", "namespace", "labels", "annotations")}
        copy["spec"]["template"]["spec"]["containers"][0]["image"] = "evil:1"
        await fed.member("m1").create(DEPLOYMENTS, {**copy, "metadata": kept})
        await fed.start_controllers()

        async def repaired() -> bool:
            found = await fed.member("m1").get(DEPLOYMENTS, "web", fed.namespace)
            return found["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:1.29"

        await fed.eventually(repaired)
        await fed.eventually(lambda: fed.events("ReplacedInCluster"))


async def _recorded(fed: Party) -> bool:
    clusters = (await fed.federated())["status"]["clusters"]
    return bool(clusters and clusters[0].get("version"))
