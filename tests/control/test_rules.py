"""The rules that keep it correct: what is written, what is not, and what is never deleted."""

import asyncio
import json

import msgspec
import pytest

from argosy.api import keys, resources
from argosy.control.caches.objectkeys import SourceKey
from argosy.kube import clock
from argosy.kube.client import Patch
from argosy.kube.errors import NotFound
from tests.harness.eventually import eventually, holds
from tests.harness.federation import (
    CONFIGMAPS,
    DEPLOYMENTS,
    NAMESPACES,
    QUICK,
    WATCHFUL,
    Federation,
    add_node,
    deployment,
)
from tests.harness.servers import new_server

ALL = {"schedulingMode": "Duplicate"}


@pytest.fixture
async def fed(request):
    async with Federation(3, timings=getattr(request, "param", QUICK)) as federation:
        yield federation


def weights(**by_cluster: int) -> dict:
    placement = [{"cluster": name, "preferences": {"weight": weight}} for name, weight in by_cluster.items()]
    return {"placement": placement}


async def settled(fed: Federation, name: str = "web-deployments.apps") -> dict:
    async def probe():
        federated = await fed.federated(name)
        status = federated.get("status") or {}
        synced = status.get("syncedGeneration") == federated["metadata"]["generation"]
        return federated if synced and all(c["status"] == "OK" for c in status["clusters"]) else None

    return await eventually(probe, why=f"{name} settled")


class Writes:
    """Counts what is written to a server, by kind; events and leases apart."""

    def __init__(self, server):
        self.keys: list[str] = []
        self._unsubscribe = server.server.store.subscribe(self._note)

    def _note(self, event):
        table = "/".join(event.entry.key.split("/", 2)[:2])
        if table not in ("core/events", "coordination.k8s.io/leases", f"{keys.GROUP}/federatedclusters"):
            self.keys.append(f"{event.type} {event.entry.key}")

    def stop(self):
        self._unsubscribe()


#: However long members take, what is carried to them is not told in pieces.
CARRIED_FIRST = msgspec.structs.replace(QUICK, status_longest_busy=60.0)


@pytest.mark.parametrize("fed", [CARRIED_FIRST], indirect=True, ids=["patient"])
async def test_a_deployment_on_three_members_costs_at_most_four_writes(fed):
    await fed.policy(**weights(m1=1, m2=1, m3=1))
    writes = Writes(fed.plane)
    member_writes = {name: Writes(fed.servers[name]) for name in fed.names}
    await fed.deploy(replicas=9)
    await fed.eventually_replicas({"m1": 3, "m2": 3, "m3": 3})
    own = [key for key in writes.keys if key != "ADDED apps/deployments/default/web"]
    assert len(own) <= 4, own
    await settled(fed)
    assert all(len(each.keys) == 1 for each in member_writes.values()), "one write a member"


async def quiet(counters: list[Writes], seconds: float) -> None:
    """Until nothing has been written for so long."""
    count, since = -1, clock.monotonic()
    while clock.monotonic() - since < seconds:
        now = sum(len(each.keys) for each in counters)
        if now != count:
            count, since = now, clock.monotonic()
        await asyncio.sleep(0.02)


async def test_a_restart_writes_nothing(fed):
    await fed.policy(**weights(m1=1, m2=1, m3=1))
    await fed.deploy(replicas=9)
    await fed.client.create(
        CONFIGMAPS,
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "c", "namespace": "default", "labels": {keys.PROPAGATION_POLICY_LABEL: "policy"}},
        },
    )
    await fed.eventually_replicas({"m1": 3, "m2": 3, "m3": 3})
    await settled(fed)
    await settled(fed, "c-configmaps")
    for name in ("web-deployments.apps", "c-configmaps"):

        async def collected(name=name):
            return await _collected_from(fed, name) == fed.names

        await eventually(collected)
    await eventually(lambda: _scheduling_shown(fed))
    await eventually(lambda: fed.inside.idle())
    await fed.stop_controllers()
    counters = [Writes(server) for server in (fed.plane, *fed.servers.values())]
    await fed.start_controllers()
    await eventually(lambda: len(fed.ready_clusters()) == 3)
    await eventually(lambda: all(informer.has_synced for informer in fed.inside.collector.informers().values()))
    await quiet(counters, 1.0)
    assert [each.keys for each in counters] == [[], [], [], []]


