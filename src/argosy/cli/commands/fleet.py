"""`argosy status fleet`: clusters, water levels, held removals and trouble on one screen."""

import contextlib
import time
from typing import TYPE_CHECKING

import typer

from argosy.cli.client.connection import with_client
from argosy.cli.output.terminal import Output, print_objects

if TYPE_CHECKING:
    from argosy.cli.output.fleet import FleetReport
    from argosy.kube.client import Client

__all__ = ["status_fleet"]

WRONG = 3
_EVERY = 2.0
#: Clears the screen and goes to its top.
_CLEAR = "\x1b[2J\x1b[H"


def status_fleet(context: typer.Context, output: Output, *, watch: bool, exit_code: bool) -> None:
    import msgspec

    async def work(client: "Client", default: str) -> "FleetReport":
        from argosy.cli.client.fleet import read_fleet

        return await read_fleet(client)

    if watch:
        from argosy.cli.output.fleet import show

        with contextlib.suppress(KeyboardInterrupt):
            while True:
                found = with_client(context, work)
                print(_CLEAR, end="")
                show(found)
                time.sleep(_EVERY)
        return
    found = with_client(context, work)
    if output is Output.TABLE:
        from argosy.cli.output.fleet import show

        show(found)
    elif output is Output.NAME:
        for line in found.clusters:
            print(f"federatedcluster/{line.name}")
    else:
        print_objects([msgspec.to_builtins(found)], output, single=True)
    if exit_code and not found.well:
        raise typer.Exit(WRONG)
