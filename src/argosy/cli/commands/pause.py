"""`argosy pause` and `argosy resume`: nothing is written to members for one object, one cluster, or the whole fleet."""

from typing import TYPE_CHECKING, Annotated

import typer

from argosy.cli.client.connection import with_client
from argosy.cli.output.failures import Failure

if TYPE_CHECKING:
    from argosy.kube.client import Client
    from argosy.kube.resource import Resource

__all__ = ["pause", "resume"]

What = Annotated[str, typer.Argument(metavar="KIND/NAME | cluster NAME | fleet", help="What to pause or resume.")]
Name = Annotated[str | None, typer.Argument(help="The cluster's name.", show_default=False)]
Namespace = Annotated[str | None, typer.Option("--namespace", "-n", help="Namespace; default: the context's.")]


def pause(context: typer.Context, what: What, name: Name = None, namespace: Namespace = None) -> None:
    """Stop writing to members: one object, one cluster, or everything. Copies keep running; statuses are still collected.

    Examples:

      argosy pause deployment/web

      argosy pause cluster member-1

      argosy pause fleet
    """
    print(f"{_annotate(context, what, name, namespace, 'true')} paused")


def resume(context: typer.Context, what: What, name: Name = None, namespace: Namespace = None) -> None:
    """Resume writing to members after `argosy pause`.

    Example:

      argosy resume fleet
    """
    print(f"{_annotate(context, what, name, namespace, None)} resumed")


def _annotate(context: typer.Context, what: str, name: str | None, namespace: str | None, value: str | None) -> str:
    from argosy.api import keys

    change = {"metadata": {"annotations": {keys.PAUSED: value}}}

    async def work(client: "Client", default: str) -> str:
        resource, found, place = await _target(client, what, name, namespace or default)
        await client.patch(resource, found, change, place)
        return "fleet" if what == "fleet" else f"{resource.kind.lower()}/{found}"

    return with_client(context, work)


async def _target(client: "Client", what: str, name: str | None, namespace: str) -> "tuple[Resource, str, str | None]":
    from argosy.api import keys
    from argosy.cli.client.kinds import resolve, split

    if what == "fleet":
        if name is not None:
            raise Failure(f"the fleet is one; {name!r} is one too many", code=2)
        return await resolve(client, "namespaces"), keys.SYSTEM_NAMESPACE, None
    kind, found = split(what, name)
    resource = await resolve(client, kind)
    return resource, found, namespace if resource.namespaced else None