async def test_overrides_change_one_cluster_only(fed):
    await fed.policy(**ALL)
    await fed.client.create(
        resources.OVERRIDE_POLICIES,
        {
            "apiVersion": keys.API_VERSION,
            "kind": "OverridePolicy",
            "metadata": {"name": "for-m2", "namespace": "default"},
            "spec": {
                "overrideRules": [
                    {
                        "targetClusters": {"clusters": ["m2"]},
                        "overriders": {
                            "jsonpatch": [
                                {
                                    "operator": "replace",
                                    "path": "/spec/template/spec/containers/0/image",
                                    "value": "mirror/nginx:1",
                                }
                            ]
                        },
                    }
                ]
            },
        },
    )
    await fed.deploy(replicas=2, **{keys.OVERRIDE_POLICY_LABEL: "for-m2"})
    await fed.eventually_replicas({"m1": 2, "m2": 2, "m3": 2})
    images = {}
    for name in fed.names:
        copy = await fed.member(name).get(DEPLOYMENTS, "web", "default")
        images[name] = copy["spec"]["template"]["spec"]["containers"][0]["image"]
    assert images == {"m1": "nginx:1.29", "m2": "mirror/nginx:1", "m3": "nginx:1.29"}


async def test_a_missing_policy_holds_and_its_creation_releases(fed):
    await fed.deploy(replicas=3)

    async def held():
        return json.loads((await fed.federated())["metadata"]["annotations"][keys.HELD])["reason"] == "PolicyNotFound"

    await eventually(held)
    assert await fed.replicas() == {}
    await eventually(lambda: fed.events("ScheduleFederatedObject"))
    await fed.policy(**weights(m1=1))
    await fed.eventually_replicas({"m1": 3})
    await fed.client.delete(resources.PROPAGATION_POLICIES, "policy", "default")
    await holds(lambda: _has(fed, {"m1": 3}), 0.5)


async def test_a_noexecute_taint_moves_work_and_leaves_no_copy(fed):
    await fed.policy(**weights(m1=1, m2=1))
    await fed.deploy(replicas=4)
    await fed.eventually_replicas({"m1": 2, "m2": 2})
    taint = {"spec": {"taints": [{"key": "broken", "effect": "NoExecute"}]}}
    await fed.client.patch(resources.FEDERATED_CLUSTERS, "m2", taint, kind=Patch.MERGE)
    await fed.eventually_replicas({"m1": 4})

    async def note_gone():
        return keys.TO_BE_REMOVED not in (await fed.federated())["metadata"]["annotations"]

    await eventually(note_gone, why="the note of the removal goes once the copy was seen gone")


async def test_nothing_fits_keeps_what_runs_and_comes_back_by_itself(fed):
    await fed.policy(**weights(m1=1))
    await fed.deploy(replicas=2)
    await fed.eventually_replicas({"m1": 2})
    taint = {"spec": {"taints": [{"key": "broken", "effect": "NoExecute"}]}}
    await fed.client.patch(resources.FEDERATED_CLUSTERS, "m1", taint, kind=Patch.MERGE)

    async def held():
        return keys.HELD in (await fed.federated())["metadata"]["annotations"]

    await eventually(held)
    await holds(lambda: _has(fed, {"m1": 2}), 0.5)
    await fed.client.patch(resources.FEDERATED_CLUSTERS, "m1", {"spec": {"taints": None}}, kind=Patch.MERGE)

    async def released():
        return not await held()

    await eventually(released)


