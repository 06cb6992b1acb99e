"""Failover goes step by step: a share of a zone a minute, as far as the others have room, and without touching the healthy."""

import asyncio

import msgspec
import pytest

from argosy.api import keys, resources
from argosy.api.shards import Shard
from argosy.control.options import Options
from argosy.plan.brake.limits import Limits
from argosy.plan.failover.pacing import ZONE_LABEL, Pacing
from tests.control.test_shards import ShardedFederation
from tests.harness.eventually import eventually, holds
from tests.harness.federation import DEPLOYMENTS, NAMESPACES, WATCHFUL, Federation, add_node, federation
from tests.harness.user import deployment, weights

#: A minute is four seconds.
MINUTE = 4.0
TIMINGS = msgspec.structs.replace(WATCHFUL, failover_after=0.2, failback_after=600.0, failover_window=MINUTE)


def paced(share: float = 0.25, *, least: int = 1, unready: float = 0.5) -> Options:
    return Options(brake=Limits(share=1.0), failover=Pacing(share, least, unready))


async def placed_in(fed: Federation, cluster: str) -> int:
    found = (await fed.client.list(resources.federated_objects(True))).items
    placed = [each["placement"] for item in found for each in item["spec"].get("placements") or ()]
    return sum(any(each["cluster"] == cluster for each in entry) for entry in placed)


async def deployed(fed: Federation, names: list[str], policy: str, **spec: object) -> None:
    await fed.policy(policy, **spec)
    for name in names:
        await fed.client.create(DEPLOYMENTS, deployment(name, 1, policy))
    await eventually(fed.quiet, why="all is there")


async def told(fed: Federation, name: str) -> str:
    cluster = await fed.client.get(resources.FEDERATED_CLUSTERS, name)
    return cluster["metadata"].get("annotations", {}).get(keys.FAILOVER_STATE, "")


async def test_a_share_of_the_zone_leaves_in_a_minute_and_the_rest_later():
    async with federation(3, timings=TIMINGS, options=paced()) as fed:
        for number in (1, 2, 3):
            await deployed(fed, [f"web-{number}-{n}" for n in range(8)], f"only-{number}", **_first(f"m{number}"))
        assert await placed_in(fed, "m3") == 8
        await fed.servers["m3"].stop()
        counts: list[int] = []

        async def gone() -> bool:
            counts.append(await placed_in(fed, "m3"))
            if counts[-1] == 2:
                assert "2 objects wait for their turn" in await told(fed, "m3")
            return counts[-1] == 0

        await eventually(gone, why="all have left")
        assert set(counts) <= {8, 7, 6, 5, 4, 3, 2, 1, 0}
        # A quarter of the zone's 24 copies.
        assert 2 in counts
        await eventually(lambda: _is(fed, "m3", ""), why="nobody waits")
        assert await fed.events("FailoverPaced")


async def test_each_zone_has_a_pace_of_its_own():
    async with federation(4, timings=TIMINGS, options=paced(0.5)) as fed:
        for name, zone in (("m1", "a"), ("m2", "a"), ("m3", "b"), ("m4", "b")):
            labels = {"metadata": {"labels": {ZONE_LABEL: zone}}}
            await fed.client.patch(resources.FEDERATED_CLUSTERS, name, labels)
        await deployed(fed, [f"left-{n}" for n in range(4)], "left", **_first("m1", "m2"))
        await deployed(fed, [f"right-{n}" for n in range(4)], "right", **_first("m3", "m4"))
        await fed.servers["m1"].stop()
        await fed.servers["m3"].stop()

        async def halves() -> bool:
            return (await placed_in(fed, "m1"), await placed_in(fed, "m3")) == (2, 2)

        await eventually(halves, why="half of each zone has left")
        await eventually(lambda: _empty(fed, "m1", "m3"), why="the others follow")


async def test_a_users_change_does_not_wait_for_its_turn():
    async with federation(2, timings=TIMINGS, options=paced(0.01)) as fed:
        await deployed(fed, ["first", "second"], "policy", **weights(m1=1, m2=1))
        await fed.servers["m2"].stop()
        for name in ("first", "second"):
            await fed.scale(name, 2)
        await eventually(lambda: fed.events("FailoverPaced"), why="one of them waits")
        for name in ("first", "second"):
            await fed.scale(name, 4)

        async def scaled() -> bool:
            return [(await fed.replicas(name)).get("m1", 0) >= 2 for name in ("first", "second")] == [True, True]

        await eventually(scaled)


