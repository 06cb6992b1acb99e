"""`argosy join` and `argosy unjoin`: clusters come and go."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from argosy.cli.client.connection import with_client
from argosy.cli.output.failures import Failure

if TYPE_CHECKING:
    from collections import Counter

    from argosy.api.types import FederatedCluster
    from argosy.kube.client import Client
    from argosy.kube.config import Connection

__all__ = ["join", "unjoin"]

#: Seconds in which an object without finalizers is gone, also at the end of the time.
_GONE = 5.0

Timeout = Annotated[float, typer.Option(min=0, help="Seconds to wait; 0 does not wait.")]


def join(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the member.")],
    kubeconfig: Annotated[str, typer.Option(help="Kubeconfig of the cluster that joins.")],
    member_context: Annotated[
        str | None, typer.Option("--context", help="Context in the kubeconfig; default: the current one.")
    ] = None,
    label: Annotated[
        list[str] | None, typer.Option("--label", "-l", help="Label of the member, k=v; repeatable.")
    ] = None,
    use_service_account: Annotated[
        bool | None,
        typer.Option(
            "--use-service-account/--keep-credentials",
            help="The control plane uses a service account made in the member (the default), or keeps and uses the kubeconfig's "
            "own credentials.",
        ),
    ] = None,
    full_access: Annotated[
        bool,
        typer.Option(
            "--full-access", help="The service account may do everything, not only what the type configs need."
        ),
    ] = False,
    refresh_role: Annotated[
        bool,
        typer.Option(
            "--refresh-role", help="Only update the rights of a member's service account to match the type configs."
        ),
    ] = False,
    reclaim: Annotated[
        bool,
        typer.Option(
            "--reclaim",
            help="Make this cluster the member, although it lacks the mark of the one that joined (it was rebuilt, or somebody "
            "deleted its namespace kube-admiral-system). Copies in an earlier cluster stay there.",
        ),
    ] = False,
    timeout: Timeout = 60.0,
) -> None:
    """Make a cluster a member of the federation, and wait until it is ready.

    The kubeconfig's credentials, of any kind, are used once, on this machine, to make a service account in the cluster; the
    control plane gets that account's token. Running this again for a member gives it a new token and updates its rights.

    Give the control plane's kubeconfig before the command: argosy --kubeconfig HUB join …

    Examples:

      argosy join paris --kubeconfig ~/.kube/paris --label region=eu

      argosy join m1 --kubeconfig ~/.kube/config --context kind-m1
    """
    from argosy.cli.client import membership, service_account
    from argosy.cli.output.progress import shown
    from argosy.control.members.join import claim, claim_anew
    from argosy.kube import config
    from argosy.kube.names import dns_subdomain_errors

    if use_service_account is False and (full_access or refresh_role):
        raise Failure("--full-access and --refresh-role are about service accounts, not for --keep-credentials", code=2)
    if refresh_role and (label or reclaim):
        raise Failure("--refresh-role is about rights alone, not for --label and --reclaim", code=2)
    connection = config.load(kubeconfig, member_context)
    labels = parse_labels(label or [])
    if dns_subdomain_errors(name):
        raise Failure(f"{name!r} cannot be a member's name", "lower-case letters, digits, '-' and '.'", code=2)
    _check(connection, name)
    if refresh_role:

        async def refresh(client: "Client", default: str) -> None:
            await service_account.refresh_role(client, name, connection, full_access=full_access)

        with_client(context, refresh)
        print(f"{name}: the service account's rights are up to date")
        return
    _check_direct(connection, name)
    progress = shown()
    told: set[str] = set()

    def step(text: str) -> None:
        if text not in told:
            told.add(text)
            progress.step(text)

    async def work(client: "Client", default: str) -> bool:
        account = use_service_account
        if account is None:
            account = full_access or await membership.uses_service_account(client, name) is not False
        if account:
            new = await service_account.enrol(
                client,
                name,
                connection,
                labels,
                full_access=full_access,
                claim=claim_anew if reclaim else claim,
                patience=timeout,
                step=step,
            )
        else:
            _check_kept(connection, name)
            await (service_account.reclaim if reclaim else service_account.confirm)(client, name, connection)
            new = await membership.register(client, name, connection, labels)
        if not new:
            await membership.label(client, name, labels)
        if timeout:
            await membership.wait_ready(client, name, timeout, step)
        return new

    try:
        new = with_client(context, work)
    except Exception:
        progress.failed(Failure(""))
        raise
    progress.ready()
    ready = "joined and ready" if timeout else "registered"
    print(f"{name} {ready}" if new else f"{name} was a member already: {ready}")


def _check(connection: "Connection", name: str) -> None:
    pair = connection.client_certificate and connection.client_key
    if connection.credentials is None and not connection.token and not pair:
        raise Failure(
            f"the kubeconfig has no credentials for {name}", "its user needs a token or a client certificate and key"
        )
    if not connection.ca_data and not connection.insecure:
        raise Failure(
            f"the kubeconfig has no certificate authority for {name}",
            "its cluster needs certificate-authority-data, or insecure-skip-tls-verify if you must",
        )


def _check_direct(connection: "Connection", name: str) -> None:
    """The control plane comes to the kubeconfig's address by itself, and has nowhere to keep another way."""
    if connection.proxy:
        raise Failure(
            f"the kubeconfig reaches {name} through a proxy (proxy-url), which the control plane cannot use",
            "give a kubeconfig without proxy-url, whose server the control plane can reach directly",
        )
    if connection.tls_server_name:
        raise Failure(
            f"the kubeconfig expects the certificate of {name} to be for {connection.tls_server_name!r} (tls-server-name),"
            " which the control plane cannot check",
            "give a kubeconfig without tls-server-name, whose server has an address that its certificate names",
        )


