"""Claims on a simulated member: StatefulSets get theirs, pods wait for volumes, and volumes go with their claims."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.kube.client import Patch
from argosy.kube.resource import Resource
from argosy.sim.member import Member
from argosy.sim.spec import MemberSpec, NodePool
from tests.server.sim_world import FAST, PODS, condition, is_ready, pods, stored, until

STATEFULSETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)


@pytest.fixture
async def member() -> AsyncIterator[Member]:
    one = Member(MemberSpec("m", (NodePool(2),)), FAST)
    await one.open()
    yield one
    await one.close()


def stateful_set(replicas: int = 2, storage_class: str | None = None, **spec: Any) -> Any:
    container = {"name": "main", "image": "db:1", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    wanted = {
        "replicas": replicas,
        "serviceName": "db",
        "selector": {"matchLabels": {"app": "db"}},
        "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [container]}},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim(storage_class)["spec"]}],
        **spec,
    }
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": wanted}


def claim(storage_class: str | None = None, name: str = "own") -> Any:
    spec: Any = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    if storage_class is not None:
        spec["storageClassName"] = storage_class
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def mounting(name: str, claim: str = "own") -> Any:
    container = {"name": "main", "image": "app:1", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    spec = {"containers": [container], "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def claims(member: Member) -> dict[str, Any]:
    return {each["metadata"]["name"]: each for each in stored(member, "core/persistentvolumeclaims")}


def volumes(member: Member) -> list[Any]:
    return stored(member, "core/persistentvolumes")


def phases(member: Member) -> dict[str, str]:
    return {name: (each.get("status") or {}).get("phase", "") for name, each in claims(member).items()}


def ready(member: Member, count: int) -> bool:
    return [is_ready(pod) for pod in pods(member)] == [True] * count


async def test_a_stateful_set_gets_claims_and_volumes_for_its_pods(member: Member) -> None:
    await member.client().create(STATEFULSETS, stateful_set(), "default")
    await until(member, lambda: ready(member, 2))
    assert phases(member) == {"data-db-0": "Bound", "data-db-1": "Bound"}
    for volume in await until(member, lambda: [v for v in volumes(member) if v["status"]["phase"] == "Bound"]):
        named = claims(member)[volume["spec"]["claimRef"]["name"]]
        assert named["spec"]["volumeName"] == volume["metadata"]["name"]
        assert named["spec"]["storageClassName"] == volume["spec"]["storageClassName"] == "standard"
        assert named["status"]["capacity"] == {"storage": "1Gi"}
        assert named["metadata"]["labels"] == {"app": "db"}
        assert "ownerReferences" not in named["metadata"]
    assert [pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] for pod in pods(member)] == [
        "data-db-0",
        "data-db-1",
    ]


async def test_claims_outlive_their_set_and_serve_the_next_one(member: Member) -> None:
    client = member.client()
    await client.create(STATEFULSETS, stateful_set(), "default")
    await until(member, lambda: ready(member, 2))
    before = {name: each["spec"]["volumeName"] for name, each in claims(member).items()}
    await client.delete(STATEFULSETS, "db", "default")
    await until(member, lambda: not stored(member, "core/pods"))
    await client.create(STATEFULSETS, stateful_set(), "default")
    await until(member, lambda: ready(member, 2))
    assert {name: each["spec"]["volumeName"] for name, each in claims(member).items()} == before


async def test_claims_go_with_their_set_and_with_its_surplus_if_it_says_so(member: Member) -> None:
    client = member.client()
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    await client.create(STATEFULSETS, stateful_set(persistentVolumeClaimRetentionPolicy=policy), "default")
    await until(member, lambda: ready(member, 2))
    await client.patch(STATEFULSETS, "db", {"spec": {"replicas": 1}}, "default", kind=Patch.MERGE)
    await until(member, lambda: set(claims(member)) == {"data-db-0"} and len(volumes(member)) == 1)
    await client.delete(STATEFULSETS, "db", "default")
    await until(member, lambda: not claims(member) and not volumes(member))


async def test_a_claim_waits_for_its_first_pod(member: Member) -> None:
    client = member.client()
    await client.create(CLAIMS, claim(), "default")
    await until(member, lambda: claims(member)["own"]["spec"].get("storageClassName") == "standard")
    assert phases(member) == {"own": "Pending"}
    assert volumes(member) == []
    await client.create(PODS, mounting("one"), "default")
    await until(member, lambda: ready(member, 1) and phases(member) == {"own": "Bound"})


async def test_a_class_that_does_not_exist_keeps_claim_and_pod_pending(member: Member) -> None:
    client = member.client()
    await client.create(CLAIMS, claim("fast"), "default")
    await client.create(PODS, mounting("one"), "default")
    await until(
        member,
        lambda: (
            "unbound immediate PersistentVolumeClaims" in condition(pods(member)[0], "PodScheduled").get("message", "")
        ),
    )
    assert condition(pods(member)[0], "PodScheduled")["reason"] == "Unschedulable"
    texts = [each["message"] for each in stored(member, "core/events") if each["reason"] == "ProvisioningFailed"]
    assert texts == ['storageclass.storage.k8s.io "fast" not found']
    assert phases(member) == {"own": "Pending"}
    made = {"provisioner": "example.com/disks", "metadata": {"name": "fast"}, "volumeBindingMode": "Immediate"}
    await client.create(CLASSES, {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", **made})
    await until(member, lambda: ready(member, 1) and phases(member) == {"own": "Bound"})


async def test_a_claim_in_use_goes_when_its_pod_has_gone(member: Member) -> None:
    client = member.client()
    await client.create(CLAIMS, claim(), "default")
    await client.create(PODS, mounting("one"), "default")
    await until(member, lambda: ready(member, 1))
    await client.delete(CLAIMS, "own", "default")
    assert claims(member)["own"]["metadata"]["deletionTimestamp"]
    await client.delete(PODS, "one", "default")
    await until(member, lambda: not claims(member) and not volumes(member))


async def test_volumes_made_by_hand_are_given_to_what_they_suit_and_kept(member: Member) -> None:
    client = member.client()
    for name, size in (("small", "500Mi"), ("large", "5Gi"), ("fitting", "1Gi")):
        spec = {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "manual",
            "hostPath": {"path": "/x"},
        }
        body = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}
        await client.create(VOLUMES, body)
    await client.create(CLAIMS, claim("manual"), "default")
    await until(member, lambda: phases(member) == {"own": "Bound"})
    assert claims(member)["own"]["spec"]["volumeName"] == "fitting"
    await client.delete(CLAIMS, "own", "default")
    await until(
        member,
        lambda: (
            {each["metadata"]["name"]: each["status"]["phase"] for each in volumes(member)}
            == {"small": "Available", "large": "Available", "fitting": "Released"}
        ),
    )


async def test_claims_are_as_they_were_after_a_restart(tmp_path: Any) -> None:
    spec = MemberSpec("m", (NodePool(2),))
    member = Member(spec, FAST, tmp_path)
    await member.open()
    await member.client().create(STATEFULSETS, stateful_set(), "default")
    await until(member, lambda: ready(member, 2))
    await until(member, lambda: [each["status"]["phase"] for each in volumes(member)] == ["Bound"] * 2)
    await member.close()
    member = Member(spec, FAST, tmp_path)
    await member.open()
    try:
        before = claims(member)
        await member.client().patch(STATEFULSETS, "db", {"spec": {"replicas": 3}}, "default", kind=Patch.MERGE)
        await until(member, lambda: ready(member, 3))
        assert {name: claims(member)[name] for name in before} == before
    finally:
        await member.close()
