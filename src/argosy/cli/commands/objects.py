"""`argosy delete`, `scale`, `patch`, `label`: the few everyday changes, for those without kubectl."""

import asyncio
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from argosy.cli.client.connection import with_client
from argosy.cli.output.failures import Failure
from argosy.cli.output.terminal import Output, print_objects, reference

if TYPE_CHECKING:
    from argosy.kube.client import Client
    from argosy.kube.resource import Resource

__all__ = ["delete", "label", "patch", "scale"]

Target = Annotated[str, typer.Argument(metavar="KIND/NAME", help="The object, for example deployment/web.")]
Namespace = Annotated[str | None, typer.Option("--namespace", "-n", help="Namespace; default: the context's.")]
Format = Annotated[Output | None, typer.Option("--output", "-o", help="Print the object: json, yaml or name.")]
_POLL = 0.2


class PatchType(StrEnum):
    MERGE = "merge"
    STRATEGIC = "strategic"
    JSON = "json"


def scale(
    context: typer.Context,
    target: Target,
    replicas: Annotated[int, typer.Option(min=0, help="Number of replicas over all clusters.")],
    namespace: Namespace = None,
) -> None:
    """Set the number of replicas over all clusters.

    Example:

      argosy scale deployment/web --replicas 30
    """

    async def work(client: "Client", resource: "Resource", name: str, place: str | None) -> dict[str, Any]:
        return await client.patch(resource, name, {"spec": {"replicas": replicas}}, place, subresource="scale")

    _on(context, target, namespace, work)
    print(f"{target} scaled to {replicas}")


def patch(
    context: typer.Context,
    target: Target,
    patch: Annotated[str, typer.Option("--patch", "-p", help="The patch, as JSON or YAML.")],
    type: Annotated[PatchType, typer.Option("--type", help="merge, strategic or json.")] = PatchType.MERGE,
    namespace: Namespace = None,
    output: Format = None,
) -> None:
    """Change some fields of an object.

    Examples:

      argosy patch deploy/web -p '{"spec": {"replicas": 12}}'

      argosy patch deploy/web --type json -p '[{"op": "remove", "path": "/spec/paused"}]'
    """
    import orjson

    from argosy.kube import yamlreader

    try:
        body = yamlreader.read(patch.encode(errors="surrogateescape")).value
    except yamlreader.YamlError:
        raise Failure("the patch is neither JSON nor YAML", "quote it: -p '{\"spec\": …}'", code=2) from None
    if not isinstance(body, list if type is PatchType.JSON else dict):
        shape = "a list of operations" if type is PatchType.JSON else "an object"
        raise Failure(f"a {type} patch is {shape}", "see --type", code=2)

    async def work(client: "Client", resource: "Resource", name: str, place: str | None) -> dict[str, Any]:
        from argosy.kube.client import Patch

        query = [("fieldManager", client.field_manager), ("fieldValidation", "Strict")]
        headers = {"content-type": str(Patch[type.name])}
        path = resource.path(place, name)
        answer = await client.request("PATCH", path, query=query, body=orjson.dumps(body), headers=headers)
        found: dict[str, Any] = orjson.loads(answer)
        return found

    _told(_on(context, target, namespace, work), "patched", output)


def label(
    context: typer.Context,
    target: Target,
    labels: Annotated[
        list[str], typer.Argument(metavar="KEY=VALUE|KEY-…", help="Labels to set, or to remove with a trailing -.")
    ],
    namespace: Namespace = None,
    output: Format = None,
) -> None:
    """Set or remove labels; a label also chooses an object's policy.

    Examples:

      argosy label deploy/web kubeadmiral.io/propagation-policy-name=everywhere

      argosy label cluster/m1 region=eu tier-
    """
    changes: dict[str, str | None] = {}
    for text in labels:
        key, sign, value = text.partition("=")
        if not sign and text.endswith("-") and len(text) > 1:
            changes[text[:-1]] = None
        elif sign and key:
            changes[key] = value
        else:
            raise Failure(f"{text!r} is neither KEY=VALUE nor KEY-", code=2)

    async def work(client: "Client", resource: "Resource", name: str, place: str | None) -> dict[str, Any]:
        return await client.patch(resource, name, {"metadata": {"labels": changes}}, place)

    _told(_on(context, target, namespace, work), "labeled", output)


def delete(
    context: typer.Context,
    target: Annotated[str | None, typer.Argument(metavar="[KIND/NAME]", help="The object.")] = None,
    filename: Annotated[
        list[str] | None, typer.Option("--filename", "-f", help="Delete what these files name.")
    ] = None,
    namespace: Namespace = None,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Wait until the object is gone, in all clusters.")
    ] = True,
    timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait.")] = 60.0,
) -> None:
    """Delete objects on the control plane and in all members.

    Examples:

      argosy delete deployment/web

      argosy delete -f examples/
    """
    if (target is None) == (not filename):
        raise Failure("give either KIND/NAME or -f FILE", "argosy delete --help", code=2)

    async def work(client: "Client", default: str) -> None:
        from argosy.cli.client.kinds import of_object, resolve, split
        from argosy.cli.client.manifests import read
        from argosy.kube.errors import NotFound

        doomed: list[tuple[Resource, str, str | None]] = []
        if target is not None:
            kind, name = split(target)
            resource = await resolve(client, kind)
            doomed.append((resource, name, (namespace or default) if resource.namespaced else None))
        for manifest in read(filename) if filename else ():
            obj = manifest.object
            resource = await of_object(client, obj["apiVersion"], obj["kind"])
            place = obj["metadata"].get("namespace") or namespace or default
            doomed.append((resource, obj["metadata"]["name"], place if resource.namespaced else None))
        gone = []
        for resource, name, place in doomed:
            try:
                found = await client.get(resource, name, place)
                await client.delete(resource, name, place, uid=found["metadata"]["uid"], propagation="Background")
            except NotFound:
                if target is not None:
                    raise
                continue
            gone.append((resource, name, place, found))
        for resource, name, place, found in gone:
            if wait:
                await _wait_gone(client, resource, name, place, found["metadata"]["uid"], timeout)
            print(f"{reference(found)} deleted")

    with_client(context, work)


async def _wait_gone(
    client: "Client", resource: "Resource", name: str, place: str | None, uid: str, timeout: float
) -> None:
    from argosy.kube.errors import NotFound

    try:
        async with asyncio.timeout(timeout):
            while True:
                found = await client.get(resource, name, place)
                if found["metadata"]["uid"] != uid:
                    return
                await asyncio.sleep(_POLL)
    except NotFound:
        return
    except TimeoutError:
        kind = resource.kind.lower()
        raise Failure(
            f"{kind}/{name} is still being deleted after {timeout:g} s",
            f"`argosy status {kind}/{name}` says what it waits for; it goes on by itself, unless `argosy status fleet` says"
            " that the brake holds it",
        ) from None


def _on(
    context: typer.Context,
    target: str,
    namespace: str | None,
    work: "Callable[[Client, Resource, str, str | None], Awaitable[dict[str, Any]]]",
) -> dict[str, Any]:
    from argosy.cli.client.kinds import resolve, split

    kind, name = split(target)

    async def run(client: "Client", default: str) -> dict[str, Any]:
        resource = await resolve(client, kind)
        return await work(client, resource, name, (namespace or default) if resource.namespaced else None)

    return with_client(context, run)


def _told(obj: dict[str, Any], verb: str, output: Output | None) -> None:
    if output in (None, Output.TABLE):
        print(f"{reference(obj)} {verb}")
    else:
        print_objects([obj], output, single=True)
