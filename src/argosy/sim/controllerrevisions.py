"""ControllerRevisions: the templates a StatefulSet or DaemonSet has had, kept as objects so that it can go back to one."""

import contextlib
from collections.abc import Mapping
from typing import Any

from argosy.kube.client import Client
from argosy.kube.errors import AlreadyExists, NotFound
from argosy.kube.owners import owner_reference
from argosy.kube.resource import Resource
from argosy.sim.cluster import Cluster, Object
from argosy.sim.revisions import template_hash

__all__ = ["REVISION_LABEL", "History"]

REVISION_LABEL = "controller-revision-hash"
_REVISIONS = Resource("apps", "v1", "controllerrevisions", "ControllerRevision")
_TABLE = "apps/controllerrevisions/"


class History:
    def __init__(self, cluster: Cluster, client: Client, hash_label: str):
        """`hash_label` is the label with a revision's hash: it differs between controllers."""
        self._cluster = cluster
        self._client = client
        self._hash_label = hash_label

    async def current(self, owner: Object) -> str:
        """The name of the revision of the owner's template, created or made the newest if need be."""
        metadata, template = owner["metadata"], owner["spec"]["template"]
        name = f"{metadata['name'][:222]}-{template_hash(template, 0)}"
        known = self._of(owner)
        newest = max((one["revision"] for one in known), default=0)
        found = next((one for one in known if one["metadata"]["name"] == name), None)
        if found is not None:
            if found["revision"] < newest:
                found["revision"] = newest + 1
                await self._client.update(_REVISIONS, found, into=bytes)
            return name
        manifest = {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": name,
                "namespace": metadata["namespace"],
                "labels": {
                    **((template.get("metadata") or {}).get("labels") or {}),
                    self._hash_label: name.rpartition("-")[2],
                },
                "annotations": dict(metadata.get("annotations") or {}),
                "ownerReferences": [owner_reference(owner, controller=True, block_owner_deletion=True)],
            },
            "data": {"spec": {"template": {**template, "$patch": "replace"}}},
            "revision": newest + 1,
        }
        with contextlib.suppress(AlreadyExists):
            await self._client.create(_REVISIONS, manifest, into=bytes)
        return name

    def template(self, owner: Object, name: str) -> Mapping[str, Any] | None:
        """The template of a revision, if it is still kept."""
        entry = self._cluster.access.get(f"{_TABLE}{owner['metadata']['namespace']}/{name}")
        if entry is None:
            return None
        template = dict(entry.decode()["data"]["spec"]["template"])
        template.pop("$patch", None)
        return template

    async def prune(self, owner: Object, live: set[str]) -> None:
        """Delete the oldest revisions beyond the limit; those in use stay."""
        limit = owner["spec"].get("revisionHistoryLimit", 10)
        spare = [one for one in self._of(owner) if one["metadata"]["name"] not in live]
        spare.sort(key=lambda one: one["revision"])
        for one in spare[: max(0, len(spare) - limit)]:
            try:
                await self._client.delete(_REVISIONS, one["metadata"]["name"], one["metadata"]["namespace"])
            except NotFound:
                continue

    def _of(self, owner: Object) -> list[Object]:
        entries = self._cluster.access.dependents(owner["metadata"]["uid"])
        return [entry.decode() for entry in entries if entry.key.startswith(_TABLE)]
