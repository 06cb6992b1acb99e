"""One Deployment's way through the controllers, over both transports of the control plane."""

import asyncio

import pytest

from argosy.api import keys, resources
from argosy.kube.client import Patch
from argosy.kube.errors import NotFound
from tests.harness.eventually import eventually, holds
from tests.harness.federation import CONFIGMAPS, DEPLOYMENTS, NAMESPACES, Federation

EQUAL = {"placement": [{"cluster": f"m{n}", "preferences": {"weight": 1}} for n in (1, 2, 3)]}


@pytest.fixture(params=["local", "http"])
async def fed(request):
    async with Federation(3, transport=request.param) as federation:
        yield federation


async def test_a_deployment_is_divided_and_reported_back(fed):
    await fed.policy(**EQUAL)
    await fed.deploy(replicas=9)
    await fed.eventually_replicas({"m1": 3, "m2": 3, "m3": 3})
    federated = await eventually(lambda: _propagated(fed), why="the federated object reports propagation")
    assert [entry["status"] for entry in federated["status"]["clusters"]] == ["OK"] * 3
    copy = await fed.member("m1").get(DEPLOYMENTS, "web", "default")
    assert copy["metadata"]["labels"] == {keys.MANAGED_LABEL: "true"}
    assert copy["metadata"]["annotations"] == {
        keys.SOURCE_GENERATION: "1",
        keys.PROPAGATED_LABEL_KEYS: keys.MANAGED_LABEL,
        keys.PROPAGATED_ANNOTATION_KEYS: keys.SOURCE_GENERATION,
    }
    # Members report, the source shows the sum.
    for name, ready in (("m1", 3), ("m2", 2), ("m3", 3)):
        await _report(fed, name, replicas=3, ready=ready)

    async def aggregated():
        status = (await fed.client.get(DEPLOYMENTS, "web", "default")).get("status") or {}
        return (
            status.get("readyReplicas") == 8 and status.get("replicas") == 9 and status.get("observedGeneration") == 1
        )

    await eventually(aggregated, why="the aggregated status")
    source = await fed.client.get(DEPLOYMENTS, "web", "default")
    assert '"m1":3' in source["metadata"]["annotations"][keys.SCHEDULING]
    assert source["metadata"]["generation"] == 1, "nothing we write counts as a change of the user's object"


async def test_scaling_moves_nothing(fed):
    """30 as 15/15/0, scaled to 15, stops 15; scaled to 36 it starts 6."""
    await fed.policy(**{**EQUAL, "placement": EQUAL["placement"][:2]})
    await fed.deploy(replicas=30)
    await fed.eventually_replicas({"m1": 15, "m2": 15})
    body = {"spec": EQUAL}
    await fed.client.patch(resources.PROPAGATION_POLICIES, "policy", body, "default", kind=Patch.MERGE)
    # Else the new size might be heard of first.
    await eventually(lambda: len(fed.inside.caches.policies[True].get("default/policy").spec.placement) == 3)
    await fed.scale("web", 36)
    await fed.eventually_replicas({"m1": 15, "m2": 15, "m3": 6})
    await fed.scale("web", 30)
    await eventually(lambda: _sum_is(fed, 30))
    await fed.scale("web", 15)
    await eventually(lambda: _sum_is(fed, 15))


async def test_an_image_change_reaches_every_member(fed):
    await fed.policy(**EQUAL)
    await fed.deploy(replicas=3)
    await fed.eventually_replicas({"m1": 1, "m2": 1, "m3": 1})
    image = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "nginx:1.30"}]}}}}
    await fed.client.patch(DEPLOYMENTS, "web", image, "default", kind=Patch.STRATEGIC)

    async def changed():
        copies = [await fed.member(name).get(DEPLOYMENTS, "web", "default") for name in fed.names]
        images = {copy["spec"]["template"]["spec"]["containers"][0]["image"] for copy in copies}
        return images == {"nginx:1.30"}

    await eventually(changed)