async def test_while_too_many_are_unready_nothing_leaves_any_more_and_then_it_goes_on():
    async with federation(3, timings=TIMINGS, options=paced(0.25)) as fed:
        await deployed(fed, [f"web-{n}" for n in range(8)], "policy", **_first("m3"))
        await fed.servers["m3"].close_door()
        await eventually(lambda: _placed(fed, "m3", 6), why="a quarter has left")
        await fed.servers["m2"].close_door()
        await eventually(lambda: _told(fed, "m3", "2 of 3 clusters are unready, more than 50 %"), why="it is suspended")
        there = await placed_in(fed, "m3")
        await holds(lambda: _placed(fed, "m3", there), 3 * MINUTE)
        await fed.servers["m2"].open_door()
        await eventually(lambda: _empty(fed, "m3"), why="it goes on")


async def test_it_stops_where_there_is_no_room_says_so_and_goes_on_when_there_is():
    async with federation(2, timings=TIMINGS, options=paced(1.0), cpus=(4, 16)) as fed:
        await fed.policy(**weights(m1=1, m2=3))
        manifest = deployment("web", 8, "policy")
        manifest["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
        await fed.client.create(DEPLOYMENTS, manifest)
        await fed.eventually_replicas({"m1": 2, "m2": 6})
        await eventually(fed.quiet)
        await fed.servers["m2"].close_door()
        await eventually(lambda: _divided(fed, {"m1": 4, "m2": 4}), why="m1 has four cores")

        async def says_so() -> bool:
            found = await fed.federated()
            scheduled = [each["status"] for each in found["status"]["conditions"] if each["type"] == "Scheduled"]
            events = [each for each in await fed.events("ScheduleFederatedObject") if _STAYS in each["message"]]
            return scheduled == ["False"] and _STAYS in found["metadata"]["annotations"][keys.HELD] and bool(events)

        await eventually(says_so)
        await holds(lambda: _divided(fed, {"m1": 4, "m2": 4}), 2 * MINUTE)
        await add_node(fed.member("m1"), "another", cpu=16)
        await eventually(lambda: _divided(fed, {"m1": 8}), why="there is room")


async def test_what_leaves_one_failed_cluster_counts_although_it_may_not_leave_another():
    async with federation(6, timings=TIMINGS, options=paced(0.01)) as fed:
        for name, zone in (("m1", "a"), ("m3", "b")):
            await fed.client.patch(resources.FEDERATED_CLUSTERS, name, {"metadata": {"labels": {ZONE_LABEL: zone}}})
        first = [{"cluster": name, "preferences": {"priority": 9}} for name in ("m1", "m3")]
        others = [{"cluster": name} for name in ("m2", "m4", "m5")]
        both = {"schedulingMode": "Duplicate", "maxClusters": 2, "placement": [*first, *others]}
        await deployed(fed, ["alone"], "one", **_first("m3", "m2"))
        await deployed(fed, [f"web-{n}" for n in range(5)], "two", **both)
        await fed.servers["m3"].stop()
        await eventually(lambda: _placed(fed, "m3", 5), why="one has left zone b")
        await fed.servers["m1"].stop()
        await eventually(lambda: _placed(fed, "m1", 4), why="one has left zone a")
        await holds(lambda: _placed(fed, "m1", 4), MINUTE / 2)


async def test_who_found_no_room_leaves_at_the_pace_when_there_is():
    async with federation(2, timings=TIMINGS, options=paced(0.01), cpus=(1, 32)) as fed:
        await fed.policy(schedulingMode="Divide", placement=[{"cluster": "m2", "preferences": {"weight": 1}}])
        for number in range(4):
            manifest = deployment(f"web-{number}", 4, "policy")
            manifest["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2"}}
            await fed.client.create(DEPLOYMENTS, manifest)
        await eventually(fed.quiet)
        both = [{"cluster": name, "preferences": {"weight": 1}} for name in ("m1", "m2")]
        await fed.client.patch(resources.PROPAGATION_POLICIES, "policy", {"spec": {"placement": both}}, "default")
        await eventually(fed.quiet)
        await fed.servers["m2"].close_door()
        await eventually(lambda: _failed(fed, "m2"))
        await asyncio.sleep(2 * MINUTE)
        assert await placed_in(fed, "m2") == 4
        await add_node(fed.member("m1"), "another", cpu=64)
        await eventually(lambda: _placed(fed, "m2", 3), why="there is room")
        await holds(lambda: _placed(fed, "m2", 3), MINUTE / 2)
        await eventually(lambda: _empty(fed, "m2"), why="the others follow")


