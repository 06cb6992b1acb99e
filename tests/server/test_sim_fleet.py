"""A fleet of simulated members over HTTPS: its kubeconfig works, faults are felt, and a restart changes nothing."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from argosy.kube import config
from argosy.kube.client import Client
from argosy.kube.errors import TransportError
from argosy.kube.http import HttpTransport
from argosy.server import kubeconfig
from argosy.sim.fleet import SimulatedFleet
from argosy.sim.main import Options, run
from argosy.sim.spec import MemberSpec, NodePool, default_members
from tests.server.sim_world import DEPLOYMENTS, FAST, NODES, PODS, deployment, is_ready, pods, rolled_out, until


@asynccontextmanager
async def client_of(fleet: SimulatedFleet, member: str, folder: Path) -> AsyncIterator[Client]:
    path = folder / "kubeconfig"
    kubeconfig.write(path, fleet.kubeconfig())
    client = Client(HttpTransport(config.load(str(path), member), timeout=5.0))
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def running(
    members: list[MemberSpec], data: Path | None = None, base_port: int = 0
) -> AsyncIterator[SimulatedFleet]:
    fleet = SimulatedFleet(members, data, base_port, FAST)
    await fleet.start()
    try:
        yield fleet
    finally:
        await fleet.stop()


async def test_every_member_is_a_cluster_of_its_own_size(tmp_path: Path) -> None:
    async with running(default_members(3)) as fleet:
        sizes = []
        for name in ("member-1", "member-2", "member-3"):
            async with client_of(fleet, name, tmp_path) as client:
                sizes.append(len((await client.list(NODES)).items))
        assert sizes == [3, 5, 8]
        assert fleet.kubeconfig()["current-context"] == "member-1"
        async with client_of(fleet, "member-2", tmp_path) as client:
            await client.create(DEPLOYMENTS, deployment(), "default")
            await until(fleet["member-2"], rolled_out(fleet["member-2"]))
            assert [is_ready(pod) for pod in (await client.list(PODS, "default")).items] == [True] * 3
        assert not pods(fleet["member-1"])


async def test_a_restart_keeps_objects_pods_certificates_and_ports(tmp_path: Path) -> None:
    members = [MemberSpec("one", (NodePool(2),)), MemberSpec("two")]
    async with running(members, tmp_path) as fleet:
        await fleet["one"].client().create(DEPLOYMENTS, deployment(), "default")
        await until(fleet["one"], rolled_out(fleet["one"]))
        before = {pod["metadata"]["uid"]: pod["status"]["podIP"] for pod in pods(fleet["one"])}
        config_before, version = fleet.kubeconfig(), fleet["one"].embedded.server.store.version
    async with running(members, tmp_path) as fleet:
        assert fleet.kubeconfig()["clusters"] == config_before["clusters"]
        member = fleet["one"]
        assert {pod["metadata"]["uid"]: pod["status"]["podIP"] for pod in pods(member)} == before
        for controller in member.manager.controllers:
            await controller.queue.idle()
        assert member.embedded.server.store.version == version
        await member.client().patch(DEPLOYMENTS, "web", {"spec": {"replicas": 4}}, "default")
        await until(member, rolled_out(member))
        assert set(before) < {pod["metadata"]["uid"] for pod in pods(member)}
        assert len({pod["status"]["podIP"] for pod in pods(member)}) == 4


async def test_pods_that_were_starting_when_it_stopped_start_after_the_restart(tmp_path: Path) -> None:
    members = [MemberSpec("one")]
    async with running(members, tmp_path) as fleet:
        await fleet["one"].client().create(DEPLOYMENTS, deployment(replicas=5), "default")
        await until(fleet["one"], lambda: pods(fleet["one"]))
    async with running(members, tmp_path) as fleet:
        await until(fleet["one"], rolled_out(fleet["one"]))


async def test_a_stopped_member_cannot_be_reached_but_lives_on(tmp_path: Path) -> None:
    async with running([MemberSpec("one")]) as fleet:
        member = fleet["one"]
        async with client_of(fleet, "one", tmp_path) as client:
            await client.list(NODES)
            await member.stop()
            with pytest.raises(TransportError):
                await client.create(DEPLOYMENTS, deployment("never"), "default")
            await member.client().create(DEPLOYMENTS, deployment(), "default")
            await until(member, rolled_out(member))
            await member.start()
            assert len((await client.list(PODS, "default")).items) == 3


async def test_latency_is_felt_on_every_answer_and_can_change(tmp_path: Path) -> None:
    async with running([MemberSpec("far", latency=0.05)]) as fleet, client_of(fleet, "far", tmp_path) as client:
        await client.list(NODES)
        started = time.monotonic()
        await client.list(NODES)
        assert time.monotonic() - started >= 0.1
        fleet["far"].set_latency(0.0)
        await client.list(NODES)
        fleet["far"].set_latency(0.2)
        started = time.monotonic()
        await client.list(NODES)
        assert time.monotonic() - started >= 0.4


async def test_a_busy_port_is_one_clear_error_and_closes_what_was_open() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        fleet = SimulatedFleet([MemberSpec("free"), MemberSpec("busy", port=port)], timings=FAST)
        with pytest.raises(OSError, match=str(port)):
            await fleet.start()
        assert not fleet.members


def test_names_must_differ() -> None:
    with pytest.raises(ValueError, match="same name"):
        SimulatedFleet([MemberSpec("a"), MemberSpec("a")])


async def test_run_serves_until_it_is_cancelled(tmp_path: Path) -> None:
    ready: asyncio.Future[SimulatedFleet] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(run(Options(members=2, data=tmp_path / "sim"), ready.set_result))
    fleet = await asyncio.wait_for(ready, 20)
    connection = config.load(str(tmp_path / "sim" / "kubeconfig"), "member-2")
    client = Client(HttpTransport(connection))
    assert len((await client.list(NODES)).items) == 5
    await client.close()
    port = fleet["member-1"].port
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with socket.socket() as again:
        again.bind(("127.0.0.1", port))


@pytest.mark.parametrize("options", [Options(members=0), Options(speed=0.0), Options(base_port=65535, members=3)])
async def test_options_that_make_no_sense_are_refused(options: Options) -> None:
    with pytest.raises(ValueError):
        await run(options)
