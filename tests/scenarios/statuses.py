"""One true status of many: each kind's, as users, `kubectl rollout status` and health checks read it on the federated object."""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from argosy.api import keys, resources
from argosy.cli.output.report import gather, report
from argosy.kube import yamlreader
from argosy.kube.client import Patch
from argosy.kube.errors import AlreadyExists
from argosy.kube.resource import Resource
from tests.harness.definitions import CRDS
from tests.harness.ground import World
from tests.harness.leading import ACCOUNTS
from tests.harness.user import PODS, SERVICES, deployment, weights
from tests.scenarios.seen import is_ready, pods_of

__all__ = [
    "test_a_daemonset_is_rolled_out_when_it_is_on_the_nodes_of_all_members",
    "test_a_divided_statefulset_is_rolled_out_when_it_is_in_all_members",
    "test_a_duplicated_statefulset_is_not_rolled_out_before_it_is_in_all_members",
    "test_a_kind_described_by_its_type_config_as_in_the_docs",
    "test_a_pod_shows_the_containers_of_all_members",
    "test_a_service_and_an_ingress_have_the_addresses_of_all_members",
]

_STATEFULSETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
_DAEMONSETS = Resource("apps", "v1", "daemonsets", "DaemonSet")
_INGRESSES = Resource("networking.k8s.io", "v1", "ingresses", "Ingress")
_TWO = {"schedulingMode": "Duplicate", "placement": [{"cluster": "m1"}, {"cluster": "m2"}]}
_DOCS = Path(__file__).parents[2] / "docs" / "kinds.md"


def stateful(world: World, replicas: int) -> dict[str, Any]:
    manifest = deployment("web", replicas, "policy", world.namespace)
    spec = {**manifest["spec"], "serviceName": "web", "podManagementPolicy": "Parallel"}
    return {**manifest, "kind": "StatefulSet", "spec": spec}


def is_rolled_out(source: dict[str, Any]) -> bool:
    """The rule of `kubectl rollout status` and of Argo CD for a StatefulSet."""
    status, replicas = source.get("status") or {}, source["spec"]["replicas"]
    return (
        status.get("observedGeneration", 0) >= source["metadata"]["generation"]
        and status.get("readyReplicas", 0) >= replicas
        and status.get("updatedReplicas", 0) >= replicas
        and status.get("currentRevision") == status.get("updateRevision")
    )


async def change_image(world: World, resource: Resource, image: str) -> None:
    containers = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}}
    await world.client.patch(resource, "web", containers, world.namespace, kind=Patch.STRATEGIC)


async def eventually_well(world: World, resource: Resource, name: str = "web") -> dict[str, Any]:
    """As `argosy status --wait` waits for it. Returns the source."""

    async def waiting() -> list[str]:
        return report(await gather(world.client, resource, name, world.namespace)).waiting

    async def probe() -> bool:
        return not await waiting()

    try:
        await world.eventually(probe)
    except AssertionError:
        raise AssertionError(f"it waits for {await waiting()}") from None
    return await world.source(name, resource)


async def run_only(world: World, image: str, pods: int) -> bool:
    """Whether exactly these pods are in the members, ready and with this image."""
    found = [pod for member in world.names for pod in await pods_of(world, member)]
    return len(found) == pods and all(is_ready(pod) and image in str(pod["spec"]["containers"]) for pod in found)


async def roll_out(world: World, resource: Resource, image: str, pods: int, done: Any) -> dict[str, Any]:
    """Change the image. Whenever the source passes for rolled out, the pods are."""
    before = (await world.source("web", resource))["metadata"]["generation"]
    await change_image(world, resource, image)

    async def probe() -> dict[str, Any] | None:
        source = await world.source("web", resource)
        if source["metadata"]["generation"] == before or not done(source):
            return None
        assert await run_only(world, image, pods), f"it passes for rolled out: {source['status']}"
        return source

    return await world.eventually(probe, "it is rolled out")


