"""Taking copies away: nothing is deleted on a guess, nothing is left behind, nothing waits for ever."""

import asyncio

import msgspec
import pytest

from argosy.api import keys, resources
from argosy.kube.client import Patch
from argosy.kube.errors import NotFound, TransportError, from_response
from argosy.kube.transport import Response
from tests.harness.eventually import eventually, holds
from tests.harness.federation import DEPLOYMENTS, NAMESPACES, QUICK, SECRETS, Federation, deployment
from tests.harness.membership import widget_type

EVERYWHERE = {"schedulingMode": "Duplicate"}


@pytest.fixture
async def fed():
    async with Federation(2) as federation:
        yield federation


async def gone(fed: Federation, resource=DEPLOYMENTS, name: str = "web", namespace: str | None = "default") -> bool:
    try:
        await fed.client.get(resource, name, namespace)
    except NotFound:
        return True
    return False


async def deployed(fed: Federation) -> None:
    await fed.policy(**EVERYWHERE)
    await fed.deploy(replicas=1)
    await fed.eventually_replicas({"m1": 1, "m2": 1})

    async def reported():
        clusters = (await fed.federated()).get("status", {}).get("clusters") or ()
        return [entry["status"] for entry in clusters] == ["OK", "OK"]

    await eventually(reported)


async def test_an_object_taken_from_all_clusters_says_so_and_forgets_them(fed):
    await deployed(fed)
    label = {"metadata": {"labels": {keys.PROPAGATION_POLICY_LABEL: None}}}
    await fed.client.patch(DEPLOYMENTS, "web", label, "default", kind=Patch.MERGE)
    await fed.eventually_replicas({})

    async def forgotten():
        federated = await fed.federated()
        return (
            not federated["status"].get("clusters") and keys.TO_BE_REMOVED not in federated["metadata"]["annotations"]
        )

    await eventually(forgotten)


async def test_a_source_made_anew_after_it_vanished_keeps_its_copies_running(fed):
    """Garbage collection deletes the federated object of the one that is gone: nobody asked for the copies to go."""
    await deployed(fed)
    uids = [(await fed.member(name).get(DEPLOYMENTS, "web", "default"))["metadata"]["uid"] for name in fed.names]
    await fed.stop_controllers()
    await fed.client.delete(DEPLOYMENTS, "web", "default")
    await fed.client.patch(DEPLOYMENTS, "web", {"metadata": {"finalizers": None}}, "default")

    async def terminating():
        return (await fed.federated())["metadata"].get("deletionTimestamp")

    await eventually(terminating)
    await fed.deploy(replicas=1)
    await fed.start_controllers()

    async def told():
        conditions = (await fed.federated())["status"]["conditions"]
        return any(c["type"] == "Propagated" and c["reason"] == "DeletionNotConfirmed" for c in conditions)

    await eventually(told, why="the federated object says what it waits for")

    async def same():
        found = [(await fed.member(name).get(DEPLOYMENTS, "web", "default"))["metadata"]["uid"] for name in fed.names]
        return found == uids

    await holds(same, 0.5)


async def test_a_paused_object_that_is_deleted_goes_once_it_is_resumed(fed):
    await deployed(fed)
    await fed.annotate(DEPLOYMENTS, "web", "default", **{keys.PAUSED: "true"})
    await eventually(lambda: _annotated(fed))
    await fed.client.delete(DEPLOYMENTS, "web", "default")
    await holds(lambda: _has(fed, {"m1": 1, "m2": 1}), 0.4)
    await fed.annotate(DEPLOYMENTS, "web", "default", **{keys.PAUSED: None})
    await fed.eventually_replicas({})
    await eventually(lambda: gone(fed))


