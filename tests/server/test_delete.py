"""delete: preconditions, finalizers, propagation policies, grace periods, whole collections, namespaces."""

from typing import Any

import pytest

from tests.server.conftest import Answer, HttpClient, until

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
JOBS = "/apis/batch/v1/namespaces/default/jobs"


def config_map(name: str = "a", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}}


async def until_gone(client: HttpClient, path: str) -> None:
    await until(lambda: client.get(path), lambda answer: answer.code == 404)


async def test_delete_answers_with_what_was_deleted(client: HttpClient) -> None:
    made = await client.post(MAPS, config_map())
    answer = await client.delete(f"{MAPS}/a")
    assert answer.code == 200
    assert answer.body["status"] == "Success"
    assert answer.body["details"] == {"name": "a", "kind": "configmaps", "uid": made.body["metadata"]["uid"]}
    assert (await client.delete(f"{MAPS}/a")).code == 404


async def test_preconditions(client: HttpClient) -> None:
    made = await client.post(MAPS, config_map())
    wrong = await client.delete(f"{MAPS}/a", {"preconditions": {"uid": "other"}})
    assert wrong.code == 409
    assert wrong.body["message"].startswith(
        'Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (other) does not match'
    )
    assert (await client.delete(f"{MAPS}/a", {"preconditions": {"resourceVersion": "1"}})).code == 409
    right = {"preconditions": {"uid": made.body["metadata"]["uid"], "resourceVersion": made.version}}
    assert (await client.delete(f"{MAPS}/a", right)).code == 200


async def test_wrong_options(client: HttpClient) -> None:
    await client.post(MAPS, config_map())
    unknown = await client.delete(f"{MAPS}/a", {"propagationPolicy": "Foo"})
    assert unknown.code == 422
    assert unknown.body["message"].startswith('DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported')
    assert (await client.delete(f"{MAPS}/a", {"propagationPolicy": "Orphan", "orphanDependents": True})).code == 422
    assert (await client.delete(f"{MAPS}/a", {"gracePeriodSeconds": "soon"})).code == 400
    assert (await client.get(f"{MAPS}/a")).code == 200


async def test_finalizers_keep_the_object_until_the_last_one_goes(client: HttpClient) -> None:
    await client.post(MAPS, config_map(finalizers=["example.com/a", "example.com/b"]))
    marked = await client.delete(f"{MAPS}/a")
    assert marked.code == 200
    assert marked.body["kind"] == "ConfigMap"
    meta = marked.body["metadata"]
    assert meta["deletionGracePeriodSeconds"] == 0
    assert (await client.delete(f"{MAPS}/a")).body["metadata"]["resourceVersion"] == meta["resourceVersion"]
    added = await client.patch(f"{MAPS}/a", {"metadata": {"finalizers": ["example.com/a", "example.com/c"]}})
    assert added.code == 422
    assert "no new finalizers can be added if the object is being deleted" in added.body["message"]
    one = await client.patch(f"{MAPS}/a", {"metadata": {"finalizers": ["example.com/b"]}})
    assert one.body["metadata"]["deletionTimestamp"] == meta["deletionTimestamp"]
    last = await client.patch(f"{MAPS}/a", {"metadata": {"finalizers": None}})
    assert last.code == 200
    assert (await client.get(f"{MAPS}/a")).code == 404


async def owned(client: HttpClient) -> tuple[Answer, Answer]:
    owner = await client.post(MAPS, config_map("owner"))
    uid = owner.body["metadata"]["uid"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "blockOwnerDeletion": True}
    return owner, await client.post(MAPS, config_map("child", ownerReferences=[reference]))


async def test_background_deletion_takes_dependents_afterwards(client: HttpClient) -> None:
    await owned(client)
    assert (await client.delete(f"{MAPS}/owner", propagationPolicy="Background")).body["status"] == "Success"
    assert (await client.get(f"{MAPS}/owner")).code == 404
    await until_gone(client, f"{MAPS}/child")


