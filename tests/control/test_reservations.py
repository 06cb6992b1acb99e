"""What was decided counts against what is available until members run it: members here run nothing by themselves."""

import msgspec
import pytest

from argosy.api import keys, resources
from argosy.kube.client import Patch
from tests.harness.eventually import eventually
from tests.harness.federation import DEPLOYMENTS, QUICK, Federation
from tests.harness.user import NODES, PODS, deployment

CPUS = (32, 8, 8)
KEEPING = {"reschedulePolicy": {"replicaRescheduling": {"avoidDisruption": True}}}


@pytest.fixture
async def fed():
    async with Federation(3, cpus=CPUS) as federation:
        yield federation


async def test_a_burst_does_not_pile_up_on_one_cluster(fed):
    await fed.policy(schedulingMode="Divide")
    for number in range(12):
        await fed.client.create(DEPLOYMENTS, _workload(f"w{number}", 4), "default")
    await eventually(lambda: _reserved(fed) == 48_000, why="all are placed")
    taken = fed.inside.reserved.totals["cpu"]
    # Each could take a third, by its size; without reservations all twelve would be divided like the first.
    for name, cores in zip(fed.names, CPUS, strict=True):
        assert abs(taken[name] - cores * 1000) <= 2000, taken


async def test_what_runs_is_not_reserved_any_more_and_what_is_deleted_neither(fed):
    await fed.policy(schedulingMode="Duplicate")
    await fed.client.create(DEPLOYMENTS, _workload("web", 2), "default")
    await fed.client.create(DEPLOYMENTS, _workload("api", 1), "default")
    await eventually(lambda: _reserved(fed) == 9_000)
    await fed.eventually_replicas({"m1": 2, "m2": 2, "m3": 2})

    await _report(fed, "m1", "web", 2)
    await eventually(lambda: fed.inside.reserved.totals["cpu"] == {"m1": 1000, "m2": 3000, "m3": 3000})
    await fed.client.delete(DEPLOYMENTS, "api", "default")
    await eventually(lambda: fed.inside.reserved.totals["cpu"] == {"m2": 2000, "m3": 2000})


async def test_after_a_restart_the_same_is_reserved(fed):
    await fed.policy(schedulingMode="Divide")
    await fed.client.create(DEPLOYMENTS, _workload("web", 12), "default")
    await eventually(lambda: _reserved(fed) == 12_000)
    await eventually(lambda: _carried(fed))
    before = {name: dict(column) for name, column in fed.inside.reserved.totals.items()}
    await fed.stop_controllers()
    await fed.start_controllers()
    await eventually(lambda: fed.inside.reserved.totals == before)


async def test_a_type_that_comes_late_has_its_reservations(fed):
    await fed.policy(schedulingMode="Divide")
    await fed.client.create(DEPLOYMENTS, _workload("web", 12), "default")
    await eventually(lambda: _reserved(fed) == 12_000)
    await eventually(lambda: _carried(fed))
    types, name = resources.FEDERATED_TYPE_CONFIGS, "deployments.apps"
    config = await fed.client.get(types, name)
    await fed.stop_controllers()
    await fed.client.delete(types, name)
    await fed.start_controllers()
    assert not fed.inside.reserved.totals
    config["metadata"] = {"name": name}
    await fed.client.create(types, config)
    await eventually(lambda: _reserved(fed) == 12_000)


async def test_a_workload_has_its_own_reservations_at_its_disposal(fed):
    await fed.policy(schedulingMode="Divide")
    await fed.client.create(DEPLOYMENTS, _workload("web", 12), "default")
    await eventually(lambda: _reserved(fed) == 12_000)
    (key,) = (key for key, _ in fed.inside.caches.all_sources() if key.type == "deployments.apps")
    free = fed.inside.snapshot.available("cpu").tolist()
    assert fed.inside.reserved.fleet(key).available("cpu").tolist() == free
    other = key._replace(key="default/other")
    assert sum(fed.inside.reserved.fleet(other).available("cpu").tolist()) == sum(free) - 12_000


async def test_one_that_is_bounded_by_what_is_available_is_not_given_its_own_room_twice(fed):
    """All that fits is placed and not running yet: scaled up, the rest waits where it may, but in no cluster twice."""
    await fed.policy(schedulingMode="Divide", limitReplicasToAvailable=True, **KEEPING)
    await fed.client.create(DEPLOYMENTS, _workload("web", 40), "default")
    await eventually(lambda: _reserved(fed) == 40_000)
    await fed.client.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 46}}, "default", subresource="scale")
    await eventually(lambda: _reserved(fed) == 46_000)
    taken = fed.inside.reserved.totals["cpu"]
    assert all(taken[name] <= cores * 1000 for name, cores in zip(fed.names, CPUS, strict=True)), taken


