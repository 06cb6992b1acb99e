"""`argosy server`: the API server alone."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from argosy.cli.local.folder import AcceptDataLoss
from argosy.cli.options.limits import MaxConnections, MaxMutatingRequests, MaxRequests, MaxWatches, WatchBuffer, limits
from argosy.cli.output.failures import Failure

if TYPE_CHECKING:
    from argosy.server.http.limits import Limits

__all__ = ["server"]


class StorageKind(StrEnum):
    SQLITE = "sqlite"
    MEMORY = "memory"


def server(
    storage: Annotated[
        StorageKind, typer.Option(help="sqlite stores everything in --data; memory loses it at the end.")
    ] = StorageKind.SQLITE,
    data: Annotated[Path, typer.Option(help="Folder for state, certificates and kubeconfig.")] = Path(".argosy-server"),
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 6443,
    max_requests_inflight: MaxRequests = 400,
    max_mutating_requests_inflight: MaxMutatingRequests = 200,
    max_watches: MaxWatches = 8_000,
    max_connections: MaxConnections = 10_000,
    watch_buffer: WatchBuffer = "256Mi",
    accept_data_loss: AcceptDataLoss = False,
) -> None:
    """Run a Kubernetes API server without federation, until Ctrl-C.

    The administrator's kubeconfig is written to DATA/kubeconfig.

    Example:

      argosy server --storage memory --data /tmp/api --port 0
    """
    from argosy.cli.local import loop
    from argosy.cli.local.folder import SERVER, claim
    from argosy.cli.output import logs

    chosen = limits(max_requests_inflight, max_mutating_requests_inflight, max_watches, max_connections, watch_buffer)
    data = data.absolute()
    claim(data, SERVER)
    logs.to_stderr()
    loop.run(_serve(storage, data, host, port, chosen, accept_data_loss))


async def _serve(
    storage: StorageKind, data: Path, host: str, port: int, limits: "Limits", accept_data_loss: bool
) -> None:
    import errno

    from argosy.cli.local.caveats import Caveats
    from argosy.cli.local.guard import Guard
    from argosy.cli.local.loop import stop_on_signals
    from argosy.kube.watchdog import Watchdog
    from argosy.server import kubeconfig
    from argosy.server.embedded import EmbeddedServer

    folder = data if storage is StorageKind.SQLITE else None
    served = EmbeddedServer(
        folder, host=host, port=port, limits=limits, admission=(Guard, Caveats), accept_data_loss=accept_data_loss
    )
    try:
        await served.start()
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise Failure(
            f"port {port} on {host} is in use by another program", "choose another with --port; 0 takes a free one"
        ) from None
    try:
        path = data / "kubeconfig"
        kubeconfig.write(path, served.kubeconfig("argosy"))
        print(f"serving {served.url}   kubeconfig: {path}   Ctrl-C stops it.", flush=True)
        with Watchdog(served.server.metrics.loop_held.inc):
            await stop_on_signals().wait()
    finally:
        await served.stop()
