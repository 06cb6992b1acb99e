"""Kinds of one's own under a policy get a type config by themselves, and lose it when nobody claims them any more."""

import asyncio

import msgspec
import pytest

from argosy.api import keys, resources
from argosy.control.caches.informers import DEFINITIONS
from argosy.control.options import Options
from argosy.kube.client import Patch
from argosy.kube.informer import Informer
from argosy.kube.resource import Resource
from tests.harness.definitions import CRDS, scaled_definition
from tests.harness.eventually import eventually, holds
from tests.harness.federation import NAMESPACES, QUICK, Federation

TYPES = resources.FEDERATED_TYPE_CONFIGS
NAME = "widgets.example.com"
WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
LABELS = {keys.PROPAGATION_POLICY_LABEL: "policy"}
SOON = msgspec.structs.replace(QUICK, types_kept=0.5)
SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}


def definition(scale=True, **annotations):
    made = scaled_definition(WIDGETS)
    made["metadata"]["annotations"] = annotations
    if scale:
        made["spec"]["versions"][0]["subresources"]["scale"] = SCALE
    return made


@pytest.fixture
async def fed():
    async with Federation(2, timings=SOON) as federation:
        for name in federation.names:
            await federation.member(name).create(CRDS, definition())
        yield federation


async def defined(fed, **annotations):
    await fed.client.create(CRDS, definition(**annotations))
    await eventually(lambda: fed.client.list(WIDGETS, into=bytes))


def widget(name="one", labels=LABELS):
    metadata = {"name": name, "namespace": "default", "labels": labels}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": {"replicas": 4}}


async def divided(fed):
    found = await fed.copies("one", WIDGETS)
    return {name: copy["spec"]["replicas"] for name, copy in found.items()} == {"m1": 2, "m2": 2}


async def has_type(fed):
    return await fed.exists(TYPES, NAME)


async def has_no_type(fed):
    return not await has_type(fed)


async def test_an_object_that_names_a_policy_makes_its_kind_federated(fed):
    await defined(fed)
    await fed.policy(placement=[{"cluster": "m1"}, {"cluster": "m2"}])
    await fed.client.create(WIDGETS, widget(labels={}))
    await holds(lambda: has_no_type(fed), 1.0)
    await fed.client.patch(WIDGETS, "one", {"metadata": {"labels": LABELS}}, "default", kind=Patch.MERGE)
    await eventually(lambda: divided(fed))
    stored = await fed.client.get(TYPES, NAME)
    assert stored["metadata"]["labels"] == {keys.DERIVED: "true"}
    assert stored["spec"]["pathDefinition"]["replicasSpec"] == "spec.replicas"
    [event] = await fed.events("TypeConfigMade")
    assert "members that lack the definition" in event["message"]


async def test_it_goes_when_nobody_claims_such_objects(fed):
    await defined(fed)
    await fed.policy(placement=[{"cluster": "m1"}, {"cluster": "m2"}])
    await fed.client.create(WIDGETS, widget())
    await eventually(lambda: divided(fed))
    await fed.client.delete(WIDGETS, "one", "default")
    await eventually(lambda: has_no_type(fed))
    assert await fed.copies("one", WIDGETS) == {}


async def test_a_policy_that_selects_the_kind_makes_it_and_one_that_selects_all_when_there_is_an_object(fed):
    await defined(fed)
    await fed.policy(resourceSelectors=[{"apiVersion": "example.com/v1", "kind": "Widget"}])
    await eventually(lambda: has_type(fed))
    spec = {"spec": {"resourceSelectors": [{"labelSelector": {"matchLabels": {"app": "web"}}}]}}
    kind = resources.PROPAGATION_POLICIES
    await fed.client.patch(kind, "policy", spec, "default", kind=Patch.MERGE)
    await eventually(lambda: has_no_type(fed))
    await fed.client.create(WIDGETS, widget("other", {}))
    await holds(lambda: has_no_type(fed), 1.0)
    await fed.client.create(WIDGETS, widget(labels={"app": "web"}))
    await eventually(lambda: divided(fed))