async def test_nobody_asks_again_while_failover_is_suspended_and_its_end_wakes_all():
    timings = msgspec.structs.replace(TIMINGS, failover_window=10.0)
    async with federation(3, timings=timings, options=paced(0.25)) as fed:
        await deployed(fed, [f"web-{n}" for n in range(8)], "policy", **_first("m3"))
        await fed.servers["m3"].close_door()
        await eventually(lambda: _placed(fed, "m3", 6), why="a quarter has left")
        await fed.servers["m2"].close_door()
        await eventually(lambda: _told(fed, "m3", "failover is suspended"))
        await asyncio.sleep(15.0)
        before = _passes(fed)
        await asyncio.sleep(60.0)
        assert _passes(fed) == before
        await fed.servers["m2"].open_door()
        await eventually(lambda: _empty(fed, "m3"), why="it goes on")


async def test_what_left_counts_in_the_zone_that_its_cluster_has_also_after_a_restart():
    """The zone may be known later than what left."""
    timings = msgspec.structs.replace(TIMINGS, failover_window=60.0)
    async with federation(3, timings=timings, options=paced(0.01, least=2)) as fed:
        for name, zone in (("m1", "a"), ("m2", "b"), ("m3", "c")):
            await fed.client.patch(resources.FEDERATED_CLUSTERS, name, {"metadata": {"labels": {ZONE_LABEL: zone}}})
        await deployed(fed, [f"web-{n}" for n in range(8)], "policy", **_first("m3"))
        await fed.servers["m3"].stop()
        await eventually(lambda: _placed(fed, "m3", 6), why="two have left")
        await fed.stop_controllers()
        await fed.start_controllers()
        await holds(lambda: _placed(fed, "m3", 6), 4.0)
        await fed.client.patch(resources.FEDERATED_CLUSTERS, "m3", {"metadata": {"labels": {ZONE_LABEL: "d"}}})
        await holds(lambda: _placed(fed, "m3", 6), 4.0)


async def test_each_shard_paces_and_shows_its_own():
    fed = ShardedFederation(3, 2, paced(0.01, least=4))
    fed.timings = msgspec.structs.replace(TIMINGS, failover_window=600.0)
    namespaces = ("shop", "default")
    assert [Shard(0, 2).owns(name) for name in namespaces] == [True, False]
    async with fed:
        await fed.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
        for namespace in namespaces:
            await fed.policy(namespace=namespace, **_first("m3"))
            for number in range(6):
                await fed.deploy(f"web-{number}", 1, namespace=namespace)
        await eventually(lambda: _placed(fed, "m3", 12), why="all is there")
        await fed.settled()
        await fed.servers["m3"].stop()

        def waiting() -> list[float | None]:
            each = {"cluster": "m3"}
            return [
                manager.metrics.registry.get_sample_value("argosy_failover_waiting", each) for manager in fed.managers
            ]

        await eventually(lambda: waiting() == [4, 4], why="each lets two of the four go")
        assert await placed_in(fed, "m3") == 8


