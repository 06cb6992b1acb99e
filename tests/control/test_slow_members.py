"""Members that take every request and answer none: they hold up nobody, and get what they missed when they are back."""

import contextlib

import msgspec
import pytest

from tests.harness.eventually import eventually
from tests.harness.federation import DEPLOYMENTS, QUICK, Federation
from tests.harness.virtual_server import VirtualServer

#: Health is shown late, as in production: for a while a hung member counts as ready. Nobody here waits as long as for a
#: write to it.
PATIENT = msgspec.structs.replace(QUICK, round_patience=0.2, member_silence=0.5, member_write=120.0, breaker_open=0.2)
ON_BOTH = {"schedulingMode": "Duplicate"}
ON_M1 = {"schedulingMode": "Duplicate", "placement": [{"cluster": "m1"}]}


@contextlib.asynccontextmanager
async def hung(fed: Federation, name: str):
    """In place of the member's server one that reads and never answers."""
    server = fed.servers[name]
    assert isinstance(server, VirtualServer)
    await server.hang()
    try:
        yield
    finally:
        await server.close_door()
        await server.open_door()


@pytest.fixture
async def fed():
    async with Federation(2, timings=PATIENT) as federation:
        yield federation


async def test_a_hung_member_holds_up_no_other_object(fed):
    await fed.policy("both", **ON_BOTH)
    await fed.policy("one", **ON_M1)
    await fed.deploy("first", 1, "both")
    await fed.eventually_replicas({"m1": 1, "m2": 1}, "first")
    workers = fed.inside.workers
    async with hung(fed, "m2"):
        for number in range(3 * workers):
            await fed.deploy(f"both-{number}", 1, "both")
        await fed.deploy("free", 1, "one")
        await fed.eventually_replicas({"m1": 1}, "free", timeout=PATIENT.member_write / 2)
        await eventually(lambda: _in_m1(fed, 3 * workers))
    await fed.eventually_replicas({"m1": 1, "m2": 1}, f"both-{3 * workers - 1}")
    await fed.eventually_replicas({"m1": 1, "m2": 1}, "both-0")


async def test_deletion_waits_for_a_hung_member_and_not_in_a_worker(fed):
    await fed.policy("both", **ON_BOTH)
    await fed.deploy("web", 1, "both")
    await fed.eventually_replicas({"m1": 1, "m2": 1})
    async with hung(fed, "m2"):
        await fed.client.delete(DEPLOYMENTS, "web", "default")
        await eventually(lambda: _only_m2(fed))
        await eventually(lambda: fed.inside.queue("dispatch").processing == 0)
        assert (await fed.federated())["metadata"]["deletionTimestamp"]
    await fed.eventually_replicas({})


async def _in_m1(fed: Federation, count: int) -> bool:
    return len((await fed.member("m1").list(DEPLOYMENTS, "default")).items) >= count


async def _only_m2(fed: Federation) -> bool:
    return set(await fed.replicas()) == {"m2"}
