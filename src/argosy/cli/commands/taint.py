"""`argosy taint`: keep work off a cluster, or let it back."""

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from argosy.cli.client.connection import with_client
from argosy.cli.output.failures import Failure

if TYPE_CHECKING:
    from argosy.kube.client import Client

__all__ = ["changed", "drain", "taint"]

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TAINT = re.compile(r"(?P<key>[^=:-][^=:]*?)(=(?P<value>[^:]*))?(:(?P<effect>\w+))?(?P<remove>-)?")
_TRIES = 5


def taint(
    context: typer.Context,
    what: Annotated[str, typer.Argument(metavar="cluster", help="The word cluster.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The member.")],
    taints: Annotated[
        list[str],
        typer.Argument(metavar="KEY[=VALUE]:EFFECT[-]…", help="Taints to set, or to remove with a trailing -."),
    ],
) -> None:
    """Taint a cluster: NoSchedule blocks new work, NoExecute also evicts what runs there, PreferNoSchedule lowers its score.

    Examples:

      argosy taint cluster member-2 maintenance=disk:NoExecute

      argosy taint cluster member-2 maintenance-
    """
    _set(context, what, name, taints)
    print(f"federatedcluster/{name} {'untainted' if all(each.endswith('-') for each in taints) else 'tainted'}")


def _set(context: typer.Context, what: str, name: str, taints: list[str]) -> None:
    if what not in ("cluster", "clusters", "fcluster", "federatedcluster"):
        raise Failure(f"only clusters are tainted here, not {what!r}", "argosy taint cluster NAME KEY:EFFECT", code=2)
    changed([], taints)  # bad ones are told before anything is asked

    async def work(client: "Client", default: str) -> None:
        from argosy.api import resources
        from argosy.kube.errors import Conflict

        for attempt in range(_TRIES):
            found = await client.get(resources.FEDERATED_CLUSTERS, name)
            body = {
                "metadata": {"resourceVersion": found["metadata"]["resourceVersion"]},
                "spec": {"taints": changed(found["spec"].get("taints") or [], taints)},
            }
            try:
                await client.patch(resources.FEDERATED_CLUSTERS, name, body)
            except Conflict:
                if attempt == _TRIES - 1:
                    raise
                continue
            return

    with_client(context, work)


def drain(
    context: typer.Context,
    what: Annotated[str, typer.Argument(metavar="cluster", help="The word cluster.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The member.")],
    undo: Annotated[bool, typer.Option("--undo", help="Let work back in.")] = False,
) -> None:
    """Empty a cluster, for example for maintenance: what runs there moves to others, as far as they have room.

    A drain is an order: unlike a taint that something set, it never counts as a mistake that takes too much away.

    Examples:

      argosy drain cluster member-2

      argosy drain cluster member-2 --undo
    """
    from argosy.api import keys

    _set(context, what, name, [f"{keys.DRAINED_TAINT}:NoExecute{'-' if undo else ''}"])
    print(f"federatedcluster/{name} {'no longer drained' if undo else 'drained'}")


def changed(current: list[dict[str, Any]], wanted: list[str]) -> list[dict[str, Any]]:
    """The taints after these changes; a key and effect is there once. Raises Failure."""
    found = list(current)
    for text in wanted:
        parsed = _TAINT.fullmatch(text)
        effect = parsed["effect"] if parsed else None
        if parsed is None or (effect is None and not parsed["remove"]) or (effect and effect not in EFFECTS):
            raise Failure(
                f"{text!r} is not a taint",
                f"KEY=VALUE:EFFECT with {', '.join(EFFECTS)}; KEY- or KEY:EFFECT- removes",
                code=2,
            )
        key = parsed["key"]
        found = [each for each in found if each.get("key") != key or (effect and each.get("effect") != effect)]
        if not parsed["remove"]:
            value = {"value": parsed["value"]} if parsed["value"] else {}
            found.append({"key": key, **value, "effect": effect})
    return found
