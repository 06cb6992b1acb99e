"""No change is missed, whoever writes at the same moment; and nobody works without a reason."""

import contextlib
from collections.abc import AsyncIterator

import msgspec
import pytest

from argosy.api import keys, resources
from argosy.api.types import FederatedCluster
from argosy.control.caches.objectkeys import SourceKey
from argosy.control.members.probe import Observation, Prober
from argosy.fleet.health import probe_failed
from argosy.kube import clock
from argosy.kube.client import Client
from argosy.kube.errors import NotFound
from argosy.kube.informer import Informer
from argosy.kube.resource import Resource
from tests.harness.eventually import eventually, holds
from tests.harness.federation import CONFIGMAPS, DEPLOYMENTS, NAMESPACES, QUICK, SECRETS, WATCHFUL, Federation

EVERYWHERE = {"schedulingMode": "Duplicate"}
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
TYPE = "widgets.example.com"


@pytest.fixture
async def fed():
    async with Federation(2) as federation:
        yield federation


async def test_a_users_write_under_our_own_answer_is_not_missed(fed):
    """The answer to dispatch's status shows what somebody did to the federated object; their event is nothing new then."""
    await fed.policy(**EVERYWHERE)
    await fed.deploy(replicas=1)
    await fed.eventually_replicas({"m1": 1, "m2": 1})
    await _settled(fed)
    informer = fed.inside.caches.federated[True]
    async with _unwatched(fed, f"watch {informer.resource}", informer):
        edit = {"spec": {"template": {"spec": {"replicas": 7}}}}
        edited = await fed.client.patch(resources.FEDERATED_OBJECTS, "web-deployments.apps", edit, "default")
        assert _generation(informer) < edited["metadata"]["generation"], "nobody has told us yet"
        # A copy that is put right again has another version, which dispatch writes down.
        await fed.member("m1").patch(DEPLOYMENTS, "web", {"spec": {"replicas": 5}}, "default")
        await eventually(lambda: _generation(informer) >= edited["metadata"]["generation"], why="the answer showed it")

    async def undone():
        return (await fed.federated())["spec"]["template"]["spec"]["replicas"] == 1

    await eventually(undone)
    await fed.eventually_replicas({"m1": 1, "m2": 1})


async def test_a_users_write_before_our_own_is_not_hidden_by_its_answer(fed):
    """What is ours in a source is written on the version we know, or not at all: a user's event is always news."""
    await fed.policy(**EVERYWHERE)
    await fed.deploy(replicas=1)
    await fed.eventually_replicas({"m1": 1, "m2": 1})
    await _settled(fed)
    async with _unwatched(fed, "watch sources deployments.apps", fed.inside.caches.sources["deployments.apps"]):
        await fed.scale("web", 4)
        # A member's report, for which the aggregated status is to be written.
        copy = await fed.member("m1").get(DEPLOYMENTS, "web", "default")
        status = {"observedGeneration": copy["metadata"]["generation"], "replicas": 1, "readyReplicas": 1}
        await fed.member("m1").patch(DEPLOYMENTS, "web", {"status": status}, "default", subresource="status")
        await eventually(lambda: _collected_ready(fed) == 1)
        await fed.inside.queue("aggregate").idle()  # the source's status was written, or not, in the same pass
    await fed.eventually_replicas({"m1": 4, "m2": 4})


async def test_a_watch_on_a_member_that_dies_comes_back(fed, monkeypatch):
    await fed.policy(**EVERYWHERE)
    await fed.deploy(replicas=1)
    await fed.eventually_replicas({"m1": 1, "m2": 1})
    await _settled(fed)
    informer = fed.inside.collector.informers()["m1", "deployments.apps"]
    take = informer._take

    def die(event):
        monkeypatch.setattr(informer, "_take", take)
        raise RuntimeError("a defect")

    monkeypatch.setattr(informer, "_take", die)
    await fed.member("m1").patch(DEPLOYMENTS, "web", {"spec": {"replicas": 5}}, "default")
    await fed.eventually_replicas({"m1": 1, "m2": 1})


