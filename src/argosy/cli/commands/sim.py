"""`argosy sim`: simulated member clusters in one process."""

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from argosy.cli.local.folder import AcceptDataLoss
from argosy.cli.output.failures import Failure, explained

if TYPE_CHECKING:
    from argosy.cli.output.progress import Progress
    from argosy.sim.fleet import SimulatedFleet
    from argosy.sim.main import Options

__all__ = ["sim"]


def sim(
    members: Annotated[int, typer.Option(min=1, max=500, help="Number of clusters.")] = 3,
    nodes: Annotated[
        int | None, typer.Option(min=1, max=10_000, help="Nodes of each cluster; default: different numbers.")
    ] = None,
    data: Annotated[Path, typer.Option(help="Folder for their state and kubeconfig.")] = Path(".argosy-sim"),
    base_port: Annotated[
        int, typer.Option(min=0, max=65535, help="First port; 0 takes the previous ones, or free ones.")
    ] = 0,
    speed: Annotated[float, typer.Option(help="Simulated seconds per real second.")] = 1.0,
    accept_data_loss: AcceptDataLoss = False,
    progress_fd: Annotated[int | None, typer.Option(hidden=True)] = None,
    with_stdin: Annotated[bool, typer.Option("--with-stdin", hidden=True)] = False,
) -> None:
    """Run simulated clusters: a real API with nodes, Deployments and Pods, but no containers.

    Each has its own HTTPS address and a context in DATA/kubeconfig. State survives a restart.

    Example:

      argosy sim --members 5 --data /tmp/clusters

      argosy join member-1 --kubeconfig /tmp/clusters/kubeconfig --context member-1
    """
    from argosy.cli.local import loop
    from argosy.cli.local.folder import MEMBERS, SIM, claim
    from argosy.cli.output import logs
    from argosy.cli.output.progress import shown
    from argosy.sim.main import Options

    if speed <= 0:
        raise Failure("--speed must be above 0", code=2)
    progress = shown(progress_fd)
    logs.to_stderr("INFO" if with_stdin else "WARNING")
    data = data.absolute()
    try:
        claim(data, MEMBERS if with_stdin else SIM)
        options = Options(
            members=members,
            nodes=nodes,
            data=data,
            base_port=base_port,
            speed=speed,
            accept_data_loss=accept_data_loss,
        )
        loop.run(_serve(options, progress, with_stdin))
    except Exception as error:
        progress.failed(explained(error))
        raise


async def _serve(options: "Options", progress: "Progress", with_stdin: bool) -> None:
    from argosy.cli.local.loop import stop_on_signals
    from argosy.kube.watchdog import Watchdog
    from argosy.sim.main import run

    stop = stop_on_signals()

    def ready(fleet: "SimulatedFleet") -> None:
        progress.ready()
        if not with_stdin:
            for name, member in fleet.members.items():
                print(f"{name}   {member.url}")
            print(f"kubeconfig: {options.data}/kubeconfig   Ctrl-C stops them.", flush=True)

    work = asyncio.ensure_future(run(options, ready))
    waits: list[asyncio.Future[Any]] = [work, asyncio.ensure_future(stop.wait())]
    if with_stdin:
        waits.append(asyncio.ensure_future(_end_of_stdin()))
    with Watchdog():
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for task in waits[1:]:
        task.cancel()
    if not work.done():
        work.cancel()
        await asyncio.wait({work})
        return
    work.result()


async def _end_of_stdin() -> None:
    """When whoever started us is gone, however it went."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(0, "rb", 0, closefd=False))
    await reader.read()
