"""A kind that is no longer federated: its objects can be deleted, its copies stay, and it can be taken up again."""

import msgspec
import pytest

from argosy.api import keys, resources
from argosy.kube.client import Patch
from tests.harness.eventually import eventually, holds
from tests.harness.federation import CONFIGMAPS, QUICK, Federation

TYPES = resources.FEDERATED_TYPE_CONFIGS
NAME = "settings-configmaps"
SOON = msgspec.structs.replace(QUICK, types_kept=1.0)


@pytest.fixture
async def fed():
    async with Federation(2, timings=SOON) as federation:
        await federation.policy(schedulingMode="Duplicate")
        await federation.configure("settings", {"color": "blue"})
        await eventually(lambda: copied(federation, "blue"))
        await eventually(federation.inside.idle)
        yield federation


async def copied(fed, color):
    copies = await fed.copies("settings", CONFIGMAPS)
    return [copy["data"]["color"] for copy in copies.values()] == [color] * 2


async def finalizers(fed):
    return (await fed.client.get(CONFIGMAPS, "settings", "default"))["metadata"].get("finalizers") or []


async def without_type(fed):
    """Its type config is gone. Returns it, to be created anew."""
    config = await fed.client.get(TYPES, "configmaps")
    await fed.client.delete(TYPES, "configmaps")
    return {**config, "metadata": {"name": "configmaps"}}


async def let_go(fed):
    return keys.FEDERATE_FINALIZER not in await finalizers(fed)


async def test_sources_are_let_go_and_copies_stay(fed):
    await without_type(fed)
    await eventually(lambda: let_go(fed))
    await eventually(lambda: fed.events("Released"))
    assert await copied(fed, "blue")
    await fed.client.delete(CONFIGMAPS, "settings", "default")

    async def gone():
        return not await fed.exists(resources.FEDERATED_OBJECTS, NAME, "default")

    await eventually(gone, why="its federated object goes with it")
    assert await copied(fed, "blue")


async def test_it_is_taken_up_again_with_its_type(fed):
    config = await without_type(fed)
    await eventually(lambda: let_go(fed))
    await fed.client.create(TYPES, config)

    async def taken_up():
        return keys.FEDERATE_FINALIZER in await finalizers(fed)

    await eventually(taken_up)
    await fed.client.patch(CONFIGMAPS, "settings", {"data": {"color": "red"}}, "default", kind=Patch.MERGE)
    await eventually(lambda: copied(fed, "red"))
    await fed.client.delete(CONFIGMAPS, "settings", "default")

    async def gone():
        return await fed.copies("settings", CONFIGMAPS) == {}

    await eventually(gone, why="its copies go as always")


async def test_a_type_that_is_replaced_costs_no_write(fed):
    config = await without_type(fed)
    before = await fed.client.get(CONFIGMAPS, "settings", "default")
    await fed.client.create(TYPES, config)

    async def kept():
        return await fed.client.get(CONFIGMAPS, "settings", "default") == before

    await holds(kept, 3.0)


async def test_what_nobody_federates_is_let_go_after_a_restart(fed):
    await fed.stop_controllers()
    await without_type(fed)
    await fed.start_controllers()
    await eventually(lambda: let_go(fed))
    assert await copied(fed, "blue")


async def test_a_type_config_that_cannot_be_understood_lets_nothing_go(fed):
    await fed.stop_controllers()
    config = await fed.client.get(TYPES, "configmaps")
    await fed.client.delete(TYPES, "configmaps")
    source = {**config["spec"]["sourceType"], "version": "v2"}
    spec = {**config["spec"], "sourceType": source}
    await fed.client.create(TYPES, {**config, "metadata": {"name": "others"}, "spec": spec})
    await fed.start_controllers()

    async def kept():
        return not await let_go(fed)

    await holds(kept, 3.0)


async def test_a_deletion_that_somebody_confirmed_waits_for_the_type(fed):
    config = await without_type(fed)
    await fed.annotate(resources.FEDERATED_OBJECTS, NAME, "default", **{keys.CONFIRM_DELETION: "true"})
    await eventually(lambda: let_go(fed))
    await fed.client.delete(CONFIGMAPS, "settings", "default")

    async def waits():
        return await fed.exists(resources.FEDERATED_OBJECTS, NAME, "default")

    await holds(waits, 3.0)
    await fed.client.create(TYPES, config)

    async def gone():
        return await fed.copies("settings", CONFIGMAPS) == {} and not await waits()

    await eventually(gone)


async def test_the_status_of_what_is_federated_no_more_says_so(fed):
    await without_type(fed)

    async def told():
        stated = (await fed.federated(NAME)).get("status", {}).get("conditions") or ()
        return any(each["type"] == "Propagated" and each.get("reason") == "NoTypeConfig" for each in stated)

    await eventually(told)
