"""Every declaration of the wake table has an effect: here what the tests of the parts do not show by themselves.

`tests/wakes` takes each declaration out and runs the test that must fail then.
"""

import contextlib
import json

import msgspec
import pytest

from argosy.api import keys, resources
from argosy.api.shards import Shard
from argosy.control.members.probe import Observation, Prober
from argosy.control.options import Options
from argosy.fleet.health import probe_failed
from argosy.fleet.katalyst import CUSTOM_NODE_RESOURCES, PLUGIN, RECLAIMED_MILLICPU
from argosy.fleet.snapshot import GPU
from argosy.kube.client import Patch
from argosy.kube.resource import Resource
from tests.control.test_placement_rules import reclaim
from tests.control.test_shards import ShardedFederation
from tests.harness.eventually import eventually
from tests.harness.federation import (
    CONFIGMAPS,
    DEPLOYMENTS,
    NAMESPACES,
    NODES,
    QUICK,
    SECRETS,
    WATCHFUL,
    Federation,
    add_node,
)
from tests.harness.inside import Inside
from tests.harness.servers import new_server
from tests.harness.user import deployment, federated_cluster, weights
from tests.harness.webhook import WebhookServer

EVERYWHERE = {"schedulingMode": "Duplicate"}
#: Who is not woken comes back by itself much later.
PATIENT = msgspec.structs.replace(
    QUICK,
    health_period=30.0,
    identity_recheck=30.0,
    deletion_recheck=30.0,
    member_event=30.0,
    retry_first=30.0,
    retry_most=30.0,
)
#: ... and a write is given up soon.
UNRETRIED = msgspec.structs.replace(PATIENT, member_write=1.0)
STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
IMAGE = "/spec/template/spec/containers/0/image"


@pytest.fixture
async def fed(request):
    async with Federation(2, timings=getattr(request, "param", QUICK)) as federation:
        yield federation


# What is kept current.


async def test_drift_is_repaired_in_a_member_that_joined_later(fed):
    joining = {"reschedulePolicy": {"rescheduleWhen": {"clusterJoined": True}}}
    await fed.policy(**EVERYWHERE, **joining)
    await fed.deploy(replicas=1)
    await fed.eventually_replicas({"m1": 1, "m2": 1})
    async with _another(fed, "m3"):
        await fed.eventually_replicas({"m1": 1, "m2": 1, "m3": 1})
        await _settled(fed)
        await eventually(fed.quiet)
        await fed.member("m3").patch(DEPLOYMENTS, "web", {"spec": {"replicas": 5}}, "default")
        await fed.eventually_replicas({"m1": 1, "m2": 1, "m3": 1})


async def test_what_katalyst_reclaims_is_followed_in_a_cluster_that_left_and_came_back():
    async with Federation(1, options=Options(katalyst=True)) as fed:
        await reclaim(fed.member("m1"), "m1-node", "8k")
        asking = {keys.CLUSTER_RESOURCE_PLUGINS: f'["{PLUGIN}"]'}
        await fed.annotate(resources.FEDERATED_CLUSTERS, "m1", None, **asking)
        await eventually(lambda: _reclaimed(fed) == 8000)
        await fed.client.delete(resources.FEDERATED_CLUSTERS, "m1")
        await eventually(lambda: fed.inside.caches.clusters.get("m1") is None)
        cluster = federated_cluster("m1", fed.endpoint("m1"))
        cluster["metadata"]["annotations"] = asking
        await fed.client.create(resources.FEDERATED_CLUSTERS, cluster)
        await eventually(lambda: fed.ready_clusters() == ["m1"])
        less = {"status": {"resources": {"allocatable": {RECLAIMED_MILLICPU: "2k"}}}}
        await fed.member("m1").patch(CUSTOM_NODE_RESOURCES, "m1-node", less, kind=Patch.MERGE)
        await eventually(lambda: _reclaimed(fed) == 2000)


# Federate.