async def test_a_cluster_that_is_gone_leaves_no_gauge_behind():
    async with federation(3, timings=TIMINGS, options=paced(0.01)) as fed:
        await deployed(fed, [f"web-{n}" for n in range(4)], "policy", **_first("m3"))
        await fed.servers["m3"].stop()
        await eventually(lambda: _told(fed, "m3", "wait for their turn"))
        await asyncio.sleep(1.5)
        assert fed.manager is not None
        value = fed.manager.metrics.registry.get_sample_value
        assert value("argosy_failover_waiting", {"cluster": "m3"}) == 3
        await fed.servers["m2"].stop()
        await eventually(lambda: _told(fed, "m3", "failover is suspended"))
        assert value("argosy_failover_suspended") == 1
        for name in ("m2", "m3"):
            await fed.client.patch(resources.FEDERATED_CLUSTERS, name, {"metadata": {"finalizers": None}})
            await fed.client.delete(resources.FEDERATED_CLUSTERS, name)
        await asyncio.sleep(3.0)
        assert value("argosy_failover_waiting", {"cluster": "m3"}) is None
        assert value("argosy_failover_suspended") == 0


@pytest.mark.parametrize("inside", [True, False], ids=["in-it", "elsewhere"])
async def test_healthy_clusters_start_what_is_lost_and_stop_nothing(inside: bool):
    """Also where the policy lets replicas move, and the weights follow what is free."""
    moves = {"reschedulePolicy": {"replicaRescheduling": {"avoidDisruption": False}}}
    async with federation(3, timings=TIMINGS, options=paced(1.0)) as fed:
        await fed.policy(**weights(m1=1, m2=1, **({"m3": 1} if inside else {})), **moves)
        await fed.deploy(replicas=6)
        await fed.eventually_replicas({"m1": 2, "m2": 2, "m3": 2} if inside else {"m1": 3, "m2": 3})
        await eventually(fed.quiet)
        # The weights would have it otherwise now; that alone moves nothing.
        placement = weights(m1=9, m2=1, m3=1)["placement"] if inside else weights(m1=9, m2=1)["placement"]
        policy = {
            "spec": {"placement": placement, "reschedulePolicy": {**moves["reschedulePolicy"], **_NOT_FOR_CONTENT}}
        }
        await fed.client.patch(resources.PROPAGATION_POLICIES, "policy", policy, "default")
        await eventually(fed.quiet)
        before = await fed.replicas()
        await fed.servers["m3"].close_door()
        await eventually(lambda: _failed(fed, "m3"))
        await asyncio.sleep(3.0)
        after = await _division(fed)
        assert sum(after.values()) == 6
        assert all(after[name] >= before[name] for name in ("m1", "m2")), (before, after)


_STAYS = "4 replicas stay in m2, not ready for long"
_NOT_FOR_CONTENT = {"rescheduleWhen": {"policyContentChanged": False}}


def _first(name: str, *others: str) -> dict:
    """One cluster, this one if possible."""
    others = others or tuple(each for each in ("m1", "m2", "m3") if each != name)
    placement = [{"cluster": name, "preferences": {"priority": 9}}, *({"cluster": each} for each in others)]
    return {"schedulingMode": "Duplicate", "maxClusters": 1, "placement": placement}


def _passes(fed: Federation) -> float:
    assert fed.manager is not None
    return fed.manager.metrics.registry.get_sample_value("argosy_reconcile_seconds_count", {"loop": "federate"}) or 0.0


async def _is(fed: Federation, name: str, text: str) -> bool:
    return await told(fed, name) == text


async def _told(fed: Federation, name: str, text: str) -> bool:
    return text in await told(fed, name)


async def _failed(fed: Federation, name: str) -> bool:
    cluster = await fed.client.get(resources.FEDERATED_CLUSTERS, name)
    return any(each["key"] == keys.UNREADY_TAINT for each in cluster["spec"].get("taints") or ())


async def _empty(fed: Federation, *names: str) -> bool:
    return sum([await placed_in(fed, name) for name in names]) == 0


async def _placed(fed: Federation, name: str, number: int) -> bool:
    return await placed_in(fed, name) == number


async def _divided(fed: Federation, wanted: dict[str, int]) -> bool:
    return await _division(fed) == wanted


async def _division(fed: Federation) -> dict[str, int]:
    spec = (await fed.federated())["spec"]
    entries = [each for entry in spec["overrides"] for each in entry["clusters"]]
    numbers = {each["cluster"]: patch["value"] for each in entries for patch in each["patches"]}
    return {each["cluster"]: numbers[each["cluster"]] for each in spec["placements"][0]["placement"]}
