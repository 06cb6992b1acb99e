"""Several `argosy controllers` on stock Kubernetes: one leads, and whatever becomes of it, nobody writes beside the next one."""

import asyncio
import itertools
import time
from datetime import UTC, datetime

from argosy.api import keys
from argosy.kube.lease import DURATION, RETRY
from argosy.testing.pytest_plugin import Kubernetes
from tests.harness.eventually import eventually, holds
from tests.harness.user import CONFIGMAPS, DEPLOYMENTS
from tests.real.controllers import StockFederation, Write, settled, stock_federation

#: For processes that share two cores with a dozen others.
SLACK = 10.0


async def test_a_killed_leader_is_followed_within_its_lease_and_a_stopped_one_at_once(kubernetes: Kubernetes) -> None:
    async with stock_federation(kubernetes, members=1) as fed:
        first = fed.controllers("first")
        await fed.leading(first)
        await fed.join_all()
        await fed.namespaces("team")
        fed.namespace = "team"
        second = fed.controllers("second")
        await fed.eventually(second.waits, "the second waits")
        before = await fed.holder()

        first.process.kill()
        killed = time.monotonic()
        await fed.configure("after-the-kill", {"a": "1"})
        await eventually(second.leads, DURATION + RETRY + SLACK, "the second leads")
        # Not before the killed one's time was over either: it could still be at work.
        assert time.monotonic() - killed > DURATION - RETRY * 1.2 - 1.0
        await fed.eventually(lambda: fed.member("m1").get(CONFIGMAPS, "after-the-kill", "team"))
        assert await fed.holder() not in ("", before)

        third = fed.controllers("third")
        await fed.eventually(third.waits, "the third waits")
        await settled(fed)
        stopped = time.monotonic()
        await second.process.stop(grace=30)
        assert second.process.exit_code == 0, second.log[-2000:]
        await eventually(third.leads, RETRY * 1.2 + SLACK, "the third leads")
        assert time.monotonic() - stopped < DURATION, "it did not wait for the lease to run out"
        _assert_terms_do_not_overlap(fed)


async def test_a_leader_that_was_stopped_beyond_its_lease_writes_nothing_when_it_wakes(kubernetes: Kubernetes) -> None:
    async with stock_federation(kubernetes, members=1) as fed:
        first = fed.controllers("first")
        await fed.leading(first)
        await fed.join_all()
        await fed.namespaces("team")
        fed.namespace = "team"
        second = fed.controllers("second")
        await fed.eventually(second.waits, "the second waits")
        sleeper = await fed.holder()

        # Stopped in the middle of work, with more coming than it can have seen.
        work = asyncio.gather(*(fed.configure(f"c{number}", {"a": "1"}) for number in range(120)))
        await fed.eventually(lambda: _writes(fed, sleeper, CONFIGMAPS.plural) > 20, "it is at work")
        first.process.pause()
        await work
        await eventually(second.leads, DURATION + RETRY + SLACK, "the second leads")
        # What the sleeper knows is out of date by now.
        await fed.deploy("web", replicas=2)
        await fed.eventually_replicas({"m1": 2})
        for number in range(0, 120, 2):
            await fed.client.patch(CONFIGMAPS, f"c{number}", {"data": {"a": "2"}}, "team")
        for number in range(1, 120, 2):
            await fed.client.delete(CONFIGMAPS, f"c{number}", "team")
        await settled(fed)

        woken = datetime.now(UTC)
        first.process.resume()
        await fed.eventually(first.waits, "the first waits for the lease again")
        await fed.scale("web", 5)
        await fed.eventually_replicas({"m1": 5})
        await holds(lambda: not [w for w in fed.writes() if w.identity == sleeper and w.received > woken], 5.0)
        _assert_terms_do_not_overlap(fed)
        copies = await fed.member("m1").list(CONFIGMAPS, "team", label_selector=f"{keys.MANAGED_LABEL}=true")
        assert {copy["metadata"]["name"]: copy["data"] for copy in copies.items} == {
            f"c{number}": {"a": "2"} for number in range(0, 120, 2)
        }

        # It is good for the next term, with what is true then.
        await second.process.stop(grace=30)
        await fed.leading(first)
        await fed.client.delete(DEPLOYMENTS, "web", "team")
        await fed.eventually_replicas({})
        assert await fed.holder() == sleeper


def _writes(fed: StockFederation, identity: str, resource: str) -> int:
    return sum(write.identity == identity and write.resource == resource for write in fed.writes())


def _assert_terms_do_not_overlap(fed: StockFederation) -> None:
    """The last write of one comes before the first of the next."""
    terms: dict[str, list[Write]] = {}
    for write in sorted(fed.writes(), key=lambda write: write.received):
        terms.setdefault(write.identity, []).append(write)
    assert len(terms) > 1
    for earlier, later in itertools.pairwise(terms.values()):
        assert earlier[-1].received < later[0].received, (earlier[-1], later[0])
