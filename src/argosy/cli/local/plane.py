"""The control plane of `argosy up`, put together: API server, controllers on it in the same process, members beside it.

`run` is the whole process, top to bottom; what it starts it stops, in the opposite order.
"""

import asyncio
import contextlib
import errno
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from argosy.api import resources
from argosy.api.types import FederatedCluster
from argosy.cli.client import membership
from argosy.cli.local import access
from argosy.cli.local.caveats import Caveats
from argosy.cli.local.controllers import LocalControllers
from argosy.cli.local.folder import DataFolder
from argosy.cli.local.guard import Guard
from argosy.cli.local.loop import stop_on_signals
from argosy.cli.local.members import SimulatedMembers
from argosy.cli.output.failures import Failure
from argosy.cli.output.progress import Progress
from argosy.control.install.installer import install
from argosy.control.options import Options
from argosy.control.timings import Timings
from argosy.kube import config, yamlreader
from argosy.kube.client import Client
from argosy.kube.watchdog import Watchdog
from argosy.server import kubeconfig
from argosy.server.auth.identity import User
from argosy.server.embedded import EmbeddedServer
from argosy.server.http.limits import Limits
from argosy.sim.spec import default_members

__all__ = ["CONTEXT", "Settings", "run"]

log = logging.getLogger(__name__)

CONTEXT = "argosy"
MEMBER_READY = 30.0
NODES_POLL = 0.1
#: After so long it is told what the controllers wait for.
PATIENCE = 5.0


class Settings(msgspec.Struct, frozen=True):
    data: Path
    members: int = 0
    host: str = "127.0.0.1"
    #: 0: the one of last time, or a free one.
    port: int = 0
    limits: Limits = Limits()
    #: Of the control plane and of simulated members.
    accept_data_loss: bool = False
    timings: Timings = Timings()
    #: Of the controllers.
    options: Options = Options()


class _Silent:
    def step(self, text: str) -> None:
        log.info("%s", text)

    def ready(self) -> None:
        return

    def failed(self, failure: Failure) -> None:
        return


async def run(settings: Settings, progress: Progress, when_ready: Callable[[Client], Awaitable[None]]) -> None:
    """Serve until SIGINT or SIGTERM. Raises what keeps it from becoming ready, with everything closed again."""
    folder = DataFolder(settings.data)
    stop = stop_on_signals()
    async with contextlib.AsyncExitStack() as stack:
        progress.step("starting the API server")
        server = await stack.enter_async_context(_server(settings, folder))
        log.info("the API server listens on %s", server.url)
        stack.enter_context(Watchdog(server.server.metrics.loop_held.inc))
        progress.step("installing the federation's kinds")
        await install(server.client(), lambda line: log.info("%s", line), access.INSTALLATION)
        kubeconfig.write(folder.kubeconfig, server.kubeconfig(CONTEXT))
        members = SimulatedMembers(
            folder, settings.members, lambda: _join(server, folder), accept_data_loss=settings.accept_data_loss
        )
        if settings.members:
            # Before the controllers, so that it ends after them: nobody hangs on to its connections then.
            progress.step(f"starting simulated members: {settings.members}")
            stack.push_async_callback(members.stop)
            await _unless(stop, members.start(progress))
        progress.step("starting the controllers")
        watched = {await stack.enter_async_context(_controllers(server, settings, progress))}
        if settings.members and not stop.is_set():
            watched.add(await stack.enter_async_context(_running(members.run(_Silent()), "simulated members")))
            progress.step("waiting for them to join")
            await _unless(stop, _members_ready(server.client(), folder, progress))
        if not stop.is_set():
            log.info("ready")
            progress.ready()
            await _unless(stop, when_ready(server.client()))
        waiting = asyncio.ensure_future(stop.wait())
        done, _ = await asyncio.wait({waiting, *watched}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        log.info("stopping")
        for task in done - {waiting}:
            task.result()


@contextlib.asynccontextmanager
async def _server(settings: Settings, folder: DataFolder) -> AsyncIterator[EmbeddedServer]:
    port = settings.port or _last_port(folder.kubeconfig)
    make = partial(
        EmbeddedServer,
        folder.control_plane,
        host=settings.host,
        limits=settings.limits,
        admission=(Guard, Caveats),
        accept_data_loss=settings.accept_data_loss,
    )
    server = make(port=port)
    try:
        await server.start()
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            raise Failure(f"this machine has no address {settings.host}", "choose another with --host") from None
        if error.errno != errno.EADDRINUSE:
            raise
        if settings.port:
            raise Failure(
                f"port {port} on {settings.host} is in use by another program",
                "choose another with --port, or leave it out for a free one",
            ) from None
        log.warning("port %d of last time is in use; a free one is taken", port)
        server = make(port=0)
        await server.start()
    try:
        yield server
    finally:
        await server.stop()


def _last_port(path: Path) -> int:
    """The port in the kubeconfig of last time, so that copies of it stay right; 0 where there is none."""
    try:
        return urlsplit(config.load(str(path), CONTEXT).server).port or 0
    except config.ConfigError:
        return 0


@contextlib.asynccontextmanager
async def _controllers(
    server: EmbeddedServer, settings: Settings, progress: Progress
) -> AsyncIterator[asyncio.Task[Any]]:
    ours = server.client(User(access.CONTROLLERS, ("system:authenticated",)))
    standing = LocalControllers(ours, settings.options, settings.timings)
    server.server.metrics.registry.register(standing.metrics.registry)
    health = server.server.health
    health.add("controllers", live=lambda: standing.problems or None, ready=lambda: standing.waiting or None)
    health.add("plugins", live=lambda: standing.stuck or None, note=lambda: standing.notes)
    async with _running(standing.run(), "controllers") as task:
        ready = asyncio.ensure_future(standing.ready.wait())
        done, _ = await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED, timeout=PATIENCE)
        if not done:
            progress.step(f"starting the controllers: {standing.waiting}")
            await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if task.done():
            task.result()
        yield task


