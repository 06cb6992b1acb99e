"""`argosy apply`: make objects as their files say, by kubectl's own rule, for those without kubectl.

The last applied configuration is kept in kubectl's annotation, so that both may be used on the same objects. An object that is
too large for that is applied without it: what is taken out of its file later stays. Fields the server does not know are refused,
not dropped.
"""

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from argosy.cli.client.connection import with_client

if TYPE_CHECKING:
    from argosy.cli.client.manifests import Manifest
    from argosy.kube.client import Client
    from argosy.kube.resource import Resource

__all__ = ["applied", "apply", "apply_all"]

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
#: A CRD or namespace applied a moment ago may not be served yet.
_PATIENCE = 5.0
_FIRST = ("Namespace", "CustomResourceDefinition")
#: What all annotations of an object may hold together.
_MOST = 256 * 1024


def apply(
    context: typer.Context,
    filename: Annotated[list[str], typer.Option("--filename", "-f", help="File, folder, or - for stdin; repeatable.")],
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Namespace of objects that name none.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Let the server validate everything, and change nothing.")
    ] = False,
    plan: Annotated[
        str, typer.Option(metavar="ID", help="As `argosy plan` printed it: what is removed as planned is not held.")
    ] = "",
) -> None:
    """Create or change objects to match the files.

    Examples:

      argosy apply -f examples/

      argosy apply -f app.yaml -n shop --dry-run

      argosy apply -f policy.yaml --plan 4f1d20aa93bc
    """
    from argosy.cli.client.manifests import read

    manifests = read(filename)

    async def work(client: "Client", default: str) -> None:
        if plan and not dry_run:
            await expect(client, plan)
        await apply_all(client, manifests, namespace or default, print, dry_run=dry_run)

    with_client(context, work)


async def expect(client: "Client", plan: str) -> None:
    """What is removed exactly as in this plan needs no confirmation."""
    from argosy.cli.client.brake import order
    from argosy.cli.output.failures import Failure

    if not plan.isalnum():
        raise Failure(f"{plan!r} is not the id of a plan", "`argosy plan` prints it", code=2)
    await order(client, "planned", plan)


async def apply_all(
    client: "Client", manifests: "list[Manifest]", namespace: str, say: Any, *, dry_run: bool = False
) -> None:
    """In the files' order, but first what the others need to exist.

    Raises Failure naming the place of the first that is refused; those before it are done.
    """
    from argosy.cli.output.failures import Failure
    from argosy.cli.output.terminal import reference
    from argosy.kube.errors import ApiError, Unauthorized

    for number, manifest in enumerate(sorted(manifests, key=_rank)):
        try:
            verb, _ = await applied(client, manifest.object, namespace, dry_run=dry_run)
        except Unauthorized:
            raise  # that is about who asks, not about this object
        except ApiError as error:
            done = f"; the {number} before it were applied" if number else ""
            raise Failure(f"{manifest.place}: {error.message}", f"this object was not changed{done}") from None
        except Failure as failure:
            raise Failure(f"{manifest.place}: {failure.message}", failure.hint) from None
        say(f"{reference(manifest.object)} {verb}{' (dry run)' if dry_run else ''}")


def _rank(manifest: "Manifest") -> int:
    """Namespaces, then definitions of kinds, then the rest."""
    kind = manifest.object["kind"]
    return _FIRST.index(kind) if kind in _FIRST else len(_FIRST)


async def applied(
    client: "Client", obj: dict[str, Any], default: str, *, dry_run: bool = False
) -> tuple[str, dict[str, Any]]:
    """What was done (created, configured, unchanged), or in a dry run would be, and the object as it is then."""
    import orjson

    from argosy.kube.apply3way import three_way
    from argosy.kube.client import Patch
    from argosy.kube.errors import NotFound

    resource = await _resource(client, obj)
    namespace = (obj["metadata"].get("namespace") or default) if resource.namespaced else None
    wanted = _stamped(obj, namespace)
    name = obj["metadata"]["name"]
    query = [("fieldManager", client.field_manager), ("fieldValidation", "Strict")]
    if dry_run:
        query.append(("dryRun", "All"))
    try:
        current = await client.get(resource, name, namespace)
    except NotFound:
        body = orjson.dumps(wanted)
        answer = await client.request("POST", resource.path(namespace), query=query, body=body, headers=_JSON)
        return "created", orjson.loads(answer)
    type = _type_of(resource)
    patch = three_way(_last_applied(current), current, wanted, type)
    if not patch or _only_annotation(patch, current, wanted):
        return "unchanged", current
    headers = {"content-type": str(Patch.MERGE if type is None else Patch.STRATEGIC)}
    path = resource.path(namespace, name)
    answer = await client.request("PATCH", path, query=query, body=orjson.dumps(patch), headers=headers)
    return "configured", orjson.loads(answer)


_JSON = {"content-type": "application/json"}


async def _resource(client: "Client", obj: dict[str, Any]) -> "Resource":
    from argosy.cli.client.kinds import of_object
    from argosy.cli.output.failures import Failure

    deadline = asyncio.get_running_loop().time() + _PATIENCE
    while True:
        try:
            return await of_object(client, obj["apiVersion"], obj["kind"])
        except Failure:
            late = asyncio.get_running_loop().time() > deadline
            if late or "." not in obj["apiVersion"] or obj["apiVersion"].endswith(".k8s.io/v1"):
                raise
        await asyncio.sleep(0.25)


def _stamped(obj: dict[str, Any], namespace: str | None) -> dict[str, Any]:
    """With its namespace and, as kubectl keeps it, its own text in the annotation."""
    import orjson

    metadata = {**obj["metadata"], **({"namespace": namespace} if namespace else {})}
    annotations = {key: value for key, value in (metadata.get("annotations") or {}).items() if key != LAST_APPLIED}
    bare = {**obj, "metadata": {**metadata, "annotations": annotations}}
    text = orjson.dumps(bare, option=orjson.OPT_SORT_KEYS).decode() + "\n"
    if len(text.encode()) + sum(len(f"{key}{value}".encode()) for key, value in annotations.items()) > _MOST - 1024:
        metadata = {key: value for key, value in metadata.items() if key != "annotations"}
        return {**obj, "metadata": metadata | ({"annotations": annotations} if annotations else {})}
    return {**bare, "metadata": {**metadata, "annotations": {**annotations, LAST_APPLIED: text}}}


def _last_applied(current: dict[str, Any]) -> dict[str, Any] | None:
    import orjson

    text = (current["metadata"].get("annotations") or {}).get(LAST_APPLIED)
    try:
        found = orjson.loads(text) if text else None
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def _only_annotation(patch: dict[str, Any], current: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Whether the patch would change nothing but the spelling of what was applied last."""
    import orjson

    if patch.keys() != {"metadata"} or patch["metadata"].keys() != {"annotations"}:
        return False
    if patch["metadata"]["annotations"].keys() != {LAST_APPLIED}:
        return False
    if LAST_APPLIED not in wanted["metadata"]["annotations"]:
        return False
    return bool(_last_applied(current) == orjson.loads(wanted["metadata"]["annotations"][LAST_APPLIED]))


def _type_of(resource: "Resource") -> Any:
    from argosy.kube.schema import load

    return load().kind(resource.group, resource.version, resource.kind)
