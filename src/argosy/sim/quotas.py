"""The controller of ResourceQuotas: puts the limits into effect and counts what pods use. The API server enforces them."""

from argosy.kube.podresources import add
from argosy.kube.quantity import Quantity
from argosy.kube.queue import Result
from argosy.kube.resource import Resource
from argosy.server.trusted import StoreEvent, quota_usage
from argosy.sim.cluster import PODS
from argosy.sim.controller import Controller
from argosy.sim.pods import Pod

__all__ = ["Quotas"]

QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
TABLE = "core/resourcequotas/"


class Quotas(Controller):
    name = "resource quotas"
    workers = 1

    def observe(self, event: StoreEvent) -> None:
        if event.entry.key.startswith(TABLE) and not event.deleted:
            self.queue.add(event.entry.key)

    def observe_pod(self, pod: Pod, event: StoreEvent) -> None:
        for entry in self.cluster.access.entries(TABLE[:-1], pod.namespace):
            self.queue.add(entry.key, after=self.cluster.timings.settle)

    async def reconcile(self, key: str) -> Result | None:
        entry = self.cluster.access.get(key)
        if entry is None:
            return None
        quota = entry.decode()
        hard = (quota.get("spec") or {}).get("hard") or {}
        used: dict[str, Quantity] = {}
        for pod in self.cluster.access.entries(PODS[:-1], quota["metadata"]["namespace"]):
            add(used, quota_usage(pod.decode()))
        status = {"hard": hard, "used": {name: str(used.get(name, Quantity.from_value(0))) for name in hard}}
        if status != quota.get("status"):
            quota["status"] = status
            await self.cluster.access.update(QUOTAS, quota)
        return None
