"""Uninstalling: everything `install` made is removed from a control plane, once nothing depends on it any more."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

from argosy.api import installation, keys, resources
from argosy.api.admission import protection
from argosy.control.install.installer import type_configs
from argosy.kube.client import Client, Patch
from argosy.kube.errors import ApiError, NotFound
from argosy.kube.objects import Partial
from argosy.kube.resource import Resource

__all__ = ["NotYet", "uninstall"]

#: Sources are released by the controllers, which keep them for a while in case a type config comes back.
_PATIENCE = 300.0
_POLL = 1.0


class NotYet(Exception):
    """Something still depends on the federation."""

    def __init__(self, message: str, hint: str):
        super().__init__(message)
        self.hint = hint


async def uninstall(client: Client, tell: Callable[[str], None]) -> int:
    """Returns how many objects were removed. Raises NotYet."""
    await _without_members(client)
    served = await client.discover()
    manifests = installation.manifests().all()
    for each in await type_configs(client):
        await _delete(client, resources.FEDERATED_TYPE_CONFIGS, each.name)
    await _released(client, tell)
    await _unfinalized(client)
    tell("removing what was installed")
    removed = 0
    # The namespace last: with it goes the leader's lease.
    for manifest in sorted(manifests, key=_rank):
        resource = next((each for each in served.resources if _is_of(each, manifest)), None)
        if resource is None or resource == resources.FEDERATED_TYPE_CONFIGS:
            continue
        name = manifest["metadata"]["name"]
        if protection.is_protected(resource.group, resource.plural, name):
            await _unlock(client, resource, name)
        removed += await _delete(client, resource, name)
    return removed


def _is_of(resource: Resource, manifest: dict[str, Any]) -> bool:
    return (resource.api_version, resource.kind) == (manifest["apiVersion"], manifest["kind"])


def _rank(manifest: dict[str, Any]) -> int:
    order = ("CustomResourceDefinition", "ClusterRoleBinding", "ClusterRole", "RoleBinding", "Role", "Namespace")
    return order.index(manifest["kind"]) + 1 if manifest["kind"] in order else 0


async def _without_members(client: Client) -> None:
    try:
        clusters = (await client.list(resources.FEDERATED_CLUSTERS)).items
    except NotFound:
        return
    if clusters:
        names = ", ".join(sorted(each["metadata"]["name"] for each in clusters)[:5])
        raise NotYet(f"{len(clusters)} members are joined: {names}", "argosy unjoin NAME, for each of them")


async def _released(client: Client, tell: Callable[[str], None]) -> None:
    """Waits until the controllers have let go of all sources, which then can be deleted without us."""
    loop = asyncio.get_running_loop()
    until = loop.time() + _PATIENCE
    while left := await _held_sources(client):
        if loop.time() > until:
            raise NotYet(f"{left} objects are still federated", "the controllers have to run until all are released")
        tell(f"waiting for the controllers to release {left} objects")
        await asyncio.sleep(_POLL)


async def _held_sources(client: Client) -> int:
    """How many sources the controllers still hold."""
    kinds = {
        (owner.api_version, owner.kind)
        for each in [each async for each in _federated(client)]
        for owner in each.metadata.owner_references
        if owner.controller
    }
    found = 0
    for resource in (await client.discover()).resources if kinds else ():
        if (resource.api_version, resource.kind) in kinds:
            held = (await client.list(resource, into=Partial)).items
            found += sum(keys.FEDERATE_FINALIZER in each.metadata.finalizers for each in held)
    return found


async def _federated(client: Client) -> AsyncIterator[Partial]:
    for namespaced in (True, False):
        try:
            for each in (await client.list(resources.federated_objects(namespaced), into=Partial)).items:
                yield each
        except NotFound:
            continue


async def _unfinalized(client: Client) -> None:
    """Federated objects go with their kind. Nobody would take their finalizer away once no member and no type is there."""
    async for each in _federated(client):
        metadata = each.metadata
        left = [name for name in metadata.finalizers if name != keys.SYNC_FINALIZER]
        if left != list(metadata.finalizers):
            body = {"metadata": {"finalizers": left, "resourceVersion": metadata.resource_version}}
            resource = resources.federated_objects(bool(metadata.namespace))
            with suppress(NotFound):
                await client.patch(resource, metadata.name, body, metadata.namespace or None, kind=Patch.MERGE)


async def _unlock(client: Client, resource: Resource, name: str) -> None:
    body = {"metadata": {"annotations": {keys.UNINSTALL: "true"}}}
    try:
        await client.patch(resource, name, body, kind=Patch.MERGE)
    except NotFound:
        return


async def _delete(client: Client, resource: Resource, name: str) -> bool:
    namespace = keys.SYSTEM_NAMESPACE if resource.namespaced else None
    try:
        await client.delete(resource, name, namespace)
    except NotFound:
        return False
    except ApiError as error:
        raise NotYet(f"{resource.kind} {name}: {error.message}", "correct that and uninstall again") from None
    return True
