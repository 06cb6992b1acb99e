"""A stock kube-apiserver takes the schema of propagation policies, fills in what is left out, and refuses what makes no sense."""

import copy

import pytest

from argosy.api import crds, keys, resources
from argosy.kube.errors import Invalid
from argosy.kube.resource import Resource
from tests.harness.eventually import eventually
from tests.unit.plan.test_rules import EVERYTHING, REGION

CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)


@pytest.fixture
async def policies(client):
    """The kind, for as long as the test lasts."""
    [manifest] = [each for each in crds.manifests() if each["spec"]["names"]["kind"] == "PropagationPolicy"]
    name = manifest["metadata"]["name"]
    await client.create(CRDS, manifest)

    async def served():
        # It is said to be established a little before it is answered for.
        return await client.list(resources.PROPAGATION_POLICIES) is not None

    await eventually(served)
    yield resources.PROPAGATION_POLICIES
    await client.delete(CRDS, name)


def policy(name, namespace, **changes):
    metadata = {"name": name, "namespace": namespace}
    spec = {**copy.deepcopy(EVERYTHING), **changes}
    return {"apiVersion": keys.API_VERSION, "kind": "PropagationPolicy", "metadata": metadata, "spec": spec}


async def test_rules_are_kept_completed_and_checked(client, namespace, policies):
    stored = await client.create(
        policies, policy("all", namespace, computePower={}, failureDomain={"topologyKey": "z"})
    )
    assert stored["spec"]["computePower"] == {"normalizeCapacity": True, "preferConsistent": True}
    assert stored["spec"]["failureDomain"]["maxUnreadyPercent"] == 50
    assert stored["spec"]["topologySpreadConstraints"][0]["whenUnsatisfiable"] == "DoNotSchedule"
    for part, value in EVERYTHING.items():
        assert part in stored["spec"], value
    for wrong in (
        {"topologySpreadConstraints": [{"topologyKey": REGION, "maxSkew": 0}]},
        {"topologySpreadConstraints": [{"maxSkew": 1}]},
        {"locality": {"near": []}},
        {"failureDomain": {"topologyKey": REGION, "maxUnreadyPercent": 100}},
        {"workloadAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": REGION}]}},
        {"preferredClusterAffinity": [{"weight": 0, "preference": {}}]},
        {"cost": {"maxPricePerCoreHour": []}},
    ):
        with pytest.raises(Invalid) as refused:
            await client.create(policies, policy("wrong", namespace, **wrong))
        assert f"spec.{next(iter(wrong))}" in str(refused.value)
