"""Rounds: work in several members at once, and what becomes of work that fails."""

import asyncio
import gc

import pytest

from argosy.control.fence import FenceLost
from argosy.control.operations import Applied
from argosy.control.rounds import Rounds, Work


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