async def test_a_secret_that_comes_later_connects_and_carries_what_waited(fed):
    await fed.policy(**EVERYWHERE)
    secret = await fed.client.get(SECRETS, "m2", keys.SYSTEM_NAMESPACE)
    await fed.stop_controllers()
    await fed.client.delete(SECRETS, "m2", keys.SYSTEM_NAMESPACE)
    await fed.deploy(replicas=1)
    fed.timings = WATCHFUL
    await fed.start_controllers()
    await fed.eventually_replicas({"m1": 1})
    await eventually(lambda: fed.ready_clusters() == ["m1"], why="a cluster nobody can talk to is not ready")
    secret["metadata"] = {"name": "m2", "namespace": keys.SYSTEM_NAMESPACE}
    await fed.client.create(SECRETS, secret)
    await fed.eventually_replicas({"m1": 1, "m2": 1})


async def test_a_namespace_that_a_member_lacks_is_waited_for_without_noise(fed):
    """The objects in it are there at once when it is, and users hear of no failure."""
    member = fed.member("m1")
    await fed.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    await eventually(lambda: member.get(NAMESPACES, "team"))
    await fed.annotate(resources.FEDERATED_CLUSTERS, "m1", None, **{keys.PAUSED: "true"})
    await eventually(lambda: fed.inside.caches.clusters.get("m1").metadata.annotations.get(keys.PAUSED))
    await member.delete(NAMESPACES, "team")
    await eventually(lambda: _absent(member, NAMESPACES, "team"))
    await fed.policy("all", "team", **EVERYWHERE)
    await fed.client.create(CONFIGMAPS, _configmap("c", "team", "all"))
    await eventually(lambda: fed.member("m2").get(CONFIGMAPS, "c", "team"))
    await fed.annotate(resources.FEDERATED_CLUSTERS, "m1", None, **{keys.PAUSED: None})
    await eventually(lambda: member.get(CONFIGMAPS, "c", "team"))
    assert not [e for e in await fed.events("CreationFailed") if e["involvedObject"]["kind"] == "ConfigMap"]


async def test_a_failure_that_goes_on_is_told_once(fed):
    """An object that is in the way in a member: tried again and again, one event."""
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}}
    await fed.member("m1").create(CONFIGMAPS, theirs)
    await fed.policy(**EVERYWHERE)
    await fed.client.create(CONFIGMAPS, _configmap("c", "default", "policy"))
    await eventually(lambda: fed.events("AlreadyExists"))
    failures = fed.inside.queue("dispatch").failures
    key = next(k for k in fed.inside.queue("dispatch")._failures if k.key == "default/c-configmaps")
    await eventually(lambda: failures(key) >= 4)
    assert [event["count"] for event in await fed.events("AlreadyExists")] == [1]


async def test_a_cluster_leaves_also_when_the_definition_of_a_kind_has_left_before():
    """On record it serves the kind and has a copy; for long enough it says that it does not serve it in any version."""
    async with Federation(2, timings=WATCHFUL) as fed:
        await _federated_widgets(fed)
        await eventually(lambda: _created(fed.client, WIDGETS, _widget("one")))
        await eventually(lambda: fed.member("m1").get(WIDGETS, "one", "default"))
        await fed.stop_controllers()
        await fed.member("m1").delete(CRDS, TYPE)
        await fed.annotate(resources.FEDERATED_CLUSTERS, "m1", None, **{keys.CASCADING_DELETE: "true"})
        await fed.client.delete(resources.FEDERATED_CLUSTERS, "m1")
        await fed.start_controllers()
        await eventually(lambda: fed.inside.caches.clusters.get("m1") is None, why="m1 has left")
        assert await fed.member("m2").get(WIDGETS, "one", "default")


async def test_copies_that_can_be_read_at_last_are_reported_also_where_there_are_none():
    """The member lost the kind, and its copy with it, while nobody looked; then it serves the kind again, without the copy."""
    async with Federation(2, timings=WATCHFUL) as fed:
        await _federated_widgets(fed)
        await eventually(lambda: _created(fed.client, WIDGETS, _widget("one")))
        await eventually(lambda: _collected(fed, f"one-{TYPE}", {"m1": "", "m2": ""}))
        await fed.annotate(WIDGETS, "one", "default", **{keys.PAUSED: "true"})
        await eventually(fed.inside.idle)
        await fed.stop_controllers()
        await fed.member("m2").delete(CRDS, TYPE)
        await fed.start_controllers()
        unreachable = "cluster is not reachable, these fields are the last known ones"
        await eventually(lambda: _collected(fed, f"one-{TYPE}", {"m1": "", "m2": unreachable}))
        await fed.member("m2").create(CRDS, _widget_definition())
        await eventually(lambda: _collected(fed, f"one-{TYPE}", {"m1": ""}))