async def test_a_divided_statefulset_is_rolled_out_when_it_is_in_all_members(world: World) -> None:
    await world.policy(**weights(m1=2, m2=1))
    await world.client.create(_STATEFULSETS, stateful(world, 6))
    source = await eventually_well(world, _STATEFULSETS)
    assert is_rolled_out(source), source["status"]
    counts = ("replicas", "readyReplicas", "availableReplicas", "updatedReplicas")
    assert [source["status"][each] for each in counts] == [6] * 4
    assert source["status"]["observedGeneration"] == source["metadata"]["generation"] == 1
    source = await roll_out(world, _STATEFULSETS, "nginx:1.30", 6, is_rolled_out)
    assert source["status"]["updateRevision"]
    await eventually_well(world, _STATEFULSETS)


async def test_a_duplicated_statefulset_is_not_rolled_out_before_it_is_in_all_members(world: World) -> None:
    await world.policy(**_TWO)
    await world.client.create(_STATEFULSETS, stateful(world, 2))
    source = await eventually_well(world, _STATEFULSETS)
    assert source["status"]["readyReplicas"] == 4
    assert is_rolled_out(source), source["status"]
    await roll_out(world, _STATEFULSETS, "nginx:1.30", 4, is_rolled_out)


async def test_a_daemonset_is_rolled_out_when_it_is_on_the_nodes_of_all_members(world: World) -> None:
    await world.policy(**_TWO)
    manifest = deployment("web", 1, "policy", world.namespace)
    spec = {key: value for key, value in manifest["spec"].items() if key != "replicas"}
    await world.client.create(_DAEMONSETS, {**manifest, "kind": "DaemonSet", "spec": spec})

    def done(source: dict[str, Any]) -> bool:
        status = source.get("status") or {}
        wanted = status.get("desiredNumberScheduled", 0)
        return (
            status.get("observedGeneration", 0) >= source["metadata"]["generation"]
            and status.get("updatedNumberScheduled", 0) >= wanted
            and status.get("numberAvailable", 0) >= wanted
        )

    source = await eventually_well(world, _DAEMONSETS)
    assert done(source), source["status"]
    nodes = source["status"]["desiredNumberScheduled"]
    assert nodes == sum([len(await pods_of(world, member)) for member in world.names]) > 1
    await roll_out(world, _DAEMONSETS, "nginx:1.30", nodes, done)


async def test_a_pod_shows_the_containers_of_all_members(world: World) -> None:
    await world.policy(**_TWO)
    labels = {keys.PROPAGATION_POLICY_LABEL: "policy"}
    metadata = {"name": "web", "namespace": world.namespace, "labels": labels}
    with suppress(AlreadyExists):  # a control plane need not have a controller that makes it
        await world.client.create(ACCOUNTS, {"metadata": {"name": "default", "namespace": world.namespace}})
    spec = {"containers": [{"name": "main", "image": "nginx:1.29"}]}
    await world.client.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    source = await eventually_well(world, PODS)

    async def shown() -> dict[str, Any] | None:
        status = (await world.source("web", PODS)).get("status") or {}
        return status if status.get("phase") == "Running" and len(status.get("containerStatuses", ())) == 2 else None

    status = await world.eventually(shown, f"both are shown to run: {source.get('status')}")
    assert [each["name"] for each in status["containerStatuses"]] == ["main (m1)", "main (m2)"]
    assert status["message"] == "Pod running in clusters [m1,m2]"
    ready = [each["status"] for each in status["conditions"] if each["type"] == "Ready"]
    assert ready == ["True"], "kubectl wait --for=condition=Ready would end"