async def test_foreground_deletion_waits_for_dependents(client: HttpClient) -> None:
    await owned(client)
    await client.patch(f"{MAPS}/child", {"metadata": {"finalizers": ["example.com/hold"]}})
    marked = await client.delete(f"{MAPS}/owner", {"propagationPolicy": "Foreground"})
    assert marked.body["metadata"]["finalizers"] == ["foregroundDeletion"]
    await until(lambda: client.get(f"{MAPS}/child"), lambda answer: "deletionTimestamp" in answer.body["metadata"])
    assert (await client.get(f"{MAPS}/owner")).code == 200
    await client.patch(f"{MAPS}/child", {"metadata": {"finalizers": None}})
    await until_gone(client, f"{MAPS}/owner")
    assert (await client.get(f"{MAPS}/child")).code == 404


async def test_orphan_deletion_releases_dependents(client: HttpClient) -> None:
    await owned(client)
    marked = await client.delete(f"{MAPS}/owner", {"propagationPolicy": "Orphan"})
    assert marked.body["metadata"]["finalizers"] == ["orphan"]
    await until_gone(client, f"{MAPS}/owner")
    child = await client.get(f"{MAPS}/child")
    assert child.code == 200
    assert not child.body["metadata"].get("ownerReferences")


async def test_a_placed_pod_gets_its_grace_period(client: HttpClient) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": "n", "terminationGracePeriodSeconds": 30}
    await client.post(PODS, {"metadata": {"name": "p"}, "spec": spec})
    marked = await client.delete(f"{PODS}/p")
    assert marked.body["metadata"]["deletionGracePeriodSeconds"] == 30
    again = await client.delete(f"{PODS}/p")
    assert again.version == marked.version
    shorter = await client.delete(f"{PODS}/p", gracePeriodSeconds="5")
    assert shorter.body["metadata"]["deletionGracePeriodSeconds"] == 5
    gone = await client.delete(f"{PODS}/p", gracePeriodSeconds="0")
    assert gone.body["kind"] == "Pod"
    assert (await client.get(f"{PODS}/p")).code == 404


async def test_a_pod_without_a_node_goes_at_once(client: HttpClient) -> None:
    await client.post(PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    assert (await client.delete(f"{PODS}/p")).code == 200
    assert (await client.get(f"{PODS}/p")).code == 404


async def test_a_collection_is_deleted_by_selector(client: HttpClient) -> None:
    for name, team in (("a", "x"), ("b", "y"), ("c", "x")):
        await client.post(MAPS, config_map(name, labels={"team": team}))
    answer = await client.delete(MAPS, labelSelector="team=x")
    assert answer.body["kind"] == "ConfigMapList"
    assert [item["metadata"]["name"] for item in answer.body["items"]] == ["a", "c"]
    assert (await client.get(f"{MAPS}/a")).code == 404
    assert (await client.get(f"{MAPS}/b")).code == 200


async def test_a_namespace_goes_with_everything_in_it(client: HttpClient) -> None:
    await client.post("/api/v1/namespaces", {"metadata": {"name": "team"}})
    inside = "/api/v1/namespaces/team/configmaps"
    await client.post(inside, config_map(finalizers=["example.com/hold"]))
    marked = await client.delete("/api/v1/namespaces/team")
    assert (marked.code, marked.body["status"]["phase"]) == (200, "Terminating")
    late = await client.post(inside, config_map("late"))
    assert late.code == 403
    assert late.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    await until(lambda: client.get(f"{inside}/a"), lambda answer: "deletionTimestamp" in answer.body["metadata"])
    await client.patch(f"{inside}/a", {"metadata": {"finalizers": None}})
    await until_gone(client, "/api/v1/namespaces/team")
    kept = await client.delete("/api/v1/namespaces/default")
    assert kept.body["message"] == 'namespaces "default" is forbidden: this namespace may not be deleted'


@pytest.mark.parametrize("seconds", [10**18, 2**63 - 1])
async def test_a_pod_gets_no_longer_than_there_is_time(client: HttpClient, seconds: int) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"}
    await client.post(PODS, {"metadata": {"name": "p"}, "spec": spec})
    marked = await client.delete(f"{PODS}/p", {"gracePeriodSeconds": seconds})
    assert marked.code == 200, marked.raw
    assert marked.body["metadata"]["deletionTimestamp"] > "2300"
    assert (await client.delete(f"{PODS}/p", gracePeriodSeconds="5")).body["metadata"]["deletionTimestamp"] < "2300"


async def test_a_grace_period_beyond_all_is_refused(client: HttpClient) -> None:
    answer = await client.delete(f"{PODS}/p", gracePeriodSeconds="9" * 5000)
    assert (answer.code, answer.body["message"][-18:]) == (400, "value out of range")
