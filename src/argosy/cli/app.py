"""The command tree: every command and where it is. The modules named here import nothing heavy until a command runs."""

from typing import Annotated

import typer

from argosy import __version__
from argosy.cli.client.connection import Target
from argosy.cli.commands import (
    apply,
    backup,
    brake,
    controllers,
    explain,
    get,
    install,
    join,
    objects,
    orphans,
    pause,
    plan,
    server,
    sim,
    status,
    taint,
    up,
)
from argosy.cli.options.upstream import TakesUpstreamFlags

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # Plain help: loading what draws it in boxes takes longer than all the rest.
    rich_markup_mode=None,
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
    kube_context: Annotated[str | None, typer.Option("--context", help="Context in the kubeconfig.")] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Argosy: one Kubernetes API for many clusters.

    Start: `argosy up --members 3 --example`, then `argosy status deployment/web`.

    The control plane is the first of: --kubeconfig, $ARGOSY_KUBECONFIG, ./.argosy/kubeconfig, $KUBECONFIG, a pod's service
    account, ~/.kube/config. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted. ARGOSY_DEBUG=1 shows tracebacks.
    """
    context.obj = Target(kubeconfig, kube_context)


app.command(cls=TakesUpstreamFlags)(up.up)
app.command()(up.down)
app.command()(server.server)
app.command()(sim.sim)
app.command()(install.install)
app.command()(install.uninstall)
app.command(cls=TakesUpstreamFlags)(controllers.controllers)
app.command()(join.join)
app.command()(join.unjoin)
app.command()(taint.taint)
app.command()(get.get)
app.command()(status.status)
app.command()(explain.explain)
app.command(cls=plan.Command)(plan.plan)
app.command()(apply.apply)
app.command()(objects.delete)
app.command()(objects.scale)
app.command()(objects.patch)
app.command()(objects.label)
app.command()(pause.pause)
app.command()(pause.resume)
app.command()(brake.confirm)
app.command()(brake.rescue)
app.command()(brake.brake)
app.command()(taint.drain)
app.command()(backup.backup)
app.command()(backup.restore)
app.command()(orphans.orphans)