async def test_a_service_and_an_ingress_have_the_addresses_of_all_members(world: World) -> None:
    await world.policy(**_TWO)
    labels = {keys.PROPAGATION_POLICY_LABEL: "policy"}
    metadata = {"name": "web", "namespace": world.namespace, "labels": labels}
    # Of a class that no member has: nobody else gives it addresses.
    balanced = {"type": "LoadBalancer", "loadBalancerClass": "example.com/nobodys"}
    balanced |= {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    backend = {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}}
    await world.client.create(SERVICES, {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": balanced})
    ingress = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": backend}
    await world.client.create(_INGRESSES, ingress)
    for resource in (SERVICES, _INGRESSES):

        async def present(resource: Resource = resource) -> bool:
            return sorted(await world.copies("web", resource)) == ["m1", "m2"]

        await world.eventually(present, f"the {resource.kind} is in both")
        for member, ips in (("m1", ["192.0.2.9", "192.0.2.1"]), ("m2", ["192.0.2.1", "192.0.2.5"])):
            points = {"loadBalancer": {"ingress": [{"ip": ip} for ip in ips]}}
            await report_status(world, member, resource, "web", points)
        await eventually_addresses(world, resource, ["192.0.2.1", "192.0.2.9", "192.0.2.5"])
        await report_status(world, "m1", resource, "web", {"loadBalancer": {"ingress": [{"ip": "192.0.2.5"}]}})
        await eventually_addresses(world, resource, ["192.0.2.5", "192.0.2.1"])
    for member, left in (("m1", ["192.0.2.1", "192.0.2.5"]), ("m2", [])):
        await report_status(world, member, SERVICES, "web", {"loadBalancer": {"ingress": None}})
        await eventually_addresses(world, SERVICES, left)


async def report_status(world: World, member: str, resource: Resource, name: str, status: dict[str, Any]) -> None:
    """As a controller in the member does."""
    body = {"status": status}
    await world.member(member).patch(resource, name, body, world.namespace, kind=Patch.MERGE, subresource="status")


async def eventually_addresses(world: World, resource: Resource, ips: list[str]) -> None:
    async def shown() -> list[str]:
        status = (await world.source("web", resource)).get("status") or {}
        return [each["ip"] for each in (status.get("loadBalancer") or {}).get("ingress") or ()]

    async def probe() -> bool:
        return await shown() == ips

    try:
        await world.eventually(probe)
    except AssertionError:
        raise AssertionError(f"{resource.kind}: {await shown()}, not {ips}") from None


async def test_a_kind_described_by_its_type_config_as_in_the_docs(world: World) -> None:
    text = _DOCS.read_text().replace("namespace: default", f"namespace: {world.namespace}").replace("member-", "m")
    text = text.replace("everywhere", f"everywhere-{world.namespace}")
    blocks = [block.encode() for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]
    definition, policy = [each.value for each in yamlreader.documents(blocks[0])]
    config, fountain, reported, merged = (yamlreader.read(block).value for block in blocks[1:])
    [waiting] = re.findall(r"```\n  waiting for\n(.*?)```", text, re.DOTALL)
    fountains = Resource("example.com", "v1", "fountains", "Fountain")
    # The docs have two clusters.
    labels = {keys.PROPAGATION_POLICY_LABEL: "policy"}
    fountain["metadata"]["labels"] = labels
    client = world.client
    await client.create(resources.CLUSTER_PROPAGATION_POLICIES, policy)
    await client.create(CRDS, definition)
    await client.create(resources.FEDERATED_TYPE_CONFIGS, config)
    await world.ground.install()
    try:
        await world.eventually(lambda: client.list(fountains, into=bytes), "fountains are served")
        await world.policy(**_TWO)
        await client.create(fountains, fountain)

        async def present() -> bool:
            return sorted(await world.copies("piazza", fountains)) == sorted(reported)

        await world.eventually(present, "the fountain is in both clusters")
        for member, status in reported.items():
            await report_status(world, member, fountains, "piazza", status)

        async def told() -> bool:
            waits = report(await gather(client, fountains, "piazza", world.namespace)).waiting
            return (await world.source("piazza", fountains)).get("status") == merged and waits == [
                line.strip() for line in waiting.splitlines()
            ]

        try:
            await world.eventually(told)
        except AssertionError:
            waits = report(await gather(client, fountains, "piazza", world.namespace)).waiting
            raise AssertionError(f"{(await world.source('piazza', fountains)).get('status')}, {waits}") from None
        await report_status(world, "m2", fountains, "piazza", reported["m1"])
        await eventually_well(world, fountains, "piazza")
        await client.delete(fountains, "piazza", world.namespace)
        await world.ground.eventually_gone(fountains, "piazza", world.namespace)
    finally:
        await client.delete(CRDS, definition["metadata"]["name"])
        await world.ground.eventually_gone(CRDS, definition["metadata"]["name"])
        await client.delete(resources.FEDERATED_TYPE_CONFIGS, config["metadata"]["name"])
        await client.delete(resources.CLUSTER_PROPAGATION_POLICIES, policy["metadata"]["name"])