async def test_a_type_of_ones_own_comes_and_goes(fed):
    """Sources that were there already are taken up. Without the type all stays as it is; what waited goes on with it."""
    for client in (fed.client, fed.member("m1"), fed.member("m2")):
        await client.create(CRDS, _widget_definition())
    await eventually(lambda: fed.client.list(WIDGETS, "default"))
    clusters = fed.inside.caches.clusters
    # A cluster that comes to serve the kind later is taken up only if the policy asks for that.
    await eventually(lambda: all(_serves(clusters.get(name), "Widget") for name in fed.names))
    await fed.policy(**EVERYWHERE)
    await eventually(lambda: _created(fed.client, WIDGETS, _widget("old")))
    await fed.client.create(resources.FEDERATED_TYPE_CONFIGS, _widget_type())
    for name in fed.names:
        await eventually(lambda name=name: fed.member(name).get(WIDGETS, "old", "default"), timeout=20)
    await fed.client.delete(resources.FEDERATED_TYPE_CONFIGS, TYPE)
    await eventually(lambda: fed.inside.catalog.get(TYPE) is None)
    await fed.client.delete(WIDGETS, "old", "default")
    await holds(lambda: _present(fed.member("m1"), WIDGETS, "old", "default"), 0.3)
    await fed.client.create(resources.FEDERATED_TYPE_CONFIGS, _widget_type())
    await eventually(lambda: _absent(fed.client, WIDGETS, "old", "default"))
    for name in fed.names:
        await eventually(lambda name=name: _absent(fed.member(name), WIDGETS, "old", "default"))


async def test_the_second_of_two_types_for_a_kind_counts_once_the_first_is_gone(fed):
    second = await fed.client.get(resources.FEDERATED_TYPE_CONFIGS, "configmaps")
    second["metadata"] = {"name": "zz-configmaps"}
    await fed.client.create(resources.FEDERATED_TYPE_CONFIGS, second)
    catalog = fed.inside.catalog
    await holds(lambda: catalog.of_kind("v1", "ConfigMap").name == "configmaps", 0.2)
    await fed.client.delete(resources.FEDERATED_TYPE_CONFIGS, "configmaps")
    await eventually(lambda: (found := catalog.of_kind("v1", "ConfigMap")) and found.name == "zz-configmaps")


async def test_pausing_a_cluster_changes_no_status(fed):
    await fed.policy(**EVERYWHERE)
    await fed.deploy(replicas=1)
    await fed.eventually_replicas({"m1": 1, "m2": 1})
    before = await _settled(fed)
    await fed.annotate(resources.FEDERATED_CLUSTERS, "m1", None, **{keys.PAUSED: "true"})
    await eventually(lambda: fed.inside.caches.clusters.get("m1").metadata.annotations.get(keys.PAUSED))
    assert fed.inside.caches.federated[True].get("default/web-deployments.apps")

    async def unchanged():
        return (await fed.federated())["status"] == before["status"]

    await holds(unchanged, 0.4)


async def _federated_widgets(fed: Federation) -> None:
    """Served everywhere, and to go everywhere."""
    for client in (fed.client, fed.member("m1"), fed.member("m2")):
        await client.create(CRDS, _widget_definition())
    clusters = fed.inside.caches.clusters
    await eventually(lambda: all(_serves(clusters.get(name), "Widget") for name in fed.names))
    await fed.policy(**EVERYWHERE)
    await fed.client.create(resources.FEDERATED_TYPE_CONFIGS, _widget_type())


async def _collected(fed: Federation, name: str, wanted: dict[str, str]) -> bool:
    """Whether these clusters are collected from, with these errors."""
    found = await fed.client.get(resources.COLLECTED_STATUSES, name, "default")
    return {each["cluster"]: each.get("error", "") for each in found["clusters"]} == wanted


