"""The system namespace and our kinds are not deleted by accident; `uninstall` is the way."""

import pytest

from argosy.api import keys, resources
from argosy.control.install.uninstall import NotYet, uninstall
from argosy.kube.errors import Forbidden
from argosy.kube.resource import Resource
from tests.harness.eventually import eventually
from tests.harness.federation import CONFIGMAPS, NAMESPACES, Federation

DEFINITIONS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False)
OURS = f"federatedclusters.{keys.GROUP}"


async def test_neither_is_deleted_before_somebody_says_that_it_is_meant():
    async with Federation(0) as fed:
        with pytest.raises(Forbidden, match="argosy uninstall"):
            await fed.client.delete(NAMESPACES, keys.SYSTEM_NAMESPACE)
        with pytest.raises(Forbidden, match="argosy uninstall"):
            await fed.client.delete(DEFINITIONS, OURS)
        assert await fed.exists(DEFINITIONS, OURS)
        other = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}
        await fed.client.create(NAMESPACES, other)
        await fed.client.delete(NAMESPACES, "other")
        meant = {"metadata": {"annotations": {keys.UNINSTALL: "true"}}}
        await fed.client.patch(DEFINITIONS, OURS, meant)
        await fed.client.delete(DEFINITIONS, OURS)


async def test_it_is_uninstalled_once_the_members_have_left_and_sources_stay():
    async with Federation(1) as fed:
        await fed.policy(schedulingMode="Duplicate")
        await fed.configure("settings", {"key": "value"})

        async def arrived():
            return await fed.member("m1").get(CONFIGMAPS, "settings", "default")

        await eventually(arrived)
        with pytest.raises(NotYet, match="1 members are joined: m1"):
            await uninstall(fed.client, lambda text: None)
        await fed.client.delete(resources.FEDERATED_CLUSTERS, "m1")

        async def left():
            return not await fed.exists(resources.FEDERATED_CLUSTERS, "m1")

        await eventually(left)
        assert await uninstall(fed.client, lambda text: None) > 10
        assert not await fed.exists(DEFINITIONS, OURS)
        source = await fed.client.get(CONFIGMAPS, "settings", "default")
        assert not source["metadata"].get("finalizers")
        await arrived()  # nothing in members is touched