async def test_an_unplaced_object_starts_when_a_cluster_becomes_ready(fed):
    await fed.client.patch(
        resources.FEDERATED_CLUSTERS, "m1", {"metadata": {"labels": {"tier": "other"}}}, kind=Patch.MERGE
    )
    await fed.policy(clusterSelector={"tier": "gold"})
    await fed.deploy(replicas=2)

    async def held():
        return keys.HELD in (await fed.federated())["metadata"]["annotations"]

    await eventually(held)
    await fed.client.patch(
        resources.FEDERATED_CLUSTERS, "m1", {"metadata": {"labels": {"tier": "gold"}}}, kind=Patch.MERGE
    )
    await fed.eventually_replicas({"m1": 2})


async def test_divide_scaled_to_zero_keeps_the_objects(fed):
    await fed.policy(**weights(m1=1, m2=1))
    await fed.deploy(replicas=4)
    await fed.eventually_replicas({"m1": 2, "m2": 2})
    await fed.scale("web", 0)
    await fed.eventually_replicas({"m1": 0, "m2": 0})
    await fed.scale("web", 2)
    await fed.eventually_replicas({"m1": 1, "m2": 1})


@pytest.mark.parametrize("what", ["object", "cluster", "fleet"])
async def test_pause_and_resume(fed, what):
    await fed.policy(**weights(m1=1))
    await fed.deploy(replicas=1)
    await fed.eventually_replicas({"m1": 1})
    where = {
        "object": (DEPLOYMENTS, "web", "default"),
        "cluster": (resources.FEDERATED_CLUSTERS, "m1", None),
        "fleet": (NAMESPACES, keys.SYSTEM_NAMESPACE, None),
    }[what]
    await fed.annotate(*where, **{keys.PAUSED: "true"})
    await eventually(lambda: _paused_seen(fed, what))
    await fed.scale("web", 5)
    await holds(lambda: _has(fed, {"m1": 1}), 0.4)
    await fed.annotate(*where, **{keys.PAUSED: None})
    await fed.eventually_replicas({"m1": 5})


async def test_a_pause_counts_before_it_is_mirrored_and_its_end_as_well(fed):
    await fed.policy(**weights(m1=1))
    await fed.deploy(replicas=1)
    await fed.eventually_replicas({"m1": 1})
    await eventually(fed.inside.idle)
    # Nobody mirrors what the source says: the new leader's first pass over the object may come before that.
    await fed.inside.tasks.stop("federate")
    await fed.annotate(DEPLOYMENTS, "web", "default", **{keys.PAUSED: "true"})
    await eventually(lambda: _is_paused_in_cache(fed))
    await fed.member("m1").patch(DEPLOYMENTS, "web", {"spec": {"replicas": 7}}, "default")
    await holds(lambda: _has(fed, {"m1": 7}), 30.0)
    await fed.annotate(DEPLOYMENTS, "web", "default", **{keys.PAUSED: None})
    await fed.eventually_replicas({"m1": 1})


def _is_paused_in_cache(fed):
    source = fed.inside.caches.source(SourceKey("deployments.apps", "default/web"))
    return source.metadata.annotations.get(keys.PAUSED) == "true"


async def test_an_existing_object_is_a_conflict_until_it_may_be_adopted(fed):
    theirs = deployment("web", 7, "")
    await fed.member("m1").create(DEPLOYMENTS, theirs)
    await fed.policy(**ALL)
    await fed.deploy(replicas=2)

    async def conflict():
        clusters = {c["cluster"]: c["status"] for c in (await fed.federated())["status"]["clusters"]}
        return clusters == {"m1": "AlreadyExists", "m2": "OK", "m3": "OK"}

    await eventually(conflict)
    assert (await fed.replicas())["m1"] == 7
    adopt = {keys.CONFLICT_RESOLUTION: "adopt", keys.CLUSTERS_TO_ADOPT: '{"clusters":["m1"]}'}
    await fed.annotate(DEPLOYMENTS, "web", "default", **adopt)
    await fed.eventually_replicas({"m1": 2, "m2": 2, "m3": 2})
    adopted = await fed.member("m1").get(DEPLOYMENTS, "web", "default")
    assert adopted["metadata"]["annotations"][keys.ADOPTED] == "true"


