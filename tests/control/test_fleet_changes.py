"""A change of the fleet writes only objects whose placement changes; and who must move goes first."""

import asyncio

import msgspec

from argosy.api import keys, resources
from argosy.control.caches.objectkeys import SourceKey
from tests.control.test_rules import Writes, settled
from tests.harness.eventually import eventually
from tests.harness.federation import DEPLOYMENTS, QUICK, Federation, add_node, federation
from tests.harness.user import deployment

PATIENT = msgspec.structs.replace(QUICK, failover_after=0.0, failback_after=0.0)


class FederatedWrites(Writes):
    """Of federated objects alone."""

    @property
    def names(self) -> list[str]:
        return [key.rpartition("/")[2].partition("-deployments")[0] for key in self.keys if "/federatedobjects/" in key]


async def tainted(fed: Federation, name: str, *taints: dict) -> None:
    await fed.client.patch(resources.FEDERATED_CLUSTERS, name, {"spec": {"taints": list(taints) or None}})


async def deployed(fed: Federation, policy: str, *names: str) -> None:
    for name in names:
        await fed.client.create(DEPLOYMENTS, deployment(name, 2, policy))
    for name in names:
        await settled(fed, f"{name}-deployments.apps")
    await eventually(fed.quiet, timeout=60.0, why="all is said")


async def test_a_taint_that_moves_nothing_writes_no_federated_object():
    async with federation(3) as fed:
        await fed.policy(schedulingMode="Duplicate")
        await fed.policy("divided", schedulingMode="Divide")
        await deployed(fed, "policy", "a", "b")
        await deployed(fed, "divided", "c", "d")
        writes = FederatedWrites(fed.plane)
        await tainted(fed, "m3", {"key": "maintenance", "effect": "NoSchedule"})
        await eventually(fed.quiet, why="it was thought about")
        await tainted(fed, "m3")
        await eventually(fed.quiet, why="it was thought about")
        assert writes.names == []
        await tainted(fed, "m3", {"key": "maintenance", "effect": "NoSchedule"})
        await eventually(fed.quiet, why="it was thought about")
        await fed.stop_controllers()
        await fed.start_controllers()
        await eventually(fed.quiet, why="all is known again")
        assert writes.names == [], "nor does a restart, although the records are behind"


async def test_a_failure_and_a_recovery_write_only_what_moves():
    async with federation(3, timings=PATIENT) as fed:
        await fed.policy("left", schedulingMode="Duplicate", placement=_in("m1", "m2"))
        await fed.policy("right", schedulingMode="Divide", placement=_in("m2", "m3"))
        await deployed(fed, "left", "a", "b", "c")
        await deployed(fed, "right", "d")
        writes = FederatedWrites(fed.plane)
        ours = {"key": keys.UNREADY_TAINT, "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}
        await fed.annotate(resources.FEDERATED_CLUSTERS, "m3", None, **{keys.FAILBACK_AFTER: "1h"})
        await tainted(fed, "m3", ours)
        await eventually(lambda: _placed(fed, "d", "m2"), why="it was moved")
        await asyncio.sleep(5.0)
        await tainted(fed, "m3")
        await asyncio.sleep(5.0)
        assert set(writes.names) == {"d"}


async def test_who_is_in_the_cluster_goes_first():
    async with federation(3) as fed:
        for name in ("m1", "m2", "m3"):
            # What depends on more than the cluster's own facts cannot be told from who moves.
            await fed.policy(name, schedulingMode="Duplicate", maxClusters=1, placement=_in(name))
        for number, policy in enumerate(("m1", "m2", "m3")):
            await deployed(fed, policy, f"web-{number}")
        await fed.stop_controllers()
        fed.timings = msgspec.structs.replace(QUICK, sweep=600.0)
        await fed.start_controllers()
        await eventually(fed.quiet, why="all is known")
        await tainted(fed, "m2", {"key": "broken", "effect": "NoExecute"})
        await eventually(lambda: fed.inside.snapshot.member("m2").taints, why="it is known")
        order = fed.inside.swept("federate", "facts of a cluster", ["m2"])
        assert next(key for key in order if key.type == "deployments.apps") == SourceKey(
            "deployments.apps", "default/web-1"
        )


async def test_a_restart_moves_no_replicas_because_the_last_decision_changed_nothing():
    async with federation(3, cpus=(16, 16, 16)) as fed:
        moves = {"reschedulePolicy": {"replicaRescheduling": {"avoidDisruption": False}}}
        await fed.policy(schedulingMode="Divide", **moves)
        await fed.deploy(replicas=9)
        await eventually(fed.quiet)
        before = await fed.replicas()
        await tainted(fed, "m3", {"key": "maintenance", "effect": "PreferNoSchedule"})
        await eventually(fed.quiet, why="it was thought about")
        assert await fed.replicas() == before
        await add_node(fed.member("m1"), "another", cpu=200)
        await eventually(fed.quiet, why="it is known, and moves nothing")
        writes = FederatedWrites(fed.plane)
        await fed.stop_controllers()
        await fed.start_controllers()
        await eventually(fed.quiet, why="all is known again")
        assert (writes.names, await fed.replicas()) == ([], before)


def _in(*names: str) -> list[dict]:
    return [{"cluster": name} for name in names]


async def _placed(fed: Federation, name: str, *clusters: str) -> bool:
    federated = await fed.federated(f"{name}-deployments.apps")
    return {each["cluster"] for each in federated["spec"]["placements"][0]["placement"]} == set(clusters)
