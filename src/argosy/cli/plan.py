"""`argosy plan`: what would follow from a change, before it is made.

Reads a snapshot, changes it in memory (files go through the server's dry run, so that they are checked and completed as
they would be), and runs the controllers' own pipeline on it. Exit codes are its own: 0 nothing would change, 2 something
would, 1 it could not be told.
"""

from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

from argosy.cli.connection import with_client
from argosy.cli.failures import Failure
from argosy.cli.terminal import Output, print_objects, say, table

if TYPE_CHECKING:
    from argosy.cli.manifests import Manifest
    from argosy.kube.client import Client
    from argosy.plan.forecast import ClusterChange, Forecast, ObjectChange
    from argosy.plan.suppose import ObjectKey, Snapshot

__all__ = ["Command", "plan"]

CHANGES = 2
#: Objects shown in a table; `-o json` has them all.
_SHOWN = 100


class Command(typer.core.TyperCommand):
    """Misuse ends with 1 here: 2 means that something would change."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if getattr(error, "exit_code", None) == CHANGES:
                error.__dict__["exit_code"] = 1
            raise


def plan(
    context: typer.Context,
    filename: Annotated[
        list[str] | None, typer.Option("--filename", "-f", help="Objects or policies as they would be applied.")
    ] = None,
    scale: Annotated[
        list[str] | None, typer.Option("--scale", metavar="KIND/NAME=N", help="Suppose an object were scaled.")
    ] = None,
    lose_cluster: Annotated[
        list[str] | None,
        typer.Option("--lose-cluster", metavar="CLUSTER", help="Suppose a cluster failed and were given up."),
    ] = None,
    cordon: Annotated[
        list[str] | None, typer.Option("--cordon", metavar="CLUSTER", help="Suppose a cluster got no new work.")
    ] = None,
    add_cluster: Annotated[
        list[str] | None,
        typer.Option("--add-cluster", metavar="FILE", help="Suppose this FederatedCluster had joined."),
    ] = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="For objects that name none; the context's by default.")
    ] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="table, json, yaml or name.")] = Output.TABLE,
) -> None:
    """Show what would move, start, stop, be overridden or become unschedulable, and write nothing.

    The controllers' own decisions are made on what is there now, changed as you say; all options together, and each as
    often as you like. Exit code 0: nothing would change, 2: something would, 1: it could not be told.

    -f applies files to a copy: the server checks them in a dry run. --cordon is the taint argosy.io/cordoned:NoSchedule.
    --lose-cluster gives a cluster up: it is not ready, and what does not tolerate that leaves. --add-cluster takes a
    FederatedCluster; say in status.resources.allocatable how large it is, or it counts as large as the fleet's median.

    Examples:

      argosy plan --scale deploy/web=60

      argosy plan -f policy.yaml

      argosy plan --lose-cluster berlin -o json

      argosy plan --add-cluster oslo.yaml --cordon berlin
    """
    import msgspec

    from argosy.cli.manifests import read

    if not (filename or scale or lose_cluster or cordon or add_cluster):
        raise Failure("nothing is supposed to change", "argosy plan --help shows what can be", code=1)
    manifests = read(filename) if filename else []
    newcomers = read(add_cluster) if add_cluster else []
    numbers = [_scaled(text) for text in scale or ()]

    async def work(client: "Client", default: str) -> "Forecast":
        from argosy.cli.progress import Ticker
        from argosy.cli.snapshot import read_snapshot
        from argosy.plan.suppose import SupposeError

        with Ticker() as ticker:
            today = await read_snapshot(client, ticker.at)
            try:
                supposed, notes = await _applied(client, today, manifests, namespace or default)
                for kind, name, replicas in numbers:
                    key = await _key(client, supposed, kind, name, namespace or default)
                    supposed = supposed.with_replicas(key, replicas)
                for newcomer in newcomers:
                    supposed = _joined(supposed, newcomer)
                for name in cordon or ():
                    supposed = supposed.with_cordoned(name)
                for name in lose_cluster or ():
                    supposed = supposed.with_lost(name)
            except SupposeError as error:
                raise Failure(str(error), "nothing was looked at; correct this and try again") from None
            found = await _answer(today, supposed, ticker.at)
        return msgspec.structs.replace(found, notes=(*notes, *found.notes))

    try:
        found = with_client(context, work)
    except Failure as failure:
        raise Failure(failure.message, failure.hint, code=1) from None
    if output is Output.TABLE:
        show(found)
    elif output is Output.NAME:
        for each in found.objects:
            print(_reference(each))
    else:
        print_objects([msgspec.to_builtins(found)], output, single=True)
    if found.changes:
        raise typer.Exit(CHANGES)


def _scaled(text: str) -> tuple[str, str, int]:
    from argosy.cli.kinds import split

    target, _, number = text.rpartition("=")
    if not target or not number.isascii() or not number.isdigit() or int(number[:10]) > 2**31 - 1:
        raise Failure(f"{text!r} is not KIND/NAME=NUMBER", "for example: --scale deployment/web=60", code=1)
    try:
        kind, name = split(target)
    except Failure as failure:
        raise Failure(failure.message, failure.hint, code=1) from None
    return kind, name, int(number)


async def _key(client: "Client", snapshot: "Snapshot", kind: str, name: str, namespace: str) -> "ObjectKey":
    from argosy.cli.kinds import resolve
    from argosy.plan.suppose import ObjectKey

    resource = await resolve(client, kind)
    config = snapshot.type_of(resource.api_version, resource.kind)
    if config is None:
        raise Failure(f"{resource.kind} is not federated: no FederatedTypeConfig names it")
    key = ObjectKey(config.name, namespace if resource.namespaced else "", name)
    if key not in snapshot.sources:
        await client.get(resource, name, key.namespace or None)  # raises where there is none
        raise Failure(
            f"{kind}/{name} is not propagated: it names no policy", f"`argosy status {kind}/{name}` says more"
        )
    return key


def _joined(snapshot: "Snapshot", newcomer: "Manifest") -> "Snapshot":
    from argosy.api import keys

    obj = newcomer.object
    if (obj["apiVersion"], obj["kind"]) != (keys.API_VERSION, "FederatedCluster"):
        raise Failure(f"{newcomer.place}: this is no FederatedCluster of {keys.API_VERSION}", "--add-cluster takes one")
    return snapshot.with_new_cluster(obj)


async def _applied(
    client: "Client", snapshot: "Snapshot", manifests: "list[Manifest]", namespace: str
) -> "tuple[Snapshot, list[str]]":
    """The snapshot with the files applied, and what there is to say about them."""
    from argosy.kube.errors import ApiError, Unauthorized
    from argosy.plan.suppose import Irrelevant, SupposeError

    notes: list[str] = []
    made: set[str] = set()
    for manifest in manifests:
        try:
            obj = await _dry_run(client, manifest.object, namespace, made)
            snapshot = snapshot.with_object(obj)
        except Irrelevant as irrelevant:
            notes.append(f"{manifest.place}: {irrelevant}")
        except SupposeError as error:
            raise Failure(f"{manifest.place}: {error}") from None
        except Unauthorized:
            raise
        except ApiError as error:
            raise Failure(f"{manifest.place}: {error.message}", "nothing was changed") from None
        except Failure as failure:
            raise Failure(f"{manifest.place}: {failure.message}", failure.hint) from None
    return snapshot, notes


async def _dry_run(client: "Client", obj: dict[str, Any], default: str, made: set[str]) -> dict[str, Any]:
    """The object as it would be stored. `made` are the namespaces that earlier files would make."""
    from argosy.api import keys
    from argosy.cli.apply import applied
    from argosy.cli.kinds import of_object
    from argosy.kube.errors import NotFound

    metadata = obj["metadata"]
    if (obj["apiVersion"], obj["kind"]) == (keys.API_VERSION, "FederatedCluster"):
        from argosy.api import resources

        try:
            await client.get(resources.FEDERATED_CLUSTERS, metadata["name"])
        except NotFound:
            return obj  # one that joins: what is said of its status counts, and a server would drop it
    if (obj["apiVersion"], obj["kind"]) == ("v1", "Namespace"):
        made.add(metadata["name"])
    resource = await of_object(client, obj["apiVersion"], obj["kind"])
    namespace = metadata.get("namespace") or default
    try:
        _, stored = await applied(client, obj, default, dry_run=True)
    except NotFound:
        if not resource.namespaced or namespace not in made:
            raise
        # Checked in a namespace that is there, under a name that is not.
        stand_in = {**metadata, "namespace": "default", "name": f"{metadata['name'][:40]}-argosy-plan"}
        _, stored = await applied(client, {**obj, "metadata": stand_in}, default, dry_run=True)
        stored["metadata"] |= {"name": metadata["name"], "namespace": namespace}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], **stored}


async def _answer(today: "Snapshot", supposed: "Snapshot", tell: Any) -> "Forecast":
    from argosy.plan.schedule import unasked
    from argosy.plan.whatif import WhatIf

    question = WhatIf(today, supposed)
    for number, key in enumerate(question.keys, 1):
        unasked(question.steps(key))
        tell(f"deciding: {number} of {len(question.keys)} objects")
    return question.forecast()


# What it looks like.


def show(forecast: "Forecast") -> None:
    for each in forecast.objects[:_SHOWN]:
        _show_object(each)
    if len(forecast.objects) > _SHOWN:
        say(f"… and {len(forecast.objects) - _SHOWN} more objects: -o json has them all")
        say()
    if forecast.clusters:
        rows = [
            [name, *(str(getattr(counts, field)) for field in _COLUMNS)] for name, counts in forecast.clusters.items()
        ]
        table(["CLUSTER", "STARTED", "STOPPED", "COPIES ADDED", "REMOVED", "UPDATED", "OVERRIDDEN"], rows)
        say()
    for name, why in forecast.deferred.items():
        say(f"{name}: stays as it is, rescheduling is off ({why})", "yellow")
    for name in forecast.unsettled:
        say(f"{name}: is changing right now, whatever you do", "yellow")
    for note in forecast.notes:
        say(note, "yellow")
    say(_summary(forecast), "bold" if forecast.changes else "green")


_COLUMNS = ("started", "stopped", "added", "removed", "updated", "overridden")


def _show_object(change: "ObjectChange") -> None:
    say(_reference(change), "bold")
    for each in change.clusters:
        say(f"  {each.cluster}: {_cluster(each)}")
    if change.held is not None:
        what = "becomes unschedulable" if change.placed_nowhere else "is held as it is"
        say(f"  {what}: {change.held.reason}: {change.held.message}", "red")
    if change.released:
        say("  is no longer held", "green")
    say()


def _cluster(change: "ClusterChange") -> str:
    told = []
    before, after = change.replicas_before, change.replicas_after
    if change.copy != "kept":
        replicas = after if change.copy == "added" else before
        told.append(f"copy {change.copy}" + (f", {_replicas(replicas)}" if replicas is not None else ""))
    elif before != after:
        told.append(f"{before} → {_replicas(after)} ({change.more:+d})")
    if change.updated:
        told.append("updated")
    if change.overridden:
        told.append("overridden: " + ("; ".join(change.overrides) or "no more"))
    return ", ".join(told)


def _replicas(number: int | None) -> str:
    return "1 replica" if number == 1 else f"{number} replicas"


def _summary(forecast: "Forecast") -> str:
    if not forecast.changes:
        return f"Nothing would change ({_objects(forecast.examined)} looked at)."
    total = forecast.total
    told = [
        f"{number} {what}"
        for number, what in (
            (total.moved, "replicas move"),
            (total.started, "start"),
            (total.stopped, "stop"),
            (total.added, "copies are added"),
            (total.removed, "removed"),
            (total.updated, "updated"),
            (total.overridden, "overridden"),
            (total.unschedulable, "become unschedulable"),
            (total.held, "are held"),
            (total.released, "are no longer held"),
        )
        if number
    ]
    return f"{_objects(total.objects)} would change: {', '.join(told)}. Nothing was written."


def _objects(number: int) -> str:
    return "1 object" if number == 1 else f"{number} objects"


def _reference(change: "ObjectChange") -> str:
    group = change.api_version.rpartition("/")[0]
    kind = f"{change.kind.lower()}.{group}" if group else change.kind.lower()
    return f"{kind}/{change.name}" + (f" in {change.namespace}" if change.namespace else "")
