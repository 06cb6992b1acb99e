"""`argosy up` and `argosy down`: a whole federation on this machine, and its end."""

import contextlib
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from argosy.cli.local.folder import AcceptDataLoss
from argosy.cli.options import endpoints
from argosy.cli.options.brake import BrakeOptions, BrakeSettle, BrakeShare, brake_options
from argosy.cli.options.endpoints import AllowedEndpoints, AllowHttpEndpoints, rules
from argosy.cli.options.health import (
    HealthCheckPeriod,
    HealthOptions,
    JoinTimeout,
    StatusThreshold,
    health_options,
)
from argosy.cli.options.limits import MaxConnections, MaxMutatingRequests, MaxRequests, MaxWatches, WatchBuffer, limits
from argosy.cli.options.limits import arguments as as_arguments
from argosy.cli.options.timeouts import PluginTimeout, plugin_timeout_of
from argosy.cli.options.work import (
    ApiBurst,
    ApiQps,
    EnqueueDelay,
    ExcludedNamespaces,
    Katalyst,
    Workers,
    WorkOptions,
    work_options,
)
from argosy.cli.output.failures import Failure, explained

if TYPE_CHECKING:
    from argosy.cli.local.folder import DataFolder
    from argosy.cli.output.progress import Progress
    from argosy.kube.client import Client
    from argosy.server.http.limits import Limits

__all__ = ["down", "up"]

#: How long one that could not start may take to end.
_LAST_WORDS = 10.0


class Start(NamedTuple):
    """The options that a detached one is given again."""

    folder: "DataFolder"
    members: int
    port: int
    host: str
    limits: "Limits"
    accept_data_loss: bool
    allowed_endpoints: list[str] | None
    allow_http_endpoints: bool
    health: HealthOptions
    brake: BrakeOptions
    work: WorkOptions
    #: In seconds.
    plugin_timeout: float


Data = Annotated[Path, typer.Option(help="Folder for state, logs and kubeconfig.")]


