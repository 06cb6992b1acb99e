"""What it costs: writes to the control plane for one Deployment on ten members, and for doing nothing."""

import asyncio

import msgspec
import pytest

from argosy.api import keys, resources
from argosy.kube.client import Patch
from tests.control.test_rules import CARRIED_FIRST, Writes, quiet, settled
from tests.harness.eventually import eventually
from tests.harness.federation import DEPLOYMENTS, QUICK, Federation
from tests.harness.statuses import KINDS
from tests.harness.user import exists


async def test_ten_members_cost_at_most_four_writes_until_all_hold_it():
    async with Federation(10, timings=CARRIED_FIRST) as fed:
        await fed.policy(schedulingMode="Duplicate")
        writes = Writes(fed.plane)
        await fed.deploy(replicas=1)
        await fed.eventually_replicas(dict.fromkeys(fed.names, 1))
        own = [key for key in writes.keys if key != "ADDED apps/deployments/default/web"]
        assert len(own) <= 4, own
        await settled(fed)


class Heartbeats(Writes):
    def _note(self, event):
        if event.entry.key.startswith(f"{keys.GROUP}/federatedclusters"):
            self.keys.append(event.entry.key)


async def test_an_idle_federation_writes_one_heartbeat_a_member_and_period_and_nothing_else():
    """Also where a member takes longer than a second to answer: its heartbeat is no reason for the next probe."""
    period = 2.0
    async with Federation(2, timings=msgspec.structs.replace(QUICK, health_period=period)) as fed:
        await fed.policy(schedulingMode="Duplicate")
        await fed.deploy(replicas=1)
        await fed.eventually_replicas({"m1": 1, "m2": 1})
        await settled(fed)
        await quiet([Writes(fed.plane)], 1.5)
        prober = fed.inside.prober
        observe = prober.observe

        async def slow(*args, **more):
            await asyncio.sleep(1.05)
            return await observe(*args, **more)

        prober.observe = slow
        writes, beats = Writes(fed.plane), Heartbeats(fed.plane)
        await eventually(lambda: len(beats.keys) >= 2, timeout=10)
        await quiet([writes], 3.0)
        assert writes.keys == []
        assert len(beats.keys) <= 5, "one a member and period"


async def test_a_status_change_in_all_members_together_costs_two_writes():
    """One CollectedStatus and one status of the source, however many members changed."""
    # Patient enough that a slow machine still brings all reports within one merge.
    patient = msgspec.structs.replace(QUICK, status_quiet=1.0, status_longest=3.0)
    async with Federation(3, timings=patient) as fed:
        await fed.policy(schedulingMode="Duplicate")
        await fed.deploy(replicas=1)
        await fed.eventually_replicas({"m1": 1, "m2": 1, "m3": 1})
        await settled(fed)
        await eventually(lambda: _collected(fed))
        await quiet([Writes(fed.plane)], 3.5)
        writes = Writes(fed.plane)
        status = {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1}
        for name in fed.names:
            await fed.member(name).patch(DEPLOYMENTS, "web", {"status": status}, "default", subresource="status")

        async def back():
            return (await fed.client.get(DEPLOYMENTS, "web", "default"))["status"].get("readyReplicas") == 3

        await eventually(back)
        await quiet([writes], 1.5)
        assert sorted(writes.keys) == [
            "MODIFIED apps/deployments/default/web",
            f"MODIFIED {keys.GROUP}/collectedstatuses/default/web-deployments.apps",
        ]


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet", "CronJob", "Service", "PodDisruptionBudget"])
async def test_a_status_of_any_kind_costs_two_writes_and_the_same_again_none(kind: str):
    patient = msgspec.structs.replace(QUICK, status_quiet=1.0, status_longest=3.0)
    case = KINDS[kind]
    resource = case.resource
    async with Federation(2, timings=patient) as fed:
        await fed.policy(schedulingMode="Duplicate")
        source = case.source()
        source["metadata"]["labels"] = {keys.PROPAGATION_POLICY_LABEL: "policy"}
        if kind == "PodDisruptionBudget":  # it goes where workloads with its pods go
            source["metadata"]["annotations"] = {keys.DISABLE_FOLLOWING: "true"}
        await fed.client.create(resource, source)

        async def present():
            return sorted(await fed.copies("x", resource)) == fed.names

        await eventually(present)
        name = f"x-{resource}"
        await eventually(lambda: exists(fed.client, resources.COLLECTED_STATUSES, name, "default"))
        await quiet([Writes(fed.plane)], 3.5)
        writes = Writes(fed.plane)

        async def report():
            for name, status in zip(fed.names, case.reported, strict=True):
                body = {"status": status}
                await fed.member(name).patch(resource, "x", body, "default", kind=Patch.MERGE, subresource="status")

        await report()

        async def back():
            shown = (await fed.client.get(resource, "x", "default")).get("status") or {}
            return all(shown.get(key) == value for key, value in case.merged.items() if key in COUNTED)

        await eventually(back)
        await quiet([writes], 3.5)
        assert sorted(told(writes)) == sorted(
            [
                f"MODIFIED {resource.group or 'core'}/{resource.plural}/default/x",
                f"MODIFIED {keys.GROUP}/collectedstatuses/default/x-{resource}",
            ]
        )
        again = Writes(fed.plane)
        await report()
        body = {"metadata": {"annotations": {"example.com/touched": "true"}}}
        await fed.member("m1").patch(resource, "x", body, "default", kind=Patch.MERGE)
        await quiet([again], 3.5)
        assert told(again) == []


def told(writes: Writes) -> list[str]:
    """Without the record of what was verified: of kinds that count no generations, it changes with each version of a copy."""
    return [key for key in writes.keys if "/federatedobjects/" not in key]


#: Fields that show that both members' reports were merged.
COUNTED = ("readyReplicas", "numberReady", "active", "loadBalancer", "currentHealthy")


async def _collected(fed):
    return await fed.client.get(resources.COLLECTED_STATUSES, "web-deployments.apps", "default")


async def test_replicas_that_come_one_by_one_are_told_now_and_then_and_the_last_at_once():
    patient = msgspec.structs.replace(QUICK, status_longest_busy=30.0)
    async with Federation(1, timings=patient) as fed:
        await fed.policy(schedulingMode="Duplicate")
        await fed.deploy(replicas=9)
        await fed.eventually_replicas({"m1": 9})
        await settled(fed)
        writes = Writes(fed.plane)
        for ready in range(1, 10):
            status = {"observedGeneration": 1, "replicas": 9, "updatedReplicas": 9, "readyReplicas": ready}
            await fed.member("m1").patch(DEPLOYMENTS, "web", {"status": status}, "default", subresource="status")
            await asyncio.sleep(0.15)  # long enough to be told each, if that were how it is done

        async def back():
            return (await fed.client.get(DEPLOYMENTS, "web", "default"))["status"].get("readyReplicas") == 9

        await eventually(back, 15.0, "that all are ready is told long before the longest time is over")
        await quiet([writes], 1.0)
        assert len(writes.keys) <= 4, writes.keys
