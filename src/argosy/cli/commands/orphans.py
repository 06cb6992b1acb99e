"""`argosy orphans`: what members hold that the control plane does not know, and what it would make there again."""

from typing import TYPE_CHECKING, Annotated

import typer

from argosy.api import keys
from argosy.cli.client.connection import with_client
from argosy.cli.options.endpoints import AllowedEndpoints, AllowHttpEndpoints, rules
from argosy.cli.output.failures import Failure
from argosy.cli.output.terminal import Output, age, print_objects, say, table

if TYPE_CHECKING:
    from argosy.cli.client.inventory import Inventory
    from argosy.kube.client import Client
    from argosy.plan.copies.orphans import Missing, Orphan
    from argosy.plan.explain.snapshot import ObjectKey

__all__ = ["orphans"]

FOUND = 3
#: Kinds that are named in one line of the table; the report names all of them.
_NAMED = 4


def orphans(
    context: typer.Context,
    output: Annotated[Output, typer.Option("--output", "-o", help="table, json, yaml or name.")] = Output.TABLE,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 3 if anything is found.")] = False,
    rescued: Annotated[
        bool, typer.Option("--rescued", help="Also list what `argosy rescue` left running: looks at every object.")
    ] = False,
    allowed_endpoints: AllowedEndpoints = None,
    allow_http_endpoints: AllowHttpEndpoints = False,
) -> None:
    """Compare the members with the control plane. Deletes nothing, changes nothing.

    Orphans are objects in a member with the federation's label that no federated object places there, for example after the
    control plane was restored from an older backup. The controllers never delete them: what to do is said below the list. Those
    that were in the member before they were adopted are named as such. With --rescued, also what `argosy rescue` left running and
    nobody has applied again.

    Also listed are objects that should be in a member and are not. After a restore these are sources that were deleted (or
    moved) since the backup, and came back with it. They are created again as soon as the fleet is not paused.

    Every kind that a member serves is checked, federated or not. Kinds that cannot be listed are named: the service account of a
    member may list only the federated kinds, unless it has full access.

    Exit codes: 0 everything was checked, 1 something could not be checked, 3 something was found (with --exit-code).

    Examples:

      argosy orphans

      argosy orphans -o json

      argosy orphans --rescued
    """
    from argosy.cli.client.inventory import take_inventory
    from argosy.cli.output.progress import Ticker
    from argosy.plan.copies import orphans as decide

    endpoints = rules(allowed_endpoints, allow_http_endpoints)

    async def work(client: "Client", namespace: str) -> "Inventory":
        with Ticker() as ticker:
            return await take_inventory(client, endpoints, ticker.at, rescued=rescued)

    inventory = with_client(context, work)
    orphaned = decide.orphaned(inventory.copies, inventory.known)
    missing = decide.missing(inventory.copies, inventory.placed, inventory.looked_at)
    if output is Output.TABLE:
        _show(inventory, orphaned, missing)
    elif output is Output.NAME:
        for orphan in orphaned:
            print(f"{orphan.copy.cluster}/{_name(orphan.copy.key)}")
    else:
        print_objects([_report(inventory, orphaned, missing)], output, single=True)
    if inventory.unknown:
        name, why = min(inventory.unknown.items())
        more = f" and {len(inventory.unknown) - 1} more" if len(inventory.unknown) > 1 else ""
        raise Failure(
            f"{name}{more} could not be looked at: {why}", "what they hold is not known; `argosy get clusters`"
        )
    if inventory.unlisted:
        raise _unlisted(inventory.unlisted)
    if exit_code and (orphaned or missing):
        raise typer.Exit(FOUND)


def _unlisted(unlisted: "dict[str, dict[str, str]]") -> Failure:
    name, kinds = min(unlisted.items())
    kind, why = min(kinds.items())
    more = f" and {len(kinds) - 1} more" if len(kinds) > 1 else ""
    elsewhere = f" and {len(unlisted) - 1} more" if len(unlisted) > 1 else ""
    return Failure(
        f"{kind}{more} could not be listed in {name}{elsewhere}: {why}",
        f"what they hold of that is not known; with other rights `kubectl get KIND -A -l {keys.MANAGED_LABEL}=true` tells",
    )


