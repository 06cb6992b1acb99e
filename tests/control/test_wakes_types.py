"""Whoever has to hear of federated types does; see `test_wakes.py`."""

import asyncio
import contextlib

import msgspec
import pytest

from argosy.api import keys, resources, rights
from argosy.control.manager import Manager
from argosy.kube.client import Patch
from argosy.server.auth.identity import User as Identity
from tests.harness.eventually import eventually
from tests.harness.federation import DEPLOYMENTS, QUICK, Federation
from tests.harness.membership import Party, widget_type
from tests.harness.user import weights
from tests.harness.virtual_server import connector

TYPES = resources.FEDERATED_TYPE_CONFIGS
#: Members are not looked at again by themselves.
SELDOM = msgspec.structs.replace(QUICK, health_period=30.0)


@pytest.fixture
async def fed():
    async with Federation(2) as federation:
        yield federation


async def test_what_is_read_of_copies_follows_their_type(fed):
    await fed.policy(schedulingMode="Duplicate")
    await fed.configure("settings", {"color": "blue"})
    await eventually(lambda: _collected(fed, "settings-configmaps"))
    collecting = {"spec": {"statusCollection": {"enabled": True, "fields": ["data"]}}}
    await fed.client.patch(TYPES, "configmaps", collecting, kind=Patch.MERGE)

    async def read():
        found = await _collected(fed, "settings-configmaps")
        return [each["collectedFields"] for each in found.values()] == [{"data": {"color": "blue"}}] * 2

    await eventually(read)


async def test_what_a_type_says_of_replicas_counts_for_objects_that_are_there(fed):
    """Where nothing says how many replicas there are, there is nothing to divide."""
    await fed.policy(**weights(m1=1, m2=1))
    await fed.deploy(replicas=4)
    await fed.eventually_replicas({"m1": 2, "m2": 2})
    await eventually(fed.inside.idle)
    without = {"spec": {"pathDefinition": {"replicasSpec": None}}}
    await fed.client.patch(TYPES, "deployments.apps", without, kind=Patch.MERGE)
    await fed.eventually_replicas({"m1": 4, "m2": 4})


async def test_a_deletion_that_was_confirmed_while_there_was_no_type_goes_on_with_it(fed):
    """Its source and its copy are gone: nothing else tells that its type is back."""
    await fed.policy(**weights(m1=1))
    await fed.deploy(replicas=2)
    await fed.eventually_replicas({"m1": 2})
    await eventually(fed.inside.idle)
    await fed.stop_controllers()
    await fed.client.delete(DEPLOYMENTS, "web", "default")
    await fed.client.patch(DEPLOYMENTS, "web", {"metadata": {"finalizers": None}}, "default")

    async def terminating():
        return (await fed.federated())["metadata"].get("deletionTimestamp")

    await eventually(terminating)
    await fed.start_controllers()
    await eventually(lambda: fed.events("EnsureDeletionFailed"))
    config = await fed.client.get(TYPES, "deployments.apps")
    await fed.client.delete(TYPES, "deployments.apps")
    await eventually(lambda: fed.inside.catalog.get("deployments.apps") is None)
    await fed.annotate(
        resources.FEDERATED_OBJECTS, "web-deployments.apps", "default", **{keys.CONFIRM_DELETION: "true"}
    )
    seen = fed.inside.caches.federated[True]
    confirmed = "default/web-deployments.apps"
    await eventually(lambda: keys.CONFIRM_DELETION in seen.get(confirmed).metadata.annotations)
    await fed.member("m1").delete(DEPLOYMENTS, "web", "default")
    await eventually(fed.quiet)
    config["metadata"] = {"name": "deployments.apps"}
    await fed.client.create(TYPES, config)

    async def gone():
        return not await fed.exists(resources.FEDERATED_OBJECTS, "web-deployments.apps", "default")

    await eventually(gone)


async def test_rights_in_members_follow_the_types_at_once():
    async with Party(timings=SELDOM) as party:
        await party.policy()
        await party.propagates("before")
        await party.propagates("later")
        await party.client.create(TYPES, widget_type())
        await party.eventually(lambda: party.has_right_to("widgets"))


async def test_a_type_that_the_controllers_have_no_rights_to_is_told():
    async with Federation(0) as fed:
        await fed.stop_controllers()
        account = Identity(rights.username(rights.SERVICE_ACCOUNT), ("system:authenticated",))
        running = asyncio.create_task(Manager(fed.plane.client(account), timings=QUICK, connect=connector()).run())
        try:
            source = {"group": "example.com", "version": "v1", "kind": "Widget", "pluralName": "widgets"}
            config = {
                "apiVersion": keys.API_VERSION,
                "kind": "FederatedTypeConfig",
                "metadata": {"name": "widgets.example.com"},
                "spec": {
                    "sourceType": {**source, "scope": "Namespaced"},
                    "controllers": [[keys.GLOBAL_SCHEDULER]],
                },
            }
            await fed.client.create(TYPES, config)
            (event, *_) = await eventually(lambda: fed.events("MissingRights"))
            assert "may not get widgets.example.com, list widgets.example.com" in event["message"]
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running


async def _collected(fed, name):
    found = await fed.client.get(resources.COLLECTED_STATUSES, name, "default")
    return {each["cluster"]: each for each in found["clusters"]}
