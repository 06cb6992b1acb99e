"""Rounds: work in several members at once, and what becomes of work that fails."""

import asyncio
import gc

import pytest

from argosy.api.conditions import Propagation
from argosy.control.copies.operations import Applied
from argosy.control.copies.rounds import Rounds, Work
from argosy.control.fence import FenceLost


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
