"""Existing objects: objects that a control plane had before it federated anything are marked as not to be federated."""

import asyncio
from collections.abc import Awaitable, Callable

from argosy.api import keys
from argosy.kube.client import Client
from argosy.kube.discovery import Discovery
from argosy.kube.errors import Gone, NotFound
from argosy.kube.objects import Partial, decode
from argosy.kube.resource import Resource

__all__ = ["mark", "may_exist", "visit_unmarked"]

_AT_ONCE = 16


def may_exist(resource: Resource, served: Discovery) -> bool:
    """False only if the server certainly does not serve the kind; a group that could not be read is not certain."""
    group_version = f"{resource.group}/{resource.version}" if resource.group else resource.version
    known = any(
        (each.group, each.version, each.plural) == (resource.group, resource.version, resource.plural)
        for each in served.resources
    )
    return known or group_version in served.failures


async def mark(client: Client, resource: Resource, name: str, namespace: str | None) -> None:
    change = {"metadata": {"annotations": {keys.NO_FEDERATED_RESOURCE: "true"}}}
    try:
        await client.patch(resource, name, change, namespace, into=bytes)
    except NotFound:
        return


async def visit_unmarked(
    client: Client, resource: Resource, visit: Callable[[str, str | None], Awaitable[None]]
) -> None:
    """`visit(name, namespace)` for every unmarked object, one page at a time."""
    while True:
        try:
            async for page in client.pages(resource):
                found = [decode(raw, Partial).metadata for raw in page.items]
                unmarked = [each for each in found if not each.annotations.get(keys.NO_FEDERATED_RESOURCE)]
                for start in range(0, len(unmarked), _AT_ONCE):
                    batch = unmarked[start : start + _AT_ONCE]
                    await asyncio.gather(*(visit(each.name, each.namespace or None) for each in batch))
            return
        except Gone:
            continue  # the list expired; objects already marked are skipped
