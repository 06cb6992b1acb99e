"""What the loops measure of themselves."""

import asyncio

from argosy.api import keys
from tests.harness.eventually import eventually
from tests.harness.federation import NAMESPACES, Federation


async def test_how_long_a_write_takes_is_not_measured_of_objects_that_were_there_before_a_start() -> None:
    async with Federation(2) as fed:

        def measured(what: str) -> float:
            name = f"argosy_{what}_seconds_count"
            return fed.manager.metrics.registry.get_sample_value(name, {"type": "deployments.apps"}) or 0.0

        await fed.policy()
        await fed.deploy(replicas=2)
        await eventually(lambda: measured("propagation") == 1)
        await fed.stop_controllers()
        await asyncio.sleep(100.0)
        await fed.start_controllers()
        await eventually(fed.quiet)
        await fed.eventually_replicas({"m1": 1, "m2": 1})
        # Status and cluster changes make all objects be looked at again.
        await asyncio.sleep(30.0)
        assert (measured("propagation"), measured("status_return")) == (0, 0)
        await fed.scale("web", 4)
        await eventually(lambda: measured("propagation") == 1)
        # One that is new is measured.
        await fed.deploy("other", replicas=2)
        await eventually(lambda: measured("propagation") == 2)


async def test_the_system_namespace_is_marked_whoever_made_it() -> None:
    async with Federation(0) as fed:
        await fed.stop_controllers()
        body = {"metadata": {"annotations": {keys.NO_FEDERATED_RESOURCE: None}}}
        await fed.client.patch(NAMESPACES, keys.SYSTEM_NAMESPACE, body)
        await fed.start_controllers()

        async def marked() -> bool:
            found = await fed.client.get(NAMESPACES, keys.SYSTEM_NAMESPACE)
            return bool((found["metadata"].get("annotations") or {}).get(keys.NO_FEDERATED_RESOURCE) == "true")

        await eventually(marked, 5.0)
        assert fed.manager.problems() == []
