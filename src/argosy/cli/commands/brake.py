"""`argosy confirm`, `argosy rescue`, `argosy brake`: go on with what the brake holds, or save it, or switch the brake off."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from argosy.cli.client.connection import with_client
from argosy.cli.output.failures import Failure
from argosy.cli.output.terminal import age, say, table

if TYPE_CHECKING:
    from argosy.cli.client.brake import HeldObject
    from argosy.kube.client import Client
    from argosy.plan.brake.orders import Orders

__all__ = ["brake", "confirm", "rescue"]

#: Seconds that the brake may be off.
_LONGEST = 86400.0
#: Objects that are listed one by one.
_LISTED = 20

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Everything = Annotated[bool, typer.Option("--all", help="Whatever the cause.")]


def confirm(
    context: typer.Context,
    cause: Annotated[
        str | None, typer.Argument(help="As `argosy status fleet` names it, for example PolicyChanged.")
    ] = None,
    everything: Everything = False,
    yes: Yes = False,
) -> None:
    """Let go what the brake holds because of one cause: the copies are removed from their clusters.

    What it removes is shown before. The confirmation is kept in the system namespace, with who gave it and when. To take nothing
    away, undo the change that caused it instead: then no member is written at all.

    Examples:

      argosy confirm PolicyChanged

      argosy confirm --all --yes
    """
    if (cause is None) == (not everything):
        raise Failure("name one cause, or --all", "`argosy status fleet` lists what is held", code=2)

    async def work(client: "Client", default: str) -> None:
        from argosy.cli.client import brake

        held = [each for each in await brake.held_objects(client) if cause in (None, each.cause)]
        if not held:
            raise Failure(f"nothing is held{f' because of {cause}' if cause else ''}", "`argosy status fleet`", code=1)
        _show(held, "will be removed")
        _ask("Remove these copies?", yes)
        await brake.release(client, "confirmed", held)
        print("confirmed: they are removed now")

    with_client(context, work)


def rescue(context: typer.Context, yes: Yes = False) -> None:
    """Save what most sources' deletion would take along: copies are released and keep running, and the deletion ends.

    For sources that were deleted by mistake, for example by a prune of the wrong folder. Their copies stay in the members as they
    are, no longer managed. Applied again, the sources take them over: no pod is restarted.

    Example:

      argosy rescue
    """

    async def work(client: "Client", default: str) -> None:
        from argosy.cli.client import brake
        from argosy.plan.brake.cause import Cause

        held = [each for each in await brake.held_objects(client) if each.cause == Cause.SOURCES_DELETED]
        if not held:
            raise Failure("no deletion of sources is held", "`argosy status fleet` lists what is held", code=1)
        _show(held, "will be released and keep running", most=len(held))
        _ask("Release these copies?", yes)
        await brake.release(client, "rescued", held)
        print("rescued: the copies keep running; apply the sources again to take them over")

    with_client(context, work)


def brake(
    context: typer.Context,
    state: Annotated[str, typer.Argument(metavar="[on|off]", help="Nothing: show it.")] = "",
    duration: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="How long it is off; it ends by itself.")
    ] = "",
    reason: Annotated[str, typer.Option(help="Why; kept with who and when.")] = "",
) -> None:
    """Show the brake, or switch it off for a while, for maintenance. What is held then goes on at once.

    Examples:

      argosy brake

      argosy brake off --for 1h --reason "moving out of berlin"

      argosy brake on
    """
    from argosy.cli.options.timeouts import duration_of

    if state not in ("", "on", "off"):
        raise Failure(f"the brake is on or off, not {state!r}", "argosy brake off --for 1h --reason …", code=2)
    if state == "off" and not (duration and reason):
        raise Failure("say for how long and why", "argosy brake off --for 1h --reason …", code=2)
    seconds = duration_of("--for", duration) if duration else 0.0
    if seconds > _LONGEST:
        raise Failure("the brake is off for a day at most", "argosy brake off --for 24h --reason …", code=2)

    async def work(client: "Client", default: str) -> "Orders":
        import datetime

        import msgspec

        from argosy.cli.client import brake
        from argosy.kube import clock, timestamps
        from argosy.plan.brake.orders import Off

        if state == "off":
            until = timestamps.timestamp(clock.now() + datetime.timedelta(seconds=seconds))
            off = Off(until, await brake.whoami(client), reason)
            await brake.give(client, lambda before: msgspec.structs.replace(before, off=off))
        elif state == "on":
            await brake.give(client, lambda before: msgspec.structs.replace(before, off=None))
        return await brake.orders(client)

    _tell(with_client(context, work))


def _tell(orders: "Orders") -> None:
    from argosy.kube import clock

    if orders.off is not None and orders.is_off(clock.now()):
        by = f" by {orders.off.by}" if orders.off.by else ""
        say(f"The brake is off until {orders.off.until}{by}: {orders.off.reason}", "yellow")
    else:
        say("The brake is on.", "green")
    rows = [
        [what, each.what, each.at, each.by or "-"]
        for what, given in (("confirmed", orders.confirmed), ("planned", orders.planned), ("rescued", orders.rescued))
        for each in given
    ]
    if rows:
        say()
        table(["ORDER", "OF", "AT", "BY"], rows)


def _show(held: "list[HeldObject]", what: str, most: int = _LISTED) -> None:
    copies = sum(len(each.clusters) for each in held)
    say(f"{copies} copies of {len(held)} objects {what}:", "bold")
    rows = [
        [f"{each.kind}/{each.name}", each.namespace or "-", ",".join(each.clusters), each.cause, age(each.since)]
        for each in held[:most]
    ]
    table(["OBJECT", "NAMESPACE", "CLUSTERS", "CAUSE", "HELD FOR"], rows, indent="  ")
    if len(held) > most:
        say(f"  and {len(held) - most} more")


def _ask(question: str, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise Failure("nobody to ask here", "--yes says it beforehand", code=2)
    typer.confirm(question, abort=True)