async def test_orphaned_copies_stay_unmanaged(fed):
    await fed.policy(**ALL)
    await fed.deploy(replicas=1)
    await fed.eventually_replicas({"m1": 1, "m2": 1, "m3": 1})
    await fed.annotate(DEPLOYMENTS, "web", "default", **{keys.ORPHAN: "all"})
    await eventually(lambda: _annotation(fed, keys.ORPHAN, "all"))
    await fed.client.delete(DEPLOYMENTS, "web", "default")

    async def gone():
        try:
            await fed.client.get(DEPLOYMENTS, "web", "default")
        except NotFound:
            return True
        return False

    await eventually(gone)
    for name in fed.names:
        copy = await fed.member(name).get(DEPLOYMENTS, "web", "default")
        assert keys.MANAGED_LABEL not in (copy["metadata"].get("labels") or {})


@pytest.mark.parametrize("fed", [WATCHFUL], indirect=True, ids=["watchful"])
async def test_an_unreachable_member_loses_nothing(fed):
    """It is shown as not ready, keeps its share, and gets what changed meanwhile when it is back."""
    await fed.policy(**weights(m1=1, m2=1))
    await fed.deploy(replicas=4)
    await fed.eventually_replicas({"m1": 2, "m2": 2})
    await settled(fed)
    await fed.servers["m2"].close_door()
    await eventually(lambda: fed.ready_clusters() == ["m1", "m3"])
    await fed.scale("web", 6)

    async def waiting():
        clusters = {c["cluster"]: c["status"] for c in (await fed.federated())["status"]["clusters"]}
        return clusters == {"m1": "OK", "m2": "ClusterNotReady"}

    await eventually(waiting)
    await fed.servers["m2"].open_door()
    await eventually(lambda: fed.ready_clusters() == ["m1", "m2", "m3"])
    await fed.eventually_replicas({"m1": 3, "m2": 3})


async def test_a_source_that_vanished_leaves_its_copies(fed):
    """Stripped of its finalizer the source is gone at once; garbage collection deletes the federated object."""
    await fed.policy(**weights(m1=1))
    await fed.deploy(replicas=2)
    await fed.eventually_replicas({"m1": 2})
    await settled(fed)
    await fed.stop_controllers()
    await fed.client.delete(DEPLOYMENTS, "web", "default")
    await fed.client.patch(DEPLOYMENTS, "web", {"metadata": {"finalizers": None}}, "default")

    async def terminating():
        return (await fed.federated())["metadata"].get("deletionTimestamp")

    await eventually(terminating)
    await fed.start_controllers()
    await eventually(lambda: fed.events("EnsureDeletionFailed"))
    await holds(lambda: _has(fed, {"m1": 2}), 0.3)
    confirmed = {"metadata": {"annotations": {keys.CONFIRM_DELETION: "true"}}}
    await fed.client.patch(resources.FEDERATED_OBJECTS, "web-deployments.apps", confirmed, "default")
    await fed.eventually_replicas({})


async def test_a_federated_object_that_is_deleted_under_a_living_source_leaves_its_copies(fed):
    """Not by us and not by the user of the source: garbage collection erred, or the kind itself is being deleted."""
    await fed.policy(**weights(m1=1))
    await fed.deploy(replicas=2)
    await fed.eventually_replicas({"m1": 2})
    await settled(fed)
    before = (await fed.member("m1").get(DEPLOYMENTS, "web", "default"))["metadata"]["uid"]
    await fed.client.delete(resources.FEDERATED_OBJECTS, "web-deployments.apps", "default")

    async def told():
        return any("but its source is not" in event["message"] for event in await fed.events("EnsureDeletionFailed"))

    await eventually(told)
    await holds(lambda: _has(fed, {"m1": 2}), 0.3)
    assert (await fed.member("m1").get(DEPLOYMENTS, "web", "default"))["metadata"]["uid"] == before
    await fed.client.delete(DEPLOYMENTS, "web", "default")
    await fed.eventually_replicas({})


