"""`argosy orphans` looks everywhere a copy can be, or says where it did not."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from argosy.api import keys, resources
from argosy.cli.client import inventory
from argosy.cli.client.inventory import Inventory, take_inventory
from argosy.kube.endpoints import DEFAULT_RULES
from argosy.kube.resource import Resource
from argosy.kube.transport import Request, Response
from argosy.plan.copies import orphans
from argosy.plan.explain.snapshot import ObjectKey
from argosy.server.auth.identity import Attributes, Authorizer, Decision
from tests.harness.federation import CONFIGMAPS, SERVICES
from tests.harness.membership import Party

pytestmark = pytest.mark.real_time("the command has a client of its own, over HTTPS")

DEFINITIONS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False)
WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
ENDPOINTS = Resource("", "v1", "endpoints", "Endpoints")
SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
EVERYWHERE = "No orphans: every copy in a member belongs to a federated object."


def definition(*versions: str) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    served = [{"name": name, "served": True, "storage": name == versions[0], "schema": schema} for name in versions]
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": served},
    }


def copy(resource: Resource, name: str, owner: dict[str, Any] | None = None, **content: Any) -> dict[str, Any]:
    """As it is in a member, of whichever federated object."""
    metadata: dict[str, Any] = {"name": name, "namespace": "default", "labels": {keys.MANAGED_LABEL: "true"}}
    if owner is not None:
        named = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"]}
        metadata["ownerReferences"] = [{**named, "uid": owner["metadata"]["uid"], "controller": True}]
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **content}


@pytest.fixture
async def fed() -> AsyncIterator[Party]:
    """The control plane may do everything in its one member."""
    async with Party(accounts=False) as party:
        await party.policy()
        yield party


async def look(party: Party) -> Inventory:
    return await take_inventory(party.client, DEFAULT_RULES, lambda text: None)


def told(found: Inventory) -> list[str]:
    return [each.copy.key.text for each in orphans.orphaned(found.copies, found.known)]


async def widgets(fed: Party, *versions: str) -> None:
    member = fed.member("m1")
    await member.create(DEFINITIONS, definition(*versions))
    await fed.eventually(lambda: member.list(WIDGETS))


async def test_copies_of_a_kind_that_is_not_federated_here_are_found(fed: Party, tmp_path: Path) -> None:
    """After a restore it may have been federated since the backup was made."""
    await fed.propagates()
    code, said = await fed.argosy(tmp_path, "orphans")
    assert (code, EVERYWHERE in said) == (0, True), said
    await widgets(fed, "v2", "v1")
    await fed.member("m1").create(WIDGETS, copy(WIDGETS, "left"))
    await fed.member("m1").create(
        WIDGETS, {**copy(WIDGETS, "own"), "metadata": {"name": "own", "namespace": "default"}}
    )
    assert told(await look(fed)) == ["widgets.example.com default/left"], "once, though it has two versions"
    code, said = await fed.argosy(tmp_path, "orphans", "--exit-code")
    assert code == 3, said
    assert "widgets.example.com/left" in said
    assert EVERYWHERE not in said


async def test_what_was_there_before_and_what_was_rescued_is_told_apart(fed: Party, tmp_path: Path) -> None:
    member = fed.member("m1")
    adopted, rescued = copy(CONFIGMAPS, "adopted"), copy(CONFIGMAPS, "rescued")
    adopted["metadata"]["annotations"] = {keys.ADOPTED: "true"}
    rescued["metadata"] |= {"labels": {}, "annotations": {keys.RESCUED: "true"}}
    own = {**copy(CONFIGMAPS, "own"), "metadata": {"name": "own", "namespace": "default"}}
    for each in (adopted, rescued, own):
        await member.create(CONFIGMAPS, each)
    assert told(await look(fed)) == ["configmaps default/adopted"]
    code, said = await fed.argosy(tmp_path, "orphans", "--rescued", "-o", "json")
    assert code == 0, said
    found = {each["name"]: (each["why"], each["adopted"], each["rescued"]) for each in json.loads(said)["orphans"]}
    assert found == {
        "adopted": ("no federated object; it was there before it was adopted", True, False),
        "rescued": ("rescued when its source was deleted", False, True),
    }
    code, said = await fed.argosy(tmp_path, "orphans", "--rescued", "--exit-code")
    assert code == 3
    assert "kubectl label KIND NAME" in said


async def test_all_pages_are_read(fed: Party) -> None:
    await widgets(fed, "v1")
    for number in range(30):
        await fed.member("m1").create(WIDGETS, copy(WIDGETS, f"w{number:02}", filler="x" * 400_000))
    assert told(await look(fed)) == [f"widgets.example.com default/w{number:02}" for number in range(30)]


async def test_what_a_member_makes_of_copies_is_no_orphan(fed: Party) -> None:
    """Endpoints and their slices get the labels of their Service."""
    member = fed.member("m1")
    service = await member.create(SERVICES, copy(SERVICES, "web", spec={"ports": [{"port": 80}]}))
    endpoints = [{"addresses": ["10.0.0.1"]}]
    await member.create(ENDPOINTS, copy(ENDPOINTS, "web"))
    await member.create(SLICES, copy(SLICES, "web-1", service, addressType="IPv4", endpoints=endpoints))
    await member.create(ENDPOINTS, copy(ENDPOINTS, "alone"))
    assert told(await look(fed)) == ["endpoints default/alone", "services default/web"]


async def test_copies_whose_type_config_is_gone_are_no_orphans(fed: Party) -> None:
    """Their federated objects still name them."""
    label = {keys.PROPAGATION_POLICY_LABEL: "policy"}
    source = {"metadata": {"name": "map", "namespace": "default", "labels": label}}
    await fed.client.create(CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", **source})
    await fed.eventually(lambda: fed.member("m1").get(CONFIGMAPS, "map", "default"))
    await fed.client.delete(resources.FEDERATED_TYPE_CONFIGS, "configmaps")
    found = await look(fed)
    assert ObjectKey("configmaps", "default", "map") in {each.key for each in found.copies}
    assert told(found) == []


async def test_kinds_that_may_not_be_listed_are_told(party: Party, tmp_path: Path) -> None:
    """A service account may list what is federated, and no more."""
    await party.forget_user()
    await party.propagates()
    await widgets(party, "v1")
    await party.member("m1").create(WIDGETS, copy(WIDGETS, "left"))
    found = await look(party)
    assert found.looked_at == {"m1"}
    assert found.unlisted["m1"]["widgets.example.com"] == "the control plane may not list it there"
    assert not {"deployments.apps", "configmaps", "tokenreviews.authentication.k8s.io"} & set(found.unlisted["m1"])
    code, said = await party.argosy(tmp_path, "orphans")
    assert code == 1, said
    assert "could not be listed" in said
    assert EVERYWHERE not in said
    assert "No orphans in what could be looked at." in said
    code, said = await party.argosy(tmp_path, "orphans", "-o", "json")
    assert code == 1
    report = json.loads(said[: said.rindex("}") + 1])
    assert "widgets.example.com" in report["notListed"]["m1"]


class _Denying:
    """An Authorizer that lets nobody list some kinds."""

    def __init__(self, authorizer: Authorizer, *plurals: str):
        self._authorizer = authorizer
        self._plurals = plurals

    def authorize(self, attributes: Attributes) -> Decision:
        if attributes.verb == "list" and attributes.resource in self._plurals:
            return Decision(False, "not today")
        return self._authorizer.authorize(attributes)


async def test_of_a_federated_kind_that_cannot_be_listed_nothing_is_called_missing(fed: Party) -> None:
    await fed.propagates()
    await widgets(fed, "v1")
    await fed.member("m1").create(WIDGETS, copy(WIDGETS, "left"))
    server = fed.servers["m1"].server
    server.authorizer = _Denying(server.authorizer, "deployments")
    found = await look(fed)
    assert list(found.unlisted["m1"]) == ["deployments.apps"]
    assert orphans.missing(found.copies, found.placed, found.looked_at) == []
    assert told(found) == ["widgets.example.com default/left"], "what could be found out is told all the same"


async def test_a_kind_that_does_not_answer_is_told_and_the_others_are_looked_at(
    fed: Party, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inventory, "_PATIENCE", 2.0)
    await fed.propagates()
    await widgets(fed, "v1")
    server = fed.servers["m1"].server
    await fed.member("m1").create(ENDPOINTS, copy(ENDPOINTS, "left"))
    await fed.stop_controllers()
    handle = server.handle

    async def slow(request: Request, user: Any) -> Response:
        if "/widgets" in request.path:
            await asyncio.sleep(600)
        return await handle(request, user)

    monkeypatch.setattr(server, "handle", slow)
    found = await look(fed)
    assert found.unlisted == {"m1": {"widgets.example.com": "it did not answer in time"}}
    assert found.looked_at == {"m1"}
    assert told(found) == ["endpoints default/left"]
