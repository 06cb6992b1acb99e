"""Policies that select what they are for: who is woken by what, what is held, what is written."""

import asyncio
import contextlib

import pytest

from argosy.api import keys, resources
from argosy.cli.client.manifests import Manifest
from argosy.cli.client.whatif import Scenario, forecast_of
from argosy.cli.output.report import gather, report
from argosy.kube.client import Patch
from argosy.kube.errors import ApiError, NotFound
from argosy.kube.informer import Informer
from argosy.kube.resource import Resource
from tests.control.test_rules import Writes, quiet, settled
from tests.control.test_wakes import PATIENT
from tests.harness.eventually import eventually
from tests.harness.federation import DEPLOYMENTS, NAMESPACES, SECRETS, Federation

DEPLOYED = {"apiVersion": "apps/v1", "kind": "Deployment"}
EVERYTHING = {"apiVersion": "*", "kind": "*"}
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")


@pytest.fixture
async def fed():
    async with Federation(2, timings=PATIENT) as federation:
        yield federation


async def select(fed, name, *selectors, namespace="default", **spec):
    """Writes a policy that selects; cluster-scoped without a namespace."""
    kind = "PropagationPolicy" if namespace else "ClusterPropagationPolicy"
    resource = resources.PROPAGATION_POLICIES if namespace else resources.CLUSTER_PROPAGATION_POLICIES
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    spec = {"schedulingMode": "Duplicate", "resourceSelectors": list(selectors), **spec}
    body = {"apiVersion": keys.API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}
    return await fed.client.create(resource, body)


async def change(fed, name, namespace="default", **spec):
    resource = resources.PROPAGATION_POLICIES if namespace else resources.CLUSTER_PROPAGATION_POLICIES
    await fed.client.patch(resource, name, {"spec": spec}, namespace or None, kind=Patch.MERGE)


async def held(fed, name="web-deployments.apps"):
    """The reason why it is held; empty if it is not."""
    conditions = (await fed.federated(name)).get("status", {}).get("conditions") or ()
    return next((each["reason"] for each in conditions if (each["type"], each["status"]) == ("Scheduled", "False")), "")


async def claimed_by(fed, name="web-deployments.apps"):
    return (await fed.federated(name))["metadata"]["annotations"].get(keys.SELECTED_BY, "")


async def test_what_was_local_is_propagated_by_a_policy_that_selects_it(fed):
    await fed.deploy(replicas=1, policy="")
    await fed.deploy("other", replicas=1, policy="", app="other")
    await select(fed, "all", {**DEPLOYED, "name": "web"})
    await fed.eventually_replicas({"m1": 1, "m2": 1})
    assert await claimed_by(fed) == "PropagationPolicy/all"
    assert keys.PROPAGATION_POLICY_LABEL not in (await fed.source())["metadata"].get("labels", {})
    await eventually(fed.quiet)
    assert await fed.copies("other") == {}
    assert not await fed.exists(resources.FEDERATED_OBJECTS, "other-deployments.apps", "default")


async def test_status_is_not_fine_until_the_policy_that_selects_it_now_is_acted_on(fed):
    await select(fed, "all", DEPLOYED, namespace="")
    await fed.deploy(replicas=1, policy="")
    await fed.eventually_replicas({"m1": 1, "m2": 1})
    await settled(fed)

    async def waiting():
        return report(await gather(fed.client, DEPLOYMENTS, "web", "default")).waiting

    assert not any("selects it" in each for each in await waiting())
    await fed.stop_controllers()
    await select(fed, "own", DEPLOYED)
    assert "PropagationPolicy default/own selects it: that is not acted on yet" in await waiting()
    await fed.start_controllers()
    await eventually(lambda: _is(claimed_by(fed), "PropagationPolicy/own"))
    assert not any("selects it" in each for each in await waiting())


async def test_a_new_object_is_propagated_by_a_policy_that_selects_it(fed):
    await select(fed, "all", EVERYTHING, namespace="")
    await fed.deploy(replicas=1, policy="")
    await fed.eventually_replicas({"m1": 1, "m2": 1})
    assert await claimed_by(fed) == "ClusterPropagationPolicy/all"