async def test_a_cluster_that_never_joined_holds_up_no_deletion(fed):
    cluster = {
        "apiVersion": keys.API_VERSION,
        "kind": "FederatedCluster",
        "metadata": {"name": "nowhere"},
        "spec": {"apiEndpoint": "https://127.0.0.1:1", "secretRef": {"name": "none"}},
    }
    await fed.client.create(resources.FEDERATED_CLUSTERS, cluster)
    await eventually(lambda: fed.inside.caches.clusters.get("nowhere"))
    await fed.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    for name in fed.names:
        await eventually(lambda name=name: fed.member(name).get(NAMESPACES, "team"))
    await fed.client.delete(NAMESPACES, "team")
    await eventually(lambda: gone(fed, NAMESPACES, "team", None))


async def test_a_create_whose_answer_was_lost_leaves_no_copy(fed):
    """The member's watch is behind, so its cache does not show the copy: only the member itself can tell."""
    await fed.policy(**EVERYWHERE)
    await deployed_with_stalled_watch(fed)
    await fed.client.delete(DEPLOYMENTS, "web", "default")
    await eventually(lambda: gone(fed))
    assert await fed.replicas() == {}


@pytest.mark.parametrize("leaving", [False, True])
async def test_an_answer_that_does_not_name_the_object_is_no_sign_that_it_is_gone(fed, leaving):
    """As of a server that does not serve the version for now, or of something else at the member's address."""
    await deployed(fed)
    transport = fed.inside.members.get("m1").client.transport
    send, listed = transport.send, transport.list
    unserved = 404, {"content-type": "text/plain"}, b"404 page not found\n"

    async def sending(request):
        return Response(*unserved) if "deployments" in request.path else await send(request)

    async def listing(request):
        if "deployments" in request.path:
            raise from_response(*unserved)
        return await listed(request)

    transport.send, transport.list = sending, listing
    if leaving:
        await fed.annotate(resources.FEDERATED_CLUSTERS, "m1", None, **{keys.CASCADING_DELETE: "true"})
        await fed.client.delete(resources.FEDERATED_CLUSTERS, "m1")

        async def told():
            return any("404" in event["message"] for event in await fed.events("WaitForCascadingDelete"))
    else:
        await fed.client.delete(DEPLOYMENTS, "web", "default")

        async def told():
            clusters = {each["cluster"]: each["status"] for each in (await fed.federated())["status"]["clusters"]}
            return clusters.get("m1") in ("RetrievalFailed", "DeletionFailed")

    await eventually(told)
    assert "m1" in await fed.copies()
    transport.send, transport.list = send, listed

    async def removed():
        return "m1" not in await fed.copies()

    await eventually(removed)


async def test_a_cluster_with_more_copies_than_one_pass_takes_leaves_after_several():
    async with Federation(2, timings=msgspec.structs.replace(QUICK, cascade_pass=0.0, cascade_recheck=1.0)) as fed:
        await deployed(fed)
        names = [f"web-{number}" for number in range(4)]
        for name in names:
            await fed.deploy(name, replicas=1)

        async def there():
            return all([len(await fed.copies(name)) == 2 for name in names])

        await eventually(there)
        await fed.annotate(resources.FEDERATED_CLUSTERS, "m1", None, **{keys.CASCADING_DELETE: "true"})
        await fed.client.delete(resources.FEDERATED_CLUSTERS, "m1")

        async def told():
            return [event["message"] for event in await fed.events("WaitForCascadingDelete")]

        found = await eventually(told)
        assert "4 objects left" in found[0]
        await eventually(lambda: fed.inside.caches.clusters.get("m1") is None)
        assert [list(await fed.copies(name)) for name in names] == [["m2"]] * 4