async def test_deletion_waits_until_members_are_clean(fed):
    await fed.policy(**EQUAL)
    await fed.deploy(replicas=3)
    await fed.eventually_replicas({"m1": 1, "m2": 1, "m3": 1})
    blocked = {"metadata": {"finalizers": ["example.com/hold"]}}
    await fed.member("m2").patch(DEPLOYMENTS, "web", blocked, "default")
    await fed.client.delete(DEPLOYMENTS, "web", "default")

    async def only_m2():
        return set(await fed.replicas()) == {"m2"}

    await eventually(only_m2)
    await holds(lambda: _exists(fed), 0.3)
    await fed.member("m2").patch(DEPLOYMENTS, "web", {"metadata": {"finalizers": None}}, "default")

    async def gone():
        return not await _exists(fed)

    await eventually(gone)
    with pytest.raises(NotFound):
        await fed.federated()


async def test_drift_in_a_member_is_repaired(fed):
    await fed.policy(**EQUAL)
    await fed.deploy(replicas=3)
    await fed.eventually_replicas({"m1": 1, "m2": 1, "m3": 1})
    await eventually(lambda: _propagated(fed))
    await fed.member("m1").patch(DEPLOYMENTS, "web", {"spec": {"replicas": 5}}, "default")
    await fed.member("m2").delete(DEPLOYMENTS, "web", "default")
    await eventually(lambda: _replicas_are(fed, {"m1": 5, "m3": 1}), timeout=2)
    await fed.eventually_replicas({"m1": 1, "m2": 1, "m3": 1})


async def test_namespaces_go_everywhere_and_configmaps_only_where_they_are_wanted(fed):
    await fed.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    for name in fed.names:
        await eventually(lambda name=name: fed.member(name).get(NAMESPACES, "team"))
    await fed.policy("all", "team", schedulingMode="Duplicate")
    labelled = {"name": "a", "namespace": "team", "labels": {keys.PROPAGATION_POLICY_LABEL: "all"}}
    await fed.client.create(
        CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": labelled, "data": {"k": "v"}}
    )
    plain = {"name": "b", "namespace": "team"}
    await fed.client.create(CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": plain})
    for name in fed.names:
        copy = await eventually(lambda name=name: fed.member(name).get(CONFIGMAPS, "a", "team"))
        assert copy["data"] == {"k": "v"}
        with pytest.raises(NotFound):
            await fed.member(name).get(CONFIGMAPS, "b", "team")
    with pytest.raises(NotFound):
        await fed.federated("b-configmaps", "team")


async def _propagated(fed):
    federated = await fed.federated()
    conditions = (federated.get("status") or {}).get("conditions") or []
    done = any(c["type"] == "Propagated" and c["status"] == "True" for c in conditions)
    return federated if done and len(federated["status"]["clusters"]) == 3 else None


async def _report(fed, member, replicas, ready):
    copy = await fed.member(member).get(DEPLOYMENTS, "web", "default")
    status = {
        "observedGeneration": copy["metadata"]["generation"],
        "replicas": replicas,
        "updatedReplicas": replicas,
        "readyReplicas": ready,
        "availableReplicas": ready,
    }
    await fed.member(member).patch(DEPLOYMENTS, "web", {"status": status}, "default", subresource="status")


async def _exists(fed):
    try:
        await fed.client.get(DEPLOYMENTS, "web", "default")
    except NotFound:
        return False
    return True


async def _sum_is(fed, total):
    """The total is right, and at no time did a member gain replicas while another lost some."""
    return sum((await fed.replicas()).values()) == total


async def _replicas_are(fed, expected):
    return await fed.replicas() == expected


@pytest.mark.parametrize("generation", ["9" * 18, "9" * 20, "9" * 5000, "٣", "-1", ""])
async def test_whatever_generation_a_copy_claims_to_be_of_it_follows_its_source(generation: str) -> None:
    async with Federation(2) as fed:
        await fed.policy(schedulingMode="Duplicate")
        await fed.deploy(replicas=2)
        await eventually(fed.quiet)
        claim = {"metadata": {"annotations": {keys.SOURCE_GENERATION: generation}}}
        await fed.member("m1").patch(DEPLOYMENTS, "web", claim, "default")
        await asyncio.sleep(10.0)
        await fed.scale("web", 5)
        await fed.eventually_replicas({"m1": 5, "m2": 5})
        await eventually(fed.quiet)
        assert await fed.propagation() == {"m1": "OK", "m2": "OK"}
