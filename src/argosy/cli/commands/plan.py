"""`argosy plan`: what would follow from a change, before it is made.

How it is found out is `client.whatif`'s part; here are the options and what it looks like. Exit codes are its own: 0 nothing
would change, 2 something would, 1 it could not be told.
"""

from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

from argosy.cli.client.connection import with_client
from argosy.cli.output.failures import Failure
from argosy.cli.output.terminal import Output, print_objects, say, table

if TYPE_CHECKING:
    from argosy.cli.client.whatif import Scaled
    from argosy.kube.client import Client
    from argosy.plan.explain.forecast import ClusterChange, Forecast, ObjectChange

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
        list[str] | None, typer.Option("--scale", metavar="KIND/NAME=N", help="Suppose that an object is scaled.")
    ] = None,
    lose_cluster: Annotated[
        list[str] | None,
        typer.Option("--lose-cluster", metavar="CLUSTER", help="Suppose that a cluster fails and is given up."),
    ] = None,
    cordon: Annotated[
        list[str] | None, typer.Option("--cordon", metavar="CLUSTER", help="Suppose that a cluster gets no new work.")
    ] = None,
    add_cluster: Annotated[
        list[str] | None,
        typer.Option("--add-cluster", metavar="FILE", help="Suppose that this FederatedCluster joins."),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", help="Namespace of objects that name none; default: the context's."),
    ] = None,
    enable_katalyst_support: Annotated[
        bool, typer.Option("--enable-katalyst-support", help="Set it if the controllers run with it.")
    ] = False,
    output: Annotated[Output, typer.Option("--output", "-o", help="table, json, yaml or name.")] = Output.TABLE,
) -> None:
    """Show what would move, start, stop, be overridden or become unschedulable after a change, and write nothing.

    The controllers' own code decides on a copy of the present state with your change. Options may be repeated and combined;
    together they are one change. Exit code 0: nothing would change, 2: something would, 1: no answer.

    -f validates the files by the server's dry run. --cordon sets the taint argosy.io/cordoned:NoSchedule. --lose-cluster makes
    the cluster unready and sets the taint argosy.io/unready:NoExecute. --add-cluster takes a FederatedCluster, with its size in
    status.resources.allocatable (default: the fleet's median).

    Examples:

      argosy plan --scale deploy/web=60

      argosy plan -f policy.yaml

      argosy plan --lose-cluster berlin -o json

      argosy plan --add-cluster oslo.yaml --cordon berlin
    """
    import msgspec

    from argosy.cli.client.manifests import read
    from argosy.cli.client.whatif import Scenario, forecast_of
    from argosy.cli.output.progress import Ticker

    if not (filename or scale or lose_cluster or cordon or add_cluster):
        raise Failure("nothing is supposed to change", "argosy plan --help shows what can be", code=1)
    supposed = Scenario(
        applied=tuple(read(filename)) if filename else (),
        scaled=tuple(_scaled(text) for text in scale or ()),
        joined=tuple(read(add_cluster)) if add_cluster else (),
        cordoned=tuple(cordon or ()),
        lost=tuple(lose_cluster or ()),
        katalyst=enable_katalyst_support,
    )

    async def work(client: "Client", default: str) -> "Forecast":
        with Ticker() as ticker:
            return await forecast_of(client, supposed, namespace or default, ticker.at)

    try:
        found = with_client(context, work)
    except Failure as failure:
        raise Failure(failure.message, failure.hint, code=1) from None
    if output is Output.TABLE:
        show(found)
        if supposed.applied and found.plan:
            _show_plan(found.plan)
    elif output is Output.NAME:
        for each in found.objects:
            print(_reference(each))
    else:
        print_objects([msgspec.to_builtins(found)], output, single=True)
    if found.changes:
        raise typer.Exit(CHANGES)


def _scaled(text: str) -> "Scaled":
    from argosy.cli.client.kinds import split
    from argosy.cli.client.whatif import Scaled

    target, _, number = text.rpartition("=")
    if not target or not number.isascii() or not number.isdigit() or int(number[:10]) > 2**31 - 1:
        raise Failure(f"{text!r} is not KIND/NAME=NUMBER", "for example: --scale deployment/web=60", code=1)
    try:
        kind, name = split(target)
    except Failure as failure:
        raise Failure(failure.message, failure.hint, code=1) from None
    return Scaled(kind, name, int(number))


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


def _show_plan(plan: str) -> None:
    from argosy.api import keys

    say(
        f"Plan {plan}: what it removes needs no confirmation if you apply the files with `argosy apply --plan {plan}`, or with"
        f" the annotation {keys.PLAN}: {plan} on the policy."
    )


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
    if change.held:
        what = "no copy is made" if change.copy == "added" else "its copy stays as it is"
        return f"{what}: {change.held}"
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
        if not forecast.examined:
            return "Nothing would change: no object is concerned."
        return f"Nothing would change ({_objects(forecast.examined)} looked at)."
    total = forecast.total
    replicas = [(total.moved, "move"), (total.started, "start"), (total.stopped, "stop")]
    copies = [
        (total.added, "added"),
        (total.removed, "removed"),
        (total.updated, "updated"),
        (total.overridden, "overridden"),
    ]
    objects = [
        (total.unschedulable, "unschedulable from then on"),
        (total.held, "held from then on"),
        (total.released, "no longer held"),
    ]
    told = [
        f"{name}: {', '.join(f'{number} {what}' for number, what in counted if number)}"
        for name, counted in (("replicas", replicas), ("copies", copies), ("objects", objects))
        if any(number for number, _ in counted)
    ]
    return f"{_objects(total.objects)} would change; {'; '.join(told)}. Nothing was written."


def _objects(number: int) -> str:
    return "1 object" if number == 1 else f"{number} objects"


def _reference(change: "ObjectChange") -> str:
    group = change.api_version.rpartition("/")[0]
    kind = f"{change.kind.lower()}.{group}" if group else change.kind.lower()
    return f"{kind}/{change.name}" + (f" in {change.namespace}" if change.namespace else "")