async def test_a_paused_cluster_leaves_with_its_copies_once_it_is_resumed(fed):
    await fed.policy(**ALL)
    await fed.deploy(replicas=1)
    await fed.eventually_replicas({"m1": 1, "m2": 1, "m3": 1})
    await settled(fed)
    said = {keys.CASCADING_DELETE: "true", keys.PAUSED: "true"}
    await fed.annotate(resources.FEDERATED_CLUSTERS, "m2", None, **said)
    await eventually(lambda: fed.inside.caches.clusters.get("m2").metadata.annotations.get(keys.PAUSED))
    await fed.client.delete(resources.FEDERATED_CLUSTERS, "m2")

    async def told():
        return any("paused" in event["message"] for event in await fed.events("WaitForCascadingDelete"))

    await eventually(told)
    assert await _has(fed, {"m1": 1, "m2": 1, "m3": 1})
    await fed.annotate(resources.FEDERATED_CLUSTERS, "m2", None, **{keys.PAUSED: None})
    await fed.eventually_replicas({"m1": 1, "m3": 1})


async def test_leaving_keeps_copies_and_cascading_takes_them(fed):
    await fed.policy(**ALL)
    await fed.deploy(replicas=1)
    await fed.eventually_replicas({"m1": 1, "m2": 1, "m3": 1})
    await settled(fed)
    await fed.client.delete(resources.FEDERATED_CLUSTERS, "m1")
    await eventually(lambda: fed.inside.caches.clusters.get("m1") is None)
    with pytest.raises(NotFound):
        await fed.member("m1").get(NAMESPACES, keys.SYSTEM_NAMESPACE)
    await fed.annotate(resources.FEDERATED_CLUSTERS, "m2", None, **{keys.CASCADING_DELETE: "true"})
    await fed.client.delete(resources.FEDERATED_CLUSTERS, "m2")
    await eventually(lambda: fed.inside.caches.clusters.get("m2") is None)
    await fed.eventually_replicas({"m1": 1, "m3": 1})


async def test_a_member_of_another_federation_is_not_taken(fed):
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": keys.SYSTEM_NAMESPACE, "annotations": {keys.FEDERATED_CLUSTER_UID: "somebody-else"}},
    }

    stranger = new_server()
    await stranger.start()
    try:
        await stranger.client().create(NAMESPACES, namespace)
        fed.servers["stranger"] = stranger
        await fed.join("stranger")

        async def refused():
            cluster = await fed.client.get(resources.FEDERATED_CLUSTERS, "stranger")
            conditions = (cluster.get("status") or {}).get("conditions") or []
            return any(c["type"] == "Joined" and c["reason"] == "ClusterUnjoinable" for c in conditions)

        await eventually(refused)
    finally:
        del fed.servers["stranger"]
        await stranger.stop()


async def test_more_room_places_what_found_none(fed):
    """Dynamic weights follow capacity; a cluster that gains nodes gets its share of new work."""
    await fed.policy()
    await add_node(fed.member("m3"), "big", cpu=160)
    await eventually(lambda: fed.inside.snapshot.allocatable("cpu")[2] == 176_000)
    await fed.deploy(replicas=20)

    async def spread():
        found = await fed.replicas()
        return sum(found.values()) == 20 and found["m3"] > found["m1"]

    await eventually(spread)


async def _collected_from(fed, name):
    collected = await fed.client.get(resources.COLLECTED_STATUSES, name, "default")
    return sorted(each["cluster"] for each in collected["clusters"])


async def _scheduling_shown(fed):
    source = await fed.client.get(DEPLOYMENTS, "web", "default")
    return keys.SCHEDULING in (source["metadata"].get("annotations") or {})


async def _has(fed, expected):
    return await fed.replicas() == expected


async def _annotation(fed, key, value):
    return (await fed.federated())["metadata"]["annotations"].get(key) == value


async def _paused_seen(fed, what):
    await asyncio.sleep(0)
    if what == "object":
        return await _annotation(fed, keys.PAUSED, "true")
    if what == "cluster":
        return fed.inside.caches.clusters.get("m1").metadata.annotations.get(keys.PAUSED) == "true"
    return fed.inside.pause.fleet()
