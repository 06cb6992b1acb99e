"""`argosy controllers`: the controllers alone, against any Kubernetes API server."""

import asyncio
import logging
import os
import socket
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from argosy.cli.probes import Probes
    from argosy.control.manager import Manager, Options
    from argosy.kube.client import Client

__all__ = ["controllers"]

log = logging.getLogger(__name__)

LEASE = "argosy-controllers"


def controllers(
    context: typer.Context,
    kubeconfig: Annotated[str | None, typer.Option(help="Kubeconfig of the control plane.")] = None,
    kube_context: Annotated[str | None, typer.Option("--context", help="Context in it.")] = None,
    leader_elect: Annotated[
        bool, typer.Option("--leader-elect/--no-leader-elect", help="Work only while holding the lease; run several.")
    ] = True,
    install: Annotated[
        bool, typer.Option("--install/--no-install", help="Create or update the federation's CRDs and type configs.")
    ] = True,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Loopback port of /livez, /readyz and /metrics.")] = 8081,
    federate_all: Annotated[
        bool, typer.Option("--federate-all", help="Federate every object of a configured type, as KubeAdmiral does.")
    ] = False,
) -> None:
    """Run the controllers against an API server (Argosy's own or a stock kube-apiserver) until Ctrl-C.

    Several may run at once: one leads, the others wait for its lease.

    Example:

      argosy controllers --kubeconfig ~/.kube/config --context hub
    """
    from argosy.cli import logs, loop
    from argosy.cli.connection import Target, target

    chosen = target(context)
    connection = Target(kubeconfig or chosen.kubeconfig, kube_context or chosen.context).connection()
    logs.to_stderr()
    from argosy.kube.client import Client
    from argosy.kube.http import HttpTransport

    async def run() -> None:
        client = Client(HttpTransport(connection, user_agent="argosy-controllers"))
        try:
            await _serve(client, leader_elect, install, port, federate_all)
        finally:
            await client.close()

    loop.run(run())


async def _serve(client: "Client", leader_elect: bool, install: bool, port: int, federate_all: bool) -> None:
    from argosy.cli.loop import stop_on_signals
    from argosy.cli.probes import Probes
    from argosy.control.install import install as install_kinds
    from argosy.control.manager import Manager, Options

    stop = stop_on_signals()
    # The first request: whoever cannot be reached or refuses us is told here, in one line.
    await client.version()
    if install:
        await install_kinds(client, print)
    probes = Probes()
    await probes.open(port)
    print(f"probes and metrics: http://127.0.0.1:{probes.port}   Ctrl-C stops it.", flush=True)
    options = Options(federate_all=federate_all)
    work = asyncio.ensure_future(
        _elected(client, options, probes) if leader_elect else _lead(Manager(client, options=options), probes)
    )
    waiting = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({work, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            work.result()
    finally:
        for task in (work, waiting):
            task.cancel()
        await asyncio.wait({work, waiting})
        await probes.close()


async def _lead(manager: "Manager", probes: "Probes") -> None:
    probes.manager = manager
    try:
        await manager.run()
    finally:
        probes.manager = None


async def _elected(client: "Client", options: "Options", probes: "Probes") -> None:
    """Lead whenever the lease is ours, with a new Manager each time: what an old one knew may be out of date."""
    from argosy.api import keys
    from argosy.cli.leasefence import LeaseFence
    from argosy.control.manager import Manager
    from argosy.kube.lease import LeaderElector, LeaseLost

    identity = f"{socket.gethostname()}_{os.getpid()}"
    while True:
        elector = LeaderElector(client, keys.SYSTEM_NAMESPACE, LEASE, identity)
        manager = Manager(client, options=options, fence=LeaseFence(elector))
        try:
            await elector.run(partial(_lead, manager, probes))
        except LeaseLost as lost:
            log.warning("%s; standing again", lost)