async def test_an_object_is_selected_once_it_has_the_labels(fed):
    await select(fed, "all", {"labelSelector": {"matchLabels": {"tier": "front"}}})
    await fed.deploy(replicas=1, policy="")
    await eventually(fed.quiet)
    assert await fed.copies() == {}
    await fed.client.patch(DEPLOYMENTS, "web", {"metadata": {"labels": {"tier": "front"}}}, "default")
    await fed.eventually_replicas({"m1": 1, "m2": 1})


async def test_narrowing_a_policy_holds_what_it_selected_until_another_takes_over(fed):
    await select(fed, "all", DEPLOYED)
    await fed.deploy(replicas=1, policy="")
    await fed.eventually_replicas({"m1": 1, "m2": 1})
    await change(fed, "all", resourceSelectors=[{**DEPLOYED, "name": "another"}])
    await eventually(lambda: _is(held(fed), "NoLongerSelected"))
    assert await fed.replicas() == {"m1": 1, "m2": 1}
    assert any("selects it no more" in each["message"] for each in await fed.events("ScheduleFederatedObject"))
    await select(fed, "next", DEPLOYED, placement=[{"cluster": "m2"}])
    await fed.eventually_replicas({"m2": 1})
    await eventually(lambda: _is(held(fed), ""))
    assert await claimed_by(fed) == "PropagationPolicy/next"


async def test_deleting_a_policy_holds_what_it_selected_and_the_annotation_lets_go(fed):
    await select(fed, "all", DEPLOYED)
    await fed.deploy(replicas=1, policy="")
    await fed.eventually_replicas({"m1": 1, "m2": 1})
    await fed.client.delete(resources.PROPAGATION_POLICIES, "all", "default")
    await eventually(lambda: _is(held(fed), "PolicyNotFound"))
    await eventually(fed.quiet)
    assert await fed.replicas() == {"m1": 1, "m2": 1}
    await fed.annotate(DEPLOYMENTS, "web", "default", **{keys.NO_SELECTION: "true"})
    await fed.eventually_replicas({})


async def test_while_a_policy_is_missing_one_that_selects_everything_takes_nothing_of_it(fed):
    await select(fed, "everything", EVERYTHING, namespace="", placement=[{"cluster": "m2"}])
    await select(fed, "shop", EVERYTHING, placement=[{"cluster": "m1"}])
    await fed.deploy(replicas=1, policy="")
    await fed.eventually_replicas({"m1": 1})
    before = (await fed.copies())["m1"]["metadata"]["uid"]
    await fed.client.delete(resources.PROPAGATION_POLICIES, "shop", "default")
    await eventually(lambda: _is(held(fed), "PolicyNotFound"))
    await eventually(fed.quiet)
    assert await fed.replicas() == {"m1": 1}
    await select(fed, "shop", EVERYTHING, placement=[{"cluster": "m1"}])
    await eventually(lambda: _is(held(fed), ""))
    assert {name: copy["metadata"]["uid"] for name, copy in (await fed.copies()).items()} == {"m1": before}
    await change(fed, "shop", resourceSelectors=[{"kind": "Secret"}])
    await fed.eventually_replicas({"m2": 1})
    assert await claimed_by(fed) == "ClusterPropagationPolicy/everything"


async def test_what_a_policy_without_selectors_still_has_is_told_when_that_is_deleted(fed):
    await select(fed, "all", DEPLOYED)
    await fed.deploy(replicas=1, policy="")
    await fed.eventually_replicas({"m1": 1, "m2": 1})
    await change(fed, "all", resourceSelectors=[])
    await eventually(lambda: _is(held(fed), "NoLongerSelected"))
    await fed.client.delete(resources.PROPAGATION_POLICIES, "all", "default")
    await eventually(lambda: _is(held(fed), "PolicyNotFound"))
    assert await fed.replicas() == {"m1": 1, "m2": 1}


