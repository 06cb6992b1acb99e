"""`argosy install`: make a control plane ready for the controllers."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from argosy.cli.client.connection import with_client
from argosy.cli.output.failures import Failure

if TYPE_CHECKING:
    from argosy.control.install.installer import Installation
    from argosy.kube.client import Client

__all__ = ["install", "refuse_workloads", "uninstall"]


class Manifests(StrEnum):
    LINES = "lines"
    YAML = "yaml"


def install(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")] = False,
    output: Annotated[
        Manifests,
        typer.Option("--output", "-o", help="With --dry-run: a line for each object, or yaml for the manifests."),
    ] = Manifests.LINES,
    controllers_user: Annotated[
        list[str] | None,
        typer.Option(help="A user as whom the controllers may run, besides the service account; repeatable."),
    ] = None,
    skip_existing: Annotated[
        bool, typer.Option("--skip-existing", help="Do not exclude existing objects from federation.")
    ] = False,
    allow_workload_controllers: Annotated[
        bool,
        typer.Option(
            "--allow-workload-controllers", help="Install even if this control plane runs a Deployment controller."
        ),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace CRDs that are newer than this Argosy's.")] = False,
) -> None:
    """Install the federation's CRDs, rights and type configs on a control plane, or update them to this version.

    Safe to repeat: only what differs is written. Run it again after adding a type config, to grant its rights.

    Examples:

      argosy --kubeconfig hub.kubeconfig install

      argosy --kubeconfig hub.kubeconfig install --dry-run -o yaml
    """
    from argosy.api import rights
    from argosy.control.install.installer import Installation

    if output is Manifests.YAML and not dry_run:
        raise Failure("-o yaml shows manifests and installs nothing", "add --dry-run", code=2)
    users = tuple(rights.user(name) for name in controllers_user or ())
    chosen = Installation(
        controllers=(rights.SERVICE_ACCOUNT, *users), mark_existing=not skip_existing, downgrade=force
    )

    async def work(client: "Client", default: str) -> None:
        if output is Manifests.YAML:
            await _print_manifests(client, chosen)
        elif dry_run:
            await _preview(client, chosen, allow_workload_controllers)
        else:
            await _install(client, chosen, allow_workload_controllers)

    with_client(context, work)


def uninstall(
    context: typer.Context,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove the federation's kinds, rights and policies from a control plane. Nothing in members is touched.

    Members have to leave before (`argosy unjoin`). Sources lose the federation's finalizer and stay as they are; the controllers,
    which do that, are to be stopped afterwards.

    Example:

      argosy uninstall
    """

    async def work(client: "Client", default: str) -> None:
        from argosy.cli.output.progress import Ticker
        from argosy.control.install.uninstall import NotYet
        from argosy.control.install.uninstall import uninstall as remove

        if not yes:
            typer.confirm("Remove the federation from this control plane?", abort=True)
        with Ticker() as ticker:
            try:
                removed = await remove(client, ticker.at)
            except NotYet as error:
                raise Failure(str(error), error.hint) from None
        print(f"uninstalled: {removed} objects removed")

    with_client(context, work)


async def _install(client: "Client", chosen: "Installation", allow_workload_controllers: bool) -> None:
    from argosy.control.install.installer import install as put

    if not allow_workload_controllers:
        await refuse_workloads(client)
    written = await put(client, _say, chosen)
    print(f"installed: {written} objects written" if written else "already installed: nothing to do")


async def _preview(client: "Client", chosen: "Installation", allow_workload_controllers: bool) -> None:
    from argosy.control.install.installer import is_installed, preview

    if not allow_workload_controllers and not await is_installed(client):
        _say(
            "whether a Deployment controller runs here is not looked at (dry run): that takes a Deployment to try it with"
        )
    written = await preview(client, lambda line: _say(f"{line} (dry run)"), chosen)
    print(f"{written} objects would be written" if written else "already installed: nothing to do")


async def _print_manifests(client: "Client", chosen: "Installation") -> None:
    from argosy.api import installation
    from argosy.control.install.installer import subjects_of, type_configs
    from argosy.kube.yamlwriter import to_yaml

    subjects = await subjects_of(client, chosen.controllers)
    manifests = installation.manifests(await type_configs(client), subjects).all()
    print("---\n".join(to_yaml(manifest).decode() for manifest in manifests), end="")


async def refuse_workloads(client: "Client") -> None:
    """Raise Failure before a first installation where a Deployment controller would run the templates."""
    from argosy.control.install.installer import is_installed
    from argosy.control.install.workload_controllers import deployment_controller_runs

    if await is_installed(client):
        return
    if await deployment_controller_runs(client):
        raise Failure(
            "this control plane has a Deployment controller of its own: it would run the workloads that are to be "
            "templates for the members; nothing was installed",
            "start its kube-controller-manager with --controllers=namespace-controller,garbage-collector-controller, choose "
            "another control plane with --kubeconfig, or insist with `argosy install --allow-workload-controllers`",
        )


def _say(line: str) -> None:
    print(line, flush=True)
