"""`argosy status`: everything about one object on one screen."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from argosy.cli.client.connection import with_client
from argosy.cli.commands import fleet
from argosy.cli.output.terminal import Output, print_objects, say, table

if TYPE_CHECKING:
    from argosy.cli.output.diff import Differing
    from argosy.cli.output.drifted import Drifted
    from argosy.cli.output.report import Report
    from argosy.kube.client import Client

__all__ = ["named", "show", "status"]

Namespace = Annotated[str | None, typer.Option("--namespace", "-n", help="Namespace; default: the context's.")]


def status(
    context: typer.Context,
    target: Annotated[
        str,
        typer.Argument(metavar="KIND/NAME | fleet", help="The object, for example deployment/web; or the whole fleet."),
    ],
    name: Annotated[str | None, typer.Argument(hidden=True)] = None,
    cluster: Annotated[str | None, typer.Argument(hidden=True)] = None,
    namespace: Namespace = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="table, json, yaml or name.")] = Output.TABLE,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until nothing is pending.")] = False,
    timeout: Annotated[float, typer.Option(min=0, help="Seconds --wait waits at most.")] = 120.0,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Of the fleet: show it again and again.")] = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Of the fleet: exit with 3 if something is wrong.")
    ] = False,
    diff: Annotated[
        bool,
        typer.Option(
            "--diff", help="Show how it differs from its template, in each cluster or in the one named behind it."
        ),
    ] = False,
    drift: Annotated[
        bool, typer.Option("--drift", help="Show what others changed in its copies, and whether that was repaired.")
    ] = False,
) -> None:
    """Show where an object is placed, its state in each cluster, and what it is waiting for; or how the whole fleet is.

    Examples:

      argosy status fleet -w

      argosy status deployment/web

      argosy status deploy/web -n shop -o json

      argosy status deploy/web --wait --timeout 60

      argosy status deploy/web --diff

      argosy status deploy/web --diff berlin

      argosy status deploy/web --drift
    """
    import msgspec

    from argosy.cli.client.kinds import resolve
    from argosy.cli.output import report
    from argosy.cli.output.diff import differing
    from argosy.cli.output.drifted import drifted
    from argosy.cli.output.failures import Failure

    if target == "fleet":
        fleet.status_fleet(context, output, watch=watch, exit_code=exit_code)
        return
    if watch or exit_code:
        raise Failure("--watch and --exit-code are for the fleet", "argosy status fleet -w", code=2)
    kind, found_name, only = named(target, name, cluster, diff=diff)

    async def work(client: "Client", default: str) -> "tuple[Report, tuple[Differing, ...], tuple[Drifted, ...]]":
        resource = await resolve(client, kind)
        place = (namespace or default) if resource.namespaced else None
        deadline = asyncio.get_running_loop().time() + timeout
        while True:
            facts = await report.gather(client, resource, found_name, place)
            made = report.report(facts)
            late = asyncio.get_running_loop().time() >= deadline
            if not wait or not made.waiting:
                return made, differing(facts, only) if diff else (), drifted(facts)
            if late:
                raise Failure(
                    f"after {timeout:g} s still waiting: {'; '.join(made.waiting)}", f"argosy status {target}"
                )
            await asyncio.sleep(0.2)

    made, differences, changed = with_client(context, work)
    if output is Output.TABLE:
        show(made, overrides=not diff)
        if diff:
            _show_differences(differences)
        if drift:
            _show_drift(changed)
        elif any(each.state == "repaired" for each in changed):
            say()
            say("  others changed copies, which was repaired: --drift shows it", "dim")
        return
    if output is Output.NAME:
        print(f"{made.kind.lower()}/{made.name}")
        return
    told = msgspec.to_builtins(made)
    told |= {"differences": msgspec.to_builtins(differences)} if diff else {}
    told |= {"drift": msgspec.to_builtins(changed)} if drift else {}
    print_objects([told], output, single=True)


def named(target: str, name: str | None, cluster: str | None, *, diff: bool) -> tuple[str, str, str | None]:
    """Kind and name, and the cluster that --diff is asked for: `KIND/NAME [CLUSTER]`, or all as separate words."""
    from argosy.cli.client.kinds import split
    from argosy.cli.output.failures import Failure

    if diff and "/" in target and cluster is None:
        name, cluster = None, name
    elif cluster is not None and not diff:
        raise Failure(f"{cluster!r} is one too many", "a cluster is named with --diff", code=2)
    return *split(target, name), cluster


def _show_differences(differences: "tuple[Differing, ...]") -> None:
    from argosy.cli.output.diff import text

    say()
    say("  differs from the template", "bold")
    rows = []
    for each in differences:
        for field in each.fields:
            values = [text(value, secret=field.secret) for value in (field.template, field.value)]
            rows.append([each.cluster, field.path, *values, field.by])
    if rows:
        table(["CLUSTER", "FIELD", "TEMPLATE", "THERE", "BY"], rows, indent="    ")
    for each in differences:
        if each.held:
            say(f"    {each.cluster}: its copy stays as it is: {each.held}", "yellow")
    same = [each.cluster for each in differences if not each.fields and not each.held]
    if same:
        say(f"    not at all in {', '.join(same)}")


def _show_drift(drift: "tuple[Drifted, ...]") -> None:
    from argosy.cli.output.drifted import field, value

    say()
    say("  changed in members by others", "bold")
    rows = [
        [each.cluster, field(each), value(each, each.theirs), value(each, each.ours), each.since, each.state]
        for each in drift
    ]
    if rows:
        table(["CLUSTER", "FIELD", "THEIRS", "OURS", "SINCE", "STATE"], rows, indent="    ")
    else:
        say("    nothing that is on record")


def show(report: "Report", *, overrides: bool = True) -> None:
    place = f" in {report.namespace}" if report.namespace else ""
    say(f"{report.kind} {report.name}{place}", "bold")
    policy = report.policy or ("none needed" if report.kind == "Namespace" else "none")
    say(f"  policy     {policy}" + (f" ({report.mode})" if report.mode else ""))
    if report.replicas is not None:
        say(f"  replicas   {report.ready or 0} of {report.replicas} ready")
    if report.clusters:
        say()
        errors = any(cluster.error for cluster in report.clusters)
        columns = ["CLUSTER", "REPLICAS", "READY", "PROPAGATION", *(["LAST ERROR"] if errors else [])]
        rows = []
        for cluster in report.clusters:
            row = [cluster.name, _number(cluster.replicas), _number(cluster.ready), cluster.propagation]
            rows.append([*row, cluster.error] if errors else row)
        table(columns, rows, indent="  ")
    else:
        say("  placed nowhere")
    if report.overrides and overrides:
        say()
        say("  overrides", "bold")
        for name, patches in report.overrides.items():
            for patch in patches:
                say(f"    {name}: {patch}")
    say()
    if report.waiting:
        say("  waiting for", "bold")
        for line in report.waiting:
            say(f"    {line}", "yellow")
    else:
        all_done = "" if report.without_effect or report.drifted else ": everything is as it should be"
        say(f"  waiting for nothing{all_done}", "green")
        for line in [*([report.unattended] if report.unattended else []), *report.paused]:
            say(f"  {line}", "yellow")
    if report.drifted:
        say()
        say("  changed by others, and left", "bold")
        for line in report.drifted:
            say(f"    {line}", "yellow")
    if report.without_effect:
        say()
        say("  without effect", "bold")
        for line in report.without_effect:
            say(f"    {line}", "yellow")
    if report.conditions:
        say()
        rows = [[each["type"], each["status"], each["reason"], each["message"]] for each in report.conditions]
        table(["CONDITION", "STATUS", "REASON", "MESSAGE"], rows, indent="  ")


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)