def _check_kept(connection: "Connection", name: str) -> None:
    """The control plane keeps the credentials and uses them from its own machine: they must work there, and last."""
    if connection.credentials is not None:
        raise Failure(
            f"the kubeconfig's user for {name} gets its credentials from a plugin, a file or a password, which the control "
            "plane cannot use",
            "--use-service-account makes a service account there, whose token it can",
        )


def unjoin(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The member that leaves.")],
    cascade: Annotated[bool, typer.Option("--cascade", help="Also delete the propagated copies there.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Give the member up if it cannot be reached. What is in it stays there.")
    ] = False,
    timeout: Timeout = 60.0,
) -> None:
    """Remove a member from the federation. Copies there keep running, unless --cascade is given.

    Examples:

      argosy unjoin paris

      argosy unjoin paris --force
    """
    from argosy.cli.client import giving_up, membership
    from argosy.kube.errors import NotFound

    if force and (cascade or not timeout):
        other = "--cascade, which needs the member" if cascade else "--timeout 0: the member is tried first"
        raise Failure(f"--force is not for {other}", code=2)

    async def leaving(client: "Client") -> "FederatedCluster":
        try:
            return await membership.leave(client, name, cascade=cascade)
        except NotFound:
            raise Failure(f"there is no member {name!r}", "`argosy get clusters` lists them") from None

    async def left(client: "Client", default: str) -> None:
        cluster = await leaving(client)
        if timeout:
            await membership.wait_gone(client, cluster, timeout)
        print(f"{name} has left" if timeout else f"{name} is leaving")

    async def given_up(client: "Client", default: str) -> None:
        clock = asyncio.get_running_loop().time
        deadline = clock() + timeout
        copies = await giving_up.copies_in(client, name)
        cluster = await leaving(client)
        why = await giving_up.give_up(client, cluster, timeout)
        await membership.wait_gone(client, cluster, max(deadline - clock(), _GONE))
        if why is None:
            print(f"{name} answered and has left the ordinary way")
        else:
            print(f"{name} has left without being reached: {why}")
            _tell_remains(cluster, copies)

    with_client(context, given_up if force else left)


def _tell_remains(cluster: "FederatedCluster", copies: "Counter[str]") -> None:
    from argosy.api import keys

    print("left behind there:")
    for kind, count in sorted(copies.items()):
        print(f"  {kind}: up to {count} copies")
    print(f"  namespace {keys.SYSTEM_NAMESPACE}")
    if cluster.spec.use_service_account:
        print(f"  service account {keys.MEMBER_SERVICE_ACCOUNT} in it, with its role and binding")
        print(f"  cluster role {keys.MEMBER_CLUSTER_ROLE} and its binding")


def parse_labels(pairs: list[str]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not sign or not key:
            raise Failure(f"{pair!r} is not KEY=VALUE", code=2)
        found[key] = value
    return found
