"""Roles: the bootstrap roles exist from the start, and aggregated cluster roles hold the rules of those they select."""

from typing import Any

import orjson

from argosy.kube.client import Patch
from argosy.kube.errors import AlreadyExists
from argosy.kube.queue import Result
from argosy.kube.resource import Resource
from argosy.kube.selectors import SelectorError, from_match
from argosy.server.auth.bootstrap import bootstrap_objects, reconciled
from argosy.server.auth.rbac import GROUP, KINDS
from argosy.server.lifecycle.loop import Loop
from argosy.server.trusted import StoreEvent

__all__ = ["Roles"]

_CLUSTER_ROLES = f"{GROUP}/clusterroles"
_PLURALS = {kind: plural for plural, kind in KINDS.items()}


class Roles(Loop):
    name = "cluster roles"

    async def create_bootstrap(self) -> None:
        """Called before the server is ready: missing rules are added, users' changes are kept."""
        for wanted in bootstrap_objects():
            kind = wanted["kind"]
            namespace = wanted["metadata"].get("namespace", "")
            resource = Resource(GROUP, "v1", _PLURALS[kind], kind, bool(namespace))
            place = f"{namespace}/" if namespace else ""
            stored = self.access.get(f"{GROUP}/{resource.plural}/{place}{wanted['metadata']['name']}")
            if stored is None:
                try:
                    await self.client.create(resource, wanted, namespace or None)
                except AlreadyExists:
                    continue
                continue
            changed = reconciled(wanted, stored.decode())
            if changed is not None:
                await self.client.update(resource, changed, namespace or None)

    def observe(self, event: StoreEvent) -> None:
        if not event.entry.key.startswith(f"{_CLUSTER_ROLES}/"):
            return
        for entry in self.access.entries(_CLUSTER_ROLES):
            if b'"aggregationRule"' in entry.value:
                self.queue.add(entry.name)

    async def reconcile(self, key: str) -> Result | None:
        entry = self.access.get(f"{_CLUSTER_ROLES}/{key}")
        if entry is None or entry.deleting:
            return None
        role = entry.decode()
        selectors = (role.get("aggregationRule") or {}).get("clusterRoleSelectors")
        if not selectors:
            return None
        rules = self._gathered(key, selectors)
        if rules != (role.get("rules") or []):
            patch = {"metadata": {"resourceVersion": str(entry.version)}, "rules": rules}
            await self.client.patch(
                Resource(GROUP, "v1", "clusterroles", "ClusterRole", namespaced=False), key, patch, kind=Patch.MERGE
            )
        return None

    def _gathered(self, own_name: str, selectors: list[dict[str, Any]]) -> list[dict[str, Any]]:
        rules: dict[bytes, dict[str, Any]] = {}
        for selector in selectors:
            try:
                wanted = from_match(selector.get("matchLabels"), selector.get("matchExpressions"))
            except SelectorError:
                continue
            for entry in self.access.entries(_CLUSTER_ROLES):
                if entry.name != own_name and wanted.matches(entry.labels):
                    for rule in entry.decode().get("rules") or []:
                        rules.setdefault(orjson.dumps(rule, option=orjson.OPT_SORT_KEYS), rule)
        return list(rules.values())
