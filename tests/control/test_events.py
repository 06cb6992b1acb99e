"""Events are recorded on the source and on its federated object, with KubeAdmiral's reasons."""

from typing import Any

from argosy.api import keys, resources
from argosy.cli.output.report import gather, report
from tests.harness.eventually import eventually
from tests.harness.federation import DEPLOYMENTS, EVENTS, Federation

BOTH = {"Deployment", "FederatedObject"}


async def test_events_are_on_both_objects() -> None:
    async with Federation(2) as fed:
        await fed.policy()
        await fed.deploy(replicas=2)
        for reason in ("ScheduleFederatedObject", "CreateInCluster"):
            found = await eventually(lambda reason=reason: _on_both(fed, reason))
            assert {each["message"] for each in found} == {found[0]["message"]}
            names = {each["involvedObject"]["kind"]: each["involvedObject"]["name"] for each in found}
            assert names == {"Deployment": "web", "FederatedObject": "web-deployments.apps"}
            assert all(each["involvedObject"]["uid"] for each in found)


async def test_a_copy_that_is_refused_is_told_on_both_and_by_status() -> None:
    async with Federation(1) as fed:
        await fed.policy()
        patch = {"operator": "replace", "path": "/spec/template/spec/containers/0/name", "value": "No Name"}
        policy = {
            "apiVersion": keys.API_VERSION,
            "kind": "OverridePolicy",
            "metadata": {"name": "differ", "namespace": "default"},
            "spec": {"overrideRules": [{"overriders": {"jsonpatch": [patch]}}]},
        }
        await fed.client.create(resources.OVERRIDE_POLICIES, policy)
        await fed.deploy(replicas=2, **{keys.OVERRIDE_POLICY_LABEL: "differ"})
        found = await eventually(lambda: _on_both(fed, "CreateInClusterFailed"))
        assert all(each["type"] == "Warning" and each["message"].startswith("m1: ") for each in found)
        (line,) = report(await gather(fed.client, DEPLOYMENTS, "web", "default")).clusters
        assert line.propagation == "CreationFailed"
        assert "No Name" in line.error


async def test_copies_that_stay_when_their_source_goes_are_told_of() -> None:
    async with Federation(1) as fed:
        await fed.policy()
        await fed.deploy(replicas=2)
        await fed.eventually_replicas({"m1": 2})
        await fed.annotate(DEPLOYMENTS, "web", "default", **{keys.ORPHAN: "all"})
        await eventually(fed.quiet)
        await fed.client.delete(DEPLOYMENTS, "web", "default")
        found = await eventually(lambda: _on_both(fed, "RemoveManagedLabelFromInCluster"))
        assert {each["message"] for each in found} == {"left as it is in m1"}


async def _on_both(fed: Federation, reason: str) -> list[dict[str, Any]]:
    found = [event for event in (await fed.client.list(EVENTS)).items if event["reason"] == reason]
    return found if {each["involvedObject"]["kind"] for each in found} == BOTH else []
