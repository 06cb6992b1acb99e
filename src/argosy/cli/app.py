"""The command tree: every command and where it is. The modules named here import nothing heavy until a command runs."""

from typing import Annotated

import typer

from argosy import __version__
from argosy.cli import apply, controllers, get, join, objects, pause, server, sim, status, taint, up
from argosy.cli.connection import Target

__all__ = ["app"]

_RUN = "Run it"
_FLEET = "Members"
_LOOK = "Look"
_CHANGE = "Change"

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"argosy {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    kubeconfig: Annotated[str | None, typer.Option(help="Kubeconfig of the control plane.")] = None,
    kube_context: Annotated[str | None, typer.Option("--context", help="Context in it.")] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Argosy: one Kubernetes API for many clusters.

    Start: `argosy up --members 3 --example`, then `argosy status deployment/web`.

    The control plane is taken from --kubeconfig, $ARGOSY_KUBECONFIG, ./.argosy/kubeconfig, $KUBECONFIG or ~/.kube/config.
    Exit codes: 0 done, 1 failed, 2 misused, 130 interrupted. ARGOSY_DEBUG=1 shows tracebacks.
    """
    context.obj = Target(kubeconfig, kube_context)


app.command(rich_help_panel=_RUN)(up.up)
app.command(rich_help_panel=_RUN)(up.down)
app.command(rich_help_panel=_RUN)(server.server)
app.command(rich_help_panel=_RUN)(sim.sim)
app.command(rich_help_panel=_RUN)(controllers.controllers)
app.command(rich_help_panel=_FLEET)(join.join)
app.command(rich_help_panel=_FLEET)(join.unjoin)
app.command(rich_help_panel=_FLEET)(taint.taint)
app.command(rich_help_panel=_LOOK)(get.get)
app.command(rich_help_panel=_LOOK)(status.status)
app.command(rich_help_panel=_CHANGE)(apply.apply)
app.command(rich_help_panel=_CHANGE)(objects.delete)
app.command(rich_help_panel=_CHANGE)(objects.scale)
app.command(rich_help_panel=_CHANGE)(objects.patch)
app.command(rich_help_panel=_CHANGE)(objects.label)
app.command(rich_help_panel=_CHANGE)(pause.pause)
app.command(rich_help_panel=_CHANGE)(pause.resume)