def up(
    members: Annotated[
        int,
        typer.Option(
            min=0, max=100, help="Simulated member clusters to start and join; earlier ones are started again."
        ),
    ] = 0,
    data: Data = Path(".argosy"),
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Return when it is ready, and leave it running.")
    ] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes the previous one, or a free one.")] = 0,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    example: Annotated[
        bool, typer.Option("--example", help="Create the example application where it is missing, and show its status.")
    ] = False,
    max_requests_inflight: MaxRequests = 400,
    max_mutating_requests_inflight: MaxMutatingRequests = 200,
    max_watches: MaxWatches = 8_000,
    max_connections: MaxConnections = 10_000,
    watch_buffer: WatchBuffer = "256Mi",
    accept_data_loss: AcceptDataLoss = False,
    allowed_endpoints: AllowedEndpoints = None,
    allow_http_endpoints: AllowHttpEndpoints = False,
    cluster_health_check_period: HealthCheckPeriod = "10s",
    cluster_status_threshold: StatusThreshold = "30s",
    cluster_join_timeout: JoinTimeout = "10m",
    brake_share: BrakeShare = 30,
    brake_settle: BrakeSettle = "5s",
    plugin_timeout: PluginTimeout = "5s",
    worker_count: Workers = 32,
    kube_api_qps: ApiQps = 500.0,
    kube_api_burst: ApiBurst = 1000,
    member_object_enqueue_delay: EnqueueDelay = "5s",
    ns_autoprop_exclude_regexp: ExcludedNamespaces = "",
    enable_katalyst_support: Katalyst = False,
    progress_fd: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Run a federation on this machine: API server, controllers, and optionally simulated members.

    It runs until Ctrl-C, or with --detach until `argosy down`. State is kept in the data folder.

    Examples:

      argosy up --members 3 --example

      argosy up --detach --members 3 --data /srv/argosy --port 6443
    """
    from argosy.cli.local.folder import DataFolder
    from argosy.cli.output.progress import shown

    progress = shown(progress_fd)
    folder = DataFolder(data.absolute())
    chosen = limits(max_requests_inflight, max_mutating_requests_inflight, max_watches, max_connections, watch_buffer)
    rules(allowed_endpoints, allow_http_endpoints)  # told before anything is started
    start = Start(
        folder,
        members,
        port,
        host,
        chosen,
        accept_data_loss,
        allowed_endpoints,
        allow_http_endpoints,
        health_options(cluster_health_check_period, cluster_status_threshold, cluster_join_timeout),
        brake_options(brake_share, brake_settle),
        work_options(
            worker_count,
            kube_api_qps,
            kube_api_burst,
            member_object_enqueue_delay,
            ns_autoprop_exclude_regexp,
            enable_katalyst_support,
        ),
        plugin_timeout_of(plugin_timeout),
    )
    try:
        if detach:
            _detached(start, progress)
        else:
            _in_foreground(start, example, progress, told=progress_fd is not None)
    except Exception as error:
        progress.failed(explained(error))
        raise
    if detach:
        _welcome(folder, example, progress)


def down(data: Data = Path(".argosy")) -> None:
    """Stop what `argosy up` started on a data folder. State is kept. It is no error if nothing runs.

    Example:

      argosy down --data .argosy
    """
    from argosy.cli.local.folder import MEMBERS, UP, DataFolder
    from argosy.cli.local.processes import stop

    folder = DataFolder(data.absolute())
    stopped = stop(folder.up, UP, "the control plane")
    # It takes its members along; they are asked too in case it was killed.
    stopped = stop(folder.sim, MEMBERS, "the simulated members") or stopped
    other = folder.up.holder()
    if other is not None and other.pid:
        raise Failure(
            f"{data} is in use by {other}, which is not for `argosy down` to stop", "Ctrl-C there does, or SIGTERM"
        )
    print("stopped" if stopped else f"nothing is running on {data}")


def _in_foreground(start: Start, example: bool, progress: "Progress", *, told: bool) -> None:
    folder = start.folder
    folder.claim()
    folder.make()

    from argosy.cli.local import loop
    from argosy.cli.local.plane import Settings, run
    from argosy.cli.output import logs
    from argosy.control.options import Options
    from argosy.control.timings import Timings

    logs.to_file(folder.log)

    async def when_ready(client: "Client") -> None:
        if told:
            return
        from argosy.cli.output.welcome import welcome

        try:
            await welcome(client, folder, example, progress)
        except Failure as failure:  # of the example; the federation is up
            print(f"error: {failure.message}\nhint: {failure.hint}")
        print("\nCtrl-C stops it.", flush=True)

    # Members of last time are still joined: without their servers they would count as lost.
    count = max(start.members, folder.known_members())
    allowed = rules(start.allowed_endpoints, start.allow_http_endpoints)
    timings = start.brake.applied(start.health.applied(Timings(plugin_answer=start.plugin_timeout)))
    options = start.work.chosen(Options(endpoints=allowed, brake=start.brake.limits))
    settings = Settings(
        folder.path,
        count,
        start.host,
        start.port,
        start.limits,
        start.accept_data_loss,
        start.work.applied(timings),
        options,
    )
    loop.run(run(settings, progress, when_ready))
    if not told:
        print("stopped")


def _detached(start: Start, progress: "Progress") -> None:
    from argosy.cli.local.processes import command
    from argosy.cli.output.progress import follow

    folder = start.folder
    folder.check()
    folder.make()
    reading, writing = os.pipe()
    arguments = ["--data", str(folder.path), "--members", str(start.members), "--port", str(start.port)]
    arguments += ["--host", start.host, *as_arguments(start.limits)]
    arguments += ["--accept-data-loss"] if start.accept_data_loss else []
    arguments += endpoints.arguments(start.allowed_endpoints, start.allow_http_endpoints)
    arguments += [*start.health.arguments(), *start.brake.arguments(), *start.work.arguments()]
    arguments += ["--plugin-timeout", f"{start.plugin_timeout}s"]
    with folder.crash_log.open("ab") as output:
        try:
            started = subprocess.Popen(
                command("up", *arguments, "--progress-fd", str(writing)),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(writing,),
                start_new_session=True,
            )
        finally:
            os.close(writing)
    try:
        follow(reading, progress, str(folder.crash_log))
    except Failure:
        # What it said last comes before its end, and until then the folder is its own.
        with contextlib.suppress(subprocess.TimeoutExpired):
            started.wait(_LAST_WORDS)
        raise
    progress.ready()


def _welcome(folder: "DataFolder", example: bool, progress: "Progress") -> None:
    import asyncio

    from argosy.cli.client.connection import Target, client_of
    from argosy.cli.output.welcome import welcome

    async def greet() -> None:
        client = client_of(Target(str(folder.kubeconfig)).connection())
        try:
            await welcome(client, folder, example, progress)
        finally:
            await client.close()

    asyncio.run(greet())
