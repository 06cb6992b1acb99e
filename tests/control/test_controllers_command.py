"""`argosy controllers` and bad options: one line, and nothing is started."""

import aiohttp
import pytest

from argosy.cli.controllers import _shard
from argosy.cli.failures import Failure
from argosy.cli.probes import Probes


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("2", "'2' is not a shard; write i/n, for example 0/3, 1/3 and 2/3"),
        ("1/1", "shards count from 0: the last of 1 is 0/1"),
        ("3/3", "shards count from 0: the last of 3 is 2/3"),
        ("0/0", "there can be 1 to 64 shards, not 0"),
        ("0/65", "there can be 1 to 64 shards, not 65"),
    ],
)
def test_a_shard_that_cannot_be_is_refused(text: str, told: str) -> None:
    with pytest.raises(Failure) as failure:
        _shard(text, leader_elect=True)
    assert (failure.value.message, failure.value.code) == (f"--shard: {told}", 2)


def test_shards_without_leases_are_refused() -> None:
    with pytest.raises(Failure, match="--shard needs leader election") as failure:
        _shard("0/2", leader_elect=False)
    assert failure.value.hint == "leave out --no-leader-elect"
    assert str(_shard("0/1", leader_elect=False)) == "0/1"


async def test_probes_on_an_address_this_machine_does_not_have_are_refused() -> None:
    with pytest.raises(Failure, match=r"203.0.113.1 port 0 cannot be used for probes: ") as failure:
        await Probes().open("203.0.113.1", 0)
    assert "--probe-address" in failure.value.hint


async def test_probes_tell_what_is_waited_for() -> None:
    probes = Probes()
    await probes.open("127.0.0.1", 0)
    probes.waiting = lambda: "somebody"
    try:
        async with aiohttp.ClientSession() as session, session.get(f"{probes.url}/readyz") as answer:
            assert (answer.status, await answer.text()) == (200, "ok: waiting for somebody")
    finally:
        await probes.close()