def _show(inventory: "Inventory", orphaned: "list[Orphan]", missing: "list[Missing]") -> None:
    if inventory.restored_from:
        paused = "The fleet is paused." if inventory.paused else "The fleet is not paused any more."
        say(f"This control plane was restored from a backup of {inventory.restored_from}. {paused}\n")
    if orphaned:
        say("In members, and not known here (nobody deletes them):", "bold")
        rows = [
            [each.copy.cluster, _name(each.copy.key), each.copy.key.namespace, age(each.copy.created), each.why]
            for each in orphaned
        ]
        table(["CLUSTER", "OBJECT", "NAMESPACE", "AGE", "WHY"], rows, indent="  ")
        say("\n  To take one over again, apply its source: the copy keeps running as it is.")
        say(f"  To let one go, in the member: kubectl label KIND NAME -n NAMESPACE {keys.MANAGED_LABEL}-")
        say("  If it is of no use, delete it in the member; not one that was there before.")
    elif inventory.unknown or inventory.unlisted:
        say("No orphans in what could be looked at.")
    else:
        say("No orphans: every copy in a member belongs to a federated object.")
    say()
    if missing:
        again = "made again by `argosy resume fleet`" if inventory.paused else "to be made again"
        say(f"To be in members, and not there ({again}; delete the source if that is not wanted):", "bold")
        rows = [
            [
                _name(each.key),
                each.key.namespace,
                ",".join(each.gone),
                ",".join(each.still) or "-",
                _verdict(each, inventory),
            ]
            for each in missing
        ]
        table(["OBJECT", "NAMESPACE", "GONE FROM", "STILL IN", "WHY"], rows, indent="  ")
    elif inventory.unknown or inventory.unlisted:
        say("Nothing is missing in what could be looked at.")
    else:
        say("Nothing is missing in members.")
    if inventory.unlisted:
        say()
        say("Not looked at, so nothing is said about it:", "bold")
        table(["CLUSTER", "KINDS", "WHY"], _not_looked_at(inventory.unlisted), indent="  ")


def _not_looked_at(unlisted: "dict[str, dict[str, str]]") -> list[list[str]]:
    """What could not be listed for the same reason is in one line."""
    rows = []
    for cluster, kinds in sorted(unlisted.items()):
        reasons: dict[str, list[str]] = {}
        for kind, why in sorted(kinds.items()):
            reasons.setdefault(why, []).append(kind)
        for why, names in reasons.items():
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            rows.append([cluster, ", ".join(names[:_NAMED]) + more, why])
    return rows


def _verdict(missing: "Missing", inventory: "Inventory") -> str:
    if missing.unknown:
        return "not everywhere looked at"
    if not inventory.restored_from:
        return "not there yet, or deleted there"
    return "placed otherwise since" if missing.still else "deleted since, came back"


def _name(key: "ObjectKey") -> str:
    return f"{key.type}/{key.name}"


def _report(inventory: "Inventory", orphaned: "list[Orphan]", missing: "list[Missing]") -> dict[str, object]:
    return {
        "restoredFrom": inventory.restored_from,
        "paused": inventory.paused,
        "orphans": [
            {
                "cluster": each.copy.cluster,
                "type": each.copy.key.type,
                "namespace": each.copy.key.namespace,
                "name": each.copy.key.name,
                "created": each.copy.created,
                "why": each.why,
                "adopted": each.copy.adopted,
                "rescued": each.copy.rescued,
            }
            for each in orphaned
        ],
        "missing": [
            {
                "type": each.key.type,
                "namespace": each.key.namespace,
                "name": each.key.name,
                "goneFrom": list(each.gone),
                "stillIn": list(each.still),
                "why": _verdict(each, inventory),
            }
            for each in missing
        ],
        "notLookedAt": dict(sorted(inventory.unknown.items())),
        "notListed": {cluster: dict(sorted(kinds.items())) for cluster, kinds in sorted(inventory.unlisted.items())},
    }
