"""Workloads: whether a control plane runs the objects it stores. That of a federation must not: there they are templates.

Found out by a probe: a paused Deployment with 0 replicas runs nothing, but a Deployment controller writes its status.
"""

import asyncio
import contextlib
from typing import Any

from argosy.api import keys
from argosy.kube import chance
from argosy.kube.client import Client
from argosy.kube.errors import NotFound
from argosy.kube.resource import Resource

__all__ = ["PATIENCE", "deployment_controller_runs"]

#: Much longer than a Deployment controller takes; every first installation waits this long.
PATIENCE = 5.0
_POLL = 0.1
_NAMESPACE = "default"
_DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")


async def deployment_controller_runs(client: Client, patience: float = PATIENCE) -> bool:
    """Whether a controller noticed the probe within so many seconds. The probe is deleted afterwards."""
    name = f"argosy-probe-{chance.token(4).hex()}"
    probe = await client.create(_DEPLOYMENTS, _probe(name), _NAMESPACE)
    try:
        async with asyncio.timeout(patience):
            while True:
                found = await client.get(_DEPLOYMENTS, name, _NAMESPACE)
                if (found.get("status") or {}).get("observedGeneration"):
                    return True
                await asyncio.sleep(_POLL)
    except TimeoutError:
        return False
    finally:
        with contextlib.suppress(NotFound):
            await client.delete(_DEPLOYMENTS, name, _NAMESPACE, uid=probe["metadata"]["uid"], propagation="Background")


def _probe(name: str) -> dict[str, Any]:
    labels = {"argosy.io/probe": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "annotations": {keys.NO_FEDERATED_RESOURCE: "true"}},
        "spec": {
            "paused": True,
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "none", "image": "none.invalid/none"}]},
            },
        },
    }
