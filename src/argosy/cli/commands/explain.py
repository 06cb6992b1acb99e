"""`argosy explain`: why an object runs where it runs, and why not elsewhere."""

from typing import TYPE_CHECKING, Annotated

import typer

from argosy.cli.client.connection import with_client
from argosy.cli.output.terminal import Output, print_objects, say, table

if TYPE_CHECKING:
    from argosy.cli.output.explanation import Explained
    from argosy.kube.client import Client
    from argosy.plan.explain.record import Account
    from argosy.plan.explain.summary import Why

__all__ = ["explain", "show"]

#: Clusters in the table of scores; `-o json` has them all.
_SHOWN = 20


def explain(
    context: typer.Context,
    target: Annotated[str, typer.Argument(metavar="KIND/NAME", help="The object, for example deployment/web.")],
    name: Annotated[str | None, typer.Argument(hidden=True)] = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Namespace; default: the context's.")
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster", metavar="CLUSTER", help="Why it is (not) in this cluster, and what would change that."
        ),
    ] = None,
    now: Annotated[
        bool, typer.Option("--now", help="Decide again with the present state, instead of showing the record.")
    ] = False,
    enable_katalyst_support: Annotated[
        bool, typer.Option("--enable-katalyst-support", help="With --now: set it if the controllers run with it.")
    ] = False,
    output: Annotated[Output, typer.Option("--output", "-o", help="table, json or yaml.")] = Output.TABLE,
) -> None:
    """Show why an object is placed where it is: refused clusters and their filters, scores, selection, division of replicas.

    This is the record that was stored with the decision: the reason for the placement, not a later guess. What has changed
    since is listed. `argosy plan` shows what a change would do.

    Examples:

      argosy explain deployment/web

      argosy explain deploy/web -n shop --cluster berlin

      argosy explain deploy/web --now -o json
    """
    import msgspec

    from argosy.cli.client.kinds import resolve, split
    from argosy.cli.client.snapshot import read_snapshot
    from argosy.cli.output import explanation
    from argosy.cli.output.progress import Ticker

    kind, found_name = split(target, name)

    async def work(client: "Client", default: str) -> "Explained":
        resource = await resolve(client, kind)
        place = (namespace or default) if resource.namespaced else None
        facts = await explanation.gather(client, resource, found_name, place)
        decided = None
        if now:
            with Ticker() as ticker:
                snapshot = await read_snapshot(client, ticker.at, katalyst=enable_katalyst_support)
                decided = await explanation.decided_now(snapshot, facts)
        return explanation.explained(facts, cluster, decided)

    told = with_client(context, work)
    if output is Output.TABLE:
        show(told, now=now)
    elif output is Output.NAME:
        print(f"{told.kind.lower()}/{told.name}")
    else:
        print_objects([msgspec.to_builtins(told)], output, single=True)


def show(told: "Explained", *, now: bool = False) -> None:
    place = f" in {told.namespace}" if told.namespace else ""
    say(f"{told.kind} {told.name}{place}", "bold")
    if told.policy:
        say(f"  policy     {told.policy}" + (f": {told.claimed}" if told.claimed else ""))
    elif told.claimed:
        say(f"  policy     none selects it: {told.claimed}")
    if told.other_policies:
        say(f"  others     {', '.join(told.other_policies)}: they select it as well")
    if told.follows:
        say(
            f"  follows    {', '.join(told.follows)}"
            + (f" to {', '.join(told.followed_to)}" if told.followed_to else "")
        )
    say(f"  placed     {_placements(told.placements)}")
    if told.budget:
        say(f"  budget     {told.budget}")
    say()
    if told.cluster is not None:
        _show_cluster(told.cluster)
    elif told.decision is not None:
        _show_decision(told, now=now)
    if told.undecided and told.cluster is None:
        say(f"  {told.undecided}", "yellow")
        say()
    _show_list("waits for what does not exist", told.waits_for, "red")
    _show_list("since then", told.since, "yellow")
    _show_list(
        "held as it was" if told.placements else "held, placed nowhere", (told.held,) if told.held else (), "red"
    )
    _show_list("overridden", told.overrides)
    _show_list("kept from being scheduled again", (told.deferred,) if told.deferred else (), "yellow")
    if told.cluster is None:
        _show_list("events, the newest first", told.events)


def _show_decision(told: "Explained", *, now: bool) -> None:
    decision = told.decision
    assert decision is not None
    considered = f"{decision.clusters} clusters considered"
    say("  what would be decided now" if now else f"  what was decided ({considered})", "bold")
    for line in told.lines:
        say(f"    {line}")
    say()
    if decision.scores:
        _show_scores(decision)


def _show_scores(decision: "Account") -> None:
    """The selected first, in their order, then the others by score."""
    totals = {name: sum(given.values()) for name, given in decision.scores.items()}
    others = sorted(totals.keys() - set(decision.selected), key=lambda name: (-totals[name], name))
    order = [name for name in decision.selected if name in totals] + others
    plugins = sorted({plugin for given in decision.scores.values() for plugin in given})
    # Plugins that say the same of everybody explain nothing.
    telling = [plugin for plugin in plugins if len({given.get(plugin) for given in decision.scores.values()}) > 1]
    rows = []
    for name in order[:_SHOWN]:
        selected = "yes" if name in decision.selected else "no"
        given = decision.scores[name]
        replicas = decision.placements.get(name) if name in decision.placements else None
        number = "-" if replicas is None else str(replicas)
        rows.append([name, selected, number, str(totals[name]), *(str(given.get(plugin, "-")) for plugin in telling)])
    table(["CLUSTER", "SELECTED", "REPLICAS", "SCORE", *telling], rows, indent="    ")
    if len(order) > _SHOWN:
        say(f"    … and {len(order) - _SHOWN} more: -o json has them all")
    say()


def _show_cluster(why: "Why") -> None:
    replicas = f" with {why.replicas} replicas" if why.replicas is not None else ""
    say(f"  {why.cluster}: placed there{replicas}" if why.placed else f"  {why.cluster}: not there", "bold")
    say(f"    because {why.because}")
    if why.scores:
        given = ", ".join(f"{plugin} {score}" for plugin, score in why.scores.items() if score)
        say(f"    scores: {given or 'all 0'}")
    if why.change:
        say("    what would change that, each by itself:" if len(why.change) > 1 else "    what would change that:")
        for each in why.change:
            say(f"      {each}")
    say()


def _show_list(title: str, lines: "tuple[str, ...]", style: str = "") -> None:
    if not lines:
        return
    say(f"  {title}", "bold")
    for line in lines:
        say(f"    {line}", style)
    say()


def _placements(placements: "dict[str, int | None]") -> str:
    from argosy.plan.explain.summary import placement_text

    return placement_text(placements)