@contextlib.asynccontextmanager
async def _running(work: Any, name: str) -> AsyncIterator[asyncio.Task[Any]]:
    task: asyncio.Task[Any] = asyncio.create_task(work, name=name)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


async def _join(server: EmbeddedServer, folder: DataFolder) -> None:
    """Each simulated member is registered, or brought up to date, and has its context in the kubeconfig."""
    path = folder.members / "kubeconfig"
    simulated = yamlreader.read(await asyncio.to_thread(path.read_bytes)).value
    labels = {spec.name: dict(spec.labels) for spec in default_members(len(simulated["contexts"]))}
    for entry in simulated["contexts"]:
        name = entry["name"]
        await membership.register(server.client(), name, config.load(str(path), name), labels.get(name, {}))
    kubeconfig.write(folder.kubeconfig, kubeconfig.merged(server.kubeconfig(CONTEXT), simulated))


async def _members_ready(client: Client, folder: DataFolder, progress: Progress) -> None:
    """One that stays away is told and keeps nobody else from working: it is taken in when it comes."""
    simulated = yamlreader.read(await asyncio.to_thread((folder.members / "kubeconfig").read_bytes)).value

    async def ready(name: str) -> None:
        try:
            await membership.wait_ready(client, name, MEMBER_READY, lambda text: None)
            await _nodes_known(client, name)
        except Failure as failure:
            log.warning("%s", failure.message)
            progress.step(f"going on although {failure.message}")

    await asyncio.gather(*(ready(entry["name"]) for entry in simulated["contexts"]))


async def _nodes_known(client: Client, name: str) -> None:
    """A member is ready before its nodes are; what is divided until then gives it nothing. Raises Failure."""
    try:
        async with asyncio.timeout(MEMBER_READY):
            while True:
                cluster = await client.get(resources.FEDERATED_CLUSTERS, name, into=FederatedCluster)
                if cluster.status.resources.schedulable_nodes:
                    return
                await asyncio.sleep(NODES_POLL)
    except TimeoutError:
        raise Failure(f"no node of {name} was ready within {MEMBER_READY:g} s") from None


async def _unless(stop: asyncio.Event, work: Awaitable[None]) -> None:
    """Do it, unless we are asked to stop meanwhile."""
    task = asyncio.ensure_future(work)
    waiting = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
    finally:
        for each in (task, waiting):
            each.cancel()
        await asyncio.wait({task, waiting})
