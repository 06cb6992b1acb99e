"""Why pods are not ready reaches the user: in one write with all else, once as an event, and not with every attempt.

Members run nothing here: their pods, and what is told of them, is written by the test.
"""

from typing import Any

import msgspec
import pytest

from argosy.api import resources
from argosy.kube import timestamps
from argosy.kube.client import Patch
from argosy.kube.conditions import find
from argosy.kube.errors import NotFound
from argosy.kube.resource import Resource
from tests.control.test_rules import Writes, quiet, settled
from tests.harness.eventually import eventually
from tests.harness.federation import QUICK, Federation, federation
from tests.harness.user import DEPLOYMENTS, EVENTS, deployment, weights

PODS = Resource("", "v1", "pods", "Pod")
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
STATEFULSETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
PATIENT = msgspec.structs.replace(QUICK, status_quiet=1.0, status_longest=3.0, health_period=30.0)
NAME = "web-deployments.apps"


@pytest.fixture
async def fed():
    async with federation(3, timings=PATIENT) as made:
        await made.policy(**weights(m1=1, m2=1, m3=1))
        await made.deploy("web", 6)
        await made.eventually_replicas({"m1": 2, "m2": 2, "m3": 2})
        await settled(made)
        for name in made.names:
            await tell_status(made, name)
        await eventually(lambda: _is_collected(made))
        await quiet([Writes(made.plane)], 3.5)
        yield made


async def test_pods_that_do_not_start_cost_two_writes_in_all_members_together(fed):
    writes = Writes(fed.plane)
    for name in fed.names:
        await stuck_pod(fed, name, "a")
        await stuck_pod(fed, name, "b")
    await eventually(lambda: has_causes(fed, 3))
    await quiet([writes], 3.5)
    assert sorted(key.partition("/")[2] for key in writes.keys) == [
        "collectedstatuses/default/web-deployments.apps",
        "deployments/default/web",
    ]
    cause = (await causes(fed))["m2"]
    assert cause == {"reason": "ImagePullBackOff", "message": 'image "nginx:bad": not found', "pods": 2, "of": 2}
    conditions = (await fed.source())["status"]["conditions"]
    message = 'm1: 2 of 2 pods: ImagePullBackOff: image "nginx:bad": not found'
    assert find(conditions, "PodsFailing")["message"].startswith(message)
    assert sorted(each["message"] for each in await warnings(fed)) == [
        f'{name}: ImagePullBackOff: image "nginx:bad": not found' for name in fed.names
    ]


async def test_another_attempt_that_fails_alike_costs_nothing(fed):
    await stuck_pod(fed, "m1", "a")
    await eventually(lambda: has_causes(fed, 1))
    writes = Writes(fed.plane)
    await quiet([writes], 3.5)
    before = len(writes.keys)
    for number in range(5):
        reason = ("ErrImagePull", "not found") if number % 2 else ("ImagePullBackOff", 'Back-off pulling image "x"')
        await change_pod(fed, "m1", "a", waiting(*reason))
        await quiet([writes], 1.5)
    assert len(writes.keys) == before


async def test_pods_that_are_well_again_are_told_and_a_reason_that_comes_and_goes_is_one_event(fed):
    for _ in range(3):
        await stuck_pod(fed, "m1", "a")
        await eventually(lambda: has_causes(fed, 1))
        await fed.member("m1").delete(PODS, "a", "default", grace_period=0)
        await eventually(lambda: has_causes(fed, 0))
    assert find((await fed.source())["status"]["conditions"], "PodsFailing") is None
    [event] = await warnings(fed)
    assert event["count"] == 1


async def test_after_a_restart_what_was_told_is_not_told_again(fed):
    await stuck_pod(fed, "m1", "a")
    await eventually(lambda: has_causes(fed, 1))
    await fed.stop_controllers()
    writes = Writes(fed.plane)
    await fed.start_controllers()
    await quiet([writes], 3.5)
    assert [key for key in writes.keys if "leases" not in key] == []
    [event] = await warnings(fed)
    assert event["count"] == 1