async def test_labels_that_nobody_selects_any_more_hold_the_object(fed):
    await select(fed, "all", {"labelSelector": {"matchLabels": {"tier": "front"}}})
    await fed.deploy(replicas=1, policy="", tier="front")
    await fed.eventually_replicas({"m1": 1, "m2": 1})
    await fed.client.patch(DEPLOYMENTS, "web", {"metadata": {"labels": {"tier": "back"}}}, "default")
    await eventually(lambda: _is(held(fed), "NoLongerSelected"))
    assert await fed.replicas() == {"m1": 1, "m2": 1}


async def test_the_higher_priority_gets_the_object_as_soon_as_it_is_said(fed):
    await select(fed, "a", DEPLOYED, placement=[{"cluster": "m1"}])
    await select(fed, "b", DEPLOYED, placement=[{"cluster": "m2"}])
    await fed.deploy(replicas=1, policy="")
    await fed.eventually_replicas({"m1": 1})
    await change(fed, "b", priority=1)
    await fed.eventually_replicas({"m2": 1})
    assert await claimed_by(fed) == "PropagationPolicy/b"


async def test_a_changed_policy_reaches_what_it_selects(fed):
    await select(fed, "all", DEPLOYED, placement=[{"cluster": "m1"}])
    await fed.deploy(replicas=1, policy="")
    await fed.eventually_replicas({"m1": 1})
    await change(fed, "all", placement=[{"cluster": "m2"}])
    await fed.eventually_replicas({"m2": 1})


async def test_a_profile_that_comes_reaches_what_its_policy_selects(fed):
    await select(fed, "all", DEPLOYED, schedulingProfile="late")
    await fed.deploy(replicas=1, policy="")
    await eventually(lambda: _is(held(fed), "SchedulingProfileNotFound"))
    profile = {"apiVersion": keys.API_VERSION, "kind": "SchedulingProfile", "metadata": {"name": "late"}, "spec": {}}
    await fed.client.create(resources.SCHEDULING_PROFILES, profile)
    await fed.eventually_replicas({"m1": 1, "m2": 1})


async def test_a_namespaces_labels_are_heard_of_where_a_policy_looks_at_them(fed):
    selector = {**DEPLOYED, "namespaceSelector": {"matchLabels": {"team": "red"}}}
    await select(fed, "red", selector, namespace="")
    await fed.deploy(replicas=1, policy="")
    await eventually(fed.quiet)
    assert await fed.copies() == {}
    await fed.client.patch(NAMESPACES, "default", {"metadata": {"labels": {"team": "red"}}}, kind=Patch.MERGE)
    await fed.eventually_replicas({"m1": 1, "m2": 1})
    await fed.client.patch(NAMESPACES, "default", {"metadata": {"labels": {"team": None}}}, kind=Patch.MERGE)
    await eventually(lambda: _is(held(fed), "NoLongerSelected"))
    assert await fed.replicas() == {"m1": 1, "m2": 1}


def refuse_namespaces(monkeypatch):
    """Nobody can read namespaces until the event is set."""
    readable = asyncio.Event()
    run = Informer.run

    async def refused_at_first(informer):
        if informer.resource == NAMESPACES and not informer.field_selector:
            informer.tried.set()
            await readable.wait()
        await run(informer)

    monkeypatch.setattr(Informer, "run", refused_at_first)
    return readable


async def test_while_namespaces_cannot_be_read_claims_stay_as_they_are(fed, monkeypatch):
    selector = {**DEPLOYED, "namespaceSelector": {"matchLabels": {"team": "red"}}}
    await fed.client.patch(NAMESPACES, "default", {"metadata": {"labels": {"team": "red"}}}, kind=Patch.MERGE)
    await select(fed, "red", selector, namespace="")
    await fed.deploy(replicas=1, policy="")
    await fed.eventually_replicas({"m1": 1, "m2": 1})
    await fed.stop_controllers()
    await fed.deploy("other", replicas=1, policy="")
    readable = refuse_namespaces(monkeypatch)
    await fed.start_controllers()
    await eventually(fed.quiet)
    assert await fed.replicas() == {"m1": 1, "m2": 1}
    assert await held(fed) == ""
    assert await fed.copies("other") == {}
    readable.set()
    await fed.eventually_replicas({"m1": 1, "m2": 1}, name="other")
    assert await held(fed) == ""


