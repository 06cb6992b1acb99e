"""What `argosy plan` foretells and `argosy explain` tells, against what the members then have."""

from argosy.api import keys
from argosy.cli.client.manifests import Manifest
from argosy.cli.client.whatif import Scaled, Scenario, forecast_of
from argosy.cli.commands.apply import applied
from argosy.cli.output.explanation import explained, gather
from tests.harness.ground import World
from tests.harness.user import DEPLOYMENTS, weights
from tests.scenarios.seen import settled

__all__ = ["test_a_plan_and_an_explanation_agree_with_what_the_members_have"]

MOVING = {"reschedulePolicy": {"rescheduleWhen": {"policyContentChanged": True}}}


async def test_a_plan_and_an_explanation_agree_with_what_the_members_have(world: World) -> None:
    await world.policy(**weights(m1=1, m2=1, m3=1), **MOVING)
    await world.deploy(replicas=9)
    await world.eventually_replicas({"m1": 3, "m2": 3, "m3": 3})
    await settled(world)

    scaled = await foretold(world, Scenario(scaled=(Scaled("deploy", "web", 16),)))
    assert sum(scaled.values()) == 16
    await world.scale("web", 16)
    await world.eventually_replicas(scaled)
    await settled(world)

    policy = {
        "apiVersion": keys.API_VERSION,
        "kind": "PropagationPolicy",
        "metadata": {"name": "policy", "namespace": world.namespace},
        "spec": {"schedulingMode": "Divide", **weights(m2=3, m3=1), **MOVING},
    }
    moved = await foretold(world, Scenario(applied=(Manifest(policy, "test"),)))
    assert sorted(moved) == ["m2", "m3"]
    await applied(world.client, policy, world.namespace)
    await world.eventually_replicas(moved)

    told = explained(await gather(world.client, DEPLOYMENTS, "web", world.namespace), "m1")
    assert told.decision is not None
    assert told.cluster is not None
    assert told.decision.placements == moved
    assert not told.cluster.placed
    assert told.cluster.change, "it says what would bring it there"


async def foretold(world: World, supposed: Scenario) -> dict[str, int]:
    """Replicas of web by member, once this has happened. Other scenarios' objects may be on their way out."""
    wanted = dict(await world.replicas())
    made = await forecast_of(world.client, supposed, world.namespace, lambda _: None)
    (web,) = [each for each in made.objects if each.namespace == world.namespace]
    for change in web.clusters:
        if change.replicas_after is None:
            del wanted[change.cluster]
        else:
            wanted[change.cluster] = change.replicas_after
    return wanted
