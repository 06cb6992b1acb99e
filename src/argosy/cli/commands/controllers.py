"""`argosy controllers`: the controllers alone, against any Kubernetes API server; several of them with leases and shards."""

import asyncio
import os
import secrets
import socket
from typing import TYPE_CHECKING, Annotated

import typer

from argosy import __version__
from argosy.cli.options.brake import BrakeSettle, BrakeShare, brake_options
from argosy.cli.options.endpoints import AllowedEndpoints, AllowHttpEndpoints, rules
from argosy.cli.options.failover import (
    FailbackAfter,
    FailoverAfter,
    FailoverMostUnready,
    FailoverShare,
    failover_options,
)
from argosy.cli.options.health import HealthCheckPeriod, JoinTimeout, StatusThreshold, health_options
from argosy.cli.options.timeouts import PluginTimeout, plugin_timeout_of
from argosy.cli.options.work import (
    ApiBurst,
    ApiQps,
    EnqueueDelay,
    ExcludedNamespaces,
    Katalyst,
    Workers,
    work_options,
)
from argosy.cli.output.failures import Failure

if TYPE_CHECKING:
    from argosy.api.shards import Shard
    from argosy.cli.local.probes import Probes
    from argosy.control.manager import Manager
    from argosy.control.options import Options
    from argosy.control.sharding.election import ShardElection
    from argosy.control.timings import Timings
    from argosy.kube.client import Client
    from argosy.kube.lease import LeaderElector

__all__ = ["controllers"]


def controllers(
    context: typer.Context,
    kubeconfig: Annotated[str | None, typer.Option(help="Kubeconfig of the control plane.")] = None,
    kube_context: Annotated[str | None, typer.Option("--context", help="Context in the kubeconfig.")] = None,
    leader_elect: Annotated[
        bool,
        typer.Option(
            "--leader-elect/--no-leader-elect", help="Write only while holding the lease, so that several can run."
        ),
    ] = True,
    shard: Annotated[
        str, typer.Option(metavar="I/N", help="Own the I-th (from 0) of N parts of the namespaces; all N must run.")
    ] = "0/1",
    install: Annotated[
        bool, typer.Option("--install/--no-install", help="First install, as `argosy install` does.")
    ] = True,
    probe_address: Annotated[str, typer.Option(help="Address of /livez, /readyz and /metrics.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of /livez, /readyz and /metrics.")] = 8081,
    federate_all: Annotated[
        bool, typer.Option("--federate-all", help="Federate every object of a configured type, as KubeAdmiral does.")
    ] = False,
    make_type_configs: Annotated[
        bool,
        typer.Option(
            "--make-type-configs/--no-make-type-configs",
            help="Make type configs for custom kinds that policies claim.",
        ),
    ] = True,
    ns_autoprop_exclude_regexp: ExcludedNamespaces = "",
    failover_after: FailoverAfter = "never",
    failback_after: FailbackAfter = "5m",
    failover_share: FailoverShare = 35,
    failover_most_unready: FailoverMostUnready = 50,
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
    enable_katalyst_support: Katalyst = False,
    allowed_endpoints: AllowedEndpoints = None,
    allow_http_endpoints: AllowHttpEndpoints = False,
) -> None:
    """Run the controllers against an API server (Argosy's own or a stock kube-apiserver) until Ctrl-C.

    Several may run at once: one leads, the others are standbys. With shards, one of each shard leads. The flags of KubeAdmiral's
    manager are understood; docs/running.md says which of them have an effect.

    Examples:

      argosy controllers --kubeconfig ~/.kube/config --context hub

      argosy controllers --shard 0/2 & argosy controllers --shard 1/2 --port 8082
    """
    from argosy.cli.client.connection import Target, target
    from argosy.cli.local import loop
    from argosy.cli.output import logs

    part = _shard(shard, leader_elect)
    health = health_options(cluster_health_check_period, cluster_status_threshold, cluster_join_timeout)
    brake = brake_options(brake_share, brake_settle)
    work = work_options(
        worker_count,
        kube_api_qps,
        kube_api_burst,
        member_object_enqueue_delay,
        ns_autoprop_exclude_regexp,
        enable_katalyst_support,
    )
    failover = failover_options(failover_after, failback_after, failover_share, failover_most_unready)
    timings = work.applied(failover.applied(brake.applied(health.applied(_timings(plugin_timeout)))))
    from argosy.control.options import Options

    options = Options(
        federate_all=federate_all,
        make_type_configs=make_type_configs,
        shard=part,
        brake=brake.limits,
        failover=failover.pacing,
        endpoints=rules(allowed_endpoints, allow_http_endpoints),
    )
    options = work.chosen(options)
    chosen = target(context)
    connection = Target(kubeconfig or chosen.kubeconfig, kube_context or chosen.context).connection()
    logs.to_stderr()
    from argosy.kube.client import Client
    from argosy.kube.http import HttpTransport

    async def run() -> None:
        process = _Process(options, timings)
        client = Client(HttpTransport(connection, user_agent=process.user_agent))
        try:
            await _serve(client, process, leader_elect, install, probe_address, port)
        finally:
            await client.close()

    loop.run(run())


