"""Leader election against the embedded server: one at a time, fenced, handed over."""

import asyncio

import pytest

from argosy.kube.client import Client
from argosy.kube.errors import TransportError
from argosy.kube.lease import LEASES, LeaderElector, LeaseLost, Sightings
from argosy.kube.transport import Request, Response
from argosy.server.embedded import EmbeddedServer
from tests.harness.eventually import PATIENCE, eventually


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def elector(client: Client, identity: str, clock: Clock | None = None, **options: float) -> LeaderElector:
    timings = {"duration": 1.0, "renew": 0.6, "retry": 0.05, **options}
    extra = {} if clock is None else {"clock": clock}
    return LeaderElector(client, "default", "leader", identity, **timings, **extra)  # type: ignore[arg-type]


async def test_the_first_one_gets_the_lease_and_writes_it_down(memory_server: EmbeddedServer) -> None:
    kube = memory_server.client()
    one = elector(kube, "one", duration=14.2, renew=10, retry=5)
    assert not one.held()
    await one.acquire()
    assert one.held()
    spec = (await kube.get(LEASES, "leader", "default"))["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("one", 15, 0)


async def test_that_the_namespace_is_missing_is_told(
    memory_server: EmbeddedServer, caplog: pytest.LogCaptureFixture
) -> None:
    lost = LeaderElector(memory_server.client(), "nowhere", "leader", "one")
    assert not await lost._try()
    assert 'the lease nowhere/leader: it cannot be created: namespaces "nowhere" not found' in caplog.text


async def test_a_lease_is_taken_over_only_after_it_stood_still_on_the_own_clock(memory_server: EmbeddedServer) -> None:
    kube = memory_server.client()
    clocks = Clock(), Clock()
    # Their clocks differ by days; only what each one measures itself counts.
    clocks[1].now = 500_000.0
    one = elector(kube, "one", clocks[0], duration=15, renew=10, retry=5)
    two = elector(kube, "two", clocks[1], duration=15, renew=10, retry=5)
    assert await one._try()
    assert not await two._try()
    clocks[1].now += 14
    assert not await two._try()
    clocks[0].now += 5
    assert await one._try()
    clocks[1].now += 14
    assert not await two._try(), "the lease was renewed meanwhile, so the wait starts over"
    clocks[1].now += 16
    assert await two._try()
    assert two.held()
    spec = (await kube.get(LEASES, "leader", "default"))["spec"]
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("two", 1)


async def test_a_holder_stops_trusting_its_lease_before_anybody_may_take_it(memory_server: EmbeddedServer) -> None:
    clock = Clock()
    one = elector(memory_server.client(), "one", clock, duration=15, renew=10, retry=5)
    await one.acquire()
    assert one.deadline() == clock.now + 10
    clock.now += 9.9
    assert one.held()
    clock.now += 0.2
    assert not one.held()


async def test_a_stopped_leader_that_wakes_up_sees_that_it_lost(memory_server: EmbeddedServer) -> None:
    kube = memory_server.client()
    clock = Clock()
    one = elector(kube, "one", clock, duration=15, renew=10, retry=5)
    two = elector(kube, "two", clock, duration=15, renew=10, retry=5)
    await one.acquire()
    assert not await two._try()
    clock.now += 20
    assert await two._try()
    assert not one.held()
    assert not await one._try()
    assert one.holder == "two"


async def test_a_clean_stop_hands_over_at_once(memory_server: EmbeddedServer) -> None:
    kube = memory_server.client()
    one, two = elector(kube, "one", duration=60, renew=40), elector(kube, "two", duration=60, renew=40)
    led: list[str] = []

    async def first() -> None:
        led.append("one")

    async def second() -> None:
        assert two.held()
        led.append("two")

    await asyncio.wait_for(one.run(first), PATIENCE)
    assert not one.held()
    await asyncio.wait_for(two.run(second), PATIENCE)
    assert led == ["one", "two"]


async def test_a_cancelled_leader_stops_its_work_and_releases(memory_server: EmbeddedServer) -> None:
    kube = memory_server.client()
    one = elector(kube, "one")
    leading, stopped = asyncio.Event(), asyncio.Event()

    async def lead() -> None:
        leading.set()
        try:
            await asyncio.Event().wait()
        finally:
            assert one.held(), "the work ends before the lease does"
            stopped.set()

    task = asyncio.create_task(one.run(lead))
    await asyncio.wait_for(leading.wait(), PATIENCE)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stopped.is_set()
    assert (await kube.get(LEASES, "leader", "default"))["spec"].get("holderIdentity", "") == ""


async def test_a_leader_that_is_cancelled_again_while_it_ends_leaves_no_renewals_behind(
    memory_server: EmbeddedServer,
) -> None:
    kube = memory_server.client()
    leads, ending, cleaned = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def lead() -> None:
        leads.set()
        try:
            await asyncio.Event().wait()
        finally:
            ending.set()
            await cleaned.wait()

    running = asyncio.create_task(elector(kube, "one").run(lead))
    await leads.wait()
    running.cancel()
    await ending.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    cleaned.set()
    assert not any(task.get_name() == "lease-leader" for task in asyncio.all_tasks())
    assert (await kube.get(LEASES, "leader", "default"))["spec"]["holderIdentity"] == ""


async def test_the_lease_is_renewed_while_leading(memory_server: EmbeddedServer) -> None:
    one = elector(memory_server.client(), "one")
    first = 0.0

    async def lead() -> None:
        nonlocal first
        first = one.deadline()
        await eventually(lambda: one.deadline() > first + 0.1)

    await asyncio.wait_for(one.run(lead), PATIENCE)


async def test_work_is_stopped_when_the_lease_cannot_be_renewed(memory_server: EmbeddedServer) -> None:
    kube = memory_server.client()
    inner = kube.transport.send
    away = False

    async def send(request: Request) -> Response:
        if away:
            raise TransportError("nobody there")
        return await inner(request)

    kube.transport.send = send  # type: ignore[method-assign]
    one = elector(kube, "one")
    stopped: list[bool] = []

    async def lead() -> None:
        nonlocal away
        away = True
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(one.held())

    with pytest.raises(LeaseLost, match=r"^one lost the lease default/leader: not renewed within 0.6 s: nobody there$"):
        await asyncio.wait_for(one.run(lead), PATIENCE)
    assert stopped == [False]
    assert one.failures


async def test_a_renewal_without_an_answer_is_told_as_such(
    memory_server: EmbeddedServer, caplog: pytest.LogCaptureFixture
) -> None:
    kube = memory_server.client()

    async def send(request: Request) -> Response:
        raise TimeoutError

    kube.transport.send = send  # type: ignore[method-assign]
    assert not await elector(kube, "one")._try()
    assert "the lease default/leader: no answer in time" in caplog.text


async def test_a_holder_that_was_replaced_says_by_whom(memory_server: EmbeddedServer) -> None:
    kube = memory_server.client()
    one = elector(kube, "one")

    async def lead() -> None:
        lease = await kube.get(LEASES, "leader", "default")
        lease["spec"]["holderIdentity"] = "two"
        await kube.update(LEASES, lease, "default")
        await asyncio.Event().wait()

    with pytest.raises(LeaseLost, match=r"^one lost the lease default/leader: two holds it now$"):
        await asyncio.wait_for(one.run(lead), PATIENCE)


async def test_a_renewal_that_comes_too_late_does_not_make_the_leader_go_on(memory_server: EmbeddedServer) -> None:
    """Writes were refused meanwhile, and whoever wanted them does not ask again."""
    kube = memory_server.client()
    clock = Clock()
    inner = kube.transport.send
    slow = False

    async def send(request: Request) -> Response:
        if slow and request.method == "PUT":
            clock.now += 11
        return await inner(request)

    kube.transport.send = send  # type: ignore[method-assign]
    one = elector(kube, "one", clock, duration=15, renew=10, retry=0.05)

    async def lead() -> None:
        nonlocal slow
        slow = True
        await asyncio.Event().wait()

    with pytest.raises(LeaseLost, match="not renewed within 10 s: the answer came too late"):
        await asyncio.wait_for(one.run(lead), PATIENCE)


async def test_a_lease_of_a_dead_holder_is_taken_when_it_ends_and_not_a_retry_later(
    memory_server: EmbeddedServer,
) -> None:
    kube = memory_server.client()
    await elector(kube, "dead", duration=1.0, renew=0.6, retry=0.5).acquire()
    two = elector(kube, "two", duration=60.0, renew=40.0, retry=20.0)
    await asyncio.wait_for(two.acquire(), PATIENCE)
    assert two.held()


async def test_a_lease_is_held_as_long_as_somebody_renews_it() -> None:
    clock = Clock()
    sightings = Sightings(clock)

    def lease(version: str, holder: str = "one", seconds: int = 15) -> dict[str, object]:
        spec = {"holderIdentity": holder, "leaseDurationSeconds": seconds}
        return {"metadata": {"name": "leader", "resourceVersion": version}, "spec": spec}

    assert sightings.free_in(lease("1")) == 15
    clock.now += 10
    assert sightings.free_in(lease("1")) == 5
    assert sightings.free_in(lease("2")) == 15
    clock.now += 16
    assert sightings.free_in(lease("2")) < 0
    assert sightings.free_in(lease("3", holder="")) == 0


@pytest.mark.parametrize("timings", [{"renew": 2.0}, {"retry": 0.7}, {"retry": 0.0}])
def test_timings_that_cannot_work_are_refused(timings: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="a lease needs"):
        elector(None, "one", **timings)  # type: ignore[arg-type]