async def test_nothing_is_removed_or_placed_while_it_is_unknown_who_selects_it(fed, monkeypatch):
    selector = {**DEPLOYED, "namespaceSelector": {"matchLabels": {"team": "red"}}}
    await fed.client.patch(NAMESPACES, "default", {"metadata": {"labels": {"team": "red"}}}, kind=Patch.MERGE)
    await select(fed, "everything", EVERYTHING, namespace="", placement=[{"cluster": "m2"}])
    await fed.policy(schedulingMode="Duplicate", placement=[{"cluster": "m1"}])
    await fed.deploy(replicas=1)
    await fed.eventually_replicas({"m1": 1})
    before = (await fed.copies())["m1"]["metadata"]["uid"]
    await fed.stop_controllers()
    await select(fed, "red", selector, namespace="", priority=5, placement=[{"cluster": "m1"}])
    nobody = {"metadata": {"labels": {keys.PROPAGATION_POLICY_LABEL: None}}}
    await fed.client.patch(DEPLOYMENTS, "web", nobody, "default", kind=Patch.MERGE)
    await fed.deploy("other", replicas=1, policy="")
    readable = refuse_namespaces(monkeypatch)
    await fed.start_controllers()
    await eventually(fed.quiet)
    assert await fed.replicas() == {"m1": 1}
    assert await fed.copies("other") == {}
    readable.set()
    await fed.eventually_replicas({"m1": 1}, name="other")
    await eventually(lambda: _is(claimed_by(fed), "ClusterPropagationPolicy/red"))
    assert {name: copy["metadata"]["uid"] for name, copy in (await fed.copies()).items()} == {"m1": before}


async def test_what_waited_for_its_namespace_goes_to_the_others_when_that_is_not_the_one(fed, monkeypatch):
    selector = {**DEPLOYED, "namespaceSelector": {"matchLabels": {"team": "red"}}}
    await select(fed, "red", selector, namespace="", priority=5, placement=[{"cluster": "m1"}])
    await select(fed, "everything", EVERYTHING, namespace="", placement=[{"cluster": "m2"}])
    await fed.stop_controllers()
    await fed.deploy(replicas=1, policy="")
    readable = refuse_namespaces(monkeypatch)
    await fed.start_controllers()
    await eventually(fed.quiet)
    assert await fed.copies() == {}
    readable.set()
    await fed.eventually_replicas({"m2": 1})


async def test_a_wildcard_leaves_out_what_is_not_an_applications(fed):
    token = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/service-account-token",
        "metadata": {
            "name": "token",
            "namespace": "default",
            "annotations": {"kubernetes.io/service-account.name": "default"},
        },
    }
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "default"}}
    with contextlib.suppress(ApiError):  # it is there
        await fed.client.create(SERVICE_ACCOUNTS, account)
    await fed.client.create(SECRETS, token)
    await fed.deploy(replicas=1, policy="")
    await select(fed, "all", EVERYTHING, namespace="")
    await fed.eventually_replicas({"m1": 1, "m2": 1})
    await eventually(fed.quiet)
    made = (await fed.client.list(resources.FEDERATED_OBJECTS)).items
    assert [each["metadata"]["name"] for each in made] == ["web-deployments.apps"]
    wide = (await fed.client.list(resources.CLUSTER_FEDERATED_OBJECTS)).items
    assert [each["metadata"]["name"] for each in wide if keys.SELECTED_BY in each["metadata"]["annotations"]] == []


async def test_a_change_of_what_a_policy_selects_wakes_only_what_it_selects_or_did(fed, monkeypatch):
    for name in ("web", "api", "db"):
        await fed.deploy(name, replicas=1, policy="", tier=name)
    await fed.configure("settings", {"a": "b"}, policy="other")
    await select(fed, "all", {**DEPLOYED, "name": "web"})
    await fed.eventually_replicas({"m1": 1, "m2": 1})
    await eventually(fed.quiet)
    queue, woken = fed.inside.queue("federate"), set()
    add = queue.add

    def noting(key, *args, **more):
        woken.add(key.key)
        add(key, *args, **more)

    monkeypatch.setattr(queue, "add", noting)
    await change(fed, "all", resourceSelectors=[{**DEPLOYED, "name": "api"}])
    await fed.eventually_replicas({"m1": 1, "m2": 1}, name="api")
    await eventually(lambda: _is(held(fed), "NoLongerSelected"))
    await eventually(fed.quiet)
    assert woken == {"default/web", "default/api"}


