"""Several `argosy controllers` on stock Kubernetes: one leads, and whatever becomes of it, nobody writes beside the next one.

One federation for all tests: each begins with the process that leads it at that time, and has a namespace of its own.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
import pytest_asyncio

from argosy.api import keys
from argosy.kube.lease import DURATION, RETRY
from argosy.testing.pytest_plugin import Kubernetes, SharedClusters
from tests.harness.eventually import holds
from tests.harness.user import CONFIGMAPS, DEPLOYMENTS
from tests.real.controllers import Controllers, StockFederation, Write, settled, stock_federation

pytestmark = pytest.mark.asyncio(loop_scope="module")

#: For processes that share two cores with a dozen others.
SLACK = 10.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fed(kubernetes_session: SharedClusters) -> AsyncIterator[StockFederation]:
    clusters = Kubernetes(kubernetes_session)
    try:
        async with stock_federation(clusters, members=1) as made:
            await made.leading(made.controllers("first"))
            await made.join_all()
            yield made
    finally:
        clusters.stop()


async def test_a_killed_leader_is_followed_within_its_lease_and_a_stopped_one_at_once(fed: StockFederation) -> None:
    began, leader = datetime.now(UTC), await _leader(fed)
    waiting = [fed.controllers("second"), fed.controllers("third")]
    await fed.namespaces("killed")
    fed.namespace = "killed"
    await fed.configure("before-the-kill", {"a": "1"})
    await fed.eventually(lambda: fed.member("m1").get(CONFIGMAPS, "before-the-kill", "killed"))
    for each in waiting:
        await fed.eventually(each.waits, f"{each.process.name} waits")
    before = await fed.holder()

    leader.process.kill()
    renewed = _time((await fed.lease())["renewTime"])
    await fed.configure("after-the-kill", {"a": "1"})
    heir = await fed.eventually(lambda: _leading_of(waiting), "one of those that waited leads")
    taken = _time((await fed.lease())["acquireTime"])
    # Not before the killed one's time was over either: it could still be at work.
    assert DURATION <= (taken - renewed).total_seconds() < DURATION + RETRY + SLACK
    await fed.eventually(lambda: fed.member("m1").get(CONFIGMAPS, "after-the-kill", "killed"))
    assert await fed.holder() not in ("", before)

    [last] = [each for each in waiting if each is not heir]
    await fed.eventually(last.waits, "the other one waits")
    await settled(fed)
    stopped = await fed.holder()
    await heir.process.stop(grace=30)
    assert heir.process.exit_code == 0, heir.log[-2000:]
    assert await fed.holder() != stopped, "it gave the lease back, so that nobody waits for it to run out"
    await fed.leading(last)
    _assert_terms_do_not_overlap(fed, began, datetime.now(UTC))


async def test_a_leader_that_was_stopped_beyond_its_lease_writes_nothing_when_it_wakes(fed: StockFederation) -> None:
    began, leader = datetime.now(UTC), await _leader(fed)
    heir = fed.controllers("heir")
    await fed.namespaces("paused")
    fed.namespace = "paused"
    await fed.eventually(heir.waits, "the heir waits")
    sleeper = await fed.holder()

    # Stopped in the middle of work, with more coming than it can have seen.
    work = asyncio.gather(*(fed.configure(f"c{number}", {"a": "1"}) for number in range(120)))
    await fed.eventually(lambda: len(_copies_written(fed, sleeper)) > 20, "it is at work")
    leader.process.pause()
    await work
    copied = _copies_written(fed, sleeper)
    await fed.leading(heir)
    # What the sleeper knows is out of date by now.
    await fed.deploy("web", replicas=2)
    await fed.eventually_replicas({"m1": 2})
    # Of those it had not copied yet none: a create that the stop caught would find nothing in its way.
    deleted = sorted(copied)[::2]
    kept = {f"c{number}" for number in range(120)} - set(deleted)
    for name in kept:
        await fed.client.patch(CONFIGMAPS, name, {"data": {"a": "2"}}, "paused")
    for name in deleted:
        await fed.client.delete(CONFIGMAPS, name, "paused")
    await settled(fed)

    woken = datetime.now(UTC)
    leader.process.resume()
    await fed.eventually(leader.waits, "the sleeper waits for the lease again")
    await fed.scale("web", 5)
    await fed.eventually_replicas({"m1": 5})
    await holds(lambda: _only_what_the_stop_caught(fed, sleeper, woken), 5.0)
    _assert_terms_do_not_overlap(fed, began, woken)
    copies = await fed.member("m1").list(CONFIGMAPS, "paused", label_selector=f"{keys.MANAGED_LABEL}=true")
    assert {copy["metadata"]["name"]: copy["data"] for copy in copies.items} == {name: {"a": "2"} for name in kept}

    # It is good for the next term, with what is true then.
    await heir.process.stop(grace=30)
    await fed.leading(leader)
    await fed.client.delete(DEPLOYMENTS, "web", "paused")
    await fed.eventually_replicas({})
    assert await fed.holder() == sleeper


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


async def _leader(fed: StockFederation) -> Controllers:
    """Who leads, by the test before or from the beginning."""
    return await fed.eventually(lambda: _leading_of(fed.running), "somebody leads")


async def _leading_of(processes: list[Controllers]) -> Controllers | None:
    for each in processes:
        if await each.leads():
            return each
    return None


def _only_what_the_stop_caught(fed: StockFederation, sleeper: str, woken: datetime) -> bool:
    """Nothing, or the one request that was between the fence's question and the kernel when its process was stopped."""
    late = [write for write in fed.writes() if write.identity == sleeper and write.received > woken]
    assert len(late) <= 1, late
    assert all(write.is_harmless for write in late), late
    return True


def _copies_written(fed: StockFederation, identity: str) -> set[str]:
    """The ConfigMaps in the member, in this test's namespace."""
    return {
        write.name
        for write in fed.writes()
        if (write.identity, write.cluster, write.resource) == (identity, "m1", CONFIGMAPS.plural)
        and write.namespace == fed.namespace
        and write.code < 300
    }


def _assert_terms_do_not_overlap(fed: StockFederation, began: datetime, ended: datetime) -> None:
    """Of what was written in that time, the last write of one comes before the first of the next."""
    terms: dict[str, list[Write]] = {}
    for write in sorted(fed.writes(), key=lambda write: write.received):
        if began < write.received < ended:
            terms.setdefault(write.identity, []).append(write)
    assert len(terms) > 1
    for earlier, later in itertools.pairwise(terms.values()):
        assert earlier[-1].received < later[0].received, (earlier[-1], later[0])