async def test_a_cluster_policy_that_selects_the_kind_makes_it(fed):
    await defined(fed)
    await eventually(fed.quiet)
    await select_all(fed, apiVersion="example.com/v1", kind="Widget")
    await eventually(lambda: has_type(fed))


async def select_all(fed, **selector):
    spec = {"schedulingMode": "Duplicate", "resourceSelectors": [selector]}
    kind = resources.CLUSTER_PROPAGATION_POLICIES
    body = {"apiVersion": keys.API_VERSION, "kind": kind.kind, "metadata": {"name": "all"}, "spec": spec}
    await fed.client.create(kind, body)


async def test_an_object_is_claimed_once_its_namespace_has_the_labels(fed):
    await defined(fed)
    await select_all(fed, namespaceSelector={"matchLabels": {"team": "red"}})
    await fed.client.create(WIDGETS, widget(labels={}))
    await holds(lambda: has_no_type(fed), 1.0)
    await fed.client.patch(NAMESPACES, "default", {"metadata": {"labels": {"team": "red"}}}, kind=Patch.MERGE)
    await eventually(lambda: has_type(fed))


async def test_a_policy_of_a_namespace_makes_nothing_of_a_kind_without_one(fed):
    wide = definition()
    wide["spec"]["scope"] = "Cluster"
    await fed.client.create(CRDS, wide)
    await fed.policy(resourceSelectors=[{"apiVersion": "example.com/v1", "kind": "Widget"}])
    await holds(lambda: has_no_type(fed), 2.0)
    await select_all(fed, apiVersion="example.com/v1", kind="Widget")
    await eventually(lambda: has_type(fed))


async def test_a_definition_that_cannot_be_read_is_not_absent(fed, monkeypatch):
    await defined(fed)
    await fed.policy(resourceSelectors=[{"apiVersion": "example.com/v1", "kind": "Widget"}])
    await eventually(lambda: has_type(fed))
    before = (await fed.client.get(TYPES, NAME))["metadata"]["uid"]
    await fed.stop_controllers()
    readable, run = asyncio.Event(), Informer.run

    async def refused_at_first(informer):
        if informer.resource == DEFINITIONS:
            informer.tried.set()
            await readable.wait()
        await run(informer)

    monkeypatch.setattr(Informer, "run", refused_at_first)
    await fed.start_controllers()

    async def stays():
        return (await fed.client.get(TYPES, NAME))["metadata"]["uid"] == before

    await holds(stays, 2.0)
    readable.set()
    await holds(stays, 1.0)


async def test_one_that_somebody_deletes_is_made_again_while_it_is_claimed(fed):
    await defined(fed)
    await fed.policy(resourceSelectors=[{"apiVersion": "example.com/v1", "kind": "Widget"}])
    await eventually(lambda: has_type(fed))
    before = (await fed.client.get(TYPES, NAME))["metadata"]["uid"]
    await fed.client.delete(TYPES, NAME)

    async def anew():
        return (await fed.client.get(TYPES, NAME))["metadata"]["uid"] != before

    await eventually(anew)


async def test_it_follows_its_definition_unless_somebody_changed_it(fed):
    await fed.client.create(CRDS, definition(scale=False))
    await fed.policy(resourceSelectors=[{"apiVersion": "example.com/v1", "kind": "Widget"}])
    await eventually(lambda: has_type(fed))
    await fed.client.patch(CRDS, NAME, {"spec": definition()["spec"]}, kind=Patch.MERGE)

    async def follows():
        return "pathDefinition" in (await fed.client.get(TYPES, NAME))["spec"]

    await eventually(follows)
    theirs = {"spec": {"pathDefinition": {"replicasSpec": "spec.size"}}}
    await fed.client.patch(TYPES, NAME, theirs, kind=Patch.MERGE)
    await fed.client.patch(CRDS, NAME, {"spec": definition(scale=False)["spec"]}, kind=Patch.MERGE)

    async def kept():
        return (await fed.client.get(TYPES, NAME))["spec"]["pathDefinition"]["replicasSpec"] == "spec.size"

    await holds(kept, 1.0)


