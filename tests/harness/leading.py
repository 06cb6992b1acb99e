"""Workloads that need other objects, and these objects, as tests of followers make them."""

from typing import Any

from argosy.kube.resource import Resource
from tests.harness.user import User, deployment

__all__ = [
    "ACCOUNTS",
    "AUTOSCALERS",
    "BUDGETS",
    "CLAIMS",
    "INGRESSES",
    "config_map",
    "eventually_in",
    "needing",
    "secret",
    "service_account",
    "where",
]

ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
INGRESSES = Resource("networking.k8s.io", "v1", "ingresses", "Ingress")
AUTOSCALERS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")


def needing(
    name: str = "web",
    *,
    config_maps: tuple[str, ...] = (),
    secrets: tuple[str, ...] = (),
    account: str = "",
    claims: tuple[str, ...] = (),
    replicas: int = 3,
    policy: str = "policy",
    namespace: str = "default",
    **annotations: str,
) -> dict[str, Any]:
    """A Deployment whose pods need these objects."""
    made = deployment(name, replicas, policy, namespace)
    made["metadata"]["annotations"] = annotations
    spec = made["spec"]["template"]["spec"]
    spec["containers"][0]["envFrom"] = [{"configMapRef": {"name": each}} for each in config_maps]
    spec["volumes"] = [{"name": each, "secret": {"secretName": each}} for each in secrets]
    spec["volumes"] += [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
    if account:
        spec["serviceAccountName"] = account
    return made


def config_map(name: str, namespace: str = "default", **annotations: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"color": "blue"}}


def secret(name: str, namespace: str = "default") -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"password": "a secret"}}


def service_account(name: str, namespace: str = "default", *pull_secrets: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    secrets = [{"name": each} for each in pull_secrets]
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata, "imagePullSecrets": secrets}


async def where(user: User, resource: Resource, name: str) -> list[str]:
    """The members that have this object."""
    return sorted(await user.copies(name, resource))


async def eventually_in(user: User, resource: Resource, name: str, *members: str) -> None:
    async def there() -> bool:
        return await where(user, resource, name) == sorted(members)

    try:
        await user.eventually(there)
    except AssertionError:
        found = await where(user, resource, name)
        raise AssertionError(f"{resource.kind} {name}: expected in {list(members)}, found in {found}") from None