async def test_a_pause_reaches_the_removal_of_copies_that_is_under_way(fed):
    await deployed(fed)
    operations, remove = fed.inside.operations, fed.inside.operations.remove

    async def paused_meanwhile(member, *args):
        await fed.annotate(resources.FEDERATED_CLUSTERS, "m1", None, **{keys.PAUSED: "true"})
        await eventually(lambda: keys.PAUSED in fed.inside.caches.clusters.get("m1").metadata.annotations)
        return await remove(member, *args)

    operations.remove = paused_meanwhile
    await fed.annotate(resources.FEDERATED_CLUSTERS, "m1", None, **{keys.CASCADING_DELETE: "true"})
    await fed.client.delete(resources.FEDERATED_CLUSTERS, "m1")

    async def told():
        return any("paused" in event["message"] for event in await fed.events("WaitForCascadingDelete"))

    await eventually(told)
    await eventually(fed.quiet)
    assert "m1" in await fed.copies()
    operations.remove = remove
    await fed.client.patch(resources.FEDERATED_CLUSTERS, "m1", {"metadata": {"annotations": {keys.PAUSED: None}}})
    await eventually(lambda: fed.inside.caches.clusters.get("m1") is None)
    assert "m1" not in await fed.copies()


async def test_absence_from_a_cluster_that_leaves_counts_once_it_has_shown_who_it_is(fed):
    await deployed(fed)
    member = fed.inside.members.get("m1")
    confirm = member.confirm

    async def unknown():
        raise TransportError("nobody knows who answers")

    member.confirm = unknown
    await fed.annotate(resources.FEDERATED_CLUSTERS, "m1", None, **{keys.CASCADING_DELETE: "true"})
    await fed.client.delete(resources.FEDERATED_CLUSTERS, "m1")

    async def told():
        events = await fed.events("WaitForCascadingDelete")
        return any("nobody knows who answers" in event["message"] for event in events)

    await eventually(told)

    async def on_record():
        clusters = {each["cluster"]: each["status"] for each in (await fed.federated())["status"]["clusters"]}
        return clusters.get("m1")

    async def failed():
        return await on_record() == "DeletionFailed"

    await eventually(failed)
    member.confirm = confirm

    async def left():
        return await on_record() is None

    await eventually(left)


async def test_a_cluster_leaves_although_it_does_not_serve_a_kind_of_which_it_has_nothing():
    """Also in another version than the one the type config names."""
    async with Federation(2, timings=msgspec.structs.replace(QUICK, health_threshold=600.0)) as fed:
        await deployed(fed)
        await fed.client.create(resources.FEDERATED_TYPE_CONFIGS, widget_type())
        await eventually(lambda: fed.inside.catalog.get("widgets.example.com"))
        known = [api.kind for api in fed.inside.caches.clusters.get("m1").status.api_resource_types]
        assert "Widget" not in known
        fed.inside.operations.is_unserved = lambda member, config: False  # as if it were on record
        await fed.annotate(resources.FEDERATED_CLUSTERS, "m1", None, **{keys.CASCADING_DELETE: "true"})
        await fed.client.delete(resources.FEDERATED_CLUSTERS, "m1")
        await eventually(lambda: fed.inside.caches.clusters.get("m1") is None)
        assert list(await fed.copies()) == ["m2"]


async def test_a_copy_that_was_there_before_stays_although_the_cache_does_not_show_it(fed):
    """A member that has just been connected: what it holds is not listed yet."""
    await fed.member("m1").create(DEPLOYMENTS, deployment("web", 1, ""))
    await fed.policy(**EVERYWHERE)
    wish = {
        keys.CONFLICT_RESOLUTION: "adopt",
        keys.CLUSTERS_TO_ADOPT: '{"clusters":["m1"]}',
        keys.ORPHAN: keys.ORPHAN_ADOPTED,
    }
    manifest = deployment("web", 1, "policy")
    manifest["metadata"]["annotations"] = wish
    await fed.client.create(DEPLOYMENTS, manifest)

    async def taken_over():
        copies = await fed.copies()
        return len(copies) == 2 and keys.ADOPTED in copies["m1"]["metadata"].get("annotations", {})

    await eventually(taken_over)
    await forget_copy(fed)
    await fed.client.delete(DEPLOYMENTS, "web", "default")
    await eventually(lambda: gone(fed))
    left = await fed.copies()
    assert list(left) == ["m1"]
    assert keys.MANAGED_LABEL not in (left["m1"]["metadata"].get("labels") or {})