async def test_the_member_is_asked_why_it_creates_no_pods_of_a_statefulset(fed):
    manifest = deployment("db", 6, "policy")
    await fed.client.create(STATEFULSETS, {**manifest, "kind": "StatefulSet"})
    name = "db-statefulsets.apps"
    await settled(fed, name)
    member = fed.member("m1")
    copy = await eventually(lambda: _copy(member))
    about = {"apiVersion": "apps/v1", "kind": "StatefulSet", "namespace": "default"}
    about |= {"name": "db", "uid": copy["metadata"]["uid"]}
    await member.create(
        EVENTS,
        {
            "metadata": {"name": "db.1", "namespace": "default"},
            "involvedObject": about,
            "reason": "FailedCreate",
            "message": 'Create Pod db-0 in StatefulSet db failed error: pods "db-0" is forbidden: exceeded quota: few',
            "type": "Warning",
            "lastTimestamp": timestamps.now(),
        },
    )
    status = {"observedGeneration": copy["metadata"]["generation"], "replicas": 0}
    await member.patch(STATEFULSETS, "db", {"status": status}, "default", subresource="status", kind=Patch.MERGE)
    await eventually(lambda: has_causes(fed, 1, name))
    wanted = copy["spec"]["replicas"]
    assert await causes(fed, name) == {
        "m1": {"reason": "FailedCreate", "message": "exceeded quota: few", "pods": wanted, "of": wanted}
    }
    status |= {"replicas": wanted}
    await member.patch(STATEFULSETS, "db", {"status": status}, "default", subresource="status", kind=Patch.MERGE)
    await eventually(lambda: has_causes(fed, 0, name))


async def _copy(member):
    return await member.get(STATEFULSETS, "db", "default")


async def _is_collected(fed: Federation) -> bool:
    found = await fed.client.get(resources.COLLECTED_STATUSES, NAME, "default")
    return len(found["clusters"]) == 3


async def tell_status(fed: Federation, name: str) -> None:
    status = {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2}
    await fed.member(name).patch(DEPLOYMENTS, "web", {"status": status}, "default", subresource="status")


def waiting(reason: str, message: str) -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}}
    one = {"name": "main", "image": "nginx:bad", "imageID": "", "ready": False, "restartCount": 0, "state": state}
    scheduled = {"type": "PodScheduled", "status": "True"}
    return {"phase": "Pending", "conditions": [scheduled], "containerStatuses": [one]}


async def stuck_pod(fed: Federation, member: str, name: str) -> None:
    """A pod of the Deployment's, by its labels and the name of its ReplicaSet."""
    client = fed.member(member)
    try:
        made = await client.get(REPLICA_SETS, "web-7d9f", "default")
    except NotFound:
        copy = await client.get(DEPLOYMENTS, "web", "default")
        spec = {key: copy["spec"][key] for key in ("selector", "template")}
        made = await client.create(
            REPLICA_SETS, {"metadata": {"name": "web-7d9f", "namespace": "default"}, "spec": {**spec, "replicas": 0}}
        )
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7d9f", "uid": made["metadata"]["uid"]}
    owner["controller"] = True
    metadata: dict[str, Any] = {"name": name, "namespace": "default", "ownerReferences": [owner]}
    metadata["labels"] = {"pod-template-hash": "7d9f"}
    spec = {"containers": [{"name": "main", "image": "nginx:bad"}]}
    await fed.member(member).create(PODS, {"metadata": metadata, "spec": spec})
    await change_pod(fed, member, name, waiting("ErrImagePull", "not found"))


async def change_pod(fed: Federation, member: str, name: str, status: dict[str, Any]) -> None:
    body = {"status": status}
    await fed.member(member).patch(PODS, name, body, "default", subresource="status", kind=Patch.MERGE)


async def causes(fed: Federation, name: str = NAME) -> dict[str, Any]:
    found = await fed.client.get(resources.COLLECTED_STATUSES, name, "default")
    return {each["cluster"]: each["cause"] for each in found["clusters"] if "cause" in each}


async def has_causes(fed: Federation, number: int, name: str = NAME) -> bool:
    return len(await causes(fed, name)) == number


async def warnings(fed: Federation) -> list[dict[str, Any]]:
    """Once there are some, and no more come."""

    async def some() -> list[dict[str, Any]]:
        return await fed.events("ImagePullBackOff")

    await eventually(some)
    await quiet([Writes(fed.plane)], 1.0)
    return await some()
