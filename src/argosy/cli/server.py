"""`argosy server`: the API server alone."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from argosy.cli.failures import Failure

__all__ = ["server"]


class StorageKind(StrEnum):
    SQLITE = "sqlite"
    MEMORY = "memory"


def server(
    storage: Annotated[
        StorageKind, typer.Option(help="sqlite keeps everything in --data; memory forgets at the end.")
    ] = StorageKind.SQLITE,
    data: Annotated[Path, typer.Option(help="Folder of the state, certificates and kubeconfig.")] = Path(
        ".argosy-server"
    ),
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 6443,
) -> None:
    """Run a Kubernetes API server, without any federation in it, until Ctrl-C.

    The administrator's kubeconfig is written to DATA/kubeconfig.

    Example:

      argosy server --storage memory --data /tmp/api --port 0
    """
    from argosy.cli import logs, loop

    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    logs.to_stderr()
    loop.run(_serve(storage, data.absolute(), host, port))


async def _serve(storage: StorageKind, data: Path, host: str, port: int) -> None:
    import errno

    from argosy.cli.loop import stop_on_signals
    from argosy.server import kubeconfig
    from argosy.server.embedded import EmbeddedServer

    served = EmbeddedServer(data if storage is StorageKind.SQLITE else None, host=host, port=port)
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
        await stop_on_signals().wait()
    finally:
        await served.stop()
