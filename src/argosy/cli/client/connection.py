"""Which control plane a command talks to, and a client for it.

In this order: --kubeconfig, $ARGOSY_KUBECONFIG, ./.argosy/kubeconfig, $KUBECONFIG, a pod's service account, ~/.kube/config.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

if TYPE_CHECKING:
    from argosy.kube.client import Client
    from argosy.kube.config import Connection

__all__ = ["LOCAL_KUBECONFIG", "Target", "client_of", "target", "with_client"]

T = TypeVar("T")
LOCAL_KUBECONFIG = Path(".argosy/kubeconfig")


class Target:
    """The global options, as given."""

    def __init__(self, kubeconfig: str | None = None, context: str | None = None):
        self.kubeconfig = kubeconfig
        self.context = context

    def connection(self) -> "Connection":
        """Raises ConfigError."""
        from argosy.kube import config

        path = self.kubeconfig or os.environ.get("ARGOSY_KUBECONFIG") or None
        if path is None and LOCAL_KUBECONFIG.exists():
            path = str(LOCAL_KUBECONFIG)
        return config.renewable(path, self.context)


def target(context: typer.Context) -> Target:
    """The global options of the command that runs."""
    found = context.find_object(Target)
    return found if found is not None else Target()


def client_of(connection: "Connection") -> "Client":
    from argosy.cli.output.terminal import Warnings
    from argosy.kube.backoff import Backoff
    from argosy.kube.client import Client
    from argosy.kube.http import HttpTransport

    # Somebody waits at a terminal: a server that is away is told after a second, not after a quarter of a minute.
    transport = HttpTransport(connection, user_agent="argosy", backoff=Backoff(base=0.05, cap=0.2))
    return Client(transport, field_manager="argosy-cli", on_warning=Warnings())


def with_client(context: typer.Context, work: "Callable[[Client, str], Awaitable[T]]") -> T:
    """Run `work(client, namespace)` with the chosen control plane and its context's namespace."""
    connection = target(context).connection()

    async def run() -> T:
        client = client_of(connection)
        try:
            return await work(client, connection.namespace)
        finally:
            await client.close()

    return asyncio.run(run())