@contextlib.asynccontextmanager
async def _unwatched(fed: Federation, task: str, informer: Informer) -> AsyncIterator[None]:
    """Meanwhile its cache learns of nothing but by our own writes' answers; afterwards the watch goes on where it was."""
    await fed.inside.tasks.stop(task)
    yield
    fed.inside.tasks.start(task, informer.run)


def _generation(informer: Informer) -> int:
    return informer.get("default/web-deployments.apps").metadata.generation


def _collected_ready(fed: Federation) -> int | None:
    """What m1 reports, by the CollectedStatus we keep."""
    collected = fed.inside.caches.collected(SourceKey("deployments.apps", "default/web"))
    fields = {entry.cluster: entry.collected_fields for entry in collected.clusters}
    return fields["m1"]["status"].get("readyReplicas")


async def _settled(fed: Federation) -> dict:
    async def probe():
        federated = await fed.federated()
        clusters = (federated.get("status") or {}).get("clusters") or ()
        return federated if [entry["status"] for entry in clusters] == ["OK", "OK"] else None

    return await eventually(probe)


async def _absent(client: Client, resource: Resource, name: str, namespace: str | None = None) -> bool:
    try:
        await client.get(resource, name, namespace)
    except NotFound:
        return True
    return False


async def _present(client: Client, resource: Resource, name: str, namespace: str) -> bool:
    return not await _absent(client, resource, name, namespace)


def _serves(cluster: FederatedCluster, kind: str) -> bool:
    return any(api.kind == kind for api in cluster.status.api_resource_types)


async def _created(client: Client, resource: Resource, obj: dict) -> dict:
    return await client.create(resource, obj)


def _configmap(name: str, namespace: str, policy: str) -> dict:
    labels = {keys.PROPAGATION_POLICY_LABEL: policy}
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def _widget(name: str) -> dict:
    labels = {keys.PROPAGATION_POLICY_LABEL: "policy"}
    metadata = {"name": name, "namespace": "default", "labels": labels}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": {"size": 1}}


def _widget_definition() -> dict:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": TYPE},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
            "versions": [version],
        },
    }


def _widget_type() -> dict:
    return {
        "apiVersion": keys.API_VERSION,
        "kind": "FederatedTypeConfig",
        "metadata": {"name": TYPE},
        "spec": {
            "sourceType": {
                "group": "example.com",
                "version": "v1",
                "kind": "Widget",
                "pluralName": "widgets",
                "scope": "Namespaced",
            },
            "controllers": [[keys.GLOBAL_SCHEDULER], [keys.OVERRIDE_CONTROLLER]],
            "statusCollection": {"enabled": True, "fields": ["metadata.creationTimestamp"]},
        },
    }


async def test_a_cluster_that_was_not_ready_at_first_is_soon_and_gets_what_waits_for_it(fed, monkeypatch):
    """How long health must last before it is believed, and how often it is looked at, is for those that were ready once."""
    away, observe = True, Prober.observe

    async def observed(self, member, known, **more):
        if member.name == "m2" and away:
            return Observation(probe_failed(resources="its caches are slow"))
        return await observe(self, member, known, **more)

    monkeypatch.setattr(Prober, "observe", observed)
    await fed.stop_controllers()
    now = clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    told = {"lastProbeTime": now, "lastTransitionTime": now, "reason": "ClusterJoined", "message": "it joined"}
    joined = {"type": "Joined", "status": "True", **told}
    status = {"status": {"conditions": [joined], "apiResourceTypes": None, "resources": None}}
    await fed.client.patch(resources.FEDERATED_CLUSTERS, "m2", status, subresource="status")
    fed.timings = msgspec.structs.replace(QUICK, health_period=600.0, health_threshold=600.0)
    await fed.start_controllers()
    await fed.policy(**EVERYWHERE, reschedulePolicy={"rescheduleWhen": {"clusterJoined": True}})
    await fed.deploy(replicas=1)
    await fed.eventually_replicas({"m1": 1})
    await eventually(lambda: _shown(fed, "m2", "Ready", "False"))
    away = False
    fed.patience = 40.0
    await fed.eventually_replicas({"m1": 1, "m2": 1})


async def _shown(fed, name, type_, status):
    found = await fed.client.get(resources.FEDERATED_CLUSTERS, name)
    return any(each["type"] == type_ and each["status"] == status for each in found["status"]["conditions"])
