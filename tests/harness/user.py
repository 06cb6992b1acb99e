"""User: what somebody does with a federation, and what can be seen of it. Shared by all federations tests run on."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from argosy.api import keys, resources
from argosy.kube.client import Client, Patch
from argosy.kube.errors import NotFound
from argosy.kube.resource import Resource
from tests.harness.eventually import PATIENCE, eventually

__all__ = [
    "CONFIGMAPS",
    "DEPLOYMENTS",
    "EVENTS",
    "NAMESPACES",
    "NODES",
    "PODS",
    "SECRETS",
    "SERVICES",
    "User",
    "deployment",
    "federated_cluster",
    "new_namespace",
    "reported",
    "weights",
]

T = TypeVar("T")

DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
SERVICES = Resource("", "v1", "services", "Service")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
SECRETS = Resource("", "v1", "secrets", "Secret")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
PODS = Resource("", "v1", "pods", "Pod")
EVENTS = Resource("", "v1", "events", "Event")


class User:
    """Needs a client of the control plane, the members' names, and a client of each."""

    #: Where objects go unless a call says otherwise.
    namespace: str = "default"
    #: Seconds until something that must come true counts as failed.
    patience: float = PATIENCE
    names: list[str]

    @property
    def client(self) -> Client:
        """The user's client of the control plane."""
        raise NotImplementedError

    def member(self, name: str) -> Client:
        raise NotImplementedError

    async def eventually(self, probe: Callable[[], T | Awaitable[T]], why: str = "") -> T:
        """The probe's first true value, within this federation's patience."""
        return await eventually(probe, self.patience, why)

    # What a user does.

    async def policy(self, name: str = "policy", namespace: str | None = None, **spec: Any) -> None:
        await self.client.create(
            resources.PROPAGATION_POLICIES,
            {
                "apiVersion": keys.API_VERSION,
                "kind": "PropagationPolicy",
                "metadata": {"name": name, "namespace": namespace or self.namespace},
                "spec": {"schedulingMode": "Divide", **spec},
            },
        )

    async def deploy(
        self, name: str = "web", replicas: int = 9, policy: str = "policy", namespace: str | None = None, **labels: str
    ) -> dict[str, Any]:
        manifest = deployment(name, replicas, policy, namespace or self.namespace, **labels)
        return await self.client.create(DEPLOYMENTS, manifest)

    async def configure(self, name: str, data: dict[str, str], policy: str = "policy") -> dict[str, Any]:
        """A ConfigMap that is propagated."""
        labels = {keys.PROPAGATION_POLICY_LABEL: policy}
        metadata = {"name": name, "namespace": self.namespace, "labels": labels}
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        return await self.client.create(CONFIGMAPS, manifest)

    async def scale(self, name: str, replicas: int) -> None:
        await self.client.patch(DEPLOYMENTS, name, {"spec": {"replicas": replicas}}, self.namespace)

    async def set_image(self, image: str, name: str = "web") -> None:
        containers = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}}
        await self.client.patch(DEPLOYMENTS, name, containers, self.namespace, kind=Patch.STRATEGIC)

    async def annotate(self, resource: Resource, name: str, namespace: str | None, **annotations: str | None) -> None:
        body = {"metadata": {"annotations": annotations}}
        await self.client.patch(resource, name, body, namespace, kind=Patch.MERGE)

    # What is there.

    async def copies(self, name: str = "web", resource: Resource = DEPLOYMENTS) -> dict[str, dict[str, Any]]:
        """The object in every member that has it."""
        found = {}
        for member in self.names:
            try:
                found[member] = await self.member(member).get(resource, name, self.namespace)
            except NotFound:
                continue
        return found

    async def replicas(self, name: str = "web") -> dict[str, int]:
        """Replicas of a Deployment in every member that has it."""
        return {member: copy["spec"]["replicas"] for member, copy in (await self.copies(name)).items()}

    async def eventually_replicas(
        self, expected: dict[str, int], name: str = "web", timeout: float | None = None
    ) -> None:
        async def probe() -> bool:
            return await self.replicas(name) == expected

        try:
            await eventually(probe, self.patience if timeout is None else timeout)
        except AssertionError:
            raise AssertionError(f"expected {expected}, found {await self.replicas(name)}") from None

    async def source(self, name: str = "web", resource: Resource = DEPLOYMENTS) -> dict[str, Any]:
        return await self.client.get(resource, name, self.namespace)

    async def federated(self, name: str = "web-deployments.apps", namespace: str | None = None) -> dict[str, Any]:
        return await self.client.get(resources.FEDERATED_OBJECTS, name, namespace or self.namespace)

    async def propagation(self, name: str = "web-deployments.apps") -> dict[str, str]:
        """What the federated object says of each cluster."""
        return reported(await self.federated(name))

    async def exists(self, resource: Resource, name: str, namespace: str | None = None) -> bool:
        """On the control plane."""
        return await exists(self.client, resource, name, namespace)

    async def events(self, reason: str) -> list[dict[str, Any]]:
        """What is recorded on a source and on its federated object is one event."""
        listed = [event for event in (await self.client.list(EVENTS)).items if event["reason"] == reason]
        on_federated = [event for event in listed if event["involvedObject"]["kind"].endswith("FederatedObject")]
        others = [event for event in listed if event not in on_federated]
        told = {event["message"] for event in others}
        return others + [event for event in on_federated if event["message"] not in told]


def reported(federated: dict[str, Any]) -> dict[str, str]:
    """What a federated object says of each cluster."""
    return {each["cluster"]: each["status"] for each in federated.get("status", {}).get("clusters") or ()}


async def exists(client: Client, resource: Resource, name: str, namespace: str | None = None) -> bool:
    try:
        await client.get(resource, name, namespace)
    except NotFound:
        return False
    return True


@asynccontextmanager
async def new_namespace(client: Client, prefix: str) -> AsyncIterator[str]:
    """Its name. Deleted afterwards, which is not waited for."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": prefix}}
    name: str = (await client.create(NAMESPACES, body))["metadata"]["name"]
    yield name
    await client.delete(NAMESPACES, name)


def weights(**by_cluster: int) -> dict[str, Any]:
    """A policy's fields that divide by these weights."""
    return {"placement": [{"cluster": name, "preferences": {"weight": weight}} for name, weight in by_cluster.items()]}


def deployment(name: str, replicas: int, policy: str, namespace: str = "default", **labels: str) -> dict[str, Any]:
    selector = {"app": name}
    policy_label = {keys.PROPAGATION_POLICY_LABEL: policy} if policy else {}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": {**policy_label, **labels}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": selector},
            "template": {
                "metadata": {"labels": selector},
                "spec": {"containers": [{"name": "main", "image": "nginx:1.29"}]},
            },
        },
    }


def federated_cluster(name: str, endpoint: str, **spec: Any) -> dict[str, Any]:
    """Its secret has the same name."""
    return {
        "apiVersion": keys.API_VERSION,
        "kind": "FederatedCluster",
        "metadata": {"name": name, "labels": {"name": name}},
        "spec": {"apiEndpoint": endpoint, "secretRef": {"name": name}, **spec},
    }


def cluster_secret(name: str, data: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": keys.SYSTEM_NAMESPACE},
        "data": data,
    }
