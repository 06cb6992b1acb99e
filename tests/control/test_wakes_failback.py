"""A workload in failback goes on when a copy tells of replicas that are available; see `test_wakes.py`."""

import msgspec

from argosy.api import keys, resources
from tests.harness.eventually import eventually
from tests.harness.federation import DEPLOYMENTS, WATCHFUL, federation
from tests.harness.user import weights

TIMINGS = msgspec.structs.replace(WATCHFUL, failover_after=0.2, failback_after=0.2)
FOLLOWS_ITS_WEIGHTS = {
    "rescheduleWhen": {"policyContentChanged": True},
    "replicaRescheduling": {"avoidDisruption": False},
}


async def test_the_next_replica_returns_when_the_one_before_is_available():
    async with federation(2, timings=TIMINGS) as fed:
        await fed.policy(**weights(m1=1, m2=1), reschedulePolicy=FOLLOWS_ITS_WEIGHTS)
        await fed.annotate(resources.PROPAGATION_POLICIES, "policy", "default", **{keys.FAILBACK_REPLICAS: "1"})
        await fed.deploy(replicas=4)
        await fed.eventually_replicas({"m1": 2, "m2": 2})
        await fed.servers["m2"].close_door()
        await eventually(lambda: _asked_of(fed, "m1", 4), why="all are started in m1")
        await _available(fed, "m1", 4)
        await fed.servers["m2"].open_door()
        await eventually(lambda: _asked_of(fed, "m2", 1), why="the first one returns")
        await eventually(fed.inside.idle)
        await _available(fed, "m2", 1)
        await eventually(lambda: _asked_of(fed, "m2", 2), why="so does the next")


async def _asked_of(fed, cluster, replicas):
    return (await fed.replicas()).get(cluster) == replicas


async def _available(fed, cluster, number):
    copy = (await fed.copies())[cluster]
    told = dict.fromkeys(("replicas", "readyReplicas", "updatedReplicas", "availableReplicas"), number)
    status = {"observedGeneration": copy["metadata"]["generation"], **told}
    await fed.member(cluster).patch(DEPLOYMENTS, "web", {"status": status}, "default", subresource="status")