@pytest.mark.parametrize("fed", [PATIENT], indirect=True, ids=["patient"])
@pytest.mark.parametrize("kind", ["PropagationPolicy", "ClusterPropagationPolicy"])
async def test_what_waits_for_its_policy_goes_on_when_that_is_there(fed, kind):
    resource, label, namespace = {
        "PropagationPolicy": (resources.PROPAGATION_POLICIES, keys.PROPAGATION_POLICY_LABEL, "default"),
        "ClusterPropagationPolicy": (
            resources.CLUSTER_PROPAGATION_POLICIES,
            keys.CLUSTER_PROPAGATION_POLICY_LABEL,
            None,
        ),
    }[kind]
    await fed.deploy(replicas=2, policy="", **{label: "late"})
    await eventually(lambda: _held(fed, "PolicyNotFound"))
    await eventually(fed.quiet)
    policy = {
        "apiVersion": keys.API_VERSION,
        "kind": kind,
        "metadata": {"name": "late"} | ({"namespace": namespace} if namespace else {}),
        "spec": {"schedulingMode": "Divide", **weights(m1=1)},
    }
    await fed.client.create(resource, policy)
    await fed.eventually_replicas({"m1": 2})


@pytest.mark.parametrize("kind", ["OverridePolicy", "ClusterOverridePolicy"])
async def test_a_changed_override_reaches_members(fed, kind):
    resource, label, namespace = {
        "OverridePolicy": (resources.OVERRIDE_POLICIES, keys.OVERRIDE_POLICY_LABEL, "default"),
        "ClusterOverridePolicy": (resources.CLUSTER_OVERRIDE_POLICIES, keys.CLUSTER_OVERRIDE_POLICY_LABEL, None),
    }[kind]
    await _override(fed, kind, resource, namespace)
    await fed.policy(**EVERYWHERE)
    await fed.deploy(replicas=1, **{label: "mirror"})
    await eventually(lambda: _images(fed, "nginx:1.29", "mirror/nginx:1"))
    await _settled(fed)
    await eventually(fed.inside.idle)
    await fed.client.patch(resource, "mirror", {"spec": _to("mirror/nginx:2")}, namespace, kind=Patch.MERGE)
    await eventually(lambda: _images(fed, "nginx:1.29", "mirror/nginx:2"))


@pytest.mark.real_time("webhooks are asked over HTTP")
async def test_who_waits_for_a_webhook_that_hangs_asks_the_one_in_its_place(fed):
    hanging, answering = WebhookServer(), WebhookServer()
    hanging.behaviour = {"mode": "hang"}
    await hanging.start()
    await answering.start()
    try:
        webhook = {
            "apiVersion": keys.API_VERSION,
            "kind": "SchedulerPluginWebhookConfiguration",
            "metadata": {"name": "hook"},
            "spec": {
                "payloadVersions": ["v1alpha1"],
                "urlPrefix": hanging.url,
                "filterPath": "/filter",
                "httpTimeout": "30s",
            },
        }
        webhooks = resources.SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS
        await fed.client.create(webhooks, webhook)
        profile = {
            "apiVersion": keys.API_VERSION,
            "kind": "SchedulingProfile",
            "metadata": {"name": "asking"},
            "spec": {"plugins": {"filter": {"enabled": [{"name": "hook", "type": "Webhook"}]}}},
        }
        await fed.client.create(resources.SCHEDULING_PROFILES, profile)
        await fed.policy(**EVERYWHERE, schedulingProfile="asking")
        await fed.deploy(replicas=1)
        await eventually(lambda: fed.inside.suspended == 1)
        await fed.client.patch(webhooks, "hook", {"spec": {"urlPrefix": answering.url}}, kind=Patch.MERGE)
        # Well before the first one would be given up.
        await fed.eventually_replicas({"m1": 1, "m2": 1}, timeout=20)
    finally:
        await hanging.stop()
        await answering.stop()


@pytest.mark.parametrize("room", ["a node", "a reservation"])
async def test_what_found_no_room_is_placed_when_there_is(room):
    """Members here run nothing by themselves: what was placed there stays reserved."""
    async with Federation(1) as fed:
        await _add_gpus(fed, "m1-node")
        await _count_room(fed)
        await fed.policy(schedulingProfile="fitting")
        await fed.client.create(DEPLOYMENTS, _of_three_gpus("first"))
        await fed.eventually_replicas({"m1": 1}, "first")
        await fed.client.create(DEPLOYMENTS, _of_three_gpus("second"))
        await eventually(lambda: _held(fed, "Unschedulable", "second"))
        if room == "a node":
            await add_node(fed.member("m1"), "another", cpu=4)
            await _add_gpus(fed, "another")
        else:
            await fed.client.delete(DEPLOYMENTS, "first", "default")
        await fed.eventually_replicas({"m1": 1}, "second")