async def deployed_with_stalled_watch(fed: Federation) -> None:
    """m1 holds a copy that our cache of m1 has not heard of."""
    await fed.deploy(replicas=1)
    await fed.eventually_replicas({"m1": 1, "m2": 1})
    await forget_copy(fed)


async def forget_copy(fed: Federation) -> None:
    informer = fed.inside.collector.informers()["m1", "deployments.apps"]
    await eventually(lambda: informer.get("default/web") is not None)
    fed.inside.members.get("m1").tasks.cancel("collect deployments.apps in m1")
    await asyncio.sleep(0)
    del informer._objects["default/web"]


async def test_credentials_that_are_no_certificates_are_told_in_the_condition(fed):
    data = {keys.SECRET_CA: "bm9uc2Vuc2U=", keys.SECRET_BOOTSTRAP_TOKEN: "dG9rZW4="}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "broken", "namespace": keys.SYSTEM_NAMESPACE},
        "data": data,
    }
    await fed.client.create(SECRETS, secret)
    cluster = {
        "apiVersion": keys.API_VERSION,
        "kind": "FederatedCluster",
        "metadata": {"name": "broken"},
        "spec": {"apiEndpoint": "https://127.0.0.1:1", "secretRef": {"name": "broken"}},
    }
    await fed.client.create(resources.FEDERATED_CLUSTERS, cluster)

    async def told():
        found = (await fed.client.get(resources.FEDERATED_CLUSTERS, "broken")).get("status", {}).get("conditions", [])
        return [c for c in found if c["type"] == "Joined" and c["reason"] == "TokenNotObtained"]

    condition = (await eventually(told))[0]
    assert "nonsense" not in condition["message"]


async def _has(fed, expected):
    return await fed.replicas() == expected


async def _annotated(fed):
    return (await fed.federated())["metadata"]["annotations"].get(keys.PAUSED) == "true"


async def test_a_source_deleted_before_it_had_our_finalizer_leaves_nothing_behind(fed, monkeypatch):
    """Whoever would see its deletion does not exist, so neither may a federated object."""
    client = fed.inside.client
    patch, refused = client.patch, []

    async def too_late(resource, name, *arguments, **options):
        if resource == DEPLOYMENTS and not refused:
            await fed.client.delete(DEPLOYMENTS, name, "default")
            refused.append(name)
        return await patch(resource, name, *arguments, **options)

    monkeypatch.setattr(client, "patch", too_late)
    await fed.policy(**EVERYWHERE)
    await fed.deploy(replicas=1)
    await eventually(lambda: refused)
    await fed.deploy("next", replicas=1)
    await fed.eventually_replicas({"m1": 1, "m2": 1}, "next")
    listed = await fed.client.list(resources.FEDERATED_OBJECTS, "default")
    assert [each["metadata"]["name"] for each in listed.items] == ["next-deployments.apps"]


async def test_a_source_that_slips_past_its_finalizer_takes_its_copies_along(fed):
    """kube-apiserver does that to one which gets its finalizer while it is being deleted."""
    await deployed(fed)
    await _lose_source(fed)
    await fed.eventually_replicas({})

    async def nothing_left():
        return not (await fed.client.list(resources.FEDERATED_OBJECTS, "default")).items

    await eventually(nothing_left)


async def test_a_source_that_is_lost_later_leaves_its_copies():
    """Its finalizer was there when whoever deleted it looked, so nobody did: the store lost it."""
    async with Federation(2, timings=msgspec.structs.replace(QUICK, longest_request=0.0)) as fed:
        await deployed(fed)
        await _lose_source(fed)

        async def held():
            conditions = (await fed.federated())["status"]["conditions"]
            return any(c["type"] == "Propagated" and c.get("reason") == "DeletionNotConfirmed" for c in conditions)

        await eventually(held, why="the federated object says what it waits for")
        assert await fed.replicas() == {"m1": 1, "m2": 1}


async def _lose_source(fed):
    store = fed.plane.server.store
    (key,) = (
        key for table in store.tables().values() for key in table.entries if key.endswith("deployments/default/web")
    )
    await store.discard(store.get(key))