async def test_what_runs_whole_is_not_divided_because_its_definition_comes_to_say_where_replicas_are(fed):
    await fed.client.create(CRDS, definition(scale=False))
    await eventually(lambda: fed.client.list(WIDGETS, into=bytes))
    await fed.policy(placement=[{"cluster": "m1"}, {"cluster": "m2"}])
    await fed.client.create(WIDGETS, widget())

    async def whole():
        found = await fed.copies("one", WIDGETS)
        return {name: copy["spec"]["replicas"] for name, copy in found.items()} == {"m1": 4, "m2": 4}

    await eventually(whole)
    await fed.client.patch(CRDS, NAME, {"spec": definition()["spec"]}, kind=Patch.MERGE)
    await eventually(lambda: fed.events("TypeConfigLeft"))
    await fed.stop_controllers()
    await fed.start_controllers()
    await holds(whole, 2.0)
    [event] = await fed.events("TypeConfigLeft")
    assert event["involvedObject"]["name"] == NAME
    assert "set pathDefinition.replicasSpec" in event["message"]
    await fed.client.patch(TYPES, NAME, {"spec": {"pathDefinition": {"replicasSpec": "spec.replicas"}}})
    await eventually(lambda: divided(fed))


async def test_one_that_somebody_changed_stays_when_nobody_claims_such_objects(fed):
    await defined(fed)
    await fed.policy(placement=[{"cluster": "m1"}, {"cluster": "m2"}])
    await fed.client.create(WIDGETS, widget())
    await eventually(lambda: divided(fed))
    await fed.client.patch(TYPES, NAME, {"spec": {"statusAggregation": {"enabled": False}}}, kind=Patch.MERGE)
    await eventually(fed.quiet)
    await fed.client.delete(WIDGETS, "one", "default")
    await holds(lambda: has_type(fed), 3.0)


async def test_it_goes_on_following_after_a_path_went(fed):
    more = definition()
    more["spec"]["versions"][0]["subresources"]["scale"] = {**SCALE, "labelSelectorPath": ".status.selector"}
    await fed.client.create(CRDS, more)
    await fed.policy(resourceSelectors=[{"apiVersion": "example.com/v1", "kind": "Widget"}])

    async def paths():
        return (await fed.client.get(TYPES, NAME))["spec"].get("pathDefinition", {}) if await has_type(fed) else {}

    async def has(selector, replicas):
        found = await paths()
        return ("labelSelector" in found, found.get("replicasSpec")) == (selector, replicas)

    await eventually(lambda: has(True, "spec.replicas"))
    await fed.client.patch(CRDS, NAME, {"spec": definition()["spec"]}, kind=Patch.MERGE)
    await eventually(lambda: has(False, "spec.replicas"))
    sized = definition()
    sized["spec"]["versions"][0]["subresources"]["scale"] = {**SCALE, "specReplicasPath": ".spec.size"}
    await fed.client.patch(CRDS, NAME, {"spec": sized["spec"]}, kind=Patch.MERGE)
    await eventually(lambda: has(False, "spec.size"))


async def test_a_definition_says_that_nothing_is_made_of_it(fed):
    await defined(fed, **{keys.MAKE_TYPE_CONFIG: "false"})
    await fed.policy()
    await fed.client.create(WIDGETS, widget())
    await holds(lambda: has_no_type(fed), 1.0)
    await fed.client.patch(CRDS, NAME, {"metadata": {"annotations": None}}, kind=Patch.MERGE)
    await eventually(lambda: has_type(fed))


async def test_the_controllers_may_be_told_to_make_none():
    async with Federation(1, options=Options(make_type_configs=False)) as fed:
        await defined(fed)
        await fed.policy()
        await fed.client.create(WIDGETS, widget())
        await holds(lambda: has_no_type(fed), 1.0)