async def test_what_found_no_room_is_placed_when_another_shard_gives_some_back():
    theirs, ours = (next(name for name in map(str, range(100)) if Shard(index, 2).owns(name)) for index in (0, 1))
    async with ShardedFederation(1, shards=2) as fed:
        await _add_gpus(fed, "m1-node")
        await _count_room(fed)
        for namespace in (theirs, ours):
            await fed.client.create(
                NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            )
            await fed.policy(namespace=namespace, schedulingProfile="fitting")
        await fed.client.create(DEPLOYMENTS, _of_three_gpus("first", theirs))
        await eventually(lambda: Inside(fed.managers[1]).peers.totals.get(GPU) == {"m1": 3})
        fed.namespace = ours
        await fed.client.create(DEPLOYMENTS, _of_three_gpus("second", ours))
        await eventually(lambda: _held(fed, "Unschedulable", "second"))
        await fed.client.delete(DEPLOYMENTS, "first", theirs)
        await fed.eventually_replicas({"m1": 1}, "second")


# Dispatch.


@pytest.mark.parametrize("fed", [PATIENT], indirect=True, ids=["patient"])
async def test_a_deletion_ends_when_the_last_copy_is_gone(fed):
    """Nobody waits for the next look at it."""
    await fed.policy(**EVERYWHERE)
    await fed.deploy(replicas=1)
    await fed.eventually_replicas({"m1": 1, "m2": 1})
    await _settled(fed)
    member = fed.member("m1")
    held = {"metadata": {"finalizers": ["example.com/held"]}}
    await member.patch(DEPLOYMENTS, "web", held, "default", kind=Patch.MERGE)
    await fed.client.delete(DEPLOYMENTS, "web", "default")

    async def only_held():
        copies = await fed.copies()
        return list(copies) == ["m1"] and "deletionTimestamp" in copies["m1"]["metadata"]

    await eventually(only_held)

    async def reported():
        return await fed.propagation() == {"m1": "WaitingForRemoval"}

    await eventually(reported, why="dispatch has done all it can")
    dispatch = fed.inside.queue("dispatch")
    await eventually(lambda: dispatch.delayed and not dispatch.processing)
    await member.patch(DEPLOYMENTS, "web", {"metadata": {"finalizers": None}}, "default", kind=Patch.MERGE)

    async def gone():
        return not await fed.exists(DEPLOYMENTS, "web", "default")

    await eventually(gone)


async def test_what_changed_while_nobody_was_connected_is_carried_with_the_connection(fed):
    """The cluster counts as ready all the time."""
    await fed.policy(**EVERYWHERE)
    await fed.deploy(replicas=1)
    await fed.eventually_replicas({"m1": 1, "m2": 1})
    secret = await fed.client.get(SECRETS, "m2", keys.SYSTEM_NAMESPACE)
    await fed.stop_controllers()
    await fed.client.delete(SECRETS, "m2", keys.SYSTEM_NAMESPACE)
    await fed.scale("web", 2)
    fed.timings = PATIENT
    await fed.start_controllers()
    await fed.eventually_replicas({"m1": 2, "m2": 1})
    dispatch = fed.inside.queue("dispatch")
    await eventually(lambda: not (len(dispatch) or dispatch.processing or dispatch.delayed))
    secret["metadata"] = {"name": "m2", "namespace": keys.SYSTEM_NAMESPACE}
    await fed.client.create(SECRETS, secret)
    await fed.eventually_replicas({"m1": 2, "m2": 2})


@pytest.mark.parametrize("fed", [UNRETRIED], indirect=True, ids=["unretried"])
async def test_what_a_member_refused_is_carried_when_it_answers_again(fed):
    """When it has answered about another object. The cluster counts as ready all the time."""
    await fed.policy(**EVERYWHERE)
    await fed.deploy(replicas=1)
    await fed.eventually_replicas({"m1": 1, "m2": 1})
    await _settled(fed)
    await fed.servers["m2"].close_door()
    await fed.scale("web", 2)

    await fed.eventually_replicas({"m1": 2, "m2": 1})
    dispatch = fed.inside.queue("dispatch")
    await eventually(lambda: dispatch.delayed and not dispatch.processing)
    await fed.servers["m2"].open_door()
    await fed.deploy("other", replicas=1)
    await fed.eventually_replicas({"m1": 1, "m2": 1}, "other")
    await fed.eventually_replicas({"m1": 2, "m2": 2})


