"""Custom resource definitions being deleted: their objects are deleted first, then the definition."""

from prometheus_client import Counter

from argosy.kube.client import Patch
from argosy.kube.conditions import set_condition
from argosy.kube.errors import NotFound
from argosy.kube.queue import Result
from argosy.kube.resource import Resource
from argosy.kube.timestamps import now
from argosy.server.crd import DEFINITIONS
from argosy.server.kinds.apiextensions import CLEANUP
from argosy.server.lifecycle.loop import Loop
from argosy.server.registry import Object
from argosy.server.trusted import StoreEvent, TrustedAccess

__all__ = ["DefinitionCleanup"]

_DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
_TABLE = f"{DEFINITIONS}/"


class DefinitionCleanup(Loop):
    name = "definition cleanup"

    def __init__(self, access: TrustedAccess, spinning: Counter):
        super().__init__(access, spinning)
        #: Tables whose objects must go first -> the definition.
        self._waiting: dict[str, str] = {}

    def observe(self, event: StoreEvent) -> None:
        entry = event.entry
        if entry.key.startswith(_TABLE):
            if entry.deleting and not event.deleted:
                self.queue.add(entry.name)
        elif event.deleted and self._waiting:
            group, plural, _ = entry.key.split("/", 2)
            waiting = self._waiting.get(f"{group}/{plural}")
            if waiting is not None:
                self.queue.add(waiting)

    async def reconcile(self, key: str) -> Result | None:
        entry = self.access.get(_TABLE + key)
        if entry is None or not entry.deleting:
            return None
        definition = entry.decode()
        finalizers: list[str] = definition["metadata"].get("finalizers", [])
        if CLEANUP not in finalizers:
            return None
        table = f"{definition['spec']['group']}/{definition['spec']['names']['plural']}"
        self._waiting[table] = key
        if await self._empty(definition, table):
            left = [name for name in finalizers if name != CLEANUP]
            patch = {"metadata": {"resourceVersion": str(entry.version), "finalizers": left or None}}
            await self.client.patch(_DEFINITIONS, key, patch, kind=Patch.MERGE)
            del self._waiting[table]
        return None

    async def _empty(self, definition: Object, table: str) -> bool:
        """Delete all objects; true if none is left."""
        entries = self.access.entries(table)
        if not entries:
            return True
        await self._tell(definition)
        spec = definition["spec"]
        served = next((version["name"] for version in spec["versions"] if version.get("served")), "")
        namespaced = spec["scope"] == "Namespaced"
        resource = Resource(spec["group"], served, spec["names"]["plural"], spec["names"]["kind"], namespaced)
        for entry in entries:
            if not entry.deleting:
                try:
                    await self.client.delete(resource, entry.name, entry.namespace or None, uid=entry.uid)
                except NotFound:
                    continue
        return not self.access.entries(table)

    async def _tell(self, definition: Object) -> None:
        conditions = list((definition.get("status") or {}).get("conditions") or ())
        text = "CustomResource deletion is in progress"
        told = set_condition(conditions, "Terminating", "True", "InstanceDeletionInProgress", text, now())
        if told == conditions:
            return
        patch = {"status": {"conditions": told}}
        name = definition["metadata"]["name"]
        await self.client.patch(_DEFINITIONS, name, patch, kind=Patch.MERGE, subresource="status")