def _shard(text: str, leader_elect: bool) -> "Shard":
    from argosy.api.shards import parse

    try:
        shard = parse(text)
    except ValueError as error:
        raise Failure(f"--shard: {error}", code=2) from None
    if not shard.is_whole and not leader_elect:
        raise Failure(
            "--shard needs leader election: only leases keep two processes from owning the same objects",
            "leave out --no-leader-elect",
            code=2,
        )
    return shard


def _timings(plugin_timeout: str) -> "Timings":
    import msgspec

    from argosy.control.timings import Timings

    return msgspec.structs.replace(Timings(), plugin_answer=plugin_timeout_of(plugin_timeout))


class _Process:
    """Who this process is, and the managers it leads with."""

    def __init__(self, options: "Options", timings: "Timings"):
        from argosy.control.scheduling.plugin_workers import PluginWorkers

        self._options = options
        self.shard = shard = options.shard
        # Numbers of processes repeat from container to container.
        self.identity = f"{socket.gethostname()}_{os.getpid()}_{secrets.token_hex(3)}"
        #: Audit logs, of the control plane and of members, tell by it which process wrote what.
        self.user_agent = f"argosy-controllers/{__version__} (shard {shard}; {self.identity})"
        self._timings = timings
        self.workers = PluginWorkers(timings)

    def elector(self, client: "Client") -> "LeaderElector":
        from argosy.api import keys
        from argosy.api.shards import lease_name
        from argosy.kube.lease import LeaderElector

        return LeaderElector(client, keys.SYSTEM_NAMESPACE, lease_name(self.shard), self.identity)

    def manager(self, client: "Client", elector: "LeaderElector | None" = None) -> "Manager":
        from argosy.cli.local.leasefence import LeaseFence
        from argosy.control.manager import Manager
        from argosy.control.members.connect import http_connector

        options = self._options
        connect = http_connector(
            qps=options.member_qps,
            burst=options.member_burst,
            user_agent=self.user_agent,
            endpoints=options.endpoints,
            limits=options.answers,
            longest_hold=self._timings.member_hold,
        )
        fence = LeaseFence(elector) if elector is not None else None
        return Manager(
            client, options=options, timings=self._timings, fence=fence, connect=connect, workers=self.workers
        )


async def _install(client: "Client") -> None:
    from argosy.cli.commands.install import refuse_workloads
    from argosy.control.install.installer import install
    from argosy.kube.errors import Forbidden

    try:
        await refuse_workloads(client)
        await install(client, print)
    except Forbidden as error:
        raise Failure(
            error.message, "run `argosy install` as an administrator, and the controllers with --no-install"
        ) from None


async def _serve(
    client: "Client", process: _Process, leader_elect: bool, install: bool, probe_address: str, port: int
) -> None:
    from argosy.cli.client import preflight
    from argosy.cli.local.loop import stop_on_signals
    from argosy.cli.local.probes import Probes
    from argosy.control.sharding.election import ShardElection
    from argosy.kube.watchdog import Watchdog

    stop = stop_on_signals()
    # The first request: whoever cannot be reached or refuses us is told here, in one line.
    await client.version()
    if install:
        await _install(client)
    await preflight.check(client)
    election = ShardElection(client, process.shard) if leader_elect else None
    probes = Probes(election)
    await probes.open(probe_address, port)
    print(f"probes and metrics: {probes.url}   Ctrl-C stops it.", flush=True)
    work = asyncio.ensure_future(_work(client, process, probes, election))
    waiting = asyncio.ensure_future(stop.wait())
    try:
        with Watchdog(probes.loop_held.inc):
            await asyncio.wait({work, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            work.result()
    finally:
        for task in (work, waiting):
            task.cancel()
        await asyncio.wait({work, waiting})
        await probes.close()


async def _work(client: "Client", process: _Process, probes: "Probes", election: "ShardElection | None") -> None:
    async with process.workers.running():
        if election is None:
            await _lead(process.manager(client), probes)
        else:
            # With a new Manager each time the lease is ours: what an old one knew may be out of date.
            await election.run(
                lambda: process.elector(client), lambda elector: _lead(process.manager(client, elector), probes)
            )


async def _lead(manager: "Manager", probes: "Probes") -> None:
    probes.manager = manager
    try:
        await manager.run()
    finally:
        probes.manager = None