@pytest.mark.parametrize("fed", [WATCHFUL], indirect=True, ids=["watchful"])
async def test_what_an_unready_cluster_missed_is_carried_when_it_is_ready(fed, monkeypatch):
    """It answers all the time, and says that it is not ready."""
    unready, observe = False, Prober.observe

    async def observed(self, member, known, **more):
        if member.name == "m2" and unready:
            return Observation(probe_failed(resources="its caches are slow"))
        return await observe(self, member, known, **more)

    monkeypatch.setattr(Prober, "observe", observed)
    await fed.policy(**EVERYWHERE)
    await fed.deploy(replicas=1)
    await fed.eventually_replicas({"m1": 1, "m2": 1})
    await _settled(fed)
    unready = True
    await eventually(lambda: fed.ready_clusters() == ["m1"])
    await fed.scale("web", 2)

    async def waiting():
        return await fed.propagation() == {"m1": "OK", "m2": "ClusterNotReady"}

    await eventually(waiting)
    unready = False
    await fed.eventually_replicas({"m1": 2, "m2": 2})


# Aggregate.


async def test_what_a_member_reports_is_told(fed):
    await fed.policy(**weights(m1=1))
    await fed.deploy(replicas=1)
    await fed.eventually_replicas({"m1": 1})
    await eventually(fed.inside.idle)
    generation = (await fed.copies())["m1"]["metadata"]["generation"]
    counts = dict.fromkeys(("replicas", "readyReplicas", "availableReplicas", "updatedReplicas"), 1)
    report = {"status": {"observedGeneration": generation, **counts}}
    await fed.member("m1").patch(DEPLOYMENTS, "web", report, "default", kind=Patch.MERGE, subresource="status")

    async def told():
        return ((await fed.source()).get("status") or {}).get("readyReplicas") == 1

    await eventually(told)


@pytest.mark.parametrize("namespaced", [True, False], ids=["namespaced", "cluster-scoped"])
async def test_a_collected_status_that_others_wrote_over_is_put_right(fed, namespaced):
    """What a former leader had sent may arrive late."""
    collected = resources.COLLECTED_STATUSES if namespaced else resources.CLUSTER_COLLECTED_STATUSES
    policies = resources.PROPAGATION_POLICIES if namespaced else resources.CLUSTER_PROPAGATION_POLICIES
    place = {"namespace": "default"} if namespaced else {}
    kind = "PropagationPolicy" if namespaced else "ClusterPropagationPolicy"
    metadata = {"name": "all", **place}
    await fed.client.create(
        policies, {"apiVersion": keys.API_VERSION, "kind": kind, "metadata": metadata, "spec": EVERYWHERE}
    )
    label = keys.PROPAGATION_POLICY_LABEL if namespaced else keys.CLUSTER_PROPAGATION_POLICY_LABEL
    metadata = {"name": "web", "labels": {label: "all"}, **place}
    if namespaced:
        await fed.client.create(CONFIGMAPS, {"metadata": metadata})
    else:
        made = {"metadata": metadata, "provisioner": "example.com/none", "reclaimPolicy": "Delete"}
        await fed.client.create(STORAGE_CLASSES, made)
    name = "web-configmaps" if namespaced else "web-storageclasses"

    async def told() -> bool:
        found = await fed.client.list(collected, **place)
        mine = next((each for each in found.items if each["metadata"]["name"] == name), {"clusters": []})
        return {each["cluster"] for each in mine["clusters"] if not each.get("error")} == set(fed.names)

    await eventually(told)
    await eventually(fed.inside.idle)
    stale = {"clusters": [{"cluster": "m1", "collectedFields": {}, "error": "cluster is not reachable"}]}
    await fed.client.patch(collected, name, stale, place.get("namespace"), kind=Patch.MERGE)
    await eventually(told)


async def test_where_an_object_was_placed_is_told_although_no_copy_changed(fed):
    """In m2 somebody else's object is in the way."""
    await fed.member("m2").create(DEPLOYMENTS, deployment("web", 7, ""))
    await fed.policy(**EVERYWHERE, placement=[{"cluster": "m1"}])
    await fed.deploy(replicas=2)
    await eventually(lambda: _told_placement(fed, "m1"))
    await eventually(fed.inside.idle)
    both = {"spec": {"placement": [{"cluster": "m1"}, {"cluster": "m2"}]}}
    await fed.client.patch(resources.PROPAGATION_POLICIES, "policy", both, "default", kind=Patch.MERGE)
    await eventually(lambda: _told_placement(fed, "m1", "m2"))
    assert await fed.propagation() == {"m1": "OK", "m2": "AlreadyExists"}