async def test_what_fits_nowhere_waits_and_is_started_when_there_is_room(fed):
    await fed.policy(schedulingMode="Divide", limitReplicasToAvailable=True, **KEEPING)
    await fed.client.create(DEPLOYMENTS, _workload("web", 40), "default")
    await eventually(lambda: _reserved(fed) == 40_000)
    await fed.client.create(DEPLOYMENTS, _workload("api", 12), "default")
    await eventually(lambda: _reserved(fed) == 48_000, why="8 of them fit")
    taken = fed.inside.reserved.totals["cpu"]
    assert taken == {name: cores * 1000 for name, cores in zip(fed.names, CPUS, strict=True)}
    held = (await fed.federated("api-deployments.apps"))["metadata"]["annotations"][keys.HELD]
    assert "4 of 12 replicas wait for room" in held
    await fed.client.delete(DEPLOYMENTS, "web", "default")
    await eventually(lambda: _reserved(fed) == 12_000, why="the rest is started")
    assert keys.HELD not in (await fed.federated("api-deployments.apps"))["metadata"]["annotations"]


async def test_what_counted_twice_for_a_moment_is_room_once_it_counts_once(fed):
    """A member's figures show a pod before its copy tells of it: until then its room is reserved as well."""
    await fed.policy(schedulingMode="Divide", limitReplicasToAvailable=True, **KEEPING)
    await fed.client.create(DEPLOYMENTS, _workload("web", 11, cpu="4"), "default")
    await eventually(lambda: _reserved(fed) == 44_000)
    await eventually(lambda: _carried(fed))
    taken = fed.inside.reserved.totals["cpu"]
    (roomy,) = (name for name, cores in zip(fed.names, CPUS, strict=True) if taken[name] < cores * 1000)
    before = fed.inside.snapshot.available("cpu").sum()
    await _run_pod(fed.member(roomy), cpu="4")
    await eventually(lambda: fed.inside.snapshot.available("cpu").sum() == before - 4_000)
    await fed.client.create(DEPLOYMENTS, _workload("api", 1, cpu="4"), "default")
    await eventually(lambda: _held(fed, "api-deployments.apps"), why="there seems to be no room")
    await _report(fed, roomy, "web", 1)
    await eventually(lambda: _placed(fed, "api-deployments.apps"), why="its pod counts once now")


async def test_a_cluster_that_leaves_reserves_nothing(fed):
    await fed.policy(schedulingMode="Duplicate")
    await fed.client.create(DEPLOYMENTS, _workload("web", 1), "default")
    await eventually(lambda: _reserved(fed) == 3_000)
    await fed.client.delete(resources.FEDERATED_CLUSTERS, "m3")
    await eventually(lambda: set(fed.inside.reserved.totals["cpu"]) == {"m1", "m2"})


async def test_what_is_held_reserves_nothing_in_a_cluster_that_left(fed):
    """Nobody looks at it again: it waits for its policy."""
    await fed.policy(schedulingMode="Duplicate")
    await fed.client.create(DEPLOYMENTS, _workload("web", 1), "default")
    await eventually(lambda: _reserved(fed) == 3_000)
    await fed.client.delete(resources.PROPAGATION_POLICIES, "policy", "default")
    await eventually(lambda: _held(fed), why="it waits for its policy")
    await fed.client.delete(resources.FEDERATED_CLUSTERS, "m3")
    await eventually(lambda: set(fed.inside.reserved.totals["cpu"]) == {"m1", "m2"})


async def _held(fed, name="web-deployments.apps") -> bool:
    return keys.HELD in (await fed.federated(name))["metadata"]["annotations"]


async def _placed(fed, name) -> bool:
    return not await _held(fed, name)


def _workload(name, replicas, cpu="1"):
    body = deployment(name, replicas, "policy")
    body["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return body


async def _run_pod(member, cpu):
    (node, *_) = (await member.list(NODES)).items
    container = {"name": "main", "image": "web", "resources": {"requests": {"cpu": cpu}}}
    spec = {"nodeName": node["metadata"]["name"], "containers": [container]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-1", "namespace": "default"}, "spec": spec}
    await member.create(PODS, body)


def _reserved(fed) -> int:
    return sum(fed.inside.reserved.totals.get("cpu", {}).values())


def _carried(fed) -> bool:
    return all(
        view.status.synced_generation == view.metadata.generation for view in fed.inside.caches.federated[True].values()
    )


async def _report(fed, cluster, name, replicas):
    status = {"status": {"replicas": replicas, "observedGeneration": 1}}
    await fed.member(cluster).patch(DEPLOYMENTS, name, status, "default", kind=Patch.MERGE, subresource="status")


async def test_figures_of_a_member_that_is_not_heard_of_for_long_are_stale():
    timings = msgspec.structs.replace(QUICK, watch_liveness=3.0, capacity_stale=6.0)
    async with Federation(2, timings=timings) as fed:
        assert not fed.inside.snapshot.stale.any()
        await fed.servers["m2"].stop()
        await eventually(lambda: fed.inside.snapshot.stale.tolist() == [False, True], timeout=60)
        await fed.servers["m2"].start()
        await eventually(lambda: not fed.inside.snapshot.stale.any(), timeout=60)
