"""The brake with 800 objects: what comes in over seconds is one flood, and nothing of it gets through."""

import asyncio

from argosy.api import keys, resources
from argosy.control.options import Options
from argosy.kube.client import Patch
from tests.harness.eventually import eventually
from tests.harness.federation import CONFIGMAPS, Federation

MANY = 800


async def test_labels_that_vanish_from_800_objects_one_by_one_take_nothing_away():
    async with Federation(2, options=Options()) as fed:
        await fed.policy(schedulingMode="Duplicate")
        names = [f"map-{number}" for number in range(MANY)]
        await asyncio.gather(*(fed.configure(name, {"key": "value"}) for name in names))
        await eventually(lambda: arrived(fed), 120)
        before = await copies(fed)
        for name in names:
            await relabel(fed, name, None)
            await asyncio.sleep(0.02)
        await eventually(lambda: all_held(fed, MANY), 120)
        assert await copies(fed) == before
        await asyncio.gather(*(relabel(fed, name, "policy") for name in names))
        await eventually(lambda: all_held(fed, 0), 120)
        assert await copies(fed) == before


async def relabel(fed: Federation, name: str, value: str | None) -> None:
    body = {"metadata": {"labels": {keys.PROPAGATION_POLICY_LABEL: value}}}
    await fed.client.patch(CONFIGMAPS, name, body, "default", kind=Patch.MERGE)


async def copies(fed: Federation) -> dict[tuple[str, str], tuple[str, str]]:
    """Uid and version of each."""
    return {
        (member, copy["metadata"]["name"]): (copy["metadata"]["uid"], copy["metadata"]["resourceVersion"])
        for member in fed.names
        for copy in (await fed.member(member).list(CONFIGMAPS)).items
        if copy["metadata"]["name"].startswith("map-")
    }


async def arrived(fed: Federation) -> bool:
    return len(await copies(fed)) == MANY * len(fed.names)


async def all_held(fed: Federation, count: int) -> bool:
    listed = (await fed.client.list(resources.FEDERATED_OBJECTS, "default")).items
    return sum(keys.HELD_REMOVAL in (each["metadata"].get("annotations") or {}) for each in listed) == count