async def test_a_status_that_somebody_wrote_over_is_put_right(fed):
    await fed.policy(**EVERYWHERE)
    await fed.deploy(replicas=1)
    await fed.eventually_replicas({"m1": 1, "m2": 1})
    await _settled(fed)
    await eventually(fed.inside.idle)
    nonsense = {"status": {"replicas": 99, "observedGeneration": 1}}
    await fed.client.patch(DEPLOYMENTS, "web", nonsense, "default", kind=Patch.MERGE, subresource="status")

    async def right():
        return ((await fed.source()).get("status") or {}).get("replicas", 0) != 99

    await eventually(right)


@pytest.mark.parametrize("fed", [WATCHFUL], indirect=True, ids=["watchful"])
async def test_of_a_paused_object_it_is_told_which_members_cannot_be_read(fed):
    await fed.policy(**EVERYWHERE)
    await fed.configure("settings", {"color": "blue"})

    async def from_all():
        return sorted(await _collected(fed, "settings-configmaps")) == ["m1", "m2"]

    await eventually(from_all)
    await _paused(fed, CONFIGMAPS, "settings", "settings-configmaps")
    await fed.servers["m2"].stop()

    async def told():
        return "error" in (await _collected(fed, "settings-configmaps"))["m2"]

    await eventually(told)


# Builders and probes.


@contextlib.asynccontextmanager
async def _another(fed, name):
    """One more member."""
    server = new_server()
    await server.start()
    try:
        await add_node(server.client(), f"{name}-node", cpu=16)
        fed.servers[name] = server
        fed.names.append(name)
        await fed.join(name)
        yield
    finally:
        await fed.stop_controllers()
        await fed.servers.pop(name).stop()


async def _override(fed, kind, resource, namespace):
    """In m2 the image is another one."""
    metadata = {"name": "mirror", **({"namespace": namespace} if namespace else {})}
    body = {"apiVersion": keys.API_VERSION, "kind": kind, "metadata": metadata, "spec": _to("mirror/nginx:1")}
    await fed.client.create(resource, body)


def _to(image):
    patch = {"operator": "replace", "path": IMAGE, "value": image}
    return {"overrideRules": [{"targetClusters": {"clusters": ["m2"]}, "overriders": {"jsonpatch": [patch]}}]}


async def _images(fed, *expected):
    copies = await fed.copies()
    return [copies[name]["spec"]["template"]["spec"]["containers"][0]["image"] for name in fed.names] == [*expected]


async def _add_gpus(fed, node):
    """Four of them."""
    amounts = {"capacity": {GPU: "4"}, "allocatable": {GPU: "4"}}
    await fed.member("m1").patch(NODES, node, {"status": amounts}, kind=Patch.MERGE, subresource="status")
    await eventually(lambda: fed.inside.snapshot.allocatable(GPU)[0] > 0)


async def _count_room(fed):
    """By the profile `fitting`, a cluster must have room for a pod."""
    profile = {
        "apiVersion": keys.API_VERSION,
        "kind": "SchedulingProfile",
        "metadata": {"name": "fitting"},
        "spec": {"plugins": {"filter": {"enabled": [{"name": "ClusterResourcesFit"}]}}},
    }
    await fed.client.create(resources.SCHEDULING_PROFILES, profile)


def _of_three_gpus(name, namespace="default"):
    body = deployment(name, 1, "policy", namespace)
    asked = {GPU: "3"}
    body["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": asked, "limits": asked}
    return body


def _reclaimed(fed):
    member = fed.inside.snapshot.member("m1")
    return member.available.get(RECLAIMED_MILLICPU) if member is not None else None


async def _held(fed, reason, name="web"):
    annotations = (await fed.federated(f"{name}-deployments.apps"))["metadata"]["annotations"]
    return reason in annotations.get(keys.HELD, "")


async def _collected(fed, name):
    found = await fed.client.get(resources.COLLECTED_STATUSES, name, "default")
    return {each["cluster"]: each for each in found["clusters"]}


async def _told_placement(fed, *clusters):
    told = (await fed.source())["metadata"]["annotations"][keys.SCHEDULING]
    return sorted(json.loads(told)["placement"]) == [*clusters]


async def _paused(fed, resource, name, federated):
    await fed.annotate(resource, name, "default", **{keys.PAUSED: "true"})

    async def seen():
        return (await fed.federated(federated))["metadata"]["annotations"].get(keys.PAUSED) == "true"

    await eventually(seen)
    await eventually(fed.inside.idle)


async def _settled(fed):
    async def all_ok():
        return await fed.propagation() == dict.fromkeys(fed.names, "OK")

    await eventually(all_ok)