async def test_another_selector_that_still_matches_writes_and_reschedules_nothing(fed):
    await select(fed, "all", DEPLOYED)
    await fed.deploy(replicas=1, policy="")
    await fed.eventually_replicas({"m1": 1, "m2": 1})
    await settled(fed)
    await quiet([Writes(fed.plane)], 1.0)
    writes = Writes(fed.plane)
    await change(fed, "all", resourceSelectors=[{**DEPLOYED, "name": "web"}], priority=3)
    await select(fed, "less", EVERYTHING, namespace="")
    await quiet([writes], 2.0)
    assert [key for key in writes.keys if "policies" not in key] == []


async def test_a_restart_writes_nothing_and_finds_what_was_narrowed_meanwhile(fed):
    await select(fed, "all", DEPLOYED)
    await fed.deploy(replicas=1, policy="")
    await fed.eventually_replicas({"m1": 1, "m2": 1})
    await settled(fed)
    await quiet([Writes(fed.plane)], 1.0)
    await fed.stop_controllers()
    writes = Writes(fed.plane)
    await fed.start_controllers()
    await eventually(fed.quiet)
    assert [key for key in writes.keys if "federatedclusters" not in key and "leases" not in key] == []
    await fed.stop_controllers()
    await change(fed, "all", resourceSelectors=[{"apiVersion": "v1", "kind": "Secret"}])
    await fed.start_controllers()
    await eventually(lambda: _is(held(fed), "NoLongerSelected"))
    assert await fed.replicas() == {"m1": 1, "m2": 1}


async def test_selecting_costs_no_more_writes_than_a_label():
    async with Federation(10, timings=PATIENT) as fed:
        await select(fed, "all", EVERYTHING)
        await eventually(fed.quiet)
        writes = Writes(fed.plane)
        await fed.deploy(replicas=1, policy="")
        await fed.eventually_replicas(dict.fromkeys(fed.names, 1))
        own = [key for key in writes.keys if key != "ADDED apps/deployments/default/web"]
        assert len(own) <= 4, own
        await settled(fed)


async def test_a_plan_shows_what_a_policy_would_claim_and_writes_nothing(fed):
    await fed.deploy(replicas=1, policy="")
    await fed.deploy("other", replicas=1, policy="")
    body = {
        "apiVersion": keys.API_VERSION,
        "kind": "PropagationPolicy",
        "metadata": {"name": "all", "namespace": "default"},
        "spec": {"schedulingMode": "Duplicate", "resourceSelectors": [{**DEPLOYED, "name": "web"}]},
    }
    scenario = Scenario(applied=(Manifest(body, "policy.yaml"),))
    found = await forecast_of(fed.client, scenario, "default", lambda _: None)
    assert [each.name for each in found.objects] == ["web"]
    assert found.total.added == 2
    assert not await fed.exists(resources.PROPAGATION_POLICIES, "all", "default")


@pytest.mark.parametrize(
    "selector",
    [
        {"labelSelector": {"matchExpressions": [{"key": "a b", "operator": "Exists"}]}},
        {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}},
        {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
        {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}},
        {"labelSelector": {"matchLabels": {"a": "not a value"}}},
        {"apiVersion": "apps"},
        {"kind": "deployments"},
    ],
)
async def test_a_bad_selector_is_refused_when_it_is_written(fed, selector):
    with pytest.raises(ApiError, match=r"spec\.resourceSelectors\[0\]\.") as refused:
        await select(fed, "bad", selector)
    assert refused.value.code == 422


async def test_a_namespaced_policy_has_no_namespace_selector(fed):
    stored = await select(fed, "all", {"kind": "Deployment", "namespaceSelector": {"matchLabels": {"a": "b"}}})
    assert stored["spec"]["resourceSelectors"] == [{"kind": "Deployment"}]


async def _is(found, expected):
    try:
        return await found == expected
    except NotFound:
        return False
