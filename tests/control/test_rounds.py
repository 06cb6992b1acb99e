"""Rounds: work in several members at once, and what becomes of work that fails."""

import asyncio
import gc
from typing import Any

import pytest

from argosy.api.conditions import Propagation
from argosy.control.copies.operations import Applied
from argosy.control.copies.rounds import Rounds, Work
from argosy.control.fence import FenceLost, Withheld
from argosy.control.members.guarded import Guarded
from argosy.control.members.member import Member
from tests.harness.federation import CONFIGMAPS, Federation


async def test_of_several_that_fail_together_one_is_raised_and_none_is_complained_about():
    complaints = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))

    async def fail() -> Applied:
        raise FenceLost("the lease is lost")

    rounds = Rounds(1.0, lambda key: None)
    with pytest.raises(FenceLost):
        await rounds.run("key", {name: Work("aim", fail) for name in ("m1", "m2", "m3")})
    gc.collect()
    await asyncio.sleep(0)
    assert not complaints


async def test_what_breaks_off_in_one_cluster_is_told_there_and_costs_the_others_nothing(
    caplog: pytest.LogCaptureFixture,
):
    async def succeed() -> Applied:
        return Applied(Propagation.OK, wrote="update")

    async def fail() -> Applied:
        raise RecursionError("much too deep")

    rounds = Rounds(1.0, lambda key: None)
    results = await rounds.run("key", {"m1": Work("aim", succeed), "m2": Work("aim", fail), "m3": Work("aim", succeed)})
    assert results == {
        "m1": Applied(Propagation.OK, wrote="update"),
        "m2": Applied(Propagation.COMPUTE_RESOURCE_FAILED, error="RecursionError: much too deep"),
        "m3": Applied(Propagation.OK, wrote="update"),
    }
    assert [record.getMessage() for record in caplog.records if record.exc_info] == ["key in m2"]


async def test_what_was_withheld_under_way_is_tried_again_in_the_next_round():
    paused, woken = asyncio.Event(), asyncio.Event()

    async def wait() -> Applied:
        await paused.wait()
        return Applied(Propagation.PENDING_CREATE, withheld=True)

    async def send() -> Applied:
        return Applied(Propagation.OK, wrote="create")

    rounds = Rounds(0.01, lambda key: woken.set())
    assert await rounds.run("key", {"m1": Work("aim", wait)}) == {}
    paused.set()
    await woken.wait()
    assert await rounds.run("key", {"m1": Work("aim", send)}) == {"m1": Applied(Propagation.OK, wrote="create")}


async def test_a_write_whose_turn_comes_after_a_pause_is_not_sent_and_no_failure_of_the_member() -> None:
    async with Federation(1) as fed:
        member = Member("m1", fed.member("m1"), fed.timings, fed.stop_controllers, lambda name: None, lambda name: None)
        paused = False

        class Guard:
            def check(self) -> None:
                if paused:
                    raise Withheld("it is paused")

        guarded = Guarded(member, Guard())
        await guarded.call(lambda client: client.create(CONFIGMAPS, a_map("a")))
        paused = True
        for _ in range(2 * fed.timings.breaker_failures):
            with pytest.raises(Withheld):
                await guarded.call(lambda client: client.create(CONFIGMAPS, a_map("b")))
        assert not member.breaker.is_open
        listed = await guarded.call(lambda client: client.list(CONFIGMAPS, "default"))
        assert [each["metadata"]["name"] for each in listed.items if each["metadata"]["name"] in "ab"] == ["a"]


def a_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
